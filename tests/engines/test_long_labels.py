"""One very long label of a stratum or cluster costs its own length, and everybody is drawn as before."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privamp import ClusterSampling, InvalidInput, Poisson, PoissonPPS, Population, SharedRate, Stratified, survey
from privamp.core.population import column_of
from privamp.engines import local
from privamp.testing import seeded_key

N, LONG = 20_000, "x" * 1_000_000
KEY = seeded_key(31)
STRATA = ["ab"[i % 2] for i in range(N)]
DESIGNS = {
    "stratified": (Stratified({"a": Poisson(0.1), "b": Poisson(0.3)}), "stratum"),
    "clusters": (ClusterSampling(1, 2, max_size=N, labels=("a", "b")), "cluster"),
    "shared rate": (SharedRate(100, N, 3), "stratum"),
}


def peak(work):
    """What work() gives, and the most that it held, in bytes."""
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def drawn(design, column, labels):
    return design.draw(Population(N, "people", **{column: labels}), KEY).reveal_secret().positions


@pytest.mark.parametrize("name", DESIGNS)
def test_one_long_label_in_a_list(name):
    design, column = DESIGNS[name]
    found, most = peak(lambda: drawn(design, column, [*STRATA[:-1], LONG]))
    assert most < 40e6  # 80 GB as text of one width
    if name != "shared rate":  # where its record counts as one of a stratum of its own
        everybody = drawn(design, column, STRATA)
        assert np.array_equal(found, everybody[everybody < N - 1])


@pytest.mark.parametrize("name", DESIGNS)
def test_lists_and_arrays_draw_the_same(name):
    """The width of NumPy's text, and NULs that it drops, change nothing."""
    design, column = DESIGNS[name]
    expected = drawn(design, column, np.array(STRATA))
    assert np.array_equal(drawn(design, column, STRATA), expected)
    assert np.array_equal(drawn(design, column, np.array(STRATA, dtype="U300")), expected)
    assert np.array_equal(drawn(design, column, np.array(STRATA, dtype=object)), expected)
    assert np.array_equal(drawn(design, column, [label + "\0" for label in STRATA]), expected)


@pytest.mark.parametrize("name", ["stratified", "clusters"])
def test_one_long_label_in_a_file(name, tmp_path):
    design, column = DESIGNS[name]
    tables = [pa.table({"id": np.arange(N), column: labels}) for labels in (STRATA, [*STRATA[:-1], LONG])]
    for at, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{at}.parquet")
    short, long = (
        peak(lambda path=tmp_path / f"{at}.parquet": local.sample(path, design, key=KEY, id="id", label="people"))
        for at in (0, 1)
    )
    assert long[1] < short[1] + 40e6
    ids = short[0].column("id").to_pylist()
    assert long[0].column("id").to_pylist() == [i for i in ids if i != N - 1]
    assert ids == drawn(design, column, STRATA).tolist()


def test_text_is_no_column_of_numbers_however_it_is_held():
    for column in (["0.1"] * 3, np.array(["0.1"] * 3), np.array(["0.1"] * 3, dtype=object)):
        with pytest.raises(InvalidInput, match="must hold numbers"):
            PoissonPPS(0.5).draw(Population(3, probability=column))
    assert column_of(["a", LONG]).dtype == object


def test_a_plan_with_one_long_name():
    frame = {"region": [*STRATA[:-1], LONG]}
    plan, most = peak(lambda: survey.plan(frame, size=200, epsilon=1.0, strata="region", bounds=(0, 1)))
    assert most < 100e6
    assert plan.rows
