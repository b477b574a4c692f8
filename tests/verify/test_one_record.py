"""The second oracle finds every kind of difference, and nothing where there is none."""

import logging
import warnings

import numpy as np
import pytest

from privamp import (
    DiscreteLaplace,
    Gaussian,
    Joint,
    Key,
    Laplace,
    Neighbors,
    NormNoise,
    Poisson,
    Population,
    PureDP,
)
from privamp.core.tape import Tape, taping
from privamp.errors import InvalidInput
from privamp.mechanisms.fixed_point import ExactGaussian, in_grid_units
from privamp.mechanisms.sum_and_count import SumAndCount
from privamp.testing import seeded_key, seeded_stream
from privamp.verify import Pair, check_release, hard_numbers, hard_rows, odd_rows, pairs_of
from privamp.verify.displacement import displacement

NOISE = Laplace(2.0)
ONE_MORE = [Pair("a record is added", np.zeros(3), np.array([0.0, 0.0, 0.0, 0.5]))]


def released(value, noise=NOISE):
    return noise.release(value, seeded_stream(1))


def kinds(job, pairs=ONE_MORE, **options):
    """The kinds of differences found."""
    return {tally.kind for tally in check_release(job, pairs, **options).tallies if tally.violations}


def test_a_sound_job_passes():
    assert kinds(lambda x: released(float(np.clip(x, 0, 1).sum()))) == set()


def test_runs_that_stop_alike_show_nothing():
    def job(x):
        if x.size > 2:
            raise ValueError("not today")
        return released(float(np.clip(x, 0, 1).sum()))

    few = [Pair("one of one", np.zeros(1), np.zeros(2)), *ONE_MORE * 2]
    assert kinds(job, few) == {"plan"}
    report = check_release(job, few, least_released=0.3)
    assert (report.ok, report.released, report.cases) == (True, 1, 3)
    assert "1 of them with a release" in str(report)
    assert kinds(job, ONE_MORE, least_released=0.0) == {"plan"}  # none at all is never enough


def test_a_statistic_that_moves_too_far():
    assert kinds(lambda x: released(float(3 * x.sum()))) == {"statistic"}


def test_a_noise_scale_that_depends_on_the_number_of_records():
    assert kinds(lambda x: released(float(x.sum()), Laplace(float(len(x))))) == {"plan"}


def test_a_number_of_releases_that_depends_on_a_record():
    assert "plan" in kinds(lambda x: [released(0.0) for _ in range(1 + bool(x.any()))])


def test_an_exact_size_beside_the_answer():
    assert kinds(lambda x: {"answer": released(float(x.sum())), "n": len(x)}) == {"result"}


def test_a_private_attribute_travels_too():
    class Fitted:
        def __init__(self, x):
            self.answer, self._n = released(float(x.sum())), len(x)

    assert kinds(Fitted) == {"result"}


def test_a_warning_a_log_line_and_a_print():
    def job(say):
        def run(x):
            if x.any():
                say()
            return released(float(x.sum()))

        return run

    assert kinds(job(lambda: warnings.warn("odd record", stacklevel=1))) == {"messages"}
    assert kinds(job(lambda: logging.getLogger("privamp.mean").debug("odd record"))) == {"messages"}
    assert kinds(job(lambda: print("odd record"))) == {"messages"}


def test_an_error_and_what_it_was_raised_from():
    def job(text):
        def run(x):
            released(float(x.sum()))
            try:
                raise KeyError(text(x))
            except KeyError as error:
                raise ValueError("a public sentence") from error

        return run

    assert kinds(job(lambda x: "public")) == set()
    assert kinds(job(lambda x: str(x[-1]))) == {"errors"}


def test_a_job_that_never_releases_is_not_passed():
    assert kinds(lambda x: None) == {"plan"}


def test_later_releases_are_given_the_earlier_answers():
    """Clipping at a released bound is sound: both runs clip at the same one."""

    def adaptive(x):
        top = max(released(float(np.clip(x, 0, 1).sum())), 1.0)
        return released(float(np.clip(x, 0, top).sum()), Laplace(5.0, sensitivity=top))

    pairs = [Pair("a record is added", np.full(3, 0.5), np.array([0.5, 0.5, 0.5, 9.0]))]
    assert kinds(adaptive, pairs) == set()


def test_replacing_a_record_may_move_an_add_remove_mechanism_twice():
    pair = [Pair("replaced", np.zeros(2), np.array([0.0, 2.0]), Neighbors.REPLACE_ONE)]
    assert kinds(lambda x: released(float(x.sum())), pair) == set()
    assert kinds(lambda x: released(float(1.01 * x.sum())), pair) == {"statistic"}


def test_adding_a_record_to_a_replace_one_mechanism_is_refused():
    noise = Laplace(1.0, neighbors=Neighbors.REPLACE_ONE)
    with pytest.raises(InvalidInput, match="one record is replaced"):
        check_release(lambda x: released(float(x.sum()), noise), ONE_MORE)


def test_a_stated_rounding_is_allowed_and_no_more():
    job = lambda x: released(float(2.01 * x.sum()))  # noqa: E731
    assert kinds(job, rounding=0.01) == set()
    assert kinds(job, rounding=0.004) == {"statistic"}


def test_one_key_serves_both_runs_and_the_ledgers_of_others_stay():
    key = seeded_key(3)
    sample = Poisson(0.5).draw(Population(3), key)
    sample.release(NOISE, np.zeros(3))
    job = lambda x: Poisson(0.5).draw(Population(3), key).release(NOISE, np.zeros(3))  # noqa: E731
    assert kinds(job) == set()
    assert len(Poisson(0.5).draw(Population(3), key).ledger.entries) == 1


def test_a_data_set_that_pairs_share_is_run_once():
    """It is copied for every run; what is not copied may have been changed by the job, so it is run for every pair."""
    seen = []

    def job(x):
        seen.append(len(x))
        return released(float(len(x)))

    rows = np.zeros(3)
    for one, runs in ((rows, 2), ([0.0] * 3, 2), (range(3), 6)):  # the first run of all shows what is told only once
        seen.clear()
        assert kinds(job, [Pair("added", one, np.zeros(4))] * 5) == set()
        assert (seen.count(3), seen.count(4)) == (runs, 5)


def test_what_a_job_keeps_of_an_earlier_run_is_found():
    """The second data set's run follows that of another pair, not that of its own first data set."""
    kept = []

    def job(x):
        kept.append(float(x.max()))
        return released(0.0), max(kept)

    rows = np.zeros(3)
    others = [np.append(rows, hard) for hard in (0.0, 0.5, 0.0)]
    report = check_release(job, [Pair(f"pair {i}", rows, other) for i, other in enumerate(others)])
    assert [told.split(":")[0] for told in report.violations] == ["pair 1", "pair 2"]


def test_a_mechanism_inside_another_is_one_release():
    tape = Tape(seeded_stream(0))
    with taping(tape):
        Joint([NOISE, NOISE]).release([1.0, 2.0], seeded_stream(1))
    assert [taken.value for taken in tape.taken] == [[1.0, 2.0]]


def test_without_a_tape_noise_is_noise():
    assert released(0, DiscreteLaplace(2)) == DiscreteLaplace(2).release(0, seeded_stream(1))
    assert Laplace(1.0).release(0.0, seeded_stream(1)) != Laplace(1.0).release(0.0, seeded_stream(2))


def test_a_strangers_mechanism_is_heard():
    class Mine(Laplace):
        def release(self, value, stream):
            return value + 1.0

    tape = Tape(seeded_stream(0))
    with taping(tape):
        assert Mine(1.0).release(4.0, seeded_stream(1)) == 5.0
    assert tape.taken[0].value == 4.0


@pytest.mark.parametrize(
    ("mechanism", "one", "other", "moved"),
    [
        (Laplace(1.0, sensitivity=2.0), [1.0, 2.0], [0.0, 4.0], 1.5),
        (Gaussian(1.0, sensitivity=2.0), [3.0, 0.0], [0.0, 4.0], 2.5),
        (NormNoise(1.0, 2, p=2.0), np.array([3.0, 0.0]), np.array([0.0, 4.0]), 5.0),
        (DiscreteLaplace(1), 2**62, 2**62 - 3, 3.0),
        (ExactGaussian(1.0, grid=2.0**-10), in_grid_units(1024), in_grid_units(0), 1.0),
        (ExactGaussian(1.0, grid=2.0**-10), 2, 0.5, 1.5),
        (PureDP(1.0), "yes", "no", 1.0),
        (PureDP(1.0), "yes", "yes", 0.0),
        (Laplace(1.0), 1.0, np.nan, np.inf),
        (Laplace(1.0), np.nan, np.nan, 0.0),
        (Laplace(1.0), [1.0], [1.0, 2.0], np.inf),
        (Joint([Laplace(1.0), Gaussian(1.0)]), [1.0, 1.0], [1.5, 3.0], 2.0),
    ],
)
def test_displacements_are_in_the_mechanisms_own_norm(mechanism, one, other, moved):
    assert displacement(mechanism, one, other) == pytest.approx(moved, rel=1e-15)


def test_sums_and_counts_move_together():
    pure = SumAndCount(NormNoise(4.0, 2), Laplace(2.0))
    zero, sums, counts = (np.zeros((3, 2)), np.zeros(3)), np.zeros((3, 2)), np.zeros(3)
    sums[1] = [0.6, 0.8]
    counts[1] = 1.0
    assert displacement(pure, zero, (sums, counts)) == pytest.approx(1.0)
    assert displacement(pure, zero, (2 * sums, counts)) > 1.3
    gaussian = SumAndCount(Gaussian(4.0), Gaussian(2.0))
    assert displacement(gaussian, zero, (sums, counts)) == pytest.approx(1.0)


def test_hard_records_are_there():
    names = {hard.what for hard in hard_numbers(2.0, np.float32)}
    assert {"zero", "negative zero", "denormal", "largest", "nan", "infinity", "above the radius"} <= names
    assert all(row.dtype == np.float16 and row.shape == (3,) for _, row in hard_rows(3, 1.0, np.float16))
    assert {type(row[0]) for _, row in odd_rows(2)} >= {int, str, type(None), complex}


def test_pairs_differ_by_one_record_only():
    rows = np.arange(6.0).reshape(3, 2)
    for pair in pairs_of(rows, hard_rows(2)):
        short, long = sorted((pair.one, pair.other), key=len)
        if pair.neighbors.kind == "replace-one":
            assert len(short) == len(long) == 3
            assert np.sum(np.any(~((short == long) | (np.isnan(short) & np.isnan(long))), axis=1)) <= 1
        else:
            assert len(long) == len(short) + 1
            left = [i for i in range(4) if np.array_equal(np.delete(long, i, axis=0), short)]
            assert left


def test_secrets_are_not_opened():
    def job(x):
        return Poisson(0.5).draw(Population(len(x)), seeded_key(1)), Key.generate(), released(float(x.sum()))

    assert kinds(job) == set()


def test_a_data_set_that_is_filled_again_is_run_again():
    """The first data sets of all pairs are one array, whose content changes between them."""

    def job(x):
        return Laplace(2.0).release(float(np.where(abs(x) > 5, x, np.clip(x, -1, 1)).sum()), seeded_stream(1))

    def pairs():
        base = np.full(4, 0.5)
        x = np.append(base, 0.0)
        for value in (0.0, 0.7, 1000.0):
            x[-1] = value
            yield Pair(f"{value} added", x, base)

    assert not check_release(job, pairs()).ok
