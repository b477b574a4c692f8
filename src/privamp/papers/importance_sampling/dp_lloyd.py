"""Weighted DP-Lloyd on importance samples as in IS section 5, with the mistakes of the released code corrected.

T steps: norm noise on the sums (the radius is Gamma(d), not Exponential), Laplace noise on the counts, split
optimally for the unit ball. A sample is drawn once; a step's loss is linear in the weight, so T steps lose
T(1/b_c + |x|/b_s)w and a rule is amplified once. Starting centres are public rows that are not used otherwise, not
records. The rows' ball, n and the mean squared norm are treated as public. Costs are medians over seeds, on all rows: a
diagnostic, not a release.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...core.mechanism import Mechanism
from ...mechanisms.laplace import Laplace
from ...mechanisms.norm_noise import NormNoise
from ...mechanisms.sum_and_count import SumAndCount
from ...numerics.log_domain import FloatArray
from ...rules.coreset import coreset
from ...rules.noise_and_size import noise_for_guarantee, noise_for_size
from ...rules.norm_histogram import NormHistogram
from ...rules.profiles import LinearProfile
from ...rules.rule import Rule
from ...rules.uniform import uniform
from .data_sets import Rows, Rows32

K, STEPS = 25, 10
SAMPLERS = ("unif", "core", "opt")
_BLOCK = 4096  # rows
_LEVEL = 0.5  # the norm of centres for which the noise is split


@dataclass(frozen=True, slots=True)
class Plan:
    """A rule, and the noise of the sums and of the counts in one step."""

    rule: Rule | None  # None: all rows, each with weight 1
    sums: float
    counts: float
    shape: int | None = None  # shape of the Gamma radius of the sums' noise; None: the dimension, which is correct


def count_to_sum(dimension: int) -> float:
    """The ratio of count noise to sum noise that gives centres the least error."""
    return math.cbrt(dimension * (dimension + 1) / (2.0 * _LEVEL**2))


def whole_run(dimension: int, noise: float) -> SumAndCount:
    """All T steps as one mechanism: a step has T times its noise."""
    return SumAndCount(NormNoise(noise, dimension), Laplace(count_to_sum(dimension) * noise))


def plan(sampler: str, rows: Rows, size: float, epsilon: float) -> Plan:
    """The smallest noise with which this sampler of this expected size has epsilon."""
    dimension, n = rows.x.shape[1], len(rows.x)
    make = partial(whole_run, dimension)
    if sampler == "full":
        noise = (1.0 + 1.0 / count_to_sum(dimension)) / epsilon
        return Plan(None, STEPS * noise, STEPS * noise * count_to_sum(dimension))
    if sampler == "opt":
        counts, edges = np.histogram(rows.norms, bins=200, range=(0.0, 1.0))
        sized = noise_for_size(make, NormHistogram(edges[1:], counts), size=size, epsilon=epsilon, radius=1.0)
        rule, mechanism = sized.rule, sized.mechanism
    else:
        of = partial(_rule, sampler, rows, size, n)
        mechanism = noise_for_guarantee(make, of, epsilon=epsilon)
        rule = of(mechanism)
    noise = mechanism.sums.scale  # type: ignore[attr-defined]
    return Plan(rule, STEPS * noise, STEPS * noise * count_to_sum(dimension))


def _rule(sampler: str, rows: Rows, size: float, n: int, mechanism: Mechanism) -> Rule:
    profile = LinearProfile.of(mechanism)
    if sampler == "unif":
        return uniform(profile, rate=size / n, radius=1.0)
    mean = float(np.mean(rows.norms**2))
    return coreset(profile, share=0.5, size=size, population=n, mean_squared_norm=mean, radius=1.0)


def probabilities(rows: Rows, how: Plan) -> FloatArray | None:
    """The probability of every row, or None if all are kept."""
    return how.rule.of_norms(rows.norms) if how.rule is not None else None


def fitted(rows: Rows, how: Plan, q: FloatArray | None, start: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Centres (k, d) after the steps; `q` is what `probabilities` gives."""
    x, weights = rows.single, np.ones(len(rows.x), np.float32)
    if q is not None:
        kept = rng.random(len(x)) < q
        x, weights = x[kept], (1.0 / q[kept]).astype(np.float32)
    centres = start
    for _ in range(STEPS):
        centres = one_step(x, weights, centres, how, rng)
    return centres


def one_step(x: Rows32, w: Rows32, centres: FloatArray, how: Plan, rng: np.random.Generator) -> FloatArray:
    """Noisy sums over noisy counts; a centre without records stays where it is, and all stay in the ball."""
    k, d = centres.shape
    sums, counts = np.zeros((k, d)), np.zeros(k)
    for part, own, _ in nearest(x, centres):
        members = own * w[part]
        sums += members @ x[part]
        counts += members.sum(axis=1)
    if how.sums > 0.0:
        direction = rng.normal(size=(k, d))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        sums = sums + direction * rng.gamma(how.shape or d, how.sums, (k, 1))
        counts = counts + rng.laplace(0.0, how.counts, k)
    moved = np.where((counts > 1.0)[:, None], sums / np.maximum(counts, 1.0)[:, None], centres)
    lengths = np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1.0)
    return np.asarray(moved / lengths)


def nearest(x: Rows32, centres: FloatArray) -> Iterator[tuple[slice, NDArray[np.bool_], Rows32]]:
    """For each block of rows: its slice, each row's nearest centre (k, rows), and the squared distance minus |x|^2.

    Single precision, in blocks that fit into the processor's cache: four times as fast as one pass in double.
    """
    lengths = np.sum(centres**2, axis=1)[:, None].astype(np.float32)
    scaled = (-2.0 * centres).astype(np.float32)
    for at in range(0, len(x), _BLOCK):
        part = slice(at, at + _BLOCK)
        apart = scaled @ x[part].T
        apart += lengths
        best = apart.min(axis=0)
        own = apart == best
        if np.count_nonzero(own) > best.size:  # ties: the first centre gets the row
            own = np.argmax(own, axis=0) == np.arange(len(centres))[:, None]
        yield part, own, best


def cost(x: FloatArray, centres: FloatArray) -> float:
    """Mean squared distance to the nearest centre."""
    return float(np.mean(np.sum(x**2, axis=1))) + least(x.astype(np.float32), centres)


def least(x: Rows32, centres: FloatArray) -> float:
    """The mean over rows of the squared distance to the nearest centre, minus |x|^2."""
    return math.fsum(float(best.sum(dtype=np.float64)) for _, _, best in nearest(x, centres)) / len(x)


@dataclass(frozen=True, slots=True)
class Trial:
    """Rows to learn from, and public rows to start from."""

    rows: Rows
    public: FloatArray

    @classmethod
    def of(cls, rows: Rows, most: int) -> "Trial":
        """Every fiftieth of the thinned rows is public."""
        thin = rows.in_the_unit_ball(most)
        is_public = np.arange(len(thin.x)) % 50 == 0
        return cls(Rows(thin.x[~is_public]), thin.x[is_public])

    @property
    def no_learning(self) -> float:
        """The cost with all centres at 0: the mean squared norm."""
        return float(np.mean(self.rows.norms**2))

    def costs(
        self, sampler: str, size: float, epsilon: float, seeds: Sequence[int], shape: int | None = None
    ) -> FloatArray:
        """The cost on all rows, by seed; infinite epsilon means no noise, shape 1 the noise of the released code."""
        if math.isinf(epsilon):
            made = plan(sampler, self.rows, size, 1.0) if sampler != "full" else Plan(None, 0.0, 0.0)
            how = Plan(made.rule, 0.0, 0.0)
        else:
            how = replace(plan(sampler, self.rows, size, epsilon), shape=shape)
        found, q = [], probabilities(self.rows, how)
        for seed in seeds:
            rng = np.random.default_rng(seed)
            start = self.public[rng.choice(len(self.public), K, replace=False)]
            found.append(self.no_learning + least(self.rows.single, fitted(self.rows, how, q, start, rng)))
        return np.array(found)
