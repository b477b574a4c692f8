"""Two steps of importance-sampled SGD against its certificate, exactly. Needs no torch.

Few records with gradients on the line, the second step's gradients depending on the sign of the first release. All
coins of both steps are enumerated with the bounds carried over; the law of the two releases is then a mixture of
Gaussians in the plane. It is cut into cells whose probabilities are exact: by data processing the hockey sticks of
the cells, with and without a record, are at most the true ones, which are at most the certified ones if the theorem
holds. So there is no error of integration to allow for. The same check must catch the rules that the paper prints.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.special import ndtr

from privamp import Gaussian, Poisson, amplify, compose
from privamp.torch.importance import ImportanceRule

ROUNDING = 1e-13  # of sums of probabilities
EPSILONS = np.array([0.0, 0.1, 0.3, 0.7, 1.5, 3.0])


@dataclass(frozen=True)
class Uncapped(ImportanceRule):
    """As printed: q = min(b g/K, 1), bounds above the clip allowed, weights 1/(q p)."""

    def shares(self, bounds):
        return np.minimum(bounds / self.clip, 1.0 / self.rate)

    def coefficients(self, bounds, norms):
        chances = self.rate * self.shares(bounds) * self.acceptance(bounds, norms)
        clipped = np.minimum(norms, np.minimum(bounds, self.clip))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(norms > 0, self.rate * (clipped / norms) / chances, 0.0)

    def acceptance(self, bounds, norms):
        return np.minimum(norms, np.minimum(bounds, self.clip)) / bounds

    def remembered(self, norms):
        return self.growth * np.maximum(np.minimum(norms, self.clip), self.floor)


def outcomes(rule: ImportanceRule, bound: float, gradient: float) -> list[tuple[float, float, float]]:
    """(probability, what is added, next bound) of one record in one step."""
    b, n = np.array([bound]), np.array([abs(gradient)])
    chance, next_bound = float((rule.rate * rule.shares(b))[0]), float(rule.remembered(n)[0])
    added = float(rule.coefficients(b, n)[0]) * gradient
    if not rule.rejects:
        return [(1 - chance, 0.0, bound), (chance, added, next_bound)]
    kept = float(rule.acceptance(b, n)[0])
    return [(1 - chance, 0.0, bound), (chance * (1 - kept), 0.0, next_bound), (chance * kept, added, next_bound)]


def histories(
    rule: ImportanceRule, bounds: list[float], gradients: list[float]
) -> Iterator[tuple[float, float, list[float]]]:
    """(probability, sum, bounds afterwards) over all coins of a step."""
    for choice in product(*(outcomes(rule, b, g) for b, g in zip(bounds, gradients, strict=True))):
        chance = float(np.prod([c for c, _, _ in choice])) if choice else 1.0
        if chance > 0:
            yield chance, sum(a for _, a, _ in choice), [b for _, _, b in choice]


def law(rule: ImportanceRule, records: list[tuple[float, float, float]], sigma: float, cells: int = 400) -> np.ndarray:
    """Probabilities of the cells of both releases; 0 is an edge.

    A record is (first gradient, second gradient after a negative release, second after a positive one).
    """
    reach = 6 * sigma + 3 * rule.clip
    edges = np.concatenate([[-np.inf], np.linspace(-reach, reach, cells - 1), [np.inf]])
    is_negative = edges[1:] <= 1e-12
    start = [float(b) for b in rule.start(len(records))]
    total = np.zeros((cells, cells))

    def bell(mean: float) -> np.ndarray:
        return np.diff(ndtr((edges - mean) / sigma))

    for chance, first, bounds in histories(rule, start, [r[0] for r in records]):
        after = [np.zeros(cells), np.zeros(cells)]
        for side in (0, 1):
            for weight, second, _ in histories(rule, bounds, [r[1 + side] for r in records]):
                after[side] = after[side] + weight * bell(second)
        total += chance * bell(first)[:, None] * np.where(is_negative[:, None], after[0], after[1])
    return total


def true_delta(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Of the cells, both directions."""
    return np.array([max(np.maximum(p - a * q, 0).sum(), np.maximum(q - a * p, 0).sum()) for a in np.exp(EPSILONS)])


@cache
def certified(multiplier: float, rate: float) -> np.ndarray:
    return np.asarray(compose(amplify(Gaussian(multiplier), Poisson(rate)), 2).delta(EPSILONS))


def worst_excess(rule: ImportanceRule, records: list[tuple[float, float, float]], multiplier: float) -> float:
    """The largest amount by which the true delta passes the certified one; at most 0 (and rounding) if sound."""
    p, q = (law(rule, some, multiplier * rule.clip) for some in (records, records[:-1]))
    assert abs(p.sum() - 1) < 1e-12
    return float(np.max(true_delta(p, q) - certified(multiplier, rule.rate)))


def cases() -> list[tuple[list[tuple[float, float, float]], float]]:
    rng = np.random.default_rng(5)
    sizes = (0.0, 0.05, 0.3, 0.8, 1.0, 4.0)
    made = []
    for size in (1, 2, 2, 3):
        for multiplier in (0.5, 1.0):
            signs = rng.choice((-1.0, 1.0), size=(size, 3))
            made.append(([tuple(row) for row in rng.choice(sizes, size=(size, 3)) * signs], multiplier))
    made.append(([(1.0, 1.0, 1.0)], 0.7))  # reaches the certificate: pi = r and |w| = C in both steps
    made.append(([(0.02, 1.0, 1.0)], 0.7))  # a small bound, then a large gradient
    return made


RULES = [
    ImportanceRule(0.3, 1.0, growth=2.0, floor=0.05),
    ImportanceRule(0.3, 1.0, growth=2.0, floor=0.05, rejects=True),
    ImportanceRule(0.8, 1.0, growth=5.0, floor=0.2),
    ImportanceRule(0.8, 1.0, growth=5.0, floor=0.2, rejects=True),
    ImportanceRule(0.5, 2.0, growth=1.0, floor=1e-3),
]


@pytest.mark.parametrize("rule", RULES)
def test_two_steps_never_pass_their_certificate(rule: ImportanceRule) -> None:
    for records, multiplier in cases():
        scaled = [tuple(rule.clip * g for g in record) for record in records]
        assert worst_excess(rule, scaled, multiplier) <= ROUNDING


def test_the_certificate_is_reached() -> None:
    """A record with gradient C in both steps is the worst pair, so the bound is tight."""
    rule, multiplier = RULES[0], 0.7
    p, q = law(rule, [(1.0, 1.0, 1.0)], multiplier), law(rule, [], multiplier)
    assert np.allclose(true_delta(p, q), certified(multiplier, rule.rate), rtol=2e-3, atol=1e-7)


def test_uncapped_bounds_are_caught() -> None:
    """Printed: g is not capped at C, so a record drawn for sure weighs more than C."""
    printed = Uncapped(0.5, 1.0, growth=5.0, floor=0.05, rejects=True)
    assert worst_excess(printed, [(1.0, 1.0, 1.0)], 0.7) > 1e-3
    mended = ImportanceRule(0.5, 1.0, growth=5.0, floor=0.05, rejects=True)
    assert worst_excess(mended, [(1.0, 1.0, 1.0)], 0.7) <= ROUNDING


def test_a_snapshot_taken_too_late_is_biased() -> None:
    """Weighing by the new bound instead of the one that decided the coin: why the snapshot is part of the rule."""
    rule = ImportanceRule(0.3, 1.0, growth=2.0, floor=0.05)
    bound, gradient = 0.2, 0.6
    chance, right, next_bound = outcomes(rule, bound, gradient)[1]
    wrong = float(rule.coefficients(np.array([next_bound]), np.array([gradient]))[0]) * gradient
    assert chance * right == pytest.approx(rule.rate * bound)  # the gradient, clipped at its bound
    assert chance * wrong == pytest.approx(0.6 * chance * right)


@pytest.mark.parametrize("rejects", [False, True])
def test_unbiased_for_gradients_clipped_at_their_bounds(rejects: bool) -> None:
    rule = ImportanceRule(0.25, 1.0, growth=2.0, floor=0.05, rejects=rejects)
    for bound, gradient in product((0.1, 0.4, 1.0), (-3.0, -0.4, 0.05, 0.2, 1.0)):
        mean = sum(c * a for c, a, _ in outcomes(rule, bound, gradient))
        assert mean == pytest.approx(rule.rate * np.clip(gradient, -bound, bound))


def test_variances_of_the_reference_case() -> None:
    """g = (.1, .2, .4, .8, 1), r = .25, N = 5, k = 2: DP-SGD .222, no reject .2444, the paper's .326."""
    g = np.array([0.1, 0.2, 0.4, 0.8, 1.0])
    rate, bounds = 0.25, np.minimum(1.0, 2 * g)

    def variance(rule: ImportanceRule, bounds: np.ndarray) -> float:
        total = 0.0
        for bound, gradient in zip(bounds, g, strict=True):
            law = outcomes(rule, float(bound), float(gradient))
            total += sum(c * a * a for c, a, _ in law) - sum(c * a for c, a, _ in law) ** 2
        return total / (g.size * rate) ** 2

    rule = ImportanceRule(rate, 1.0, growth=2.0, floor=1e-3)
    assert variance(rule, np.ones(5)) == pytest.approx(0.222, abs=5e-4)
    assert variance(rule, bounds) == pytest.approx(0.2444, abs=5e-5)
    assert variance(replace(rule, rejects=True), bounds) == pytest.approx(0.326, abs=5e-4)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
def test_norms_that_are_no_numbers_weigh_nothing(bad: float) -> None:
    for rejects in (False, True):
        rule = ImportanceRule(0.3, 1.0, rejects=rejects)
        assert rule.coefficients(np.array([0.5]), np.array([bad]))[0] == 0.0
        assert 0 < rule.remembered(np.array([bad]))[0] <= rule.clip


def test_chances_never_pass_the_rate_in_floating_point() -> None:
    rng = np.random.default_rng(1)
    for rate, clip in zip(rng.uniform(1e-6, 1, 200), rng.uniform(1e-3, 1e3, 200), strict=True):
        rule = ImportanceRule(rate, clip)
        bounds = rule.remembered(rng.exponential(clip, 2000))
        assert np.all((rule.rate * rule.shares(bounds)) <= rate)
        assert np.all((rule.rate * rule.shares(rule.start(3))) == rate)
