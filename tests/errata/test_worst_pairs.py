"""Pairs of output laws that are said to be worst and are not."""

import math

import numpy as np
import pytest

from privamp import Gaussian, MultiStage, Neighbors, NoTheorem, Population, amplify
from privamp.verify import exact_delta_of_laws
from privamp.verify.symmetry import collect

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
CHAIN = (("wor", 2), ("wr", 2))
MAIN = MultiStage([("wor", 118), ("wr", 200)], 10_000)


def law_of_the_sum(design, values):
    """{sum: probability} over the samples of records with these values."""
    law: dict[float, float] = {}
    for units, chance in collect(design.law(Population(len(values)))).items():
        total = float(sum(values[u] for u in units))
        law[total] = law.get(total, 0.0) + float(chance)
    return law


def density(law, sigma, t):
    return sum(w * np.exp(-0.5 * ((t - c) / sigma) ** 2) for c, w in law.items()) / (sigma * math.sqrt(2 * math.pi))


def divergence(first, second, sigma, alpha):
    """The integral of [first - alpha second]+ between two Gaussian mixtures, on a fine grid."""
    centres = [*first, *second]
    t = np.linspace(min(centres) - 12 * sigma, max(centres) + 12 * sigma, 200_001)
    values = np.maximum(density(first, sigma, t) - alpha * density(second, sigma, t), 0.0)
    return float(np.sum(0.5 * (values[1:] + values[:-1])) * (t[1] - t[0]))


def test_one_sided_pair_is_false_for_chains_under_add_remove() -> None:
    sigma, alpha = 0.5, 2.0
    with_record = law_of_the_sum(MultiStage(CHAIN, 3), (-1, 0, 1))
    without = law_of_the_sum(MultiStage(CHAIN, 2), (-1, 0))
    truth = divergence(without, with_record, sigma, alpha)  # D(Q||P), real neighbours
    assert truth == pytest.approx(0.0518, abs=5e-5)
    both = exact_delta_of_laws(without, with_record, Gaussian(sigma, neighbors=RO), math.log(alpha))
    assert both >= truth - 1e-9
    pair = Gaussian(sigma, sensitivity=2.0, neighbors=RO).mixture(RO, MultiStage(CHAIN, 3).appearances())
    assert pair is not None
    claimed = math.exp(float(pair.backward(math.log(alpha))))
    assert claimed == 0.0  # 1/p_0 = 2: the pair says nothing is left from alpha = 2 on
    with pytest.raises(NoTheorem, match="replace-one"):
        amplify(Gaussian(sigma, neighbors=RO), MultiStage(CHAIN, 3), AR)


def printed_pair(design, sigma):
    """Eq. 6: sum_u p_u N(u) against sum_u p_u N(-u), sigma > 0."""
    law = design.appearances()
    weights = np.exp([law.log_none, *law.log_p[:14]])
    return {float(u): w for u, w in enumerate(weights)}, {-float(u): w for u, w in enumerate(weights)}


def test_equation_6_is_not_a_worst_pair() -> None:
    sigma = 4.0
    up, down = printed_pair(MAIN, sigma)
    claimed = divergence(up, down, sigma, math.e)
    assert claimed == pytest.approx(4.26e-11, rel=0.01)
    # real neighbours: the other records at -1, the changed one at +1 or -1; sums differ by 2u
    p, q = {2 * u: w for u, w in up.items()}, {0.0: 1.0}
    attack = divergence(p, q, sigma, math.e)
    assert attack == pytest.approx(2.086629e-5, rel=1e-4)
    assert attack > 1e5 * claimed
    guarantee = amplify(Gaussian(sigma, sensitivity=2.0, neighbors=RO), MAIN)
    assert guarantee.lower.delta(1.0) == pytest.approx(attack, rel=1e-4)
    assert guarantee.delta(1.0) == pytest.approx(2.0871e-5, rel=1e-4)
    assert MAIN.theorems[0].bound(MAIN, Gaussian(sigma, 2.0, neighbors=RO), RO).delta(1.0) == pytest.approx(8.425012e-5)
    assert claimed < guarantee.lower.delta(1.0) < guarantee.delta(1.0)
