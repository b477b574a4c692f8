"""Numbers of NumPy count by their value: in single or half precision a curve would be computed too small."""

from dataclasses import fields

import numpy as np
import pytest

import privamp
from privamp import (
    CyclicPoisson,
    Gaussian,
    InvalidInput,
    Laplace,
    Neighbors,
    Poisson,
    WithoutReplacement,
    amplify,
    compose,
)
from privamp.accounting.joint import Joint
from privamp.mechanisms.per_stratum import PerStratum

GIVEN = {  # the first field, and those after it
    "Gaussian": (1.1, 0.3),
    "Laplace": (1.1, 0.3),
    "ExactGaussian": (1.1, 1.0),
    "ExactLaplace": (1.1, 1.0),
    "DiscreteGaussian": (4.1, 2),
    "DiscreteLaplace": (1.1, 2),
    "NormNoise": (1.1, 3),
    "PureDP": (0.7,),
    "ApproxDP": (0.7, 0.001),
    "RandomizedResponse": (0.7, 3),
}


def as_given(values, real, integer):
    return [real(value) if isinstance(value, float) else integer(value) for value in values]


@pytest.mark.parametrize("real", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", GIVEN)
def test_the_guarantee_is_that_of_the_value(name, real):
    kind, numbers = getattr(privamp, name), as_given(GIVEN[name], real, np.int16)
    short = kind(*numbers)
    plain = kind(*(number.item() for number in numbers))
    assert short == plain
    assert repr(short) == repr(plain)
    assert not any(isinstance(getattr(short, field.name), np.generic) for field in fields(short))
    replaced = name == "RandomizedResponse"
    design, relation = (WithoutReplacement(1, 10), Neighbors.REPLACE_ONE) if replaced else (Poisson(0.1), None)
    found, true = (amplify(one, design, relation) for one in (short, plain))
    assert found.epsilon(1e-4) == true.epsilon(1e-4)
    assert compose(found, np.int8(100)).steps == 100


def test_half_precision_would_be_caught():
    """The planted mistake: what the sampled Gaussian had when its sigma stayed a number of half precision."""
    true = amplify(Gaussian(float(np.float16(1.1))), Poisson(0.1)).epsilon(1e-3)
    assert amplify(Gaussian(np.float16(1.1)), Poisson(0.1)).epsilon(1e-3) == true > 0.51223


class Scalar:
    """A number of another array library, as JAX and torch have them: it computes in its own precision."""

    ndim = 0

    def __init__(self, value):
        self.value = np.float16(value)

    def item(self):
        return self.value.item()

    def __float__(self):
        return self.item()


@pytest.mark.parametrize("scalar", [Scalar, lambda value: np.array(value, dtype=np.float16)])
def test_arrays_of_one_number_count_by_their_value(scalar):
    """A Gaussian with such a sigma was certified with .51223 where .51255 is true, a cyclic schedule with 1.58027
    where 1.58050 is true."""
    half = float(np.float16(1.1))
    assert type(Gaussian(scalar(1.1)).sigma) is float
    assert Gaussian(scalar(1.1)) == Gaussian(half)
    assert Gaussian(1.0, scalar(1.1)) == Gaussian(1.0, half)
    assert Laplace(scalar(1.1)) == Laplace(half)
    assert Poisson(scalar(0.1)) == Poisson(float(np.float16(0.1)))
    assert CyclicPoisson(scalar(0.1), 2, 4) == CyclicPoisson(float(np.float16(0.1)), 2, 4)
    assert amplify(Gaussian(scalar(1.1)), Poisson(0.1)).epsilon(1e-3) > 0.5125


def test_long_doubles_are_doubles():
    assert type(Gaussian(np.longdouble(1.1)).sigma) is float
    assert type(Poisson(np.longdouble(0.1)).rate) is float


def test_several_numbers_are_not_one():
    with pytest.raises(InvalidInput, match="sigma must be a finite number"):
        Gaussian(np.array([1.1]))


def test_short_steps_do_not_overflow():
    one = amplify(Gaussian(10.0), Poisson(0.1))
    assert compose(compose(one, np.int8(100)), np.int8(100)).epsilon(1e-6) == compose(one, 10_000).epsilon(1e-6)


def test_numbers_inside_other_mechanisms():
    parts = Joint([Gaussian(np.float32(1.1)), Gaussian(np.float32(0.9))])
    assert all(type(part.sigma) is float for part in parts.mechanisms)
    several = PerStratum(Gaussian(1.0), (("a", np.float32(0.5)), ("b", np.float32(0.1))))
    assert all(type(value) is float for _, value in several.sensitivities)
