"""Several draws in one: the order of their records, and the lengths that weights were made for."""

import numpy as np

from privamp.core.sample import Drawn


def drawn(positions, counts, weights, lengths=None, p=2.0):
    return Drawn(
        np.array(positions), np.array(counts), np.array(weights), None if lengths is None else np.array(lengths), p
    )


def test_records_are_ordered_by_position():
    found = Drawn.joined([drawn([4, 9], [1, 2], [0.5, 0.25]), drawn([0, 7], [3, 4], [2.0, 8.0])])
    assert found.positions.tolist() == [0, 4, 7, 9]
    assert found.counts.tolist() == [3, 1, 4, 2]
    assert found.weights.tolist() == [2.0, 0.5, 8.0, 0.25]
    assert found.lengths is None
    assert found.p == 2.0


def test_records_without_a_length_may_be_as_long_as_they_are():
    one = drawn([4, 9], [1, 1], [1.0, 1.0], [0.3, 0.4], 3.0)
    other = drawn([0, 7], [1, 1], [1.0, 1.0])
    found = Drawn.joined([one, other])
    assert found.lengths.tolist() == [np.inf, 0.3, np.inf, 0.4]
    assert found.p == 3.0


def test_lengths_are_taken_in_the_smallest_norm_of_all_parts_that_have_one():
    parts = [drawn([1], [1], [1.0], [0.3], 3.0), drawn([2], [1], [1.0], [0.4], 1.5), drawn([3], [1], [1.0], None, 1.0)]
    found = Drawn.joined(parts)
    assert found.p == 1.5
    assert found.lengths.tolist() == [0.3, 0.4, np.inf]


def test_nothing_is_joined_to_nobody():
    found = Drawn.joined([])
    assert found.positions.size == found.counts.size == found.weights.size == 0
    assert found.lengths is None
    assert found.positions.dtype == np.int64


def test_rows_are_shortened_to_their_lengths():
    found = drawn([0, 1], [1, 1], [1.0, 1.0], [1.0, np.inf]).fitted([[3.0, 4.0], [3.0, 4.0]])
    np.testing.assert_allclose(found, [[0.6, 0.8], [3.0, 4.0]], rtol=1e-12)
    flat = drawn([0, 1], [1, 1], [1.0, 1.0], [1.0, 2.0], 1.0).fitted([3.0, -0.5])
    np.testing.assert_allclose(flat, [1.0, -0.5], rtol=1e-12)
    cube = drawn([0], [1], [1.0], [1.0]).fitted(np.full((1, 2, 2), 2.0))
    np.testing.assert_allclose(cube, np.full((1, 2, 2), 0.5), rtol=1e-12)
    kept = ["a", "b"]
    assert drawn([0, 1], [1, 1], [1.0, 1.0]).fitted(kept).tolist() == kept
