"""OpenDP itself: measurements by privamp in its compositors, its measurements on privamp's samples."""

import itertools
import math

import pytest

from privamp import (
    ApproxDP,
    Budget,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    InvalidInput,
    Key,
    Laplace,
    Neighbors,
    NormNoise,
    NoTheorem,
    Poisson,
    Population,
    PureDP,
    SharedRate,
    Stratified,
    Systematic,
    TruncatedPoisson,
    WithoutReplacement,
    WithReplacement,
    amplify,
    compose,
)

dp = pytest.importorskip("opendp.prelude", reason="the adapter of OpenDP needs OpenDP")

from privamp.adapters.opendp import Amplified, mechanism_of, run_on  # noqa: E402
from privamp.designs.proportional_pps import ProportionalPPS  # noqa: E402

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
DATA = [0.0, 1.0, 0.5, 1.0] * 5
FLOATS = dp.vector_domain(dp.atom_domain(T=float, nan=False))


@pytest.fixture(autouse=True)
def _features():
    dp.enable_features("contrib", "honest-but-curious")


def clamped_sum(noise, domain=FLOATS):
    return (domain, dp.symmetric_distance()) >> dp.t.then_clamp((0.0, 1.0)) >> dp.t.then_sum() >> noise


def test_the_map_is_the_certified_guarantee():
    amplified = Amplified(Laplace(1.0), Poisson(0.1))
    measurement = amplified.measurement()
    assert measurement.map(0) == 0.0
    assert measurement.map(1) == pytest.approx(amplify(Laplace(1.0), Poisson(0.1)).epsilon(), rel=1e-12)
    assert measurement.map(1) >= math.log1p(0.1 * math.expm1(1.0))
    assert measurement.map(3) >= 3 * math.log1p(0.1 * math.expm1(1.0))
    assert isinstance(measurement(DATA), float)
    told = amplified.guarantee()
    assert told.neighbors == AR
    assert told.because
    assert "idealised real arithmetic" in told.assumes


def test_every_call_is_charged_to_a_budget(tmp_path):
    budget = Budget.create(tmp_path / "b.db", epsilon=0.4, population="people")
    measurement = Amplified(Laplace(1.0), Poisson(0.1)).measurement(budget=budget)
    measurement(DATA)
    measurement(DATA)
    assert [entry.state for entry in budget.log()] == ["answered", "answered"]
    with pytest.raises(dp.OpenDPException, match="left"):
        measurement(DATA)  # 0.1586 thrice is more than 0.4
    assert len(budget.log()) == 2
    for wrong in ("b.db", tmp_path, False):
        with pytest.raises(InvalidInput, match="must be a Budget"):
            Amplified(Laplace(1.0), Poisson(0.1)).measurement(budget=wrong)


def test_replaced_records_and_a_delta():
    measurement = Amplified(Gaussian(2.0), WithoutReplacement(5, 20)).measurement(delta=1e-6)
    one = amplify(Gaussian(2.0), WithoutReplacement(5, 20), RO)
    epsilon, delta = measurement.map(1)
    assert (epsilon, delta) == (pytest.approx(one.epsilon(1e-6), rel=1e-9), 1e-6)
    assert epsilon >= one.lower.epsilon(1e-6)
    assert measurement.map(2)[0] > epsilon
    assert str(measurement.input_metric) == "ChangeOneDistance()"
    assert measurement.input_domain.size == 20
    assert isinstance(measurement(DATA), float)


def test_a_chain_in_both_directions_is_covered():
    """Distance 2 may be one record out and one in: not less than a replaced record costs."""
    measurement = Amplified(Laplace(1.0), Poisson(0.3)).measurement()
    assert measurement.map(2) >= amplify(Laplace(1.0), Poisson(0.3), RO).epsilon() * (1 - 1e-12)


def test_every_call_draws_afresh():
    """The sum of a sample of one of twenty different numbers, with next to no noise: the same one every time?"""
    numbers = [float(i) for i in range(20)]
    measurement = Amplified(Laplace(1e-6, sensitivity=20.0), WithoutReplacement(1, 20), RO).measurement()
    answers = {round(measurement(numbers)) for _ in range(60)}
    assert len(answers) > 1  # fails by chance once in 20^59 runs
    both = dp.c.make_composition([measurement, measurement])
    assert any(len({round(answer) for answer in both(numbers)}) == 2 for _ in range(20))  # fails once in 20^20


def test_compositors_and_odometers_and_the_context_take_it():
    measurement = Amplified(Laplace(4.0), Poisson(0.5)).measurement()
    one = measurement.map(1)
    assert dp.c.make_composition([measurement] * 3).map(1) == pytest.approx(3 * one)
    assert compose(amplify(Laplace(4.0), Poisson(0.5)), 3).epsilon() <= 3 * one * (1 + 1e-12)
    space = FLOATS, dp.symmetric_distance(), dp.max_divergence()
    adaptive = dp.c.make_adaptive_composition(*space, d_in=1, d_mids=[one, one])(DATA)
    assert isinstance(adaptive(measurement), float)
    assert isinstance(adaptive(measurement), float)
    with pytest.raises(dp.OpenDPException):
        adaptive(measurement)
    odometer = dp.c.make_fully_adaptive_composition(*space)(DATA)
    odometer(measurement)
    odometer(measurement)
    assert odometer.privacy_loss(1) == pytest.approx(2 * one)
    context = dp.Context.compositor(
        data=DATA, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=0.4), split_evenly_over=2,
        domain=FLOATS,
    )  # fmt: skip
    assert isinstance(context(measurement), float)


def test_adding_up_on_one_sample_is_what_opendp_gets_wrong():
    """The planted mistake: two queries on one sample, each amplified, are not twice one."""
    one = amplify(PureDP(1.0), Poisson(0.1)).epsilon()
    sample = Poisson(0.1).draw(len(DATA), Key.generate())
    for _ in range(2):
        run_on(sample, clamped_sum(dp.m.then_laplace(1.0)), DATA)
    assert sample.guarantee().epsilon() > 1.4 * 2 * one


def test_their_measurements_as_mechanisms():
    assert mechanism_of(clamped_sum(dp.m.then_laplace(2.0))) == PureDP(clamped_sum(dp.m.then_laplace(2.0)).map(1), AR)
    gaussian = clamped_sum(dp.m.then_gaussian(2.0))
    found = mechanism_of(gaussian, delta=1e-6)
    assert isinstance(found, ApproxDP)
    assert found.epsilon >= amplify(Gaussian(2.0), Poisson(1.0)).epsilon(1e-6)  # their conversion is above the truth
    with pytest.raises(InvalidInput, match="give delta="):
        mechanism_of(gaussian)
    sized = (dp.vector_domain(dp.atom_domain(T=float, nan=False), size=5), dp.symmetric_distance())
    mean = sized >> dp.t.then_clamp((0.0, 1.0)) >> dp.t.then_mean() >> dp.m.then_laplace(1.0)
    assert mechanism_of(mean) == PureDP(mean.map(2), RO)
    fixed = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), 1e-6)
    assert mechanism_of(fixed) == ApproxDP(*fixed.map(1), AR)
    number = (dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)) >> dp.m.then_laplace(2.0)
    with pytest.raises(InvalidInput, match="does not count records"):
        mechanism_of(number)


def test_a_measurement_for_another_size_is_refused():
    """OpenDP runs it without a word, with the sensitivity of the declared size."""
    sized = (dp.vector_domain(dp.atom_domain(T=float, nan=False), size=5), dp.symmetric_distance())
    mean = sized >> dp.t.then_clamp((0.0, 1.0)) >> dp.t.then_mean() >> dp.m.then_laplace(1.0)
    assert isinstance(mean([1.0]), float)
    for design in (Poisson(0.25), WithoutReplacement(6, 20)):
        with pytest.raises(InvalidInput, match="for 5 records"):
            run_on(design.draw(20, Key.generate()), mean, DATA)
    for design in (WithoutReplacement(5, 20), WithReplacement(5, 20)):
        sample = design.draw(20, Key.generate())
        assert isinstance(run_on(sample, mean, DATA), float)
        told = sample.guarantee(RO)
        assert told.neighbors == RO
        assert any("Sample.run" in line for line in told.assumes)


@pytest.mark.parametrize(
    ("design", "columns"),
    [
        (SharedRate(5, at_least=20, strata=1), {"stratum": [0] * 20}),
        (ProportionalPPS(5, low=1, high=1, at_least=20), {"size": [1.0] * 20}),
    ],
)
def test_an_expected_size_is_no_known_size(design, columns):
    """`size` records are expected; the refusal comes before anything is registered or released."""
    sized = (dp.vector_domain(dp.atom_domain(T=float, nan=False), size=5), dp.symmetric_distance())
    mean = sized >> dp.t.then_clamp((0.0, 1.0)) >> dp.t.then_mean() >> dp.m.then_laplace(1.0)
    sample = design.draw(Population(20, **columns), Key.generate())
    with pytest.raises(InvalidInput, match="may have another number"):
        run_on(sample, mean, DATA)
    assert sample.ledger.entries == ()


def test_what_no_theorem_covers_is_not_run():
    changed = dp.m.make_user_measurement(
        FLOATS, dp.change_one_distance(), dp.max_divergence(), lambda records: 0.0, lambda d: 1.0 * d, TO=float
    )
    sample = Poisson(0.5).draw(len(DATA), Key.generate())
    with pytest.raises(NoTheorem):
        run_on(sample, changed, DATA)
    assert sample.ledger.entries == ()


def answers(bits, epsilon):
    """The law of randomised response of every bit, each with loss epsilon: 1-fold under HammingDistance."""
    keep = 1 / (1 + math.exp(-epsilon))
    return {
        out: math.prod(keep if a == b else 1 - keep for a, b in zip(bits, out, strict=True))
        for out in itertools.product((0, 1), repeat=len(bits))
    }


def loss_of_two_out_of_three(epsilon, orders):
    """log of the largest ratio between (0, 1, 0) and (0, 1, 1), two of three records drawn, in each of the orders."""
    laws = []
    for data in ((0, 1, 0), (0, 1, 1)):
        law = dict.fromkeys(itertools.product((0, 1), repeat=2), 0.0)
        for drawn in itertools.combinations(data, 2):
            for order in orders:
                for out, chance in answers([drawn[i] for i in order], epsilon).items():
                    law[out] += chance / 3 / len(orders)
        laws.append(law)
    return max(abs(math.log(laws[0][out] / laws[1][out])) for out in laws[0])


def bits_by_place():
    """A measurement whose map is true under HammingDistance alone; its answer is the records as they came."""
    return dp.m.make_user_measurement(
        dp.vector_domain(dp.atom_domain(T=float, nan=False), size=2), dp.hamming_distance(), dp.max_divergence(),
        lambda records: records, lambda d: 1.0 * d, TO="Vec<f64>",
    )  # fmt: skip


def test_a_distance_by_place_says_nothing_about_a_record_of_a_sample():
    """Counterexample: randomised response place by place loses 0.856 on samples in order, 0.763 is the bound."""
    bound = amplify(PureDP(1.0, RO), WithoutReplacement(2, 3), RO).epsilon()
    assert loss_of_two_out_of_three(1.0, [(0, 1)]) > 1.1 * bound
    assert loss_of_two_out_of_three(1.0, [(0, 1), (1, 0)]) <= bound  # shuffled
    with pytest.raises(InvalidInput, match="position by position"):
        mechanism_of(bits_by_place())


def test_run_on_shuffles_where_places_count():
    seen = set()
    for _ in range(100):
        sample = WithoutReplacement(2, 3).draw(3, Key.generate())
        seen.add(tuple(run_on(sample, bits_by_place(), [0.0, 1.0, 2.0])))
        assert sample.guarantee(RO).epsilon() == amplify(PureDP(1.0, RO), WithoutReplacement(2, 3), RO).epsilon()
    assert len(seen) == 6  # fails by chance once in 10^7 runs: 6 (5/6)^100


@pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
@pytest.mark.parametrize(
    ("design", "relation", "words"),
    [
        (Systematic(2, order="slots", max_slot=4), AR, "ignore the order"),
        (WithoutReplacement(5, 20), AR, "whether it answers would reveal the number"),
        (WithReplacement(5, 20), AR, "whether it answers would reveal the number"),
        (TruncatedPoisson(0.5, 3, 9, 11), AR, "whether it answers would reveal the number"),
        (Systematic(2, at_most=30), AR, "whether it answers would reveal the number"),
    ],
)
def test_a_map_is_about_every_vector_of_the_domain(design, relation, words):
    """By slots (1, 0, 1, 0) and (1, 1, 0, 0), at distance 0, differ; of 19 and 20 records only the latter are drawn."""
    with pytest.raises(InvalidInput, match=words):
        Amplified(Laplace(1.0), design, relation).measurement()


@pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
@pytest.mark.parametrize("design", [Poisson(0.5), Systematic(2), TruncatedPoisson(0.5, 3, 0)])
def test_vectors_of_any_length_are_answered(design):
    measurement = Amplified(Laplace(1.0), design, AR).measurement()
    for size in (0, 1, 2, 9):
        assert math.isfinite(measurement([1.0, -math.inf, math.inf] * size))


def test_sentences():
    dp.disable_features("honest-but-curious")
    with pytest.raises(InvalidInput, match="enable_features\\('honest-but-curious'\\)"):
        Amplified(Laplace(1.0), Poisson(0.1)).measurement()
    dp.enable_features("honest-but-curious")
    with pytest.raises(InvalidInput, match="declares none"):
        Amplified(Laplace(1.0), Poisson(0.1), RO).measurement()
    with pytest.raises(InvalidInput, match="needs more"):
        Amplified(Laplace(1.0), Stratified({"a": Poisson(0.5)})).measurement()
    with pytest.raises(InvalidInput, match=r"opendp .* failed while reading a measurement \(AttributeError\)"):
        mechanism_of(7)
    sample = Poisson(0.5).draw(Population(3), Key.generate())
    with pytest.raises(InvalidInput, match="records must be a whole number from 3 to 3, got 2"):
        run_on(sample, clamped_sum(dp.m.then_laplace(2.0)), [1.0, 2.0])
    with pytest.raises(InvalidInput, match=r"failed while running a measurement") as told:
        run_on(Poisson(1.0).draw(3, Key.generate()), clamped_sum(dp.m.then_laplace(2.0)), ["12345", "6", "7"])
    assert "12345" not in str(told.value)


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(1.0), DiscreteGaussian(4.0)])
def test_discrete_noise_is_for_integers(mechanism):
    measurement = Amplified(mechanism, Poisson(0.5)).measurement(1e-6)
    assert isinstance(measurement([0, 1, 1, 5]), int)
    assert measurement.map(1)[0] == pytest.approx(amplify(mechanism, Poisson(0.5)).epsilon(1e-6), rel=1e-9)
    with pytest.raises(TypeError):
        measurement([0.5, 1.0])  # before anything is drawn


@pytest.mark.parametrize("mechanism", [PureDP(1.0), NormNoise(1.0, 3), Laplace(1.0, 1.0, RO)])
def test_what_could_answer_no_vector_is_refused_before_it_is_paid_for(mechanism):
    """It was made, charged the budget at every call, and then failed."""
    design = Poisson(0.5) if mechanism.neighbors == AR else WithoutReplacement(2, 4)
    with pytest.raises(InvalidInput, match="clips one number of each record"):
        Amplified(mechanism, design).measurement()
