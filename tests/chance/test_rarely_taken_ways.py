"""What is computed only where doubles cannot decide: the same numbers, exactly, and seldom."""

import math
from fractions import Fraction

import numpy as np
import pytest

from privamp.chance import discrete, grid_normals
from privamp.chance.discrete import discrete_gaussian, discrete_laplace, rational_scale
from privamp.chance.keystream import Keystream
from privamp.chance.texts import _of_fixed_width
from privamp.testing import seeded_stream


@pytest.mark.parametrize("scale", [Fraction(7, 3), Fraction(1, 3), 12.5, 0.1])
@pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian])
def test_exponents_are_the_same_as_doubles_and_as_fractions(monkeypatch, draw, scale):
    """A coin of chance e^-g is decided by its exact exponent where doubles cannot: it must be that of the same coin."""
    seen, real = [], discrete.exp_coins

    def told(stream, g, exact):
        coins = real(stream, g, exact)
        seen.extend((value, exact(i)) for i, value in enumerate(g.tolist()))
        return coins

    monkeypatch.setattr(discrete, "exp_coins", told)
    draw(seeded_stream(1), scale, 200)
    assert len(seen) >= 200
    for value, exact in seen:
        assert abs(Fraction(value) - exact) <= exact / 2**49
    if draw is discrete_gaussian:  # (|y| b - a)²/2a²: multiples of 1/2a²
        a = rational_scale(scale).numerator
        assert all((2 * a * a * exact).denominator == 1 for _, exact in seen)
        assert any(exact > 0 for _, exact in seen)


def test_few_points_of_the_curve_are_decided_by_digits(monkeypatch):
    """In a cell only those within a margin of about 2^-40 of it, so none of these; in the tail all."""
    tables, asked = grid_normals.curve_tables(), []
    real = grid_normals.decided
    monkeypatch.setattr(grid_normals, "decided", lambda *given: asked.append(given[1]) or real(*given))
    grid_normals._from_rest(Keystream(seeded_stream(4)), seeded_stream(5), 20_000, tables)
    assert set(asked) <= {grid_normals.CELLS}
    assert len(asked) < 100
    assert np.all(tables.margin[:-2] < tables.scaled * 2.0**-38)
    assert np.all(tables.margin >= 2.0)


def test_fixed_width_text_is_read_at_once_up_to_the_last_sign_of_ascii():
    read = _of_fixed_width(np.array(["a\x7f", "b"]))
    assert read is not None
    assert read.lengths.tolist() == [2, 1]
    assert read.data[:4].tolist() == [97, 127, 98, 0]
    assert _of_fixed_width(np.array(["a\x80", "b"])) is None
    assert _of_fixed_width(np.array([], dtype="<U3")) is None


def test_scales_are_fractions_never_below_what_was_asked_for():
    most = 2**50
    assert rational_scale(Fraction(most, 1)) == most
    assert rational_scale(Fraction(1, 2**20)) == Fraction(1, 2**20)
    assert rational_scale(Fraction(1, 2**20 + 1)) == Fraction(1, 2**20)
    third = Fraction(2**52 + 1, 3 * 2**4)  # too many digits: a coarser power of two below 2^50
    found = rational_scale(third)
    bottom = 2 ** (20 - max(math.ceil(math.log2(third * 2**20)) - 50, 0))
    assert found == Fraction(math.ceil(third * bottom), bottom)
    assert third <= found <= third * (1 + Fraction(1, 2**48))
