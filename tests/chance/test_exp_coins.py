"""Coins of chance e^-g: what a double decides and what more digits decide are the same coins."""

import decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from privamp.chance import exp_coins as module
from privamp.chance.discrete import discrete_gaussian, discrete_laplace
from privamp.chance.exp_coins import _Uniform, exp_coins, geometrics, scaled_exp
from privamp.testing import seeded_stream

MANY = 3_000


class Words:
    """A stream that hands out given words, then zeros."""

    def __init__(self, words):
        self.left = list(words)

    def words(self, n):
        found, self.left = self.left[:n], self.left[n:]
        return np.array(found + [0] * (n - len(found)), dtype=np.uint64)


@pytest.mark.parametrize("g", [Fraction(1, 10**9), Fraction(1, 3), Fraction(1), Fraction(77, 2), Fraction(10**6)])
@pytest.mark.parametrize("bits", [64, 128, 640])
def test_whole_numbers_around_an_exponential(g, bits):
    low, high = scaled_exp(g, bits)
    with mpmath.workdps(600):
        truth = mpmath.exp(-mpmath.mpf(g.numerator) / g.denominator) * mpmath.mpf(2) ** bits
        assert low <= truth <= high
    assert high - low <= 4


def test_the_decimal_context_of_the_caller_does_not_matter(monkeypatch):
    expected = [scaled_exp(g, 192) for g in (Fraction(1, 3), Fraction(44))]
    monkeypatch.setattr(decimal.DefaultContext, "Emin", -5)
    with decimal.localcontext(decimal.Context(prec=1, Emin=-1, Emax=1, traps=[decimal.Inexact, decimal.Overflow])):
        assert [scaled_exp(g, 192) for g in (Fraction(1, 3), Fraction(44))] == expected


def test_more_digits_decide_as_a_double_does(monkeypatch):
    g = np.linspace(0.0, 3.0, MANY)
    quick = exp_coins(seeded_stream(1), g, lambda i: Fraction(float(g[i])))
    words = seeded_stream(1).words(MANY)
    slow = [_Uniform(seeded_stream(2), int(w)).is_below_exp(Fraction(float(x))) for w, x in zip(words, g, strict=True)]
    assert quick.tolist() == slow
    sizes = geometrics(seeded_stream(3), MANY)
    monkeypatch.setattr(module, "_FEW", 2.0**65)  # every one by digits
    assert np.array_equal(sizes, geometrics(seeded_stream(3), MANY))


def test_words_beside_the_chance_are_decided_by_more_digits():
    """floor(2^64 e^-1) is neither clearly below nor above: the next word decides, as the digits of e^-1 say."""
    with mpmath.workdps(60):
        scaled = mpmath.exp(-1) * mpmath.mpf(2) ** 128
        first, second = divmod(int(mpmath.floor(scaled)), 2**64)
    for word, following, up in (
        (first - 1, 0, True), (first + 1, 0, False),
        (first, second - 1, True), (first, second + 1, False),
    ):  # fmt: skip
        assert exp_coins(Words([word, following]), np.array([1.0]), lambda _: Fraction(1)).tolist() == [up]
        assert geometrics(Words([word, following]), 1).tolist() == [1 if up else 0]


def test_the_ends():
    top = 2**64 - 1
    assert exp_coins(Words([top]), np.array([0.0]), lambda _: Fraction(0)).tolist() == [True]
    assert exp_coins(Words([0]), np.array([100.0]), lambda _: Fraction(100)).tolist() == [True]  # only zeros follow
    assert exp_coins(Words([0, 1]), np.array([1e6]), lambda _: Fraction(10**6)).tolist() == [False]
    assert geometrics(Words([top, 1 << 40, 0, 5]), 2).tolist() == [0, 16]
    assert geometrics(Words([0, 1 << 20]), 1).tolist() == [int(128 * np.log(2.0) - 20 * np.log(2.0))]


@pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])
def test_a_wrong_decision_in_the_margin_would_be_seen(monkeypatch, fits, sampler):
    """With a margin of a half most coins go by digits: the law stays; if these were all tails, it would not."""
    monkeypatch.setattr(module, "_MARGIN", 0.5)
    k = np.arange(-40, 41)
    weight = np.exp(-np.abs(k) / 2.5) if sampler is discrete_laplace else np.exp(-((k / 2.5) ** 2) / 2)
    draws = sampler(seeded_stream(5), 2.5, 2_000)
    assert fits(np.clip(draws, -40, 40) + 40, weight / weight.sum())
    monkeypatch.setattr(_Uniform, "is_below_exp", lambda self, g: False)
    wrong = sampler(seeded_stream(5), 2.5, 2_000)
    assert not fits(np.clip(wrong, -40, 40) + 40, weight / weight.sum())
