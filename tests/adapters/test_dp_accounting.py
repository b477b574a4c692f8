"""dp-accounting both ways, against enumeration, quadrature and its own accountants."""

import math

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from privamp import (
    ClusterSampling,
    Gaussian,
    InvalidInput,
    Key,
    Laplace,
    Neighbors,
    Poisson,
    PureDP,
    WithoutReplacement,
    WithReplacement,
    amplify,
    compose,
)

dp_accounting = pytest.importorskip("dp_accounting", reason="the adapter of dp-accounting needs dp-accounting")

from dp_accounting import dp_event as dp  # noqa: E402
from dp_accounting.pld import PLDAccountant  # noqa: E402
from dp_accounting.rdp import RdpAccountant  # noqa: E402

from privamp.adapters.dp_accounting import (  # noqa: E402
    GuaranteeAccountant,
    GuaranteeEvent,
    NeighboringRelation,
    guarantee_of,
    standard_event,
)
from privamp.adapters.moved_gaussians import MovedGaussians  # noqa: E402

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
ADDED, REPLACED = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE
NOISE = dp.GaussianDpEvent(1.5)


X, STEP = np.linspace(-14.0, 22.0, 400_001, retstep=True)


def hockey_stick(p, q, epsilon):
    """max over both orders of the integral of (p - e^eps q)+, by the trapezoid rule (a kink costs STEP squared)."""
    both = ((p, q), (q, p))
    return max(float(np.sum(np.maximum(law(a) - math.exp(epsilon) * law(b), 0.0)) * STEP) for a, b in both)


def law(weights):
    """The density of a mixture of normal laws on the grid: {place in standard deviations: weight}."""
    return sum(w * norm.pdf(X - place) for place, w in weights.items())


# event, relation, the pair that decides it: written down here from the documentation of the events alone
PAIRS = {
    "gaussian": (NOISE, AR, {1 / 1.5: 1.0}, {0: 1.0}),
    "gaussian, replaced": (NOISE, RO, {1 / 1.5: 1.0}, {-1 / 1.5: 1.0}),
    "poisson": (dp.PoissonSampledDpEvent(0.2, NOISE), AR, {0: 0.8, 1 / 1.5: 0.2}, {0: 1.0}),
    "poisson, replaced": (
        dp.PoissonSampledDpEvent(0.2, NOISE), RO, {0: 0.8, 1 / 1.5: 0.2}, {0: 0.8, -1 / 1.5: 0.2}
    ),
    "without replacement": (
        dp.SampledWithoutReplacementDpEvent(10, 2, NOISE), RO, {0: 0.8, 2 / 1.5: 0.2}, {0: 1.0}
    ),
    "on one sample": (
        dp.PoissonSampledDpEvent(0.2, dp.ComposedDpEvent([dp.SelfComposedDpEvent(dp.GaussianDpEvent(3.0), 3),
                                                          dp.NoOpDpEvent(), dp.GaussianDpEvent(3.0)])),
        AR, {0: 0.8, 2 / 3.0: 0.2}, {0: 1.0},
    ),
    "mixture": (
        dp.MixtureOfGaussiansDpEvent(2.0, [3.0, 0.0, 1.0], [0.1, 0.6, 0.3]), AR, {0: 0.6, 0.5: 0.3, 1.5: 0.1}, {0: 1.0}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_an_event_has_the_profile_of_its_documented_pair(name):
    event, relation, p, q = PAIRS[name]
    found = guarantee_of(event, relation)
    for epsilon in (0.1, 0.7, 1.5):
        truth = hockey_stick(p, q, epsilon)
        assert truth <= found.delta(epsilon) * (1 + 1e-6)
        assert found.delta(epsilon) <= truth * (1 + 1e-6) + 1e-12


def test_a_shift_of_c_under_replace_one_is_caught():
    """The planted mistake: dp-accounting's Rényi accountant moves a replaced row of norm C by C only."""
    event = dp.SampledWithoutReplacementDpEvent(1000, 100, dp.GaussianDpEvent(1.0))
    ours = guarantee_of(event, RO)
    theirs = RdpAccountant(neighboring_relation=REPLACED).compose(event).get_epsilon(1e-6)
    truth = hockey_stick({0: 0.9, 2.0: 0.1}, {0: 1.0}, theirs)
    assert truth > 1e-3  # of rows of norm 1 that are exchanged: their epsilon is not true at 1e-6
    assert ours.epsilon(1e-6) > theirs
    assert ours.delta(theirs) >= truth * (1 - 1e-6)


def test_a_fixed_size_covers_a_record_less_and_a_record_more():
    for sampled, design in (
        (dp.SampledWithoutReplacementDpEvent, WithoutReplacement),
        (dp.SampledWithReplacementDpEvent, WithReplacement),
    ):
        found = guarantee_of(sampled(11, 2, NOISE), AR)
        assert found.delta(0.5) == amplify(Gaussian(1.5), design(2, 10), AR).delta(0.5)
        assert found.delta(0.5) > amplify(Gaussian(1.5), design(2, 11), AR).delta(0.5)
    event = dp.TruncatedSubsampledGaussianDpEvent(20, 0.3, 4, 2.0)
    design = guarantee_of(event, AR).claims[0].design
    assert (design.at_least, design.at_most) == (19, 21)
    assert guarantee_of(event, RO).claims[0].design.public_size == 20


def test_events_on_one_sample_are_not_amplified_one_by_one():
    noise = dp.LaplaceDpEvent(2.0)
    together = guarantee_of(dp.PoissonSampledDpEvent(0.1, dp.SelfComposedDpEvent(noise, 10)), AR)
    apart = guarantee_of(dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.1, noise), 10), AR)
    assert together.epsilon() == pytest.approx(math.log1p(0.1 * math.expm1(5.0)), rel=1e-9)
    assert together.epsilon(1e-6) > 2 * apart.epsilon(1e-6)


def test_randomised_response_counts_and_needs_replace_one():
    event = dp.SelfComposedDpEvent(dp.RandomizedResponseDpEvent(0.5, 4), 3)
    assert guarantee_of(event, RO).epsilon() == pytest.approx(3 * math.log(5.0), rel=1e-9)
    assert PLDAccountant(REPLACED).compose(event).get_epsilon(0.0) < 1.62  # theirs forgets the count
    with pytest.raises(InvalidInput, match="reveals their number"):
        guarantee_of(event, AR)
    quiet = dp.ComposedDpEvent([dp.RandomizedResponseDpEvent(1.0, 4), dp.RandomizedResponseDpEvent(0.0, 1)])
    assert guarantee_of(quiet, RO).epsilon() == 0.0


@pytest.mark.parametrize(
    "event",
    [
        dp.PoissonSampledDpEvent(0.02, NOISE),
        dp.ComposedDpEvent([dp.LaplaceDpEvent(2.0), dp.PoissonSampledDpEvent(0.1, dp.LaplaceDpEvent(1.0))]),
        dp.DiscreteLaplaceDpEvent(0.5, 2),
        dp.TruncatedSubsampledGaussianDpEvent(20, 0.3, 8, 2.0),
    ],
)
def test_their_loss_distributions_agree_where_they_are_right(event):
    ours, theirs = GuaranteeAccountant().compose(event), PLDAccountant().compose(event)
    assert ours.get_epsilon(1e-6) <= theirs.get_epsilon(1e-6) * (1 + 1e-6)
    if not isinstance(event, dp.TruncatedSubsampledGaussianDpEvent):  # theirs is known to be loose there
        assert theirs.get_epsilon(1e-6) == pytest.approx(ours.get_epsilon(1e-6), rel=2e-3, abs=2e-4)


def test_claims_travel_as_events():
    drawn = compose(amplify(Gaussian(2.0), WithoutReplacement(100, 1000), RO), 10)
    event = GuaranteeEvent.of(drawn)
    assert dp.DpEvent.from_named_tuple(event.to_named_tuple()) == event
    assert event.guarantee() == drawn
    accountant = GuaranteeAccountant(REPLACED)
    assert accountant.supports(event)
    accountant.compose(dp.ComposedDpEvent([event, dp.SelfComposedDpEvent(dp.GaussianDpEvent(8.0), 2)]), 2)
    whole = compose([compose(drawn, 2), compose(amplify(Gaussian(8.0), Poisson(1.0), RO), 4)])
    assert accountant.get_epsilon(1e-6) == whole.epsilon(1e-6)
    told = accountant.guarantee()
    assert told.neighbors == RO
    assert {"AES is a pseudo-random function (keyed draws)", "idealised real arithmetic"} <= {*told.assumes}
    assert any("Balle" in line for line in told.because)
    assert accountant.ledger == dp.SelfComposedDpEvent(
        dp.ComposedDpEvent([event, dp.SelfComposedDpEvent(dp.GaussianDpEvent(8.0), 2)]), 2
    )


def test_an_event_of_a_design_that_they_do_not_have():
    clusters = amplify(PureDP(0.5), ClusterSampling(5, 50, max_size=4), AR)
    assert (
        GuaranteeAccountant().compose(GuaranteeEvent.of(clusters), 3).get_epsilon(0.0) == compose(clusters, 3).epsilon()
    )
    assert not PLDAccountant().supports(GuaranteeEvent.of(clusters))


def test_one_draw_is_not_counted_as_two_fresh_ones():
    sample = Poisson(0.5).draw(20, Key.generate())
    sample.release(Laplace(1.0), [0.0] * 20)
    event = GuaranteeEvent.of(sample.guarantee())
    accountant = GuaranteeAccountant().compose(event)
    with pytest.raises(dp_accounting.UnsupportedEventError, match="about the same sample"):
        accountant.compose(event)
    with pytest.raises(dp_accounting.UnsupportedEventError, match="about the same sample"):
        GuaranteeAccountant().compose(event, 2)


def test_events_without_privacy_are_infinite():
    for event in (dp.NonPrivateDpEvent(), dp.GaussianDpEvent(0.0), dp.PoissonSampledDpEvent(0.5, dp.LaplaceDpEvent(0))):
        accountant = GuaranteeAccountant().compose(NOISE).compose(event)
        assert accountant.get_epsilon(1e-6) == math.inf
        assert accountant.get_delta(10.0) == 1.0
        with pytest.raises(InvalidInput, match="without privacy"):
            accountant.guarantee()
    assert GuaranteeAccountant().get_epsilon(0.0) == 0.0
    for nobody in (
        dp.PoissonSampledDpEvent(0.0, dp.GaussianDpEvent(0.0)),
        dp.SampledWithoutReplacementDpEvent(10, 0, NOISE),
        dp.TruncatedSubsampledGaussianDpEvent(10, 0.5, 0, 1.0),
    ):
        assert GuaranteeAccountant().compose(nobody).get_epsilon(0.0) == 0.0


def test_dp_accounting_calibrates_with_it():
    noise = dp_accounting.calibrate_dp_mechanism(
        GuaranteeAccountant, lambda z: dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(z)), 1.0, 1e-5,
        dp_accounting.ExplicitBracketInterval(0.0, 4.0), tol=1e-3,
    )  # fmt: skip
    found = guarantee_of(dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(noise)), AR).epsilon(1e-5)
    assert 0.99 < found <= 1.0
    with pytest.raises(dp_accounting.UnsupportedEventError, match="at least 0"):
        GuaranteeAccountant().compose(NOISE, -1)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (dp.ZCDpEvent(1.0), "reads no ZCDpEvent"),
        (dp.PoissonSampledDpEvent(0.5, dp.PoissonSampledDpEvent(0.5, NOISE)), "inside another sampling event"),
        (dp.PoissonSampledDpEvent(1.5, NOISE), "rate must be a number from 0 to 1"),
        (dp.MixtureOfGaussiansDpEvent(1.0, [1.0], [0.5]), "add up to 1"),
        (dp.MixtureOfGaussiansDpEvent(1.0, [-1.0], [1.0]), "at least 0"),
        (dp.SelfComposedDpEvent(NOISE, -1), "at least 0"),
        (dp.ComposedDpEvent(7), "list of events, got int instead"),
        (dp.MixtureOfGaussiansDpEvent(1.0, 7, 8), r"dp-accounting .* failed while reading its events \(TypeError\)"),
        (dp.PoissonSampledDpEvent(0.5, GuaranteeEvent(b"{}")), "reads no GuaranteeEvent"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence(event, words):
    with pytest.raises(InvalidInput, match=words):
        guarantee_of(event, AR)


def test_relations_are_not_mixed():
    with pytest.raises(InvalidInput, match="REPLACE_ONE covers it"):
        GuaranteeAccountant(NeighboringRelation.REPLACE_SPECIAL)
    replaced = GuaranteeEvent.of(amplify(Gaussian(2.0), WithoutReplacement(5, 50), RO))
    with pytest.raises(dp_accounting.UnsupportedEventError, match="the event is about replace-one"):
        GuaranteeAccountant().compose(replaced)
    with pytest.raises(InvalidInput, match="about one record"):
        guarantee_of(NOISE, AR.for_person(2))
    for other in (amplify(Gaussian(2.0), WithoutReplacement(5, 50), RO), 7):
        with pytest.raises(InvalidInput, match="add-remove"):
            standard_event(other)
    with pytest.raises(dp_accounting.UnsupportedEventError, match="JSON"):
        GuaranteeAccountant().compose(GuaranteeEvent(b"\xff"))


def test_standard_events_are_read_by_their_accountants_and_by_ours_as_the_same():
    for ours in (
        amplify(Gaussian(3.0, sensitivity=2.0), Poisson(0.01), AR),
        amplify(Laplace(4.0, sensitivity=2.0), Poisson(0.1), AR),
    ):
        event = standard_event(ours)
        assert ours.epsilon(1e-6) <= guarantee_of(event, AR).epsilon(1e-6) <= ours.epsilon(1e-6) * (1 + 1e-9)
        assert PLDAccountant().compose(event).get_epsilon(1e-6) == pytest.approx(ours.epsilon(1e-6), abs=2e-4)
    several = standard_event(compose([ours, compose(amplify(Gaussian(3.0), Poisson(0.01), AR), 7)]))
    assert [part.count for part in several.events] == [1, 7]
    with pytest.raises(InvalidInput, match="PureDP on Poisson"):
        standard_event(amplify(PureDP(1.0), Poisson(0.1), AR))


def test_a_thinned_mixture_is_a_mixture():
    mixture = dp.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.5, 0.25, 0.25])
    thinned = guarantee_of(dp.PoissonSampledDpEvent(0.5, mixture), AR)
    exact = MovedGaussians(1.0, (0.0, 1.0, 2.0), (0.75, 0.125, 0.125)).profile(AR)
    for epsilon in (0.1, 1.0, 3.0):
        assert thinned.delta(epsilon) == pytest.approx(exact.delta(epsilon), rel=1e-9)


def test_moved_gaussians_by_mpmath():
    """Far below what quadrature in doubles sees."""
    mpmath.mp.dps = 40
    profile = MovedGaussians(2.0, (3.0, 0.0, 1.0), (0.1, 0.6, 0.3)).profile(AR)

    def p(x):
        return sum(w * mpmath.npdf(x, c, 1) for c, w in (("1.5", "0.1"), (0, "0.6"), ("0.5", "0.3"))
                   for c, w in [(mpmath.mpf(c), mpmath.mpf(w))])  # fmt: skip

    epsilon = mpmath.mpf(12)
    root = mpmath.findroot(lambda x: mpmath.log(p(x) / mpmath.npdf(x)) - epsilon, 10)
    truth = mpmath.quad(lambda x: p(x) - mpmath.exp(epsilon) * mpmath.npdf(x), [root, root + 1, root + 4, root + 20])
    assert float(profile.delta(12.0)) == pytest.approx(float(truth), rel=1e-10)
    assert float(truth) < 1e-13


def test_what_the_chances_miss_of_one_is_the_largest_move():
    """Counterexample to counting it as no move: the law that was rounded may have it at the largest one."""
    true, rounded = (1 - 6e-10, 3e-10, 3e-10), (1 - 6e-10, 3e-10, 0.0)
    truth = MovedGaussians(1.0, (0.0, 1.0, 30.0), true).profile(AR).delta(2.0)
    assert truth > 2.9e-10
    said = MovedGaussians(1.0, (0.0, 1.0, 30.0), rounded).profile(AR).delta(2.0)
    assert truth <= said <= truth * (1 + 1e-6)
    more = MovedGaussians(1.0, (0.0, 1.0, 30.0), (1.0, 3e-10, 3e-10)).profile(AR)  # too much: less of the smallest
    assert more.delta(2.0) == pytest.approx(truth, rel=1e-9)
    assert MovedGaussians(1.0, (0.0, 2.0), (0.5, 0.5)).profile(AR).delta(0.5) == pytest.approx(
        hockey_stick({0: 0.5, 2.0: 0.5}, {0: 1.0}, 0.5), rel=1e-6
    )


def test_an_event_of_another_library_is_not_nothing():
    """Counterexample: any event with a count or a rate of 0 was read as no event, whatever it stood for."""

    class Shown(dp.DpEvent):
        count, sampling_probability, sample_size = 0, 0.0, 0

    with pytest.raises(InvalidInput, match="reads no Shown"):
        guarantee_of(Shown(), AR)
    with pytest.raises(dp_accounting.UnsupportedEventError, match="reads no Shown"):
        GuaranteeAccountant().compose(Shown())


@pytest.mark.parametrize("kind", [np.int8, np.int64])
def test_short_integers_do_not_overflow(kind):
    """100 times 100 was 16 in NumPy's int8: epsilon 0.32 was certified where 89.5 is true."""
    twice = dp.SelfComposedDpEvent(dp.SelfComposedDpEvent(dp.GaussianDpEvent(10.0), kind(100)), kind(100))
    at_once = dp.SelfComposedDpEvent(dp.GaussianDpEvent(10.0), 10_000)
    for wrapped in (lambda event: event, lambda event: dp.PoissonSampledDpEvent(0.1, event)):
        found, true = (guarantee_of(wrapped(event), AR).epsilon(1e-6) for event in (twice, at_once))
        assert found == pytest.approx(true, rel=1e-9)


def test_an_iterator_of_events_is_no_list():
    """dp-accounting reads an event twice, and an iterator is empty the second time: epsilon was 0."""
    tree = dp.ComposedDpEvent(dp.GaussianDpEvent(1.0) for _ in range(3))
    assert not GuaranteeAccountant().supports(tree)
    with pytest.raises(Exception, match="list of events, got generator"):
        GuaranteeAccountant().compose(tree)
    with pytest.raises(InvalidInput, match="list of events, got generator"):
        guarantee_of(tree, AR)
    with pytest.raises(InvalidInput, match="list of events, got generator"):
        guarantee_of(dp.PoissonSampledDpEvent(0.1, tree), AR)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_short_numbers_count_by_their_value(kind):
    """In half precision randomised response was certified with 2.94444 where 2.94470 is true, discrete Laplace noise
    with 2.69947 where 2.69971 is true."""
    for p in (0.1, 0.7, 0.9):
        given, value = kind(p), float(kind(p))
        answers = guarantee_of(dp.RandomizedResponseDpEvent(given, np.int8(10)), RO).epsilon(0.0)
        assert math.log1p(10 * (1.0 - value) / value) <= answers < 1e-12 + math.log1p(10 * (1.0 - value) / value)
        noisy = guarantee_of(dp.DiscreteLaplaceDpEvent(given, np.int8(3)), AR).epsilon(0.0)
        assert 3 * value <= noisy < 3 * value * (1.0 + 1e-12)
