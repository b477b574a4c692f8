"""SD, the paper on stratified and cluster sampling: Definition 7.1 and the Neyman example, by enumeration."""

import math
from fractions import Fraction
from itertools import combinations

import pytest

from privamp import Neighbors, Poisson, PureDP, Stratified, amplify
from privamp.designs.stratified import WITHIN
from privamp.survey import Stratum, allocation_loss, guarantees
from privamp.verify.exact import exact_epsilon_of_laws

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
BEFORE = [1261, 621, 517, 1969, 833, 1947, 1058, 762, 257, 248, 306, 225]
AFTER = [1259, 620, 516, 1965, 831, 1943, 1056, 761, 257, 247, 306, 244]


def one_kept(record, chance):
    return {(record,): chance, (): 1 - chance} if chance < 1 else {(record,): Fraction(1)}


@pytest.mark.parametrize("rates", [(Fraction(1), Fraction(1)), (Fraction(1, 10), Fraction(1, 2))])
def test_sd_7_1_a_move_between_strata_costs_the_sum_not_the_maximum(rates):
    """Record 0 in stratum one against record 1 in stratum two, nobody else."""
    nobody = {(): Fraction(1)}
    first, second = (one_kept(k, rate) for k, rate in enumerate(rates))
    alone = [exact_epsilon_of_laws(law, nobody, 1.0, "add-remove") for law in (first, second)]
    moved = exact_epsilon_of_laws(first, second, 1.0, "add-remove")
    assert moved > max(alone) + 0.05
    assert moved <= sum(alone) + 1e-9
    design = Stratified({"one": Poisson(float(rates[0])), "two": Poisson(float(rates[1]))})
    each = guarantees(design, PureDP(1.0), AR)
    assert [each[name].epsilon() for name in ("one", "two")] == pytest.approx(alone)
    assert amplify(PureDP(1.0), design, RO).epsilon() >= moved - 1e-9
    if rates == (1, 1):
        assert moved == pytest.approx(2.0)
        assert amplify(PureDP(1.0), design, RO).epsilon() == pytest.approx(2.0)
    else:
        assert [round(x, 3) for x in (*alone, moved)] == [0.159, 0.620, 0.685]


def test_sd_neyman_example_differs_by_37_and_was_rounded_up():
    assert sum(abs(m - n) for m, n in zip(BEFORE, AFTER, strict=True)) == 37
    assert AFTER[-1] - BEFORE[-1] == 19
    assert (sum(BEFORE), sum(AFTER)) == (10004, 10005)  # up to one too many per stratum, 12 strata: ceil
    before, after = dict(enumerate(BEFORE)), dict(enumerate(AFTER))
    top = Stratum(11, 350, 5000.0)
    loss = allocation_loss(before, after, top, 0.1)
    assert loss == pytest.approx(37 * 0.1 + math.log1p(225 / 350 * math.expm1(0.2)))
    assert loss > 19 * 0.1 + 1.5


def subsets(size, ids):
    several = list(combinations(ids, size))
    return {units: Fraction(1, len(several)) for units in several}


def together(one, other):
    return {tuple(sorted(a + b)): p * q for a, p in one.items() for b, q in other.items()}


@pytest.mark.parametrize(
    ("here", "there"),  # (draws before, draws after, records) in the changed stratum and in the other
    [
        ((1, 2, 3), (2, 1, 2)),
        ((2, 1, 3), (1, 2, 3)),
        ((1, 3, 3), (2, 1, 2)),
        ((0, 1, 2), (2, 1, 3)),
        ((2, 2, 3), (1, 2, 2)),
    ],
)
def test_sd_neyman_loss_is_every_draw_moved_plus_the_replaced_record(here, there):
    m, n, N = here
    others = range(10, 10 + there[2])
    first = together(subsets(m, range(N)), subsets(there[0], others))
    second = together(subsets(n, range(1, N + 1)), subsets(there[1], others))
    truth = exact_epsilon_of_laws(first, second, 0.7, "add-remove")
    claim = allocation_loss({"i": m, "j": there[0]}, {"i": n, "j": there[1]}, Stratum("i", N, 1.0), 0.7)
    assert claim == pytest.approx(truth, abs=1e-8)


def test_sd_7_1_holds_within_a_stratum():
    """There the larger of the strata's replacement losses is right."""
    design = Stratified({"one": Poisson(0.1), "two": Poisson(0.5)})
    assert amplify(PureDP(1.0), design, WITHIN).epsilon() == pytest.approx(
        max(g.epsilon() for g in guarantees(design, PureDP(1.0), WITHIN).values())
    )
