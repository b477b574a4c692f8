"""Columns of lists: one that is missing, has gaps or another length stops nothing, and moves one record's part only."""

from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from privamp import (
    ExactLaplace,
    ImportanceSampling,
    InvalidInput,
    LinearProfile,
    Named,
    Poisson,
    Stratified,
    privacy_constrained,
)
from privamp.core.neighbors import Neighbors
from privamp.engines import local
from privamp.engines.row_numbers import lengths_of
from privamp.testing import seeded_key
from privamp.verify import check_release
from privamp.verify.one_record import Pair

NOISE = ExactLaplace(scale=20.0, sensitivity=4.0)
RULE = privacy_constrained(LinearProfile.of(NOISE), epsilon=1.0, radius=4.0)
ROWS = [[float(x), -float(x) / 2] for x in np.linspace(-3.0, 3.0, 9)]
HARD = [None, [None, 1.0], [None, None], [np.nan, np.inf], [1e308, -1e308], [0.0, -0.0]]
UNEVEN = [[], [1.0], [1.0, 2.0, 3.0], [9.0] * 50]
FREE, FIXED = pa.list_(pa.float64()), pa.list_(pa.float64(), 2)


def table(kind, rows):
    return pa.table({"id": np.arange(len(rows)), "x": pa.array(rows, kind)})


def released(design, kind, rows):
    dimension = {"dimension": 2} if kind == FREE else {}
    sample = local.draw(table(kind, rows), design, key=seeded_key(14), id="id")
    return sample.release_sum(NOISE, "x", **dimension), repr(sample)


def most(design, mechanism, pair, number):
    """The weight of the record that came times its clipped norm, over the sensitivity; nothing for another length."""
    row = pair.other[-1]
    if row is None or len(row) != 2:
        return 0.0
    norm = min(float(np.minimum(np.nan_to_num(np.abs(np.array(row, dtype=float))), 4.0).sum()), 4.0)
    weight = 1.0 if isinstance(design, Poisson) else float(RULE.weights_of_norms(np.array([norm]))[0])
    return weight * norm / 4.0


@pytest.mark.parametrize("design", [Poisson(0.9), ImportanceSampling(RULE, "x")], ids=["Poisson", "importance"])
@pytest.mark.parametrize("kind", [FREE, FIXED], ids=["lists", "fixed size"])
def test_one_record_moves_no_more_than_its_own_part(design, kind):
    hard = [*HARD, *(UNEVEN if kind == FREE else [])]
    pairs = [Pair(f"{row}", ROWS, [*ROWS, row], Neighbors.ADD_REMOVE) for row in hard]
    pairs += [Pair(f"{row} alone", [], [row], Neighbors.ADD_REMOVE) for row in hard]
    report = check_release(partial(released, design, kind), pairs, most=partial(most, design))
    assert report.ok, str(report)


def test_both_kinds_are_drawn_alike():
    rows, design = [*ROWS, None, [None, 2.0]], ImportanceSampling(RULE, "x")
    drawn = [local.sample(table(kind, rows), design, key=seeded_key(14), id="id") for kind in (FREE, FIXED)]
    one, other = ([some[name].to_pylist() for name in ("id", "privamp_weight")] for some in drawn)
    assert one == other


def test_lists_of_any_length_are_summed_by_their_public_length_only():
    sample = local.draw(table(FREE, ROWS), Poisson(0.9), key=seeded_key(15), id="id")
    with pytest.raises(InvalidInput, match="give their length with dimension="):
        sample.release_sum(NOISE, "x")
    with pytest.raises(InvalidInput, match="no column 'y'"):
        sample.release_sum(NOISE, "y")
    assert sample.ledger.entries == ()


def test_a_type_that_is_no_number_is_refused_before_the_release_is_registered():
    words = pa.table({"id": [1, 2], "x": ["a", "b"]})
    sample = local.draw(words, Poisson(0.9), key=seeded_key(15), id="id")
    with pytest.raises(InvalidInput, match="must hold numbers to be summed"):
        sample.release_sum(NOISE, "x")
    assert sample.ledger.entries == ()


def test_lists_beside_numbers_need_a_fixed_size():
    """Their length is then a public fact of the table, and a record cannot change it."""
    design = ImportanceSampling(RULE, "x+y")
    mixed = pa.table({"id": [1, 2], "x": pa.array([[1.0], [2.0]], FREE), "y": [1.0, 2.0]})
    with pytest.raises(InvalidInput, match="without a public length"):
        local.draw(mixed, design, key=seeded_key(15), id="id")


def test_lists_of_any_length_need_a_rule_that_reads_norms_in_every_stratum():
    """One stratum's rule reads the norm, the other's the whole list, whose length must be public for it."""
    whole = privacy_constrained(LinearProfile(Named("first", "1", lambda rows: np.abs(rows[:, 0]) / 20.0)), epsilon=1.0)
    both = Stratified({"a": ImportanceSampling(RULE, "x"), "b": ImportanceSampling(whole, "x")})
    rows = pa.table({"id": [1, 2], "stratum": ["a", "b"], "x": pa.array([[1.0, 0.0], [2.0, 0.0]], FREE)})
    with pytest.raises(InvalidInput, match="without a public length"):
        local.draw(rows, both, key=seeded_key(15), id="id")


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_lengths_are_norms_of_columns_or_of_lists(p):
    rows = [[3.0, -4.0], [0.0, 0.0], [1.0, np.nan], [-2.0, 1.0]]
    columns = pa.RecordBatch.from_pydict({"x": [row[0] for row in rows], "y": [row[1] for row in rows]})
    uneven = [*rows, None, [], [7.0], [1.0] * 9]
    lists = pa.RecordBatch.from_arrays([pa.array(uneven, FREE)], names=["x"])
    expected = np.linalg.norm([[3.0, 4.0], [0.0, 0.0], [1.0, 0.0], [2.0, 1.0]], p, axis=1)
    assert lengths_of(columns, ["x", "y"], p) == pytest.approx(expected)
    assert lengths_of(columns, ["x"], p) == pytest.approx([3.0, 0.0, 1.0, 2.0])
    assert lengths_of(lists, ["x"], p) == pytest.approx([*expected, 0.0, 0.0, 7.0, np.linalg.norm(np.ones(9), p)])
