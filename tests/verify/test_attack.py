"""The attack's arithmetic against SciPy, and its honesty: what it calls demonstrated is true."""

import math

import numpy as np
import pytest

from privamp.errors import InvalidInput
from privamp.testing import seeded_stream
from privamp.verify.attack import attacked, learned_score, low_bit, shown_epsilon, tradeoff


@pytest.mark.parametrize(("hits", "false_hits"), [(0, 0), (1, 0), (50, 3), (400, 100), (500, 0), (500, 500)])
def test_demonstrated_epsilon_is_clopper_pearson(hits, false_hits):
    from scipy.stats import binomtest

    n, delta, confidence = 500, 0.01, 0.95
    low = binomtest(hits, n).proportion_ci(confidence, "exact").low  # two-sided: half the error on each side
    high = binomtest(false_hits, n).proportion_ci(confidence, "exact").high
    expected = math.log((low - delta) / high) if low > delta else -math.inf
    assert shown_epsilon(hits, false_hits, n, delta, confidence) == pytest.approx(expected, rel=1e-9)


def test_a_true_claim_is_refuted_no_more_often_than_stated():
    """Randomised response at epsilon 1 is attacked at its exact epsilon: the hardest true claim."""
    stream, runs, trials = seeded_stream(5), 300, 400
    p, q = 1 / (1 + math.exp(-1.0)), 1 / (1 + math.exp(1.0))
    answers = stream.uniforms((2, runs, trials))
    refuted = sum(
        attacked("rr", answers[0, r] < p, answers[1, r] < q, 1.0, score=lambda x: x[:, 0], confidence=0.9).refuted
        for r in range(runs)
    )
    assert refuted <= 0.1 * runs + 6 * math.sqrt(0.09 * runs)  # false alarm below 1e-9


def test_choosing_the_event_on_the_same_half_would_lie():
    """The negative control: an event chosen where it is counted demonstrates what is not there."""
    stream, trials, runs = seeded_stream(6), 400, 60
    honest = peeking = 0
    for _ in range(runs):
        same = stream.normals((2, trials))
        honest += attacked("nothing", same[0], same[1], 0.0, score=lambda x: x[:, 0], confidence=0.8).refuted
        cuts = np.sort(same.ravel())[::4]
        found = [shown_epsilon(np.sum(same[0] >= t), np.sum(same[1] >= t), trials, 0.0, 0.8) for t in cuts]
        peeking += max(found) > 0
    assert peeking > honest + 0.2 * runs


def test_the_lowest_bit_is_what_it_says():
    assert low_bit(np.array([1.0, 0.75, 3.0, -6.0, 2.0**-60])).tolist() == [0.0, -2.0, 0.0, 1.0, -60.0]


def test_textbook_noise_is_told_apart_by_its_low_bits_and_ours_is_not():
    from privamp import Gaussian, Laplace

    generator, stream = np.random.default_rng(1), seeded_stream(2)
    textbook = [v + generator.laplace(0.0, 10.0, 4000) for v in (1.0, 0.0)]
    assert attacked("textbook", *textbook, claimed=0.1).refuted
    for noise in (Laplace(10.0), Gaussian(60.0)):
        ours = [noise.release(np.full(4000, v), stream) for v in (1.0, 0.0)]
        assert not attacked("ours", *ours, claimed=0.1, confidence=0.9999).refuted


def test_a_learned_score_finds_a_shift_in_many_dimensions():
    stream = seeded_stream(3)
    p, q = stream.normals((2, 3000, 5))
    p = p + 0.8
    score = learned_score(p[:1500], q[:1500])
    assert np.mean(score(p[1500:]) > score(q[1500:])) > 0.8


def test_the_tradeoff_curve_goes_from_corner_to_corner():
    false_alarms, misses = tradeoff(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 2.0]))
    assert (false_alarms[0], misses[0]) == (1.0, 0.0)
    assert (false_alarms[-1], misses[-1]) == (0.0, 1.0)
    assert np.all(np.diff(false_alarms) <= 0)


@pytest.mark.parametrize("rows", [np.zeros(10), np.full(500, np.nan)])
def test_what_cannot_be_attacked_is_said(rows):
    with pytest.raises(InvalidInput):
        attacked("bad", rows, rows, 1.0)
