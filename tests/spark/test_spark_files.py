"""`privamp sample --spark` writes the file that `privamp sample` writes."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

import privamp.spark
from privamp import ExactLaplace, InvalidInput, Key, Poisson, PrivateSum, WithoutReplacement
from privamp.engines import local, spark_files
from privamp.engines.options import WriteOptions
from privamp.engines.spark_digest import CLUSTER
from privamp.testing import seeded_key


def test_the_same_rows_in_a_private_file(spark: Any, records: Any, tmp_path: Path) -> None:
    data, here, there = (tmp_path / name for name in ("people.parquet", "here.parquet", "there.parquet"))
    parquet.write_table(records.arrow(), data)
    asked: dict[str, Any] = {"key": seeded_key(821), "id": "uid", "options": WriteOptions(columns=["uid", "a"])}
    one = local.write(str(data), WithoutReplacement(50, 2000), here, **asked)
    other = spark_files.write([str(data)], WithoutReplacement(50, 2000), there, spark="local[2]", **asked)
    assert one.ledger_id == other.ledger_id
    assert parquet.read_table(there).equals(parquet.read_table(here).sort_by("uid"))
    assert stat.S_IMODE(there.stat().st_mode) == 0o600
    facts = [json.loads(parquet.read_schema(file).metadata[b"privamp"]) for file in (here, there)]
    assert [found.pop("assumes") for found in facts] == [[], [CLUSTER]]
    assert facts[0] == facts[1]
    again = local.open_sample(there, WithoutReplacement(50, 2000), key=asked["key"])
    again.release_sum(ExactLaplace(scale=1.0, sensitivity=3.0), "a")
    assert CLUSTER in again.guarantee().assumes


def test_csv(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("person,age\np1,20\np2,30\n")
    assert [row.person for row in spark_files.read(spark, str(tmp_path / "people.csv")).collect()] == ["p1", "p2"]


def test_what_spark_cannot_read(spark: Any, tmp_path: Path) -> None:
    for source, why in (("people.feather", "must be Parquet or CSV"), ("nowhere.parquet", "Spark cannot read")):
        with pytest.raises(InvalidInput, match=why):
            spark_files.read(spark, str(tmp_path / source))
    assert not list(tmp_path.iterdir())


def test_rows_without_ids(spark: Any, records: Any, tmp_path: Path) -> None:
    parquet.write_table(records.arrow(), tmp_path / "people.parquet")
    with pytest.raises(InvalidInput, match="id= must name a column"):
        spark_files.write(
            str(tmp_path / "people.parquet"),
            WithoutReplacement(5, 2000),
            tmp_path / "out.parquet",
            key=seeded_key(822),
            id=None,
        )
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize("odd", ["00007", "+8"])
def test_a_csv_file_writes_whole_numbers_in_one_way(spark: Any, tmp_path: Path, odd: str) -> None:
    """Spark reads 00007 as 7, which is another id than the text 00007: refused here as by every other door."""
    path = tmp_path / "people.csv"
    path.write_text(f"person,age\n1,20\n{odd},30\n")
    for engine in (local, spark_files):
        with pytest.raises(InvalidInput, match=r"without leading zeros|got double") as caught:
            engine.write(str(path), Poisson(1.0), tmp_path / "out.parquet", key=seeded_key(823), id="person")
        assert odd not in str(caught.value).replace("7 and 00007", "")
    path.write_text("person,age\n1,20\n9,30\n")
    spark_files.write(str(path), Poisson(1.0), tmp_path / "out.parquet", key=seeded_key(823), id="person")
    assert parquet.read_table(tmp_path / "out.parquet").column("person").to_pylist() == [1, 9]


def test_a_kept_key_asks_for_the_label_of_a_table(table: Any, records: Any, tmp_path: Path) -> None:
    df, key, doors = table, Key.from_bytes(bytes(range(32))), privamp.spark
    total = {"bounds": 1.0, "epsilon": 1.0}
    parquet.write_table(records.arrow(), tmp_path / "people.parquet")
    for door in (
        lambda **named: doors.sample(df, Poisson(0.1), id="uid", key=key, **named),
        lambda **named: doors.draw(df, Poisson(0.1), id="uid", key=key, **named),
        lambda **named: doors.release(PrivateSum(**total, **named), df, "a", id="uid", key=key),
        lambda **named: spark_files.write(
            str(tmp_path / "people.parquet"), Poisson(0.1), tmp_path / "out.parquet", key=key, id="uid", **named
        ),
    ):
        with pytest.raises(InvalidInput, match="label"):
            door()
        door(label="people")
