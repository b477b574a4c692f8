"""Coins in proportion to size, under noise on a line: enumerated truth, a planted mistake, and how near attacks are."""

import numpy as np
import pytest

from privamp import Gaussian, Laplace, Neighbors, NoTheorem, PoissonPPS, Population, amplify
from privamp.core.size_paths import bounded
from privamp.designs.poisson_sizes import of_draws, proportional
from privamp.verify.enumerate import exact_deltas

pytestmark = pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
EPSILONS = np.array([0.0, 0.05, 0.2, 0.6, 1.5])
CASES = [(1.0, 1.0, 1.5, [1.0, 1.0, 1.5, 1.0]), (1.5, 1.0, 2.0, [1.0, 2.0, 1.0, 1.0, 1.0]), (0.5, 1.0, 4.0, [1.0] * 4)]


def claimed(design, relation, mechanism):
    largest = design.largest_probability(design.at_least - 1)
    own = largest if relation == RO else design.largest_probability(design.at_least)
    return proportional(design.size, own, largest, relation.kind, mechanism)


@pytest.mark.parametrize("relation", [AR, RO], ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("mechanism", [Gaussian(0.8), Gaussian(2.5), Laplace(1.0)], ids=["quiet", "loud", "laplace"])
def test_the_truth_is_below_the_bound(mechanism, case, relation):
    size, low, high, sizes = case
    design = PoissonPPS.proportional(size, low, high, len(sizes))
    population = Population(len(sizes), size=np.array(sizes))
    truth = exact_deltas(design, mechanism, population, relation, EPSILONS)
    profile = claimed(design, relation, mechanism)
    bounds = np.exp(np.stack([profile.forward(EPSILONS), profile.backward(EPSILONS)]))
    assert np.all(bounds >= truth - 1e-12)


@pytest.mark.parametrize(("own", "less"), [(0.5, 1.0), (1.0, 0.0)])
def test_records_drawn_too_rarely_and_others_that_stay_are_caught(own, less):
    """The plants: half the record's chance, and others whose chances do not fall; nothing is taken for what is left."""
    design, noise = PoissonPPS.proportional(2.0, 1.0, 2.0, 10), Gaussian(1.0)
    seen = max(found.rounded_down().delta(0.02) for found in design.attacks(noise, AR).values())
    q = design.largest_probability(10)
    wrong = bounded(of_draws(design.size, less * q, own * q, AR.kind), noise)
    assert wrong.delta(0.02) < seen <= claimed(design, AR, noise).delta(0.02)


@pytest.mark.parametrize(("relation", "before"), [(AR, 0.3397), (RO, 0.3706)], ids=str)
def test_noise_hides_the_others(relation, before):
    found = amplify(Gaussian(2.0), PoissonPPS.proportional(10.0, 1.0, 3.0, 1000), relation)
    assert found.epsilon(1e-6) < 1.03 * found.lower.epsilon(1e-6) < 0.5 * before
    assert "transport.md, Thm 10" in found.because[0]


def test_more_draws_hide_more():
    some = [proportional(mean, 0.05, 0.05, AR.kind, Gaussian(1.0)).epsilon(1e-6) for mean in (1.0, 5.0, 20.0)]
    assert some == sorted(some, reverse=True)
    assert proportional(1e9, 0.05, 0.05, AR.kind, Gaussian(1.0)).epsilon(1e-6) <= some[-1]


def test_smaller_chances_lose_less():
    some = [proportional(10.0, own, 0.3, RO.kind, Gaussian(2.0)).delta(0.3) for own in (0.05, 0.15, 0.3)]
    assert some == sorted(some)


def test_a_record_that_is_kept_for_certain_is_not_followed():
    with pytest.raises(NoTheorem, match="kept for certain"):
        proportional(3.0, 0.9, 1.0, AR.kind, Gaussian(1.0))
    with pytest.raises(NoTheorem, match="small part of the sample"):
        proportional(0.5, 0.4, 0.5, AR.kind, Gaussian(1.0))


def test_chances_that_are_not_small_lose_little():
    """A tenth of the records: 1.6 times the attack before, when the others' fall was paid for in epsilon."""
    found = amplify(Gaussian(4.0), PoissonPPS.proportional(100.0, 1.0, 3.0, 1000))
    assert found.epsilon(1e-6) < 1.08 * found.lower.epsilon(1e-6)


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_thinning_and_adding_draws_leads_to_every_pair(seed, replaced):
    """The step of the proof: from the bound's pair to the real one, by chances and means that are none below 0."""
    rng = np.random.default_rng(seed)
    others, x, y = rng.uniform(1.0, 4.0, int(rng.integers(2, 30))), *rng.uniform(1.0, 4.0, 2)
    least = others.sum() + (min(x, y) if replaced else 0.0)
    m = rng.uniform(0.01, 0.9) * least / max(others.max(), x, y)  # nothing is kept for certain
    if replaced and x < y:
        x, y = y, x
    qx, qy = m * x / (others.sum() + x), m * y / (others.sum() + y) if replaced else 0.0
    before, after = m * others / (others.sum() + (y if replaced else 0.0)), m * others / (others.sum() + x)
    largest, own = before.max() * rng.uniform(1.0, 1.05), qx * rng.uniform(1.0, 1.05)
    fall = np.log1p(-after) - np.log1p(-before)
    b, less = m / (m - qy), own / (1.0 - largest)
    if less >= m:
        return
    kept = fall / (less / (m - qy) * before)
    added = -np.log1p(-before) - kept * b * before
    assert np.all((kept >= 0.0) & (kept <= 1.0))
    assert np.all(added >= 0.0)
    assert np.allclose(kept * (b - less / (m - qy)) * before + added, -np.log1p(-after), rtol=1e-12)
