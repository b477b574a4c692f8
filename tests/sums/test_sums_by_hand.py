"""Every number of a private sum or mean, worked out by hand from the sample that was drawn, next to no noise."""

import math

import numpy as np
import pytest
from scipy.special import gamma

from privamp import (
    Influence,
    InvalidInput,
    LinearProfile,
    Neighbors,
    NormHistogram,
    Poisson,
    WithoutReplacement,
    uniform,
    variance_optimal,
)
from privamp.core.influence import clipped, norms
from privamp.errors import Infeasible
from privamp.mechanisms.fixed_point import ExactGaussian, ExactLaplace
from privamp.mechanisms.gaussian import Gaussian
from privamp.mechanisms.laplace import Laplace
from privamp.mechanisms.norm_noise import NormNoise
from privamp.sums import PrivateMean, PrivateSum
from privamp.sums.release import SumRelease
from privamp.sums.rows import Rows

QUIET = {"scale": 1e-9, "arithmetic": "idealised"}
BOX = [(-1.0, 4.0), (2.0, 8.0)]
N = 40
RULE = variance_optimal(LinearProfile(Influence("pure", 0.0, 0.01, p=1.0)), kappa=0.1, radius=6.0, floor=0.05)


def rows_of_people():
    """Numbers inside and outside of the box."""
    return np.random.default_rng(8).uniform([-2.0, 1.0], [5.0, 9.0], (N, 2))


def noises():
    return [("laplace", 0.0, 1.0), ("gaussian", 1e-6, 2.0), ("norm", 0.0, 3.0)]


def drawn_of(asked, x, key):
    """The task, and positions and weights that the key draws."""
    task = asked.task(x.shape[1])
    drawn = task.draw(x, key)._drawn
    return task, drawn.positions, np.broadcast_to(drawn.weights, drawn.positions.shape)


@pytest.mark.parametrize(("noise", "delta", "p"), noises())
@pytest.mark.parametrize("sampler", [None, Poisson(0.4), WithoutReplacement(15, N), RULE], ids=str)
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_sum_is_that_of_the_cut_records_from_the_middle_where_their_number_is_public(
    noise, delta, p, sampler, share, key
):
    x = rows_of_people()
    asked = PrivateSum(bounds=BOX, noise=noise, delta=delta, p=p, sampler=sampler, error_share=share, **QUIET)
    task, kept, weights = drawn_of(asked, x, key(1))
    is_fixed, is_rule = isinstance(sampler, WithoutReplacement), sampler is RULE
    centre = np.array([1.5, 5.0]) if is_fixed else np.zeros(2)
    assert task.rows.centre == tuple(centre)
    longest = [2.5, 3.0] if is_fixed else [4.0, 8.0]
    assert task.rows.radius == pytest.approx(np.linalg.norm(longest, p))
    own = np.clip(x, [-1.0, 2.0], [4.0, 8.0]) - centre
    own = clipped(own, 6.0, 1.0) if is_rule else own
    factor = {type(None): 1.0, Poisson: 2.5, WithoutReplacement: N / 15}.get(type(sampler), 1.0)
    answer = asked.release(x, key(1))
    expected = factor * np.sum(weights[:, None] * own[kept], axis=0) + (N * centre if is_fixed else 0.0)
    assert answer.value == pytest.approx(expected, abs=1e-6)
    if share and sampler is not None:
        squares = factor * np.sum((weights * ((weights - 1.0) if is_rule else 1.0))[:, None] * own[kept] ** 2, axis=0)
        spread = {Poisson: 1.5, WithoutReplacement: sampler.spread if is_fixed else None}.get(type(sampler), 1.0)
        room = task.plan.worst(1, task.rows.radius) if is_rule else task.rows.radius
        part = math.sqrt(share) if noise == "gaussian" else share
        assert task.gain == pytest.approx(part / room)
        if noise != "norm" and not is_rule:  # no square is longer than its room
            assert answer.sampling_error == pytest.approx(np.sqrt(spread * squares), rel=1e-6)
        assert np.all(answer.sampling_error <= np.sqrt(spread * squares) * (1 + 1e-6))
        assert answer.sampling_error_is == "private estimate"
    elif sampler is None:
        assert (answer.sampling_error, answer.sampling_error_is) == (0.0, "no sampling")
    elif is_fixed:
        worst = sampler.spread * task.rows.radius**2
        assert (answer.sampling_error, answer.sampling_error_is) == (
            pytest.approx(math.sqrt(N * worst)),
            "public bound",
        )
    else:
        assert (answer.sampling_error, answer.sampling_error_is) == (None, "unknown")
    per_unit = {"laplace": math.sqrt(2.0), "gaussian": 1.0}.get(noise, unit_norm_noise(task.rows.width, p))
    assert answer.noise_error == pytest.approx(1e-9 * per_unit, rel=1e-9)  # `scale` is that of the answer


def unit_norm_noise(d, p):
    """Of the density e^(-|x|_p): the mean square of a coordinate, by its moments."""
    return math.sqrt(gamma(d + 2) / gamma(d) * gamma(3 / p) * gamma(d / p) / (gamma(1 / p) * gamma((d + 2) / p)))


@pytest.mark.parametrize("d", [1, 2, 7])
def test_the_error_of_norm_noise_has_its_closed_forms(d):
    for p, mean_square in ((1.0, 2.0 / (d * (d + 1.0))), (2.0, 1.0 / d), (math.inf, (1.0 + (d - 1.0) / 3.0) / d)):
        asked = PrivateSum(bounds=1.0, scale=1.0, noise="norm", p=p)
        assert asked.noise_error(NormNoise(1.5, d, p), d) == pytest.approx(1.5 * math.sqrt(d * (d + 1) * mean_square))


def test_which_noise_is_made():
    kinds = {("laplace", "exact"): ExactLaplace, ("gaussian", "exact"): ExactGaussian, ("norm", ""): NormNoise,
             ("laplace", "idealised"): Laplace, ("gaussian", "idealised"): Gaussian}  # fmt: skip
    for (noise, arithmetic), kind in kinds.items():
        delta = 1e-6 if noise == "gaussian" else 0.0
        asked = PrivateSum(bounds=2.0, scale=3.0, noise=noise, arithmetic=arithmetic, delta=delta, p=4.0)
        made = asked.mechanism(3.0, 5, 2.5, 2.0**-20)
        assert type(made) is kind
        assert made.sensitivity == 2.5
        assert asked.noise_error(made, 5) > 2.9
        if noise == "norm":
            assert (made.scale, made.dimension, made.p) == (3.0, 5, 4.0)
        assert asked.is_exact == (kind in (ExactLaplace, ExactGaussian))


@pytest.mark.parametrize(("noise", "delta", "p"), noises())
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_rows_are_records_squares_and_count(noise, delta, p, share):
    """The squares of a record keep their share of its norm, and only those that would not are shortened."""
    asked = PrivateMean(bounds=5.0, scale=1.0, noise=noise, delta=delta, p=p, error_share=share, sampler=Poisson(0.5))
    rows = Rows(asked, (0.0, 0.0), 0.25)
    x = clipped(np.array([[3.0, -1.0], [0.5, 0.0], [0.0, 0.0], [-4.0, 3.0]]), 5.0, p)
    more, gain = np.array([0.01, 3.0, 9.0, 50.0]), 0.1
    found = rows.of(x, more, gain)
    assert rows.width == found.shape[1] == (5 if share else 3)
    assert np.array_equal(found[:, :2], x)
    assert found[:, -1].tolist() == [1.25] * 4
    if share:
        part = math.sqrt(share) if noise == "gaussian" else share
        for row, record, heavy in zip(found[:, 2:4], x, more, strict=True):
            squares = gain * heavy * record**2
            size, room = np.linalg.norm(squares, p), part * np.linalg.norm(record, p)
            assert row == pytest.approx(squares if size <= room else squares * room / size, rel=1e-9)
            assert size <= room or 0.5e-12 <= 1.0 - np.linalg.norm(row, p) / room <= 1.5e-12  # for roundings
    plain = Rows(asked, (0.0, 0.0)).of(x, more, gain)
    assert np.array_equal(plain[:, :2], x)
    assert plain.shape[1] == (4 if share else 2)


@pytest.mark.parametrize(("noise", "delta", "p"), noises())
def test_a_row_may_be_as_long_as_its_parts_together(noise, delta, p):
    asked = PrivateMean(bounds=5.0, scale=1.0, noise=noise, delta=delta, p=p, error_share=0.3, sampler=Poisson(0.5))
    made = Rows(asked, (0.0, 0.0), 0.25).mechanism(2.0)
    pure = noise != "gaussian"
    per_norm = 1.3 if pure else math.sqrt(1.3)
    assert (made.radius, made.per_record) == (5.0, 1.25)
    assert made.per_norm == pytest.approx(per_norm, rel=1e-15)
    longest = 1.25 + 6.5 if pure else math.hypot(1.25, 5.0 * per_norm)
    assert 0.9e-12 <= made.noise.sensitivity / longest - 1.0 <= 1.1e-12
    free = Rows(PrivateMean(bounds=5.0, scale=1.0, noise=noise, delta=delta, p=p, error_share=0.3), (0.0,) * 2)
    assert (free.squares_share, free.width, free.mechanism(2.0).per_norm) == (0.0, 2, 1.0)


def test_the_grid_leaves_room_for_heavy_weights():
    rows = Rows(PrivateSum(bounds=4.0, scale=1.0, population=2**50), (0.0,))
    light, heavy = rows.mechanism(1e4).noise.grid, rows.mechanism(1e4, weighted=True).noise.grid
    assert heavy == 16.0 * light  # so far above radius times records a sum may go
    assert Rows(PrivateSum(bounds=4.0, scale=1.0), (0.0,)).mechanism(1e4).noise.grid == 2.0**-26  # 2^32 of them
    assert Rows(PrivateSum(bounds=4.0, scale=1.0, population=1000), (0.0,)).mechanism(1e4).noise.grid == 2.0**-17


@pytest.mark.parametrize(
    ("arithmetic", "population", "least"),
    [("exact", None, 2.0**-20), ("exact", 2**40, 2.0**-12), ("exact", 1000, 1e-9), ("idealised", None, 1e-9)],
)
def test_the_least_noise_fits_64_bits(arithmetic, population, least):
    asked = PrivateSum(bounds=3.0, epsilon=1e12, arithmetic=arithmetic, population=population)
    task = asked.task(1)
    assert task.rows.least_noise == least
    assert task.noise_error == pytest.approx(math.sqrt(2.0) * 3.0 * least, rel=1e-6)  # 1e12 needs less still


def test_noise_is_searched_for_up_to_a_billion_times_the_longest_row():
    enough = PrivateSum(bounds=3.0, epsilon=2e-9, arithmetic="idealised").task(1)
    assert enough.noise_error == pytest.approx(math.sqrt(2.0) * 3.0 / 2e-9, rel=1e-6)
    with pytest.raises(Infeasible):
        PrivateSum(bounds=3.0, epsilon=0.6e-9, arithmetic="idealised").task(1)


def test_a_uniform_rate_is_searched_for_from_a_millionth_on():
    loud = SumRelease(PrivateSum(bounds=3.0, epsilon=1.0, scale=1e9, sampler="uniform"), (0.0,))
    assert (loud.plan.factor, loud.plan.design) == (pytest.approx(1e6), Poisson(1e-6))
    needed = SumRelease(PrivateSum(bounds=3.0, epsilon=1.0, scale=8.0, sampler="uniform"), (0.0,))
    rate = 1.0 / needed.plan.factor
    loss = math.log1p(rate * math.expm1(3.0 / (8.0 * rate)))  # Laplace noise of scale 8 q on the sum of the sample
    assert loss == pytest.approx(1.0, abs=1e-6)
    assert needed.plan.mechanism.noise.scale == pytest.approx(8.0 * rate)
    gaussian = PrivateSum(bounds=3.0, epsilon=1.0, delta=1e-6, noise="gaussian", scale=40.0, sampler="uniform")
    assert gaussian.task(1).plan.design.rate < 1.0


def test_an_epsilon_for_a_size_is_searched_for_between_its_ends():
    """Public norms: all at 3. Laplace noise of scale b and weights w: epsilon = log(1 + (e^(3 w/b) - 1)/w)."""
    few = NormHistogram([1.0, 3.0], [0.0, 1000.0])

    def epsilon_of(scale, size):
        asked = PrivateSum(
            bounds=3.0, scale=scale, sample_size=size, norms=few, sampler="privacy-constrained", arithmetic="idealised"
        )
        return SumRelease(asked, (0.0,)).plan.rule.epsilon

    assert epsilon_of(9.0, 100.0) == pytest.approx(math.log1p(0.1 * math.expm1(30.0 / 9.0)), rel=1e-4)
    assert epsilon_of(0.5, 100.0) == pytest.approx(60.0 + math.log(0.1), rel=1e-4)
    assert epsilon_of(1e6, 900.0) == 1e-4
    with pytest.raises(Infeasible, match="no epsilon reaches this size at this scale; add noise"):
        epsilon_of(0.2, 100.0)  # 148 would be needed


def test_a_size_without_norms_has_the_epsilon_of_a_uniform_sample():
    size = {"sample_size": 100, "population": 1000, "sampler": "privacy-constrained"}
    for noise, delta in (("laplace", 0.0), ("gaussian", 1e-6)):
        asked = PrivateSum(bounds=3.0, scale=30.0, noise=noise, delta=delta, arithmetic="idealised", **size)
        plan = SumRelease(asked, (0.0,)).plan
        made = uniform(type(plan.rule.profile)(plan.mechanism.influence), rate=0.1, radius=3.0)
        assert plan.rule.epsilon == pytest.approx(made.guarantee().epsilon(delta), rel=1.5e-12)
        assert plan.rule.epsilon > made.guarantee().epsilon(delta)
        assert plan.rule.of_norms([3.0])[0] == pytest.approx(0.1, rel=1e-3)


@pytest.mark.parametrize("power", [0, 1, 2])
def test_the_worst_of_the_weights_is_bounded_over_the_whole_ball(power):
    task = SumRelease(PrivateSum(bounds=6.0, sampler=RULE, **QUIET), (0.0,))
    u = np.concatenate([[0.0], np.geomspace(1e-6, 6.0, 20_001)])
    truth = np.max((RULE.weights_of_norms(u) - 1.0) * u**power)
    assert truth * (1 - 1e-9) <= task.plan.worst(power, 6.0) <= truth * 2.0 ** (max(power, 1) / 32) * (1 + 1e-9)
    assert task.plan.spread == 1.0
    plain = SumRelease(PrivateSum(bounds=6.0, sampler=Poisson(0.2), **QUIET), (0.0,)).plan
    assert plain.worst(power, 6.0) == pytest.approx(4.0 * 6.0**power)


def test_a_sum_of_a_rule_bounds_its_error_by_the_population_that_was_declared(key):
    asked = PrivateSum(bounds=6.0, sampler=RULE, population=70, **QUIET)
    task = asked.task(1)
    for n, records in ((70, 70), (0.5, 1)):
        assert task.sampling_error(None, n) == (math.sqrt(records * task.plan.worst(2, 6.0)), "public bound")
    assert task.sampling_error(np.array([4.0, 9.0]), None)[0].tolist() == [2.0, 3.0]
    assert asked.release([1.0, 2.0], key(4)).sampling_error == pytest.approx(math.sqrt(70 * task.plan.worst(2, 6.0)))


@pytest.mark.parametrize(("noise", "delta", "p"), noises())
@pytest.mark.parametrize("population", [None, 50])
@pytest.mark.parametrize("sampler", [None, Poisson(0.5), WithoutReplacement(20, N)], ids=str)
def test_a_mean_is_measured_from_the_middle_and_divided_by_the_number(noise, delta, p, population, sampler, key):
    x = rows_of_people()
    asked = PrivateMean(bounds=BOX, noise=noise, delta=delta, p=p, sampler=sampler, population=population, **QUIET)
    task, kept, _ = drawn_of(asked, x, key(2))
    is_fixed = isinstance(sampler, WithoutReplacement)
    factor = 1.0 / {type(None): 1.0, Poisson: 0.5}.get(type(sampler), 0.5)
    own = np.clip(x, [-1.0, 2.0], [4.0, 8.0]) - [1.5, 5.0]
    total = factor * np.sum(own[kept], axis=0)
    counted = factor * kept.size if population is None and not is_fixed else None
    n = population or (N if is_fixed else counted)
    answer = asked.release(x, key(2))
    assert answer.value == pytest.approx(total / n + [1.5, 5.0], abs=1e-6)
    assert answer.count == (None if counted is None else pytest.approx(counted, abs=1e-5))
    radius = np.linalg.norm([2.5, 3.0], p)
    spread = 0.0 if sampler is None else (1.0 if not is_fixed else sampler.spread)
    if counted is None:
        assert answer.noise_error == pytest.approx(task.noise_error / n)
        bound = math.sqrt((N if is_fixed else n) * spread) * radius / n
        assert answer.sampling_error == pytest.approx(bound)
    else:
        entry = 0.25 * radius
        expected = np.hypot(task.noise_error, total / n * task.noise_error / entry) / n
        assert answer.noise_error == pytest.approx(expected, rel=1e-6)
        drift = np.abs(total / n) * math.sqrt(n * spread)
        assert answer.sampling_error == pytest.approx((math.sqrt(n * spread) * radius + drift) / n, rel=1e-6)
    assert set(answer.details) >= {"resolution", "count", "epsilon", "delta"}


def test_a_mean_of_nobody_is_divided_by_one(key):
    asked = PrivateMean(bounds=(10.0, 14.0), **QUIET)
    answer = asked.release(np.empty(0), key(3))
    assert answer.value == pytest.approx(12.0, abs=1e-6)
    assert answer.noise_error == pytest.approx(asked.task(1).noise_error, rel=1e-6)


def test_the_resolution_is_the_grid_of_the_answer(key):
    for at, (job, by) in enumerate(((PrivateSum, 4.0), (PrivateMean, 4.0 / 50))):
        asked = job(bounds=2.0, scale=40.0, sampler=Poisson(0.25), population=50)
        assert asked.release(np.ones(9), key(50 + at)).resolution == asked.task(1).plan.mechanism.noise.grid * by
    quiet = PrivateSum(bounds=2.0, **QUIET)
    assert quiet.release(np.ones(9), key(6)).resolution == 0.0
    assert quiet.task(1).plan.grid == 0.0


def test_numbers_of_one_column_and_arrays_of_several(key):
    for at, (x, kind) in enumerate((([1.0, 2.0], float), ([[1.0], [2.0]], np.ndarray))):
        answer = PrivateMean(bounds=(0.0, 4.0), sampler=Poisson(0.5), error_share=0.2, **QUIET).release(x, key(70 + at))
        for part in (answer.value, answer.noise_error, answer.sampling_error):
            assert isinstance(part, kind)


def test_the_number_of_records_must_be_the_declared_one_where_it_is_public(key):
    asked = PrivateSum(bounds=2.0, sampler=WithoutReplacement(2, 5), **QUIET)
    assert (asked.public_records, asked.task(1).plan.records) == (5, 5)
    for n in (4, 6):
        with pytest.raises(InvalidInput, match="must be the design's population; declare the number that X has"):
            asked.release(np.ones(n), key(8))
    other = PrivateSum(bounds=2.0, sampler=Poisson(0.5), **QUIET)
    assert (other.public_records, other.task(1).plan.records) == (None, None)
    same = PrivateSum(bounds=2.0, sampler=WithoutReplacement(2, 5), neighbors=Neighbors.REPLACE_ONE, **QUIET)
    assert same.public_records == 5
    swapped = PrivateSum(bounds=2.0, sampler=Poisson(0.5), neighbors=Neighbors.REPLACE_ONE, **QUIET)
    assert swapped.public_records is None


def test_a_rule_and_public_norms_measure_records_from_zero():
    for given in ({"sampler": RULE}, {"norms": NormHistogram([8.0], [9.0])}):
        asked = PrivateMean(bounds=[(2.0, 8.0)], population=9, **given, **QUIET)
        assert asked.middle(1) == (0.0,)
    assert PrivateMean(bounds=[(2.0, 8.0)], population=9, **QUIET).middle(1) == (5.0,)
    assert PrivateMean(bounds=8.0, population=9, **QUIET).middle(3) == (0.0,) * 3
    far = [(-1.7e308, 1.7e308), (1.0e308, 1.7e308)]
    assert PrivateMean(bounds=far, **QUIET).middle(2) == pytest.approx((0.0, 1.35e308))


def test_a_whole_population_may_be_the_sample():
    everybody = PrivateSum(bounds=1.0, epsilon=1.0, sampler="uniform", sample_size=5, population=5)
    assert everybody.task(1).plan.design == Poisson(1.0)


def test_norms_of_sums_are_what_rows_are_cut_by():
    """A ball, and a box whose corner is nearer on one side."""
    ball = PrivateSum(bounds=2.0, scale=1.0)
    x = np.array([[3.0, 1.0], [0.5, 0.5]])
    assert np.array_equal(ball.cut(x, (0.0, 0.0)), clipped(x, 2.0, 1.0))
    box = PrivateSum(bounds=[(-1.0, 4.0), (2.0, 8.0)], scale=1.0, noise="norm", p=2.0)
    assert box.longest((0.0, 0.0)) == pytest.approx(math.hypot(4.0, 8.0))
    assert box.longest((3.0, 3.0)) == pytest.approx(math.hypot(4.0, 5.0))
    assert box.cut(x, (3.0, 3.0)).tolist() == [[0.0, -1.0], [-2.5, -1.0]]
    assert np.all(norms(box.cut(10.0 * x, (3.0, 3.0)), 2.0) <= box.longest((3.0, 3.0)))
