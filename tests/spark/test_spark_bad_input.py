"""What is refused, in one sentence each; nothing of a record is shown."""

import subprocess
import sys
from importlib import util
from typing import Any

import pyarrow as pa
import pytest

import privamp
from privamp import ConditionalPoisson, InvalidInput, Laplace, Poisson, PrivateKMeans, PrivateSum, WithoutReplacement
from privamp.spark import draw, fit, release, sample, session


def test_importing_privamp_spark_does_not_import_pyspark() -> None:
    code = "import sys, privamp.spark; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert privamp.spark.sample is sample


def test_no_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    find = util.find_spec
    hidden = lambda name, *rest: None if name == "pyspark" else find(name, *rest)  # noqa: E731
    monkeypatch.setattr("privamp.extras.find_spec", hidden)
    for attempt in (session, lambda: sample(None, Poisson(0.5), id="uid")):
        with pytest.raises(InvalidInput, match=r"needs PySpark 4; install it with: pip install 'privamp\[spark\]'"):
            attempt()


def test_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InvalidInput, match=r"needs Java 17 or newer, .* apt install"):
        session("local[*]")


def test_a_strange_address() -> None:
    pytest.importorskip("pyspark")
    with pytest.raises(InvalidInput, match=r"spark must be local\[\*\], spark://host:port, .* got 'somewhere'"):
        session("somewhere")


def test_nobody_answers() -> None:
    pytest.importorskip("pyspark")
    pytest.importorskip("grpc")
    with pytest.raises(InvalidInput, match="no Spark Connect server answers at sc://localhost:1; start one"):
        session("sc://localhost:1")


def test_repeated_and_missing_ids_are_not_counted(spark: Any) -> None:
    rows = spark.createDataFrame(pa.table({"uid": [1, 2, 2, 2, 3, 3]}))
    with pytest.raises(InvalidInput, match="ids must be unique, but some in column 'uid' repeat"):
        sample(rows, Poisson(0.5), id="uid")
    rows = spark.createDataFrame(pa.table({"uid": [1, None, None]}))
    for trusted in (False, True):
        with pytest.raises(InvalidInput, match=r"^the id column 'uid' has missing ids, but every record needs one"):
            draw(rows, Poisson(0.5), id="uid", trust_ids=trusted)


def test_a_worker_is_quoted_in_one_sentence(spark: Any) -> None:
    rows = spark.createDataFrame(pa.table({"uid": [-1, 5]})).coalesce(1)
    with pytest.raises(InvalidInput, match=r"^the id column 'uid' has negative ids; cast it to text, or shift it$"):
        sample(rows, WithoutReplacement(1, 2), id="uid")


def test_columns_that_are_not_there(table: Any) -> None:
    with pytest.raises(InvalidInput, match="no column 'person'; it has 'uid', 'name'"):
        sample(table, Poisson(0.5), id="person")
    with pytest.raises(InvalidInput, match="no column 'income'"):
        draw(table, Poisson(0.5), id="uid", trust_ids=True).release_sum(privamp.ExactLaplace(1.0), "income")
    with pytest.raises(InvalidInput, match="id= must name a column"):
        sample(table, Poisson(0.5), id=None)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="must hold whole numbers or text"):
        sample(table, Poisson(0.5), id="a")


def test_ids_made_at_every_evaluation(table: Any) -> None:
    from pyspark.sql import functions

    for made in (functions.monotonically_increasing_id(), functions.expr("uuid()")):
        with pytest.raises(
            InvalidInput, match="every evaluation would be another sample; write the table to files first"
        ):
            sample(table.withColumn("made", made), Poisson(0.5), id="made")
    other = table.withColumn("made", functions.rand())  # not looked at by the design
    assert "made" in sample(other, Poisson(0.5), id="uid", trust_ids=True).columns


def test_a_design_too_large_for_the_driver(table: Any) -> None:
    with pytest.raises(
        InvalidInput, match=r"ConditionalPoisson needs .* more than the 1000 records that driver_records allows"
    ):
        sample(table, ConditionalPoisson(10, 2000, 1.0, 3.0), id="uid", trust_ids=True, driver_records=1000)


def test_a_population_smaller_than_declared(table: Any) -> None:
    with pytest.raises(InvalidInput, match="declares a population of at least 3000 records but fewer were given"):
        sample(table, WithoutReplacement(10, 3000), id="uid", trust_ids=True)


def test_sums_that_would_not_be_exact(table: Any) -> None:
    with pytest.raises(InvalidInput, match=r"needs ExactLaplace or ExactGaussian, .* got Laplace"):
        draw(table, Poisson(0.5), id="uid", trust_ids=True).release_sum(Laplace(1.0), "a")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="norm noise in idealised arithmetic"):
        release(PrivateSum(bounds=1.0, epsilon=1.0, noise="norm"), table, ["a", "b"], id="uid")
    with pytest.raises(InvalidInput, match="which groups occur is itself secret"):
        draw(table, Poisson(0.5), id="uid", trust_ids=True).release_count(privamp.ExactLaplace(1.0), by="stratum")
    with pytest.raises(InvalidInput, match="column 'x' holds arrays; give their length"):
        release(PrivateSum(bounds=1.0, epsilon=1.0), table, "x", id="uid")


def test_a_private_ball_for_k_means(table: Any) -> None:
    with pytest.raises(InvalidInput, match="radius and center must be public"):
        fit(PrivateKMeans(2, epsilon=1.0, radius="private"), table, ["a", "b"], id="uid")
