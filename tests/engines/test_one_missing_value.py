"""A record whose value is missing is decided by a public rule, and decides nothing about the others."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from privamp import (
    ClusterSampling,
    ExactLaplace,
    ImportanceSampling,
    Laplace,
    LinearProfile,
    Poisson,
    PoissonPPS,
    Population,
    SharedRate,
    Stratified,
    privacy_constrained,
)
from privamp.engines import local
from privamp.errors import InvalidInput
from privamp.testing import seeded_key

N = 400
KEY = seeded_key(77)
RULE = privacy_constrained(LinearProfile.of(Laplace(scale=10.0)), epsilon=1.0, radius=4.0)


def _table(kind, value, missing, encoded=False):
    column = pa.array([None if missing and i == 0 else value(i) for i in range(N)], kind)
    return pa.table({"id": np.arange(N), "c": column.dictionary_encode() if encoded else column})


def _drawn(table, design, name):
    """Who is drawn in one pass, and in two."""
    rows = local.draw(table, design, key=KEY, id="id", reads={name: "c"})._rows()
    streamed = [i for batch in rows for i in batch.column("id").to_pylist()]
    assert streamed == local.sample(table, design, key=KEY, id="id", reads={name: "c"})["id"].to_pylist()
    return [i for i in streamed if i]


DESIGNS = [
    (PoissonPPS.by_class({0: 0.5, 1: 0.3}), "category"),
    (Stratified({0: Poisson(0.5), 1: Poisson(0.3)}), "stratum"),
    (ClusterSampling(1, 2, N), "cluster"),
    (ClusterSampling(1, 2, N, labels=("0", "1")), "cluster"),
]
KINDS = [pa.int64(), pa.float32(), pa.decimal128(5, 0), pa.decimal128(5, 2)]


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(("design", "name"), DESIGNS)
def test_a_missing_label_changes_no_other(design, name, kind, encoded):
    whole, holed = (_drawn(_table(kind, lambda i: i % 2, missing, encoded), design, name) for missing in (False, True))
    assert whole
    assert whole == holed


def test_a_missing_text_changes_no_other():
    design = PoissonPPS.by_class({"a": 0.5})
    whole, holed = (_drawn(_table(pa.string(), lambda i: "a\0", missing), design, "category") for missing in (0, 1))
    assert whole
    assert whole == holed


def test_a_null_inside_a_dictionary_is_a_missing_label():
    column = pa.DictionaryArray.from_arrays(pa.array([2] + [0, 1] * 3), pa.array(["a", "b", None]))
    table = pa.table({"id": np.arange(7), "c": column})
    assert _drawn(table, PoissonPPS.by_class({"a": 1.0, "b": 1.0}), "category") == [1, 2, 3, 4, 5, 6]


def test_text_is_refused_by_its_type_whatever_is_missing():
    for missing in (False, True):
        with pytest.raises(InvalidInput, match="whole numbers"):
            _drawn(_table(pa.string(), lambda i: str(i % 2), missing), ClusterSampling(1, 2, N), "cluster")


@pytest.mark.parametrize("rounding", ["random", "half-up"])
@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=str)
def test_missing_labels_are_a_stratum_of_a_shared_rate(kind, rounding, monkeypatch):
    labels = [None if i < 40 else i % 2 if kind == pa.int64() else str(i % 2) for i in range(N)]
    design, people = SharedRate(90, N, 3, rounding), Population(N, stratum=labels)
    table = pa.table({"id": np.arange(N), "c": pa.array(labels, kind)})
    expected = [i for i in design.draw(people, KEY)._drawn.positions.tolist() if i]
    assert any(i < 40 for i in expected)
    assert _drawn(table, design, "stratum") == expected
    monkeypatch.setattr("privamp.tables.pieces.BATCH", 64)  # most batches have no missing label
    assert _drawn(table, design, "stratum") == expected


def test_no_record_is_lost_at_a_shared_rate_of_one():
    labels = np.where(np.arange(N) < 40, np.nan, np.arange(N) % 2)
    assert SharedRate(N, N, 3).draw(Population(N, stratum=labels), KEY)._drawn.positions.size == N


def test_a_missing_number_does_not_join_strata_of_a_shared_rate():
    for missing in (False, True):
        table = _table(pa.int64(), lambda i: 2**53 + i, missing)
        assert _drawn(table, SharedRate(N // 2, N, N, "floor"), "stratum") == []


LISTS = pa.list_(pa.float64(), 2)
BOTH = Stratified({0: ImportanceSampling(RULE), 1: ImportanceSampling(RULE)})


@pytest.mark.parametrize(
    ("kind", "value", "encoded", "design", "name"),
    [
        (pa.decimal128(5, 2), lambda i: Decimal(1), False, ImportanceSampling(RULE), "x"),
        (pa.float64(), lambda i: 0.5, True, PoissonPPS(0.9, 0.1), "probability"),
        (LISTS, lambda i: [1.0, 1.0], False, BOTH, "x"),
        (pa.bool_(), lambda i: True, False, BOTH, "x"),
    ],
)
def test_a_missing_number_stops_nothing(kind, value, encoded, design, name):
    tables = (_table(kind, value, m, encoded).append_column("stratum", pa.array(np.arange(N) % 2)) for m in (0, 1))
    whole, holed = (_drawn(table, design, name) for table in tables)
    assert whole
    assert whole == holed


def test_a_missing_decimal_counts_as_zero_in_a_sum():
    sample = local.draw(_table(pa.decimal128(5, 2), lambda i: Decimal(1), True), Poisson(1.0), key=KEY, id="id")
    assert abs(sample.release_sum(ExactLaplace(scale=0.01), "c") - (N - 1)) < 1.0
