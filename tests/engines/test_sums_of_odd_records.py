"""Sums of stored samples: every value has an answer by a public rule, and batches do not matter to the last bit."""

import math

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

from privamp import ExactGaussian, ExactLaplace, InvalidInput, Poisson
from privamp.core.tape import Tape, taping
from privamp.engines import local
from privamp.engines.stored_sample import whole_total
from privamp.testing import seeded_key, seeded_stream

NOISES = [ExactLaplace(2.0), ExactGaussian(2.0)]


def before_noise(table, noise, columns, number, **options):
    sample = local.draw(table, Poisson(1.0), key=seeded_key(71_000 + number), **options)
    with taping(Tape(seeded_stream(4))) as tape:
        sample.release_sum(noise, columns)
    return np.asarray(tape.taken[0].value)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(
    ("odd", "counts_as"), [(None, 0.0), (math.nan, 0.0), (math.inf, 1.0), (-1e308, -1.0), (5e-324, 0.0)]
)
def test_one_odd_record_is_no_error(noise, odd, counts_as):
    """It once stopped the release, but only if it was sampled."""
    found = before_noise(pa.table({"u": [0.25, odd, 0.5]}), noise, "u", 1)
    assert found * noise.grid == pytest.approx(0.75 + counts_as, abs=1e-6)


def test_columns_of_other_types():
    table = pa.table({"i": pa.array([1, None, 2**62]), "b": pa.array([True, None, False]), "n": pa.nulls(3)})
    for column, total in (("i", 2.0), ("b", 1.0), ("n", 0.0)):
        assert before_noise(table, NOISES[0], column, 2) * NOISES[0].grid == pytest.approx(total)
    with pytest.raises(InvalidInput, match="must hold numbers"):
        before_noise(pa.table({"t": ["secret"]}), NOISES[0], "t", 3)


@pytest.mark.parametrize("noise", NOISES)
def test_one_batch_and_many_give_the_same_total_bit_for_bit(noise, tmp_path):
    """A zero row once changed the formula, and so the last bits, of all records of its batch."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(30_000, 3))
    x[::7000], x[1::9000] = 0.0, math.nan
    batch = pa.record_batch(
        {
            **{name: x[:, k] for k, name in enumerate("uvw")},
            "privamp_weight": np.ones(len(x)),
            "privamp_count": np.ones(len(x), int),
        }
    )
    whole = whole_total(batch, noise, list("uvw"))
    for size in (1, 997, 8192):
        rows = range(0, 3000 if size == 1 else len(x), size)
        parts = sum(whole_total(batch.slice(at, size), noise, list("uvw")) for at in rows)
        assert np.array_equal(parts, whole_total(batch.slice(0, rows.stop), noise, list("uvw")))
    assert np.any(whole != 0)
    table = pa.table({name: x[:, k] for k, name in enumerate("uvw")})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=1111)
    answers = [
        before_noise(table, noise, list("uvw"), 6),
        *(before_noise(tmp_path / "x.parquet", noise, list("uvw"), 7 + threads, threads=threads) for threads in (1, 3)),
    ]
    assert all(np.array_equal(answer, whole) for answer in answers)


def test_no_records():
    assert before_noise(pa.table({"u": pa.array([], pa.float64())}), NOISES[0], "u", 12) == 0


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.feather"])
def test_a_file_without_rows_is_no_error(name, tmp_path):
    """The id column of such a CSV file has no type; one record gives it one."""
    empty = pa.table({"id": pa.array([], pa.int64()), "u": pa.array([], pa.float64())})
    write = {"csv": csv.write_csv, "parquet": parquet.write_table, "feather": feather.write_feather}
    write[name.split(".")[1]](empty, tmp_path / name)
    assert before_noise(tmp_path / name, NOISES[0], "u", 13, id="id") == 0


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_a_stored_sample_of_nobody_opens_like_any_other(suffix, tmp_path):
    """It once was 'not written as a sample by privamp': so the sample was empty."""
    design, key, out = Poisson(0.5), seeded_key(14), tmp_path / f"out.{suffix}"
    local.write(pa.table({"u": pa.array([], pa.float64())}), design, out, key=key)
    sample = local.open_sample(out, design, key=key)
    with taping(Tape(seeded_stream(4))) as tape:
        sample.release_sum(NOISES[0], "u")
    assert tape.taken[0].value == 0
