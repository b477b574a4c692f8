import copy
import math
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammainc, ndtr

from privamp.chance.keys import Key
from privamp.chance.stream import Stream
from privamp.errors import InvalidInput
from privamp.testing import seeded_stream

MANY = 200_000


def test_a_stream_is_a_function_of_its_key():
    key = Key.from_bytes(bytes(range(32)))
    assert np.array_equal(Stream(key).words(5000), Stream(key).words(5000))
    assert not np.any(Stream(key).words(5000) == Stream(key.subkey(1)).words(5000))
    assert not np.any(Stream.from_os().words(5000) == Stream.from_os().words(5000))


@given(st.lists(st.sampled_from([0, 1, 7, 1023, 1024, 1025, 9000]), max_size=6))
def test_words_do_not_depend_on_how_they_are_asked_for(sizes):
    pieces, whole = seeded_stream(1), seeded_stream(1).words(sum(sizes))
    got = [pieces.words(n) for n in sizes]
    assert np.array_equal(np.concatenate([np.empty(0, np.uint64), *got]), whole)


def test_changing_an_answer_does_not_change_the_stream():
    stream, untouched = seeded_stream(2), seeded_stream(2)
    stream.words(3)[:] = 0
    assert np.array_equal(stream.words(10), untouched.words(13)[3:])


def test_shapes_and_types():
    stream = seeded_stream(3)
    for draw in (stream.uniforms, stream.normals, stream.laplaces, stream.signs):
        assert draw((2, 3)).shape == (2, 3)
        assert draw(4).shape == (4,)
        assert draw(()).shape == ()
        assert draw((0, 5)).shape == (0, 5)
    assert stream.gammas(2.0, (2, 3)).shape == (2, 3)
    assert stream.below(10, 3).dtype == stream.permutation(3).dtype == stream.choose(9, 2).dtype == np.int64


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.words(-1),
        lambda s: s.below(0, 1),
        lambda s: s.below(2**63 + 1, 1),
        lambda s: s.uniforms((2, -1)),
        lambda s: s.gammas(0.0, 1),
        lambda s: s.choose(3, 4),
        lambda s: Stream(bytes(32)),
    ],
)
def test_bad_arguments(call):
    with pytest.raises(InvalidInput, match="must be"):
        call(seeded_stream(1))


@pytest.mark.parametrize("bound", [2, 3, 7, 64, 1000])
def test_below_is_uniform(fits, bound):
    assert fits(seeded_stream(4).below(bound, MANY), np.full(bound, 1 / bound))
    assert not seeded_stream(4).below(1, 100).any()


def test_below_is_not_biased_at_large_bounds(fits):
    bound = 3 * 2**61  # 2^64 leaves a remainder of a third of the range
    thirds = np.full(3, 1 / 3)
    assert fits(seeded_stream(5).below(bound, MANY) // 2**61, thirds)
    twin = (seeded_stream(5).words(MANY) % np.uint64(bound) // np.uint64(2**61)).astype(int)
    assert not fits(twin, thirds)
    assert seeded_stream(5).below(2**63, 1000).min() >= 0


def test_uniforms_stay_inside_and_use_53_bits():
    class Fixed(Stream):
        def words(self, n):
            return np.array([0, 2**64 - 1], dtype=np.uint64)[:n]

    low, high = Fixed(Key.generate()).uniforms(2)
    assert (low, high) == (2.0**-53, 1 - 2.0**-53)
    assert np.isfinite(Fixed(Key.generate()).normals(2)).all()
    assert np.isfinite(Fixed(Key.generate()).laplaces(2)).all()


def laplace_cdf(x):
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)


def test_continuous_draws_fit_and_wrong_scales_are_caught(fits_cdf):
    stream = seeded_stream(6)
    for draw, cdf in [(stream.uniforms, lambda x: x), (stream.normals, ndtr), (stream.laplaces, laplace_cdf)]:
        assert fits_cdf(draw(MANY), cdf)
    assert not fits_cdf(stream.normals(MANY) * 1.03, ndtr)
    assert not fits_cdf(stream.laplaces(MANY) * 1.03, laplace_cdf)
    assert not fits_cdf(np.abs(stream.laplaces(MANY)), laplace_cdf)


@pytest.mark.parametrize("a", [0.05, 0.5, 1.0, 1.5, 20.0, 1000.0])
def test_gammas_fit_and_a_near_miss_is_caught(fits_cdf, a):
    draws = seeded_stream(7).gammas(a, MANY)
    assert fits_cdf(draws, lambda x: gammainc(a, x))
    near = a * 1.05 if a < 100 else a * 1.005
    assert not fits_cdf(draws, lambda x: gammainc(near, x))


def test_signs_and_sizes_of_a_laplace_are_independent(fits):
    x = seeded_stream(8).laplaces(MANY)
    cells = 2 * (np.abs(x) > math.log(2)) + (x > 0)
    assert fits(cells, np.full(4, 0.25))
    assert fits((seeded_stream(8).signs(MANY) + 1) // 2, [0.5, 0.5])


def ordered_code(choice, n):
    return int(sum(int(x) * n**i for i, x in enumerate(choice)))


@pytest.mark.parametrize(("n", "k"), [(5, 2), (6, 3), (4, 3), (4, 4)])
def test_every_ordered_choice_is_equally_likely(fits, n, k):
    stream = seeded_stream(9)
    draws = [stream.choose(n, k) for _ in range(8000)]
    assert all(len(set(d.tolist())) == k for d in draws)
    codes = {code: i for i, code in enumerate(sorted({ordered_code(d, n) for d in draws}))}
    assert len(codes) == math.perm(n, k)
    even = np.full(len(codes), 1 / len(codes))
    assert fits([codes[ordered_code(d, n)] for d in draws], even)
    ascending = [d[::-1] if d[0] > d[1] else d for d in draws]  # broken twin: the order leaks
    assert not fits([codes[ordered_code(d, n)] for d in ascending], even)


@given(st.integers(0, 200), st.data())
def test_choose_gives_distinct_numbers_in_range(n, data):
    k = data.draw(st.integers(0, n))
    chosen = seeded_stream(10).choose(n, k).tolist()
    assert len(set(chosen)) == len(chosen) == k
    assert all(0 <= x < n for x in chosen)


def test_choose_is_cheap_when_few_are_wanted():
    assert len(set(seeded_stream(11).choose(2**62, 1000).tolist())) == 1000


def test_permutation_redraws_ties():
    class Tied(Stream):
        def words(self, n):
            words = super().words(n)
            if not ties:
                ties.append(True)
                words[:] = 7
            return words

    ties: list[bool] = []
    order = Tied(Key.generate()).permutation(1000)
    assert ties
    assert np.array_equal(np.sort(order), np.arange(1000))
    assert not np.array_equal(order, np.arange(1000))


def test_threads_never_share_a_word():
    stream, got = seeded_stream(12), [[] for _ in range(8)]

    def draw(mine):
        for i in range(300):
            mine.append(stream.words(1 + i % 50))

    threads = [threading.Thread(target=draw, args=(mine,)) for mine in got]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.sort(np.concatenate([w for mine in got for w in mine]))
    assert np.array_equal(words, np.sort(seeded_stream(12).words(len(words))))


def test_repr_hides_everything_and_copies_are_refused():
    stream = Stream.from_os()
    assert repr(stream) == str(stream) == "Stream(secret)"
    for leak in (pickle.dumps, copy.copy, copy.deepcopy, Stream.__getstate__):
        with pytest.raises(InvalidInput, match=r"Stream\.from_os"):
            leak(stream)
