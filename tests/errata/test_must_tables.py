"""What the tables of MUST (multi-stage sampling) print, held against enumeration and against the library."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privamp import (
    Change,
    Gaussian,
    Laplace,
    MultiStage,
    Neighbors,
    Population,
    WithoutReplacement,
    WithReplacement,
    amplify,
)
from privamp.designs.multiplicity import shared_absence
from privamp.verify.symmetry import collect

RO = Neighbors.REPLACE_ONE
WOR, WR = WithoutReplacement(400, 1000), WithReplacement(400, 1000)
OW = MultiStage([("wor", 500), ("wr", 400)], 1000)
WW = MultiStage([("wr", 500), ("wr", 400)], 1000)

BASE_EPSILON = (0.05, 0.5, 1.0, 2.0, 3.0, 4.5)
# Table S1, delta/sigma = 1, as printed: (epsilon', delta') per base epsilon.
PRINTED = {
    "WOR": ((0.020, 0.147), (0.231, 0.095), (0.523, 0.051), (1.269, 0.008), (2.156, 6.15e-4), (3.600, 2.35e-6)),
    "WR": ((0.017, 0.142), (0.194, 0.103), (0.449, 0.068), (1.134, 0.029), (1.987, 0.015), (3.413, 0.006)),
    "MUSTow": ((0.014, 0.136), (0.164, 0.106), (0.388, 0.079), (1.015, 0.045), (1.834, 0.028), (3.240, 0.015)),
    "MUSTww": ((0.012, 0.123), (0.145, 0.094), (0.346, 0.052), (0.932, 0.018), (1.722, 0.006), (3.111, 0.001)),
}
PRINTED_LAPLACE_WW = PRINTED["MUSTww"]  # the Gaussian row is the Laplace row, number for number
RIGHT_WW = (0.128820, 0.105179, 0.0827572, 0.0534365, 0.0373932, 0.0227611)
DESIGNS = {"WOR": WOR, "WR": WR, "MUSTow": OW, "MUSTww": WW}


def aligned(design, base):
    """epsilon' that a base epsilon is turned into."""
    return math.log1p(design.appearances().eta * math.expm1(base))


def agrees(value, printed):
    """Equal to the printed digits: three decimals, or three significant digits when it is small."""
    return abs(value - printed) <= (0.00051 if printed >= 1e-3 else 0.0051 * printed)


def by_hand(law, profile_at, base):
    """sum_u p_u delta_u(base) by a plain sum."""
    return sum(math.exp(lp) * profile_at(u).delta(base) for u, lp in enumerate(law.log_p, start=1))


def test_table_2_prints_the_chance_of_absence_for_eta_of_wr() -> None:
    n, m = 4, 3
    law = collect(WithReplacement(m, n).law(Population(n)))
    present = float(sum(chance for units, chance in law.items() if 0 in units))
    printed = (1 - 1 / n) ** m
    assert present == pytest.approx(1 - printed, abs=1e-15)
    assert present != pytest.approx(printed, abs=0.1)
    assert WithReplacement(m, n).appearances().eta == pytest.approx(present, rel=1e-14)
    # in the paper's own setting the printed eta is the chance to be left out
    assert WR.appearances().eta == pytest.approx(0.329814, abs=1e-6)
    assert math.isclose((1 - 1 / 1000) ** 400, 0.670186, abs_tol=1e-6)


def test_table_s1_last_row_is_the_laplace_row() -> None:
    gaussian = Gaussian(1.0, neighbors=RO)
    laplace = Laplace(1.0, neighbors=RO)
    law = WW.appearances()
    gaussian_row, laplace_row = [], []
    for base in BASE_EPSILON:
        gaussian_row.append(by_hand(law, lambda u: gaussian.profile(RO, Change(copies=u)), base))
        laplace_row.append(by_hand(law, lambda u: laplace.profile(RO, Change(copies=u)), base))
    printed = [delta for _, delta in PRINTED["MUSTww"]]
    assert all(agrees(value, p) for value, p in zip(laplace_row, printed, strict=True))
    assert not any(agrees(value, p) for value, p in zip(gaussian_row, printed, strict=True))
    np.testing.assert_allclose(gaussian_row, RIGHT_WW, rtol=5e-6)
    theorem = WW.theorems[0].bound(WW, gaussian, RO)
    np.testing.assert_allclose([theorem.delta(aligned(WW, base)) for base in BASE_EPSILON], RIGHT_WW, rtol=5e-6)
    guarantee = amplify(gaussian, WW)
    certified = [guarantee.delta(aligned(WW, base)) for base in BASE_EPSILON]
    assert np.all(np.array(certified) <= np.array(RIGHT_WW) * (1 + 5e-6))  # a sharper theorem may be used
    assert np.all(np.array(certified[1:]) > np.array(printed[1:]))  # and still the print is too small
    curve = shared_absence(law, laplace, RO)
    for base, (_, delta) in zip(BASE_EPSILON, PRINTED_LAPLACE_WW, strict=True):
        assert agrees(curve.delta(aligned(WW, base)), delta)


@pytest.mark.parametrize("name", ["WOR", "WR", "MUSTow"])
def test_table_s1_other_gaussian_rows_hold(name: str) -> None:
    design = DESIGNS[name]
    theorem = design.theorems[0].bound(design, Gaussian(1.0, neighbors=RO), RO)
    for base, (epsilon, delta) in zip(BASE_EPSILON, PRINTED[name], strict=True):
        assert agrees(aligned(design, base), epsilon)
        assert agrees(theorem.delta(aligned(design, base)), delta)


def test_stronger_in_epsilon_reverses_at_a_fixed_delta() -> None:
    designs = (WOR, WR, OW, WW)
    etas = [d.appearances().eta for d in designs]
    assert etas == sorted(etas, reverse=True)  # what the claim rests on
    assert etas == pytest.approx([0.4, 0.329814, 0.275515, 0.240908], abs=1e-6)
    mechanism = Gaussian(1.0, neighbors=RO)
    guarantees = [amplify(mechanism, d) for d in designs]
    upper = [g.epsilon(1e-6) for g in guarantees]
    lower = [g.lower.epsilon(1e-6) for g in guarantees]
    assert lower == pytest.approx([3.78758, 14.97189, 24.95052, 54.70686], abs=1e-4)
    assert upper[0] == pytest.approx(3.78758, abs=1e-4)
    # attacks that real neighbours carry out, so no analysis can undo the order; the unsampled mechanism is 4.89
    assert upper[0] < lower[1] < lower[2] < lower[3]
    assert mechanism.profile(RO).epsilon(1e-6) == pytest.approx(4.8865, abs=1e-3)
    assert lower[1] > mechanism.profile(RO).epsilon(1e-6)


def test_the_proof_behind_table_1_couples_with_the_wrong_law() -> None:
    chain = MultiStage([("wor", 2), ("wr", 2)], 3)
    law = collect(chain.law(Population(3)))
    absent = {units: chance for units, chance in law.items() if 2 not in units}
    total = sum(absent.values())
    given_absence = {units: chance / total for units, chance in absent.items()}
    without = collect(MultiStage(chain.stages, 2).law(Population(2)))  # the proof's omega_0
    assert given_absence == {(0, 0): Fraction(1, 3), (0, 1): Fraction(1, 3), (1, 1): Fraction(1, 3)}
    assert without == {(0, 0): Fraction(1, 4), (0, 1): Fraction(1, 2), (1, 1): Fraction(1, 4)}
    # so omega = (1 - eta) omega_0 + eta omega_1 fails; the bound is true all the same, by another coupling
    mechanism = Gaussian(0.5, neighbors=RO)
    from privamp.verify import exact_delta

    for epsilon in (0.1, 0.5, 1.0, 2.0):
        truth = exact_delta(chain, mechanism, 3, RO, epsilon)
        assert 0.0 < truth <= amplify(mechanism, chain).delta(epsilon)


def test_table_1_two_stage_sums_are_the_composed_kernels() -> None:
    n, b, m = 7, 5, 4
    two = sum(
        math.comb(b, j) * (1 / n) ** j * (1 - 1 / n) ** (b - j) * (1 - math.comb(b - j, m) / math.comb(b, m))
        for j in range(1, b + 1)
    )
    assert two == pytest.approx(1 - (1 - 1 / n) ** m, rel=1e-13)
    assert MultiStage([("wr", b), ("wor", m)], n).appearances().eta == pytest.approx(two, rel=1e-13)
    assert MultiStage([("wor", b), ("wr", m)], n).appearances().eta == pytest.approx(
        b / n * (1 - (1 - 1 / b) ** m), rel=1e-13
    )


def test_eta_increases_with_the_sample_size() -> None:
    for stages in ("wor", "wr"):
        etas = [MultiStage([(stages, 175), ("wr", m)], 1000).appearances().eta for m in range(100, 151, 10)]
        assert etas == sorted(etas)
        assert etas[-1] > 1.3 * etas[0]


def test_proposition_6_derivative() -> None:
    n, m = 50, 7
    step = 1e-5

    def eta(b):
        return b / n * (1 - (1 - 1 / b) ** m)

    slope = (eta(n + step) - eta(n - step)) / (2 * step)
    printed = (1 - (1 - 1 / n) ** (m - 1) * (1 - (m + 1) / n)) / n
    right = (1 - (1 - 1 / n) ** (m - 1) * (1 + (m - 1) / n)) / n
    assert slope == pytest.approx(right, rel=1e-5)
    assert abs(slope - printed) > 0.5 * printed
    assert right > 0  # so the proposition stands
