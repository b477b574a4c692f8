"""Known mistakes, each with its false claim: what the auditor must find.

They exist only here; nothing in privamp calls them.
"""

import math

import numpy as np

from ..accounting.composition import compose
from ..amplification import amplify
from ..chance.keys import Key
from ..chance.stream import Stream
from ..core.population import Population
from ..designs.multistage import MultiStage
from ..designs.poisson import Poisson
from ..designs.proportional import Proportional
from ..mechanisms.gaussian import Gaussian
from ..mechanisms.laplace import Laplace
from ..mechanisms.norm_noise import directions
from ..numerics.log_domain import FloatArray
from ..papers.must.printed_accountant_invalid import invalid_printed_deltas
from .audit import Audit
from .release import rounds_score


def exponential_radius() -> Audit:
    """Norm noise with an Exponential radius instead of Gamma(d): code released with the importance-sampling paper."""
    d, scale = 10, 1.0
    record = np.zeros(d)
    record[0] = 1.0

    def run(there: bool, runs: int) -> FloatArray:
        stream = Stream.from_os()
        radius = scale * stream.gammas(1.0, (runs,))
        return there * record + radius[:, None] * directions(2.0, (runs, d), stream)

    def score(rows: FloatArray) -> FloatArray:
        near, far = np.linalg.norm(rows - record, axis=1), np.linalg.norm(rows, axis=1)
        return np.asarray((far - near) / scale + (d - 1) * (np.log(far) - np.log(near)))

    return Audit("exponential radius", "norm noise in 10 dimensions whose radius is Exponential", 1.0, run, score=score)


def low_bits() -> Audit:
    """Textbook Laplace noise in binary floating point: which sums of doubles are possible depends on the value."""

    def run(there: bool, runs: int) -> FloatArray:
        generator = np.random.default_rng(int(Stream.from_os().words(1)[0]))
        return float(there) + generator.laplace(0.0, 10.0, (runs, 1))

    return Audit("low bits", "NumPy's Laplace noise added to a double, epsilon 0.1", 0.1, run)


def amplify_then_add() -> Audit:
    """Twenty queries on one sample, each amplified and the results added up, instead of composed inside the sample."""
    queries, noise, design = 20, Laplace(2.0), Poisson(0.1)
    claimed = queries * amplify(noise, design).epsilon()

    def run(there: bool, runs: int) -> FloatArray:
        stream = Stream.from_os()
        kept = (stream.uniforms(runs) < design.rate) & there
        return kept[:, None] + noise.scale * stream.laplaces((runs, queries))

    def score(rows: FloatArray) -> FloatArray:
        return np.asarray((np.abs(rows) - np.abs(rows - 1.0)).sum(axis=1))

    what = "twenty epsilon-0.5 queries on one 10% sample, amplified one by one"
    return Audit("amplify, then add", what, claimed, run, score=score, trials=100_000)


def deterministic_rounding() -> Audit:
    """A proportional sample whose size is rounded by rule, claimed to amplify as if it were rounded at random."""
    design, noise = Proportional(0.05, rounding="half-up"), Laplace(1.0)
    claimed = amplify(noise, Proportional(0.05)).epsilon()

    def run(there: bool, runs: int) -> FloatArray:
        people = Population(9 + there)  # a tenth person makes the rounded size jump from 0 to 1
        ones, key = np.ones(people.size), Key.generate()
        return np.array([design.draw(people, key, r).release(noise, ones) for r in range(runs)])[:, None]

    what = "a 5% sample of 9 or 10 people, size rounded half up, claimed with the law of random rounding"
    return Audit("deterministic rounding", what, claimed, run, score=lambda rows: rows[:, 0])


def printed_pair() -> Audit:
    """Many rounds of a multi-stage sample, certified by the pair (sum p_u N(u), sum p_u N(-u)) that MUST prints."""
    design, rounds, sigma = MultiStage((("wor", 20), ("wr", 40)), 200), 20, 4.0
    law = design.appearances()
    counts = np.arange(law.log_p.size + 1)
    chances = np.append(1.0 - math.fsum(np.exp(law.log_p)), np.exp(law.log_p))

    def run(there: bool, runs: int) -> FloatArray:
        stream = Stream.from_os()
        steps = np.searchsorted(np.cumsum(chances), stream.uniforms((runs, rounds)), side="right")
        copies = counts[np.minimum(steps, counts.size - 1)] * there
        return 2.0 * copies + sigma * stream.normals((runs, rounds))  # the others all hold -1

    epsilon = 1.0
    printed = invalid_printed_deltas(law, sigma, epsilon, [rounds], grid=50_000)[0].value
    what = "20 rounds of a two-stage sample, claimed with the pair printed by MUST"
    score = rounds_score(chances, 2.0, sigma)
    return Audit("MUST's printed pair", what, epsilon, run, delta=printed, score=score, trials=24_000)


def uncapped_envelope() -> Audit:
    """DPIS with an envelope that may pass the clipping bound: a record is drawn more often than was accounted."""
    rate, growth, multiplier, steps, delta = 0.05, 5.0, 2.0, 100, 1e-3
    claimed = compose(amplify(Gaussian(multiplier), Poisson(rate)), steps).epsilon(delta)
    drawn = min(1.0, growth * rate)  # a gradient of norm 5C enters with 5 times the accounted chance

    def run(there: bool, runs: int) -> FloatArray:
        stream = Stream.from_os()
        kept = (stream.uniforms((runs, steps)) < drawn) & there
        return kept + multiplier * stream.normals((runs, steps))

    what = "100 steps of importance-sampled training whose envelope is not capped at the clipping bound"
    score = rounds_score(np.array([1.0 - drawn, drawn]), 1.0, multiplier)
    return Audit("uncapped envelope", what, claimed, run, delta=delta, score=score, trials=6000)


PLANTED = (
    exponential_radius,
    low_bits,
    amplify_then_add,
    deterministic_rounding,
    printed_pair,
    uncapped_envelope,
)
