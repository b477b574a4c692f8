"""The audit of any mechanism on any design of plain records, drawn and noised by the real code.

The worst data known are used: under add/remove the record holds the sensitivity and all others hold nothing; under
replace-one the others all hold the lower end of the range and the changed record holds the upper or the lower end.
The score is the likelihood ratio of that pair, with the multiplicity law of the design.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..accounting.composition import compose
from ..accounting.joint import Joint
from ..amplification import amplify
from ..chance.keys import Key
from ..core.design import Design
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.sample import Sample
from ..errors import InvalidInput, NoTheorem
from ..mechanisms.norm_noise import NormNoise
from ..numerics.log_domain import FloatArray, log_sum
from ..validation import whole
from ..verify.attack import Score
from ..verify.noise import noise_of
from .audit import Audit

_TINY = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacked:
    """What is attacked how often: `queries` releases from each of `steps` fresh samples of the population."""

    queries: int = 1
    steps: int = 1
    delta: float = 0.0
    claimed: float | None = None  # epsilon; None takes what privamp certifies
    population: int | None = None  # the design's own, or one record
    trials: int = 20_000

    def __post_init__(self) -> None:
        whole(1, 1000, queries=self.queries, steps=self.steps)


def release_audit(
    mechanism: Mechanism, design: Design, neighbors: Neighbors | None = None, attacked: Attacked | None = None
) -> Audit:
    """The audit of a mechanism on samples by a design."""
    neighbors, attacked = neighbors or design.natural, attacked or Attacked()
    queries, steps, delta = attacked.queries, attacked.steps, attacked.delta
    guarantee = amplify(Joint([mechanism] * queries) if queries > 1 else mechanism, design, neighbors)
    guarantee = compose(guarantee, steps) if steps > 1 else guarantee
    claim = guarantee.epsilon(delta) if attacked.claimed is None else attacked.claimed
    if not math.isfinite(claim):
        raise InvalidInput("this release is not pure DP, so a claim needs a delta above 0; give --delta 1e-6")
    size = attacked.population or design.public_size or 1
    values = _worst_values(mechanism, neighbors, size)
    people = _drawn_once(design, size)

    def run(there: bool, runs: int) -> NDArray[np.float64]:
        key, given = Key.generate(), values[0 if there else 1]
        kept = given if there or neighbors.kind == "replace-one" else given[:-1]
        who = people if len(kept) == size else Population(size - 1)
        rows = []
        for r in range(runs):
            samples = [design.draw(who, key, r * steps + s) for s in range(steps)]
            rows.append([_answer(sample, mechanism, kept) for sample in samples for _ in range(queries)])
        return np.asarray(rows, dtype=np.float64)

    what = f"{mechanism} on {design}, {neighbors.kind}"
    score = _score(mechanism, design, neighbors, values, queries)
    return Audit("release", what, claim, run, delta, score, attacked.trials, guarantee.tradeoff)


def _answer(sample: Sample, mechanism: Mechanism, rows: FloatArray) -> float:
    """One released sum of rows from 0 to the sensitivity."""
    if mechanism.neighbors.kind != "replace-one":
        return float(np.ravel(sample.release(mechanism, rows))[0])
    center = np.zeros(rows.shape[1:])
    center.flat[0] = 0.5 * float(getattr(mechanism, "sensitivity", 1.0))
    return float(np.ravel(sample.release(mechanism, rows, center=center))[0])


def _drawn_once(design: Design, size: int) -> Population:
    """The population, after one draw from it: a design that needs more than plain records fails here."""
    people = Population(size)
    try:
        design.draw(people)
    except InvalidInput as error:
        raise InvalidInput(
            f"{error}; an audit of a release draws only from plain records; `privamp audit designs` checks every "
            "design against exact results"
        ) from None
    return people


def _worst_values(mechanism: Mechanism, neighbors: Neighbors, size: int) -> tuple[FloatArray, FloatArray]:
    """One row per record, with the changed record last: (with it, without it or with its opposite)."""
    reach = float(getattr(mechanism, "sensitivity", 1.0))
    if neighbors.kind == "add-remove" or mechanism.neighbors.kind == "replace-one":
        low, first, second = 0.0, reach, 0.0
    else:
        low, first, second = -reach, reach, -reach
    one, other = np.full(size, low), np.full(size, low)
    one[-1], other[-1] = first, second
    if isinstance(mechanism, NormNoise):
        one, other = (np.column_stack([v, np.zeros((size, mechanism.dimension - 1))]) for v in (one, other))
        return one, other
    try:
        is_discrete = noise_of(mechanism).is_discrete
    except NoTheorem:
        raise InvalidInput(
            f"{type(mechanism).__name__} adds no noise to a number, so there is no attack on it here; audit laplace, "
            "gaussian, discrete-laplace, discrete-gaussian, geometric or norm noise"
        ) from None
    return (one.astype(np.int64), other.astype(np.int64)) if is_discrete else (one, other)


def _score(
    mechanism: Mechanism, design: Design, neighbors: Neighbors, values: tuple[FloatArray, FloatArray], queries: int
) -> Score | None:
    """The likelihood ratio where the density of the noise is known, else None (a score is learned)."""
    try:
        noise = noise_of(mechanism)
        law = design.appearances()
    except NoTheorem:
        return None
    one, other = (np.ravel(v if v.ndim == 1 else v[:, 0]) for v in values)
    rest = float(other[0]) if other.size > 1 else 0.0
    base = rest * design.expected_size(other.size) if neighbors.kind == "replace-one" else 0.0
    shift = float(one[-1] - other[-1]) if neighbors.kind == "replace-one" else float(one[-1])
    counts = np.arange(law.log_p.size + 1)
    log_p = np.append(law.log_none, law.log_p)

    def score(rows: FloatArray) -> FloatArray:
        total = np.zeros(len(rows))
        for start in range(0, rows.shape[1], queries):  # one sample at a time
            y = rows[:, start : start + queries, None] - base
            log_f = np.log(np.maximum(noise.density(y - shift * counts), _TINY)).sum(axis=1)
            total += log_sum(log_p + log_f, axis=1) - log_f[:, 0]
        return total

    return score


def rounds_score(chances: FloatArray, shift: float, sigma: float) -> Score:
    """The likelihood ratio of many rounds in which the record appears u times with chance `chances[u]`."""
    with np.errstate(divide="ignore"):
        log_p = np.log(chances)
    moved = shift * np.arange(chances.size) / sigma

    def score(rows: FloatArray) -> FloatArray:
        terms = log_p + moved * (rows[..., None] / sigma - 0.5 * moved)
        return np.asarray(log_sum(terms, axis=-1).sum(axis=1))

    return score
