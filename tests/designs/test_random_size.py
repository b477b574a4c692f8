import math

import numpy as np
import pytest

from privamp import (
    ApproxDP,
    Gaussian,
    InvalidInput,
    Laplace,
    Neighbors,
    NoTheorem,
    Poisson,
    Population,
    PureDP,
    RandomSize,
    WithoutReplacement,
    amplify,
)
from privamp.core.mechanism import ONE
from privamp.testing import seeded_key
from privamp.verify import exact_epsilon

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE

REFERENCE = [  # exact values of the linear program
    ([0, 0, 0.5, 0.5], 1.0, 1.763382515),
    ([0.9, 0, 0, 0, 0.1], 0.1, 0.026112522),
    ([0.2, 0.2, 0.2, 0.2, 0.2], 2.0, 2.870463435),
]


@pytest.mark.parametrize(("sizes", "epsilon", "lp"), REFERENCE)
def test_reference_rows(sizes, epsilon, lp):
    design = RandomSize(sizes)
    assert exact_epsilon(design, len(sizes) - 1, RO, epsilon, AR) == pytest.approx(lp, abs=1e-6)
    guarantee = amplify(PureDP(epsilon), design)
    assert lp - 1e-9 <= guarantee.epsilon() <= lp + 1e-6
    assert guarantee.lower.epsilon() == pytest.approx(lp, abs=1e-6)
    tilted = RandomSize.theorems[0].bound(design, PureDP(epsilon), RO).largest_loss
    assert tilted >= lp - 1e-9


def test_the_printed_theorem_is_caught():
    """Negative control: SD Theorem 3.1 as printed is below the truth."""
    design = RandomSize([0, 0, 1, 0, 0])
    printed = math.log1p(math.exp(design.log_tilted_mean(1.0)) / 4 * math.expm1(1.0))
    assert printed == pytest.approx(0.620, abs=5e-4)
    assert exact_epsilon(design, 4, RO, 1.0, AR) == pytest.approx(1.434, abs=5e-4)
    assert amplify(PureDP(1.0), design).epsilon() == pytest.approx(1.434, abs=5e-4)


def test_a_point_mass_is_sampling_without_replacement():
    found = amplify(PureDP(0.7), RandomSize.uniform(30, 30, 100)).epsilon()
    assert found == pytest.approx(amplify(PureDP(0.7), WithoutReplacement(30, 100), RO).epsilon(), rel=1e-11)


def test_a_binomial_size_is_poisson_sampling():
    found = amplify(PureDP(0.7), RandomSize.binomial(60, 0.2)).epsilon()
    assert found == pytest.approx(amplify(PureDP(0.7), Poisson(0.2), RO).epsilon(), rel=1e-9)


class Count(PureDP):
    """A mechanism in which a replaced record counts no more than an added one."""

    def profile(self, neighbors, change=ONE):
        return PureDP(self.epsilon, neighbors=neighbors).profile(neighbors, change)


def test_a_mechanism_with_a_smaller_replace_one_loss_does_better():
    design = RandomSize.uniform(10, 10, 100)
    assert amplify(Count(1.0), design).epsilon() == pytest.approx(math.log1p(0.1 * math.expm1(1)), rel=1e-10)
    assert amplify(PureDP(1.0), design).epsilon() == pytest.approx(math.log1p(0.1 * math.expm1(2)), rel=1e-10)


def test_large_laws_are_certified_from_both_sides():
    design = RandomSize.truncated_normal(5000, 300, 10_000)
    guarantee = amplify(PureDP(0.01), design)
    assert guarantee.lower.epsilon() <= guarantee.epsilon() <= guarantee.lower.epsilon() * (1 + 1e-9)
    assert guarantee.epsilon() == pytest.approx(0.01175, abs=1e-5)
    assert len(repr(design)) < 80
    assert repr(design) != repr(RandomSize.truncated_normal(5000, 301, 10_000))


def test_large_epsilons_fall_back_on_the_closed_form():
    guarantee = amplify(PureDP(400.0), RandomSize.uniform(1, 1, 10))
    assert guarantee.epsilon() == pytest.approx(800 + math.log(0.1), rel=1e-9)
    assert "tilted" in guarantee.because[0]


def test_every_mechanism_is_covered_under_replace_one():
    design = RandomSize([0.0, 1.0, 0.0])
    assert amplify(Laplace(1.0), design).epsilon() <= 2.0
    for mechanism in (Gaussian(1.0), ApproxDP(1.0, 1e-6)):
        assert 0.0 < amplify(mechanism, design).delta(0.5) < mechanism.profile(RO).delta(0.5)
    assert amplify(PureDP(1.0, neighbors=RO), design).epsilon() == pytest.approx(0.620115, abs=1e-6)
    with pytest.raises(NoTheorem, match="its theorems give replace-one"):
        amplify(PureDP(1.0), design, AR)


def test_appearances_mix_the_sizes():
    design = RandomSize([0.25, 0.0, 0.5, 0.25])
    assert design.appearances().eta == pytest.approx((0.5 * 2 + 0.25 * 3) / 3)
    two = design.appearances(2)
    assert math.exp(two.log_none) == pytest.approx(0.25)
    assert np.exp(two.log_p) == pytest.approx([0.5 * 2 / 3, 0.5 / 3 + 0.25])
    assert design.expected_size(3) == pytest.approx(1.75)


def test_drawing_wants_exactly_the_declared_population():
    design = RandomSize.uniform(1, 3, 5)
    sizes = {design.draw(5, seeded_key(1), r).reveal_secret().positions.size for r in range(40)}
    assert sizes == {1, 2, 3}
    for n in (4, 6):
        with pytest.raises(InvalidInput, match="exactly 5 records"):
            design.draw(Population(n), seeded_key(1))


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomSize([]),
        lambda: RandomSize([1.0]),
        lambda: RandomSize([0.5, 0.4]),
        lambda: RandomSize([1.5, -0.5]),
        lambda: RandomSize([math.nan, 1.0]),
        lambda: RandomSize(["a", "b"]),
        lambda: RandomSize(3),
        lambda: RandomSize.uniform(3, 2, 5),
        lambda: RandomSize.uniform(0, 6, 5),
        lambda: RandomSize.uniform(0, 1, 0),
        lambda: RandomSize.binomial(5, 1.5),
        lambda: RandomSize.truncated_normal(1.0, 0.0, 5),
        lambda: RandomSize.truncated_normal(math.inf, 1.0, 5),
    ],
)
def test_bad_laws_are_refused_in_one_sentence(make):
    with pytest.raises(InvalidInput) as caught:
        make()
    assert "got" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_law_of_sizes_is_shared_and_cannot_be_written_to():
    design = RandomSize([0.25, 0.5, 0.25])
    assert design.chances is RandomSize([0.25, 0.5, 0.25]).chances
    with pytest.raises(ValueError, match="read-only"):
        design.chances[0] = 1.0
