"""Files of every kind, on threads and in pieces: the sample drawn in memory, and good sentences when they are bad."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, dataset, feather, parquet

from privamp import (
    ConditionalPoisson,
    ExactLaplace,
    ImportanceSampling,
    LinearProfile,
    Poisson,
    Population,
    PureDP,
    WithoutReplacement,
    WithReplacement,
    privacy_constrained,
)
from privamp.engines import local, reading
from privamp.engines.kernel import COUNT, WEIGHT
from privamp.errors import InvalidInput
from privamp.tables import pieces, sources
from privamp.testing import seeded_key

N = 4000
KEY = seeded_key(8)
RNG = np.random.default_rng(5)
NOISE = ExactLaplace(10.0, 3.0)
RULE = privacy_constrained(LinearProfile.of(NOISE), 1.0, radius=3.0)
IDS = RNG.permutation(N * 7)[:N]
DATA = pa.table(
    {
        "id": IDS,
        "x": RNG.uniform(-1.5, 1.5, N),
        "y": RNG.uniform(-1.5, 1.5, N),
        "odds": RNG.uniform(1.0, 2.0, N),
        "region": np.where(IDS % 3 == 0, "north", "south"),
    }
)
DESIGNS = [
    Poisson(0.1),
    ImportanceSampling(RULE, "x+y"),
    WithoutReplacement(100, N),
    WithReplacement(300, N),
    ConditionalPoisson(80, N, 1.0, 2.0),
]


def name(design):
    return type(design).__name__


def in_memory(design, id="id", key=KEY, label="population"):
    known = {"x+y": np.column_stack([DATA["x"], DATA["y"]]), "odds": DATA["odds"].to_numpy()}
    needs = {"ConditionalPoisson": ["odds"], "ImportanceSampling": ["x+y"]}.get(name(design), [])
    people = Population(IDS if id else N, label, **{column: known[column] for column in needs})
    drawn = design.draw(people, key).reveal_secret()
    order = np.argsort(drawn.positions)
    rows = DATA.take(pa.array(drawn.positions[order]))
    return rows.append_column(WEIGHT, [drawn.weights[order]]).append_column(COUNT, [drawn.counts[order]])


@pytest.fixture
def small_pieces(monkeypatch):
    for room in (pieces, reading):
        monkeypatch.setattr(room, "BATCH", 300)
    monkeypatch.setattr(pieces, "_PIECE", 900)


def written(folder, kind, data=DATA):
    path = folder / f"data.{kind}"
    if kind == "csv":
        csv.write_csv(data, path)
    elif kind == "feather":
        feather.write_feather(data, path, chunksize=700)
    else:
        parquet.write_table(data, path, row_group_size=450)
    return path


@pytest.mark.parametrize("id", ["id", None], ids=["ids", "places"])
@pytest.mark.parametrize("kind", ["parquet", "csv", "feather"])
@pytest.mark.parametrize("design", DESIGNS, ids=name)
def test_every_file_gives_the_sample_drawn_in_memory(tmp_path, small_pieces, design, kind, id):
    path = written(tmp_path, kind)
    expected = in_memory(design, id)
    for threads in (1, 3):
        assert local.sample(str(path), design, key=KEY, id=id, threads=threads).equals(expected)
    assert expected.num_rows


@pytest.mark.parametrize("design", DESIGNS, ids=name)
def test_folders_partitions_lists_and_shuffled_rows(tmp_path, small_pieces, design):
    everything = in_memory(design).sort_by("id")
    mixed = DATA.take(pa.array(RNG.permutation(N)))
    dataset.write_dataset(mixed, tmp_path / "parts", format="parquet", partitioning=["region"],
                          partitioning_flavor="hive", max_rows_per_file=700, max_rows_per_group=200)  # fmt: skip
    found = local.sample(tmp_path / "parts", design, key=KEY, id="id").select(everything.column_names).sort_by("id")
    assert found.column("id").equals(everything.column("id"))
    assert found[WEIGHT].equals(everything[WEIGHT])
    assert found[COUNT].equals(everything[COUNT])
    assert found["region"].to_pylist() == everything["region"].to_pylist()
    halves = [tmp_path / f"{k}.parquet" for k in (1, 0)]  # named against their order
    for k, half in enumerate(halves):
        parquet.write_table(mixed.slice(k * N // 2, N // 2), half)
    assert local.sample(halves, design, key=KEY, id="id").sort_by("id").equals(everything)


def test_only_what_is_asked_for_is_read_and_kept(tmp_path, monkeypatch):
    path = written(tmp_path, "parquet")
    asked = []
    real = parquet.ParquetFile.read_row_groups

    def read_row_groups(self, groups, columns, **options):
        asked.extend(list(columns) * len(groups))
        return real(self, groups, columns, **options)

    monkeypatch.setattr(parquet.ParquetFile, "read_row_groups", read_row_groups)
    found = local.sample(path, DESIGNS[1], key=KEY, id="id", columns=["region", "x"])
    assert found.column_names == ["region", "x", WEIGHT, COUNT]
    k = asked.count("x")  # row groups
    assert Counter(asked) == {"id": 2 * k, "x": k, "y": k, "region": k}  # ids once more: they do not grow
    asked.clear()
    assert local.sample(path, Poisson(0.0), key=KEY, columns=["x"]).num_rows == 0
    assert not asked  # nobody kept, nothing read


def test_a_sample_with_a_ledger_that_is_never_loaded(tmp_path, small_pieces):
    path, design = written(tmp_path, "parquet"), DESIGNS[1]
    stored = local.draw(path, design, key=KEY, id="id", label="sums").declare([NOISE, NOISE])
    rows = in_memory(design, label="sums")
    drawn = design.draw(
        Population(IDS, "sums", **{"x+y": np.column_stack([DATA["x"], DATA["y"]])}), KEY
    ).reveal_secret()
    whole = NOISE.total(np.column_stack([rows["x"], rows["y"]]), type(drawn)(
        drawn.positions, rows[COUNT].to_numpy(), rows[WEIGHT].to_numpy()))  # fmt: skip
    answer = stored.release_sum(NOISE, ["x", "y"])
    assert answer.shape == (2,)
    seen = []
    stored.release(NOISE, lambda batches: seen.extend(batches) or np.zeros(2, dtype=np.int64))
    from privamp.engines.stored_sample import whole_total

    assert np.array_equal(sum(whole_total(batch, NOISE, ["x", "y"]) for batch in reversed(seen)), whole)
    assert len(stored.ledger.entries) == 2
    with pytest.raises(InvalidInput, match="declared plan"):
        stored.release_sum(NOISE, "x")
    assert "secret" in repr(stored)
    with pytest.raises(InvalidInput, match="ExactLaplace or ExactGaussian"):
        stored.release_sum(PureDP(1.0), "x")


def test_a_rule_made_for_the_noise_certifies_its_epsilon(tmp_path):
    stored = local.draw(written(tmp_path, "parquet"), DESIGNS[1], key=KEY, id="id", label="one")
    stored.release_sum(NOISE, ["x", "y"])
    assert stored.guarantee().epsilon() == pytest.approx(1.0, abs=1e-12)
    assert stored.guarantee().epsilon() >= 1.0


def test_progress_counts_rows_up_to_the_end(tmp_path, small_pieces):
    path, told = written(tmp_path, "parquet"), []
    local.sample(path, Poisson(0.1), key=KEY, threads=2, progress=lambda done, rows: told.append((done, rows)))
    assert told == sorted(told)
    assert told[-1] == (N, N)
    told.clear()
    local.sample(path, DESIGNS[2], key=KEY, progress=lambda done, rows: told.append((done, rows)))
    assert told == sorted(told)
    assert told[-1] == (2 * N, 2 * N)


def test_empty_files_give_empty_samples(tmp_path):
    for kind in ("parquet", "csv", "feather"):
        path = written(tmp_path, kind, DATA.slice(0, 0))
        for design in DESIGNS[:1] if kind == "csv" else DESIGNS[:2]:
            assert local.sample(path, design, key=KEY).num_rows == 0
    with pytest.raises(InvalidInput, match="at least 4000 records but fewer"):
        local.sample(written(tmp_path, "parquet", DATA.slice(0, 0)), DESIGNS[2], key=KEY)


def with_ids(ids):
    return DATA.set_column(0, "id", pa.array(ids))


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (with_ids([None, None, 3, *range(4, N + 1)]), "has missing ids"),
        (with_ids([*IDS[:-3], *IDS[:3]]), "ids must be unique, but some repeat"),
        (with_ids([str(i) for i in [*IDS[:-2], *IDS[:2]]]), "ids must be unique, but some repeat"),
        (with_ids([-1, *range(1, N)]), "has negative ids"),
        (with_ids(np.linspace(0, 1, N)), "whole numbers or text"),
        (DATA.rename_columns(["ID", *DATA.column_names[1:]]), "no column 'id'"),
        (DATA.append_column(COUNT, [np.ones(N)]), "'privamp_count' already"),
    ],
    ids=["missing", "repeated", "repeated text", "negative", "floats", "no column", "a sample already"],
)
@pytest.mark.parametrize("design", [DESIGNS[0], DESIGNS[2]], ids=name)
def test_bad_ids_are_found(tmp_path, small_pieces, design, data, part):
    path = written(tmp_path, "parquet", data)
    with pytest.raises(InvalidInput, match=part):
        local.sample(path, design, key=KEY, id="id", threads=2)


def test_trusted_ids_are_not_searched(tmp_path):
    path = written(tmp_path, "parquet", with_ids([*IDS[:-3], *IDS[:3]]))
    local.sample(path, Poisson(0.1), key=KEY, id="id", trust_ids=True)


def test_bad_files_are_told_in_one_sentence(tmp_path):
    good = written(tmp_path, "parquet")
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"PAR1 nonsense")
    cut = tmp_path / "cut.parquet"
    whole = good.read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(whole[:200] + b"\xff" * 20_000 + whole[20_200:])
    for path in (bad, cut, torn):
        with pytest.raises(InvalidInput, match="corrupt, truncated"):
            local.sample(path, Poisson(0.9), key=KEY)
    words = tmp_path / "words.csv"
    words.write_text("id,x\n" + "1,5\n" * 400_000 + "1,secret777\n")
    with pytest.raises(InvalidInput, match="not a valid file") as caught:
        local.sample(words, Poisson(0.9), key=KEY)
    assert "777" not in str(caught.value)
    folder = tmp_path / "mixed"
    folder.mkdir()
    parquet.write_table(DATA, folder / "a.parquet")
    parquet.write_table(DATA.drop_columns(["x"]), folder / "b.parquet")
    with pytest.raises(InvalidInput, match=r"b\.parquet' has other columns or types than .*a\.parquet'"):
        local.sample(folder, Poisson(0.9), key=KEY)
    (folder / "c.csv").write_text("id\n1\n")
    with pytest.raises(InvalidInput, match="one kind"):
        local.sample(folder, Poisson(0.9), key=KEY)
    for source, part in ((tmp_path / "none.csv", "does not exist"), ([], "no file"), (7, "got int")):
        with pytest.raises(InvalidInput, match=part):
            local.sample(source, Poisson(0.9), key=KEY)
    with pytest.raises(InvalidInput, match="no column 'z'"):
        local.sample(good, Poisson(0.9), key=KEY, columns=["z"])


def test_samples_of_csv_files_say_that_types_are_guessed(tmp_path):
    data = pa.table({"id": list(range(50)), "x": [1.0] * 50})
    csv.write_csv(data, tmp_path / "a.csv")
    parquet.write_table(data, tmp_path / "a.parquet")
    key, noise = seeded_key(3), ExactLaplace(1.0, 1.0, 2.0**-20)
    for name, expected in (("a.csv", True), ("a.parquet", False)):
        out = tmp_path / f"sample of {name}.parquet"
        local.write(tmp_path / name, Poisson(0.5), out, key=key, id="id", label=name)
        opened = local.open_sample(out, Poisson(0.5), key=key)
        opened.release_sum(noise, "x")
        assert (sources.GUESSED in opened.guarantee().assumes) is expected
        drawn = local.draw(tmp_path / name, Poisson(0.25), key=key, id="id", label=name)
        drawn.release_sum(noise, "x")
        assert (sources.GUESSED in drawn.guarantee().assumes) is expected
