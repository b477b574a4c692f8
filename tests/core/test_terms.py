"""Words by which plans are compared: equal for equal things only."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from privamp import (
    ApproxDP,
    DiscreteGaussian,
    Gaussian,
    GaussianFilter,
    Joint,
    Laplace,
    Neighbors,
    PureDP,
    PureFilter,
    RenyiFilter,
)
from privamp.core.terms import in_words

MADE = [
    lambda: Laplace(2.0),
    lambda: Laplace(2.0, neighbors=Neighbors.REPLACE_ONE),
    lambda: Laplace(np.nextafter(2.0, 3.0).item()),
    lambda: Gaussian(2.0),
    lambda: DiscreteGaussian(4.0),
    lambda: PureDP(0.5),
    lambda: ApproxDP(0.5, 1e-9),
    lambda: Joint([Laplace(2.0), Gaussian(3.0)]),
    lambda: Joint([Laplace(2.0), Gaussian(4.0)]),
    lambda: PureFilter(1.0),
    lambda: RenyiFilter(8.0, 3.0, 1e-6),
    lambda: GaussianFilter(0.5),
]


@pytest.mark.parametrize("make", MADE)
def test_the_same_words_every_time(make):
    assert in_words(make()) == in_words(make())


def test_different_things_have_different_words():
    assert len({in_words(make()) for make in MADE}) == len(MADE)


@dataclass(frozen=True)
class Hidden:
    shown: float
    hidden: float = field(default=1.0, repr=False)


@dataclass(frozen=True)
class Held:
    what: object


@dataclass(frozen=True, repr=False)
class Unshown:
    what: float


class Named:
    def __repr__(self):
        return "Named()"


@dataclass(frozen=True)
class Bragging:
    what: float

    def __repr__(self):
        return "Bragging()"


@pytest.mark.parametrize(
    "thing",
    [
        Hidden(1.0),
        Held(np.ones(2000)),
        Held(len),
        Held(Hidden(1.0)),
        Held((Named(),)),
        Unshown(1.0),
        Named(),
        Bragging(1.0),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_what_hides_something_is_never_the_same(thing):
    assert in_words(thing) != in_words(thing)
