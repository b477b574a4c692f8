"""A column that a design or an estimate looks at may be a list: no odd entry of it is an error, a warning, or a change.

The type of an array is public; what stands in a list is not. Each of these raised or warned because of one record.
"""

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from privamp import Laplace, PoissonPPS, Population, PrivateKMeans, SharedRate
from privamp.survey.groups import places
from privamp.testing import seeded_key


class Hostile:
    """Cannot be read, compared, hashed or shown."""

    def __float__(self):
        raise ZeroDivisionError("1234567")

    def __eq__(self, other):
        raise ZeroDivisionError("1234567")

    __hash__ = None
    __lt__ = __repr__ = __len__ = __float__


ODD = [
    None, "x", "0.25", 10**400, -(10**400), float("nan"), np.inf, 1j, [1.0], (1.0, 2.0), {}, np.array(3.0),
    np.array([1.0]), np.ma.masked, b"3", Hostile(), Decimal("sNaN"), Decimal("Infinity"), Fraction(10**400),
    np.datetime64("NaT", "s"), True,
]  # fmt: skip
N = 40


def coins(odd, sample_key):
    people = Population(N + 1, probability=[*[0.3] * N, odd])
    return PoissonPPS(0.5, 0.1).draw(people, sample_key)


def shares(odd, sample_key):
    people = Population(N + 1, stratum=[*["a", "b"] * (N // 2), odd])
    return SharedRate(size=10, at_least=20, strata=3).draw(people, sample_key)


@pytest.mark.parametrize("draw", [coins, shares])
@pytest.mark.parametrize("place", range(len(ODD)))
def test_what_a_design_looks_at(draw, place):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample = draw(ODD[place], seeded_key(place))
        sample.release(Laplace(1.0), np.ones(N + 1))
    if draw is coins:
        others = [at for at in sample.reveal_secret().positions.tolist() if at < N]
        plain = coins(0.3, seeded_key(place)).reveal_secret().positions.tolist()
        assert others == [at for at in plain if at < N]


@pytest.mark.parametrize("place", range(len(ODD)))
def test_groups_of_an_estimate(place):
    labels = [*["a", "b"] * (N // 2), ODD[place]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert places(labels, ("a", "b")).tolist() == [*[0, 1] * (N // 2), 2]


def test_a_masked_cell_in_a_list_of_k_means_warns_nobody():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PrivateKMeans(n_clusters=1, epsilon=1.0, radius=1.0).fit([[0.5], [np.ma.masked], [0.25]])
