"""Labels that a column of its type cannot hold are refused: all of their records would be left out in silence."""

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from privamp import ClusterSampling, Poisson, Stratified
from privamp.designs.class_rates import ClassRates
from privamp.engines import local
from privamp.errors import InvalidInput
from privamp.tables.columns import can_hold
from privamp.testing import seeded_key

PEOPLE = pa.table({"id": range(100), "code": [f"0{k % 2 + 1}" for k in range(100)]})
DESIGNS = {
    "strata": (Stratified({"01": Poisson(1.0), "02": Poisson(1.0)}), "stratum"),
    "classes": (ClassRates({"01": 1.0, "02": 1.0}), "category"),
    "clusters": (ClusterSampling(2, 2, 50, labels=("01", "02")), "cluster"),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_codes_with_zeros_are_kept_as_text_or_refused_where_a_csv_file_makes_them_numbers(tmp_path, name):
    design, column = DESIGNS[name]
    csv.write_csv(PEOPLE, tmp_path / "people.csv", csv.WriteOptions(quoting_style="none"))
    parquet.write_table(PEOPLE, tmp_path / "people.parquet")
    asked = {"key": seeded_key(6), "id": "id", "label": "people", "reads": {column: "code"}}
    assert local.sample(tmp_path / "people.parquet", design, **asked).num_rows == 100
    with pytest.raises(InvalidInput, match="names '01', which no record can have in the column 'code' of int64"):
        local.sample(tmp_path / "people.csv", design, **asked)


def test_classes_of_a_spec_are_numbers_and_a_column_of_text_is_refused():
    table = pa.table({"id": range(10), "category": ["1"] * 10})
    design = ClassRates("1=0.9+2=0.5")
    with pytest.raises(InvalidInput, match="names 1, which no record can have in the column 'category' of string"):
        local.sample(table, design, key=seeded_key(6), id="id", label="people")
    numbers = table.set_column(1, "category", pa.array([1] * 10))
    assert local.sample(numbers, design, key=seeded_key(6), id="id", label="people").num_rows > 5


TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
NUMBERS = [pa.int64(), pa.uint8(), pa.float32(), pa.decimal128(4, 0), pa.bool_(), pa.dictionary(pa.int8(), pa.int32())]


@pytest.mark.parametrize(("kinds", "label", "held", "held_as_text"), [
    (TEXTS, "01", True, True), (TEXTS, 1, False, True), (NUMBERS, 1, True, True), (NUMBERS, "a", False, False),
    ([pa.int64()], "1", False, True), ([pa.int64()], "-10", False, True), ([pa.int64()], "01", False, False),
    ([pa.date32(), pa.binary()], "2026-01-01", False, False), ([pa.null()], "a", True, True),
])  # fmt: skip
def test_what_a_column_can_hold(kinds, label, held, held_as_text):
    for kind in kinds:
        assert can_hold(kind, label) is held
        if not (pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind)):
            assert can_hold(kind, label, as_text=True) is held_as_text
