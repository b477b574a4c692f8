"""Public facts of a bootstrap: sizes that are chosen, variances by formula and by enumeration, statistics that fail."""

import math
from itertools import combinations, product

import numpy as np
import pytest

from privamp import Neighbors, WithoutReplacement, WithReplacement, amplify, compose
from privamp.bootstrap import Bounded
from privamp.bootstrap.noise_needed import _guess, strength, whole_data
from privamp.bootstrap.planning import Plan, PlanOptions, _counts, _sizes
from privamp.bootstrap.procedure import Procedure
from privamp.bootstrap.shared_stage import SharedStage
from privamp.core.mechanism import Change
from privamp.designs.multistage import MultiStage
from privamp.errors import InvalidInput
from privamp.mechanisms.gaussian import Gaussian, gaussian_curve

RO = Neighbors.REPLACE_ONE
VALUES = np.array([1.0, 4.0, 5.0, 10.0])
VARIANCE = float(VALUES.var(ddof=1))


def arrays(kind, entries, size):
    """Every equally likely draw, as lists."""
    return [list(one) for one in (product(entries, repeat=size) if kind == "wr" else combinations(entries, size))]


def moments_of(procedure):
    """Mean over all draws of the group's average's square from the data's mean, and of the resample's variance."""
    first, *rest = zip(procedure.kinds, procedure.sizes, strict=True)
    spread = kept = 0.0
    stages = arrays(first[0], VALUES.tolist(), first[1])
    for stage in stages:
        finals = arrays(*[rest[0][0], stage, rest[0][1]]) if rest else [stage]
        means = np.array([np.mean(one) for one in finals])
        # the average of `each` independent resamples of one stage
        spread += (means.mean() - VALUES.mean()) ** 2 + means.var() / procedure.each
        kept += float(np.mean([np.var(one, ddof=1) for one in finals]))
    return spread / len(stages), kept / len(stages)


@pytest.mark.parametrize(
    "procedure",
    [
        Procedure("subsampling", 4, (2,), 5),
        Procedure("m-out-of-n", 4, (3,), 5),
        Procedure("double", 4, (3, 2), 5),
        Procedure("little", 4, (3, 2), 5),
        Procedure("little", 4, (2, 3), 5, 3),
    ],
)
def test_variances_are_those_of_all_draws(procedure):
    """Of a group's average, and what is kept of a variance on the way: both as for records of this variance."""
    spread, kept = moments_of(procedure)
    assert kept == pytest.approx(procedure.kept * VARIANCE)
    if len(procedure.sizes) == 1:
        assert spread == pytest.approx(procedure.factor * (VARIANCE if procedure.kinds == ("wor",) else VALUES.var()))
    else:  # the second stage draws from a little less than that variance
        assert procedure.factor * VARIANCE * 0.5 < spread <= procedure.factor * VARIANCE


def test_factors_by_their_formula():
    assert Procedure("subsampling", 40, (10,), 5).factor == pytest.approx(0.75 / 10)
    assert Procedure("m-out-of-n", 40, (10,), 5).factor == pytest.approx(1 / 10)
    assert Procedure("double", 40, (20, 10), 5).factor == pytest.approx(1 / 20 + 1 / 10)
    assert Procedure("little", 40, (20, 10), 5, 4).factor == pytest.approx(0.5 / 20 + 1 / 40)
    assert Procedure("little", 40, (20, 10), 5, 4).ratio == pytest.approx(5 / (40 * 0.05))
    assert Procedure("direct", 40, (40,), 1).factor == 0.0
    assert Procedure("direct", 40, (40,), 1).ratio == math.inf
    assert Procedure("double", 40, (20, 10), 5).kept == pytest.approx((1 - 1 / 40) * (1 - 1 / 20))


def test_what_is_drawn_afresh():
    assert Procedure("subsampling", 40, (10,), 5).design == WithoutReplacement(10, 40)
    assert Procedure("m-out-of-n", 40, (10,), 5).design == WithReplacement(10, 40)
    assert Procedure("double", 40, (20, 10), 5).design == MultiStage((("wr", 20), ("wr", 10)), 40)
    assert Procedure("little", 40, (20, 10), 5).design == MultiStage((("wor", 20), ("wr", 10)), 40)
    assert Procedure("little", 40, (20, 10), 5).inside is None
    shared = Procedure("little", 40, (20, 10), 5, 2)
    assert shared.design == WithoutReplacement(20, 40)
    assert shared.inside == WithReplacement(10, 20)
    assert shared.size == 10
    assert shared.mechanism(2.0, 0.5) == SharedStage(Gaussian(2.0, 0.5, RO), WithReplacement(10, 20), 2)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (("subsampling", 40, (40,), 5), "at most 39"),
        (("little", 40, (40, 10), 5), "at most 39"),
        (("direct", 40, (40,), 2), "one release from all"),
        (("direct", 40, (39,), 1), "one release from all"),
        (("double", 40, (10,), 5), "has 2 size"),
        (("double", 40, (20, 10), 5, 2), "only the little"),
        (("m-out-of-n", 40, (2**26 + 1,), 5), "too much memory"),
        (("m-out-of-n", 40, (5,), 1), "at least 2 resamples"),
        (("m-out-of-n", 40, (5,), True), "at least 2 resamples"),
        (("m-out-of-n", 40, (5,), 100_001), "at most 100000"),
        (("little", 40, (5, 5), 50_001, 2), "at most 100000"),
        (("little", 40, (5, 5), 5, 0), "resamples of a subset"),
        (("m-out-of-n", 1, (5,), 5), "population"),
        (("m-out-of-n", 40, (0,), 5), "size"),
    ],
)
def test_what_is_no_procedure(given, match):
    with pytest.raises(InvalidInput, match=match):
        Procedure(*given)


def test_the_ends_of_procedures():
    assert Procedure("subsampling", 2, (1,), 2).groups == 2
    assert Procedure("m-out-of-n", 40, (2**26,), 100_000).size == 2**26
    assert Procedure("little", 40, (39, 5), 50_000, 2).sizes == (39, 5)


@pytest.mark.parametrize(
    ("method", "groups", "given", "least", "expected"),
    [
        ("subsampling", 80, None, 1, (50,)),  # a twentieth
        ("subsampling", 100, None, 1, (40,)),  # 4 of 100 groups
        ("m-out-of-n", 10, None, 1, (50,)),
        ("double", 80, None, 1, (1000, 50)),
        ("double", 80, 30, 1, (1000, 30)),
        ("double", 80, (200, 30), 1, (200, 30)),
        ("little", 80, None, 1, (100, 50)),
        ("little", 80, 30, 1, (100, 30)),
        ("direct", 1, None, 1, (1000,)),
        ("subsampling", 80, None, 77, (77,)),
        ("subsampling", 80, 30, 77, (30,)),
    ],
)
def test_sizes_that_are_chosen(method, groups, given, least, expected):
    assert _sizes(method, 1000, groups, given, least) == expected


def test_sizes_of_few_records():
    assert _sizes("subsampling", 10, 80, None, 1) == (1,)
    assert _sizes("subsampling", 41, 80, None, 1) == (3,)  # 2.05, rounded up
    assert _sizes("little", 3, 80, None, 2) == (2, 2)  # no first stage of all records


def test_numbers_of_resamples():
    assert _counts("subsampling", None) == (80, 1)
    assert _counts("little", None) == (80, 2)
    assert _counts("direct", None) == (1, 1)
    assert _counts("little", 7) == (7, 2)
    assert _counts("little", (7, 3)) == (7, 3)
    for wrong in ((1, 2, 3), 2.5, True, "7"):
        with pytest.raises(InvalidInput, match="resamples must be"):
            _counts("little", wrong)


@pytest.mark.parametrize(
    "wrong", [{"epsilon": 0.0}, {"delta": 0.0}, {"delta": 1.0}, {"confidence": 1.0}, {"method": "x"}]
)
def test_options_outside_of_their_range(wrong):
    with pytest.raises(InvalidInput):
        PlanOptions(**wrong)


def test_noise_is_the_sensitivity_over_the_strength_rounded_up():
    plan = Plan(Procedure("little", 40, (20, 10), 5, 3), 1.0, 1e-6, 0.95, 0.25, None)
    assert 8.0 < plan.sigma(2.0) <= 8.0 * (1.0 + 2e-9)
    assert plan.resamples == 15
    assert (plan.spread.groups, plan.spread.level) == (5, 0.95)


@pytest.mark.parametrize("procedure", [Procedure("subsampling", 400, (20,), 3), Procedure("direct", 400, (400,), 1)])
def test_the_budget_is_kept_and_nearly_used(procedure):
    """delta is at most the budget and at least 97 % of it, and that of the noise whose strength is returned."""
    theta, found = strength(procedure, 1.0, 1e-5)
    assert 0.97e-5 <= found.delta(1.0) <= 1e-5
    again = compose(amplify(procedure.mechanism(1.0, theta), procedure.design), procedure.groups)
    assert again.delta(1.0) == pytest.approx(found.delta(1.0))


def test_one_release_from_everybody():
    theta = whole_data(1.0, 1e-5)
    assert float(np.exp(gaussian_curve(theta)(np.array([1.0])))[0]) == pytest.approx(1e-5, rel=1e-9)
    direct = Procedure("direct", 400, (400,), 1)
    assert _guess(direct, 1.0, 1e-5) == pytest.approx(0.8 * math.sqrt(math.log1p(theta**2)))
    many = Procedure("subsampling", 400, (20,), 30)  # groups eta² (e^theta² - 1) = mu²
    assert _guess(many, 1.0, 1e-5) == pytest.approx(0.8 * math.sqrt(math.log1p(theta**2 / (30 * 0.05**2))))


def test_several_changed_entries_of_a_shared_stage_lose_more():
    shared = SharedStage(Gaussian(3.0, 1.0, RO), WithReplacement(4, 8), 2)
    for copies in (1, 2, 3):
        relation = RO.for_person(copies) if copies > 1 else RO
        inside = compose(amplify(shared.noise, shared.inside, relation), 2)
        found = shared.profile(RO, Change(copies=copies))
        assert found.delta(0.3) == pytest.approx(inside.upper.delta(0.3))
    one, two = (shared.profile(RO, Change(copies=copies)).delta(0.3) for copies in (1, 2))
    assert two > 1.5 * one


def test_a_function_that_fails_or_gives_no_number_gives_the_middle():
    def fails(values):
        raise ValueError("no")

    for function in (fails, lambda values: math.nan, lambda values: math.inf, lambda values: -math.inf):
        assert Bounded(function, (2.0, 8.0)).compute(np.ones(3), np.ones(3)).tolist() == [5.0]
    assert Bounded(lambda values: 99.0, (2.0, 8.0)).compute(np.ones(3), np.ones(3)).tolist() == [8.0]
    assert Bounded(lambda values: -99.0, (2.0, 8.0)).compute(np.ones(3), np.ones(3)).tolist() == [2.0]
    total = Bounded(np.sum, (0.0, 50.0)).compute(np.array([1.0, 10.0, 7.0]), np.array([2.0, 1.0, 0.0]))
    assert total.tolist() == [12.0]


def test_a_declared_sensitivity_is_at_most_the_range():
    assert Bounded(np.sum, (2.0, 8.0)).sensitivity(5) == 6.0
    assert Bounded(np.sum, (2.0, 8.0), change=4.0).sensitivity(5) == 4.0
    assert Bounded(np.sum, (2.0, 8.0), change=7.0).sensitivity(5) == 6.0
    assert Bounded(np.sum, (2.0, 8.0), change=lambda m: 10.0 / m).sensitivity(5) == 2.0
    kept = Bounded(np.sum, (2.0, 8.0), change=lambda m: 10.0 / m).remembered(5)
    assert kept.sensitivity(99) == 2.0
    with pytest.raises(InvalidInput, match="does not keep"):
        kept.function(np.ones(2))
