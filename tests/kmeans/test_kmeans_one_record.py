"""What is computed from one record does not depend on the others; what is added up is exact."""

from fractions import Fraction

import numpy as np
import pytest

from privamp import PrivateKMeans
from privamp.core.tape import Tape, taping
from privamp.kmeans import compiled, exact, lloyd
from privamp.kmeans.ball import Ball, scan, taken_inside
from privamp.kmeans.first_look import norm_counts
from privamp.kmeans.lloyd import sums_and_counts
from privamp.kmeans.nearest import by_definition, halves, nearest
from privamp.kmeans.threads import ThreadPool
from privamp.testing import seeded_stream, seeds_allowed

numba = pytest.mark.skipif(not compiled.has_numba(), reason="numba is not installed (the extra `fast`)")
KERNELS = ["numpy", pytest.param("numba", marks=numba)]
ODD = {
    "zero": 0.0,
    "denormal": 5e-324,
    "tiny": 1e-200,
    "huge": 1e200,
    "largest": np.finfo(np.float64).max,
    "nan": np.nan,
    "infinite": -np.inf,
}


@pytest.fixture(params=KERNELS)
def passes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Both kinds of passes, whatever the size of the table."""
    monkeypatch.setattr(compiled, "_WORTH_IT", 0 if request.param == "numba" else np.inf)
    return bool(request.param == "numba")


def unit_rows(n: int, d: int, dtype: type = np.float64, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(dtype)


def looked(ball: Ball, X: np.ndarray, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Lengths, and the sums of the first look."""
    with ThreadPool(threads) as pool:
        return scan(ball, X, pool, norm_counts)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("odd", ODD)
def test_one_odd_row_moves_one_count_and_squares_of_at_most_one(passes: bool, odd: str, dtype: type) -> None:
    """Records of norm 1 at radius 2 are at the edge of a bin: 10,006 of 20,000 changed it with one zero row."""
    X = unit_rows(20_000, 16, dtype)
    with np.errstate(over="ignore"):
        row = np.full((1, 16), ODD[odd]).astype(dtype)
    ball = Ball(np.zeros(16), 2.0)
    _, before = looked(ball, X)
    for at in (0, 10_000, 20_000):
        _, after = looked(ball, np.concatenate([X[:at], row, X[at:]]))
        assert np.abs(after - before)[16:].sum() == 1.0
        assert np.abs(after - before)[:16].sum() <= 1.0


@pytest.mark.parametrize("center", [0.0, 0.3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_lengths_and_rows_are_functions_of_the_record(passes: bool, dtype: type, center: float) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3001, 11)) * np.exp(rng.normal(size=(3001, 1)) * 20)
    X = (X * (1000 if dtype == np.int64 else 1)).clip(-1e18, 1e18).astype(dtype)
    ball, every = Ball(np.full(11, center), 0.7), np.arange(3001)
    lengths, _ = looked(ball, X, 2)
    order = rng.permutation(3001)
    with ThreadPool(1) as pool:
        rows = taken_inside(ball, X, every, np.arange(11), lengths, pool)
        moved = taken_inside(ball, X[order], every, np.arange(11), lengths[order], pool)
    assert np.array_equal(looked(ball, np.asfortranarray(X[order]))[0], lengths[order])
    assert np.array_equal(moved, rows[order])
    for at in range(0, 3001, 97):
        alone, _ = looked(ball, X[at : at + 1])
        assert alone[0] == lengths[at]
    exactly = [sum(Fraction(float(v)) ** 2 for v in ball.unit(X[at : at + 1])[0]) for at in range(0, 3001, 97)]
    assert all(Fraction(lengths[at]) ** 2 >= true for at, true in zip(range(0, 3001, 97), exactly, strict=True))


@pytest.mark.parametrize("d", [1, 7, 16, 54])
def test_rows_one_unit_beside_an_edge(passes: bool, d: int) -> None:
    """Every quick length is close to where the defined one rounds, so most rows are measured again."""
    u = unit_rows(200, d, seed=d)
    grid = 1.0 + np.arange(200)[:, None] * 2.0**-30
    X = np.concatenate([u * grid, np.nextafter(u * grid, 9.0), np.nextafter(u * grid, -9.0)])
    ball = Ball(np.zeros(d), 1.0)
    lengths, _ = looked(ball, X)
    assert np.array_equal(lengths[::-1], looked(ball, X[::-1])[0])
    assert all(looked(ball, row[None])[0][0] == length for row, length in zip(X, lengths, strict=True))


def near_ties() -> tuple[np.ndarray, np.ndarray]:
    """Rows half way between two centres, and beside; and the centres."""
    rng = np.random.default_rng(2)
    centres = 0.4 * unit_rows(6, 13, seed=3)
    middle = 0.5 * (centres[0] + centres[1])
    off = rng.normal(size=(4000, 13)) * 0.1
    across = centres[1] - centres[0]
    off -= np.outer(off @ across / (across @ across), across)
    return exact.toward_zero(middle + off, 24).astype(np.float32), centres


def test_near_ties_are_decided_by_the_row_alone(passes: bool) -> None:
    """A product decides them by their place."""
    rng = np.random.default_rng(2)
    rows, centres = near_ties()
    wanted = by_definition(rows, centres, halves(centres))
    assert 0.3 < np.mean(wanted[wanted < 2]) < 0.7
    order = rng.permutation(4000)
    assert np.array_equal(nearest(rows, centres), wanted)
    assert np.array_equal(nearest(rows[order], centres), wanted[order])
    with ThreadPool(2) as pool:
        sums, counts = sums_and_counts(rows, np.ones(4000), centres, pool, bits=30, fast=passes)
    assert np.array_equal(counts, np.bincount(wanted, minlength=6))
    assert np.array_equal(sums, [rows[wanted == j].astype(np.float64).sum(axis=0) for j in range(6)])


def test_without_the_margin_near_ties_go_astray(passes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted mistake: single precision alone decides."""
    rows, centres = near_ties()
    wanted = by_definition(rows, centres, halves(centres))
    monkeypatch.setattr(lloyd, "room", lambda *_: 0.0)
    with ThreadPool(1) as pool:
        _, counts = sums_and_counts(rows, np.ones(4000), centres, pool, bits=30, fast=passes)
    assert not np.array_equal(counts, np.bincount(wanted, minlength=6))


@pytest.mark.parametrize("center", [0.0, 0.3])
def test_records_as_long_as_doubles_allow_are_measured_alike(center: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside 2^500 radii, where entries are clipped, one by one and together."""
    lengths = 2.0**500 * np.concatenate([1.0 + np.arange(-4, 5) * 2.0**-52, [0.49, 0.5, 0.51, 1.9, 2.0**20]])
    X = np.concatenate([lengths[:, None] * row for row in (np.eye(9)[0], np.full(9, 1 / 3), unit_rows(1, 9)[0])])
    ball = Ball(np.full(9, center), 1.0)
    wanted = looked(ball, X)
    for worth_it in (np.inf, 0) if compiled.has_numba() else (np.inf,):
        monkeypatch.setattr(compiled, "_WORTH_IT", worth_it)
        backwards, sums = looked(ball, X[::-1])
        each = [looked(ball, row[None]) for row in X]
        alone = np.concatenate([length for length, _ in each]), np.sum([total for _, total in each], axis=0)
        for found, total in (looked(ball, X), (backwards[::-1], sums), alone):
            assert np.array_equal(found, wanted[0])
            assert np.array_equal(total, wanted[1])


def test_equal_centres_go_to_the_first(passes: bool) -> None:
    rows = exact.toward_zero(0.5 * unit_rows(500, 3), 24).astype(np.float32)
    with ThreadPool(1) as pool:
        _, counts = sums_and_counts(rows, np.ones(500), np.zeros((4, 3)), pool, bits=30, fast=passes)
    assert counts.tolist() == [500.0, 0.0, 0.0, 0.0]


def test_sums_of_blocks_are_exact_and_cut() -> None:
    rng = np.random.default_rng(4)
    parts = np.trunc(rng.uniform(-(2.0**52), 2.0**52, size=(5000, 3)))
    parts[:, 0] = 2.0**52  # far beyond 2^53 together
    whole = [sum(int(x) for x in column) for column in parts.T]
    assert exact.total(list(parts)).tolist() == [max(min(x, 2**53), -(2**53)) for x in whole]
    few = np.trunc(rng.uniform(-(2.0**40), 2.0**40, size=(4000, 2)))
    assert exact.total(list(few)).tolist() == [sum(int(x) for x in column) for column in few.T]


def taped(X: np.ndarray, **options: object) -> list:
    """Values before noise of a seeded fit."""
    with seeds_allowed(), taping(Tape(seeded_stream(1))) as tape:
        PrivateKMeans(**({"n_clusters": 4, "epsilon": 1.0, "radius": 1.0, "random_state": 3} | options)).fit(X)
    return [taken.value for taken in tape.taken]


SAMPLERS = [{"sampler": None}, {"sample_size": 700}, {"noise": "gaussian", "delta": 1e-6, "sample_size": 700}]


@numba
@pytest.mark.parametrize("options", SAMPLERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fit_is_the_same_compiled_or_not_and_with_any_threads(
    options: dict, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = (0.4 * np.random.default_rng(7).normal(size=(5000, 6))).astype(dtype)
    seen = []
    for worth_it, threads in ((0, 1), (0, 3), (np.inf, 1), (np.inf, 3)):
        monkeypatch.setattr(compiled, "_WORTH_IT", worth_it)
        seen.append(
            repr(
                [
                    np.asarray(part).tobytes()
                    for value in taped(X, n_jobs=threads, **options)
                    for part in (value if isinstance(value, tuple) else (value,))
                ]
            )
        )
    assert len(set(seen)) == 1


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.int64, object])
def test_the_same_numbers_in_another_type_are_the_same_fit(dtype: type) -> None:
    """So a table whose type was changed by one record (by pandas, say) is treated no differently."""
    X = np.random.default_rng(8).integers(-3, 4, size=(300, 3))
    first, second = taped(X.astype(dtype), radius=5.0), taped(X.astype(np.float64), radius=5.0)
    assert repr(first) == repr(second)


def test_lloyd_sums_of_single_precision_tables_are_exact(passes: bool) -> None:
    """In single precision 65,536 rows lost a record's whole contribution beside a large sum."""
    X = np.full((65_536, 2), 0.3, dtype=np.float32)
    value = taped(X, n_clusters=1, sampler=None, n_iter=1, epsilon=100.0)[2]
    more = taped(np.concatenate([X, X[:1]]), n_clusters=1, sampler=None, n_iter=1, epsilon=100.0)[2]
    one = more[0] - value[0]
    assert value[0][0] / 65_536 == pytest.approx(one[0])
    assert np.array_equal(value[0], 65_536 * one)
    assert more[1][0] - value[1][0] == 1.0
