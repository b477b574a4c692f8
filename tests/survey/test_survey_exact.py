"""Survey estimates are exact: whole multiples of a grid, and never farther apart than was certified."""

import itertools
import math

import numpy as np
import pytest

from privamp import (
    ExactGaussian,
    Gaussian,
    Laplace,
    Neighbors,
    Poisson,
    Population,
    Stratified,
    WithoutReplacement,
    amplify,
)
from privamp.core.sample import Drawn
from privamp.survey import estimate
from privamp.survey.estimation import WeightedTotals
from privamp.survey.exact import Lattice, Statistic, release_of
from privamp.survey.frame import frame_of
from privamp.survey.groups import groups_of
from privamp.survey.hidden_signal import signal
from privamp.testing import seeded_key

RO = Neighbors.REPLACE_ONE
WORDS = "idealised real arithmetic"
STRATUM = np.array(["a"] * 3 + ["b"] * 3)
STRATA = Stratified({"a": WithoutReplacement(2, 3), "b": WithoutReplacement(2, 3)})
CASES = {
    "stratified": (STRATA, {"stratum": STRATUM}),
    "stratified, public error": (STRATA, {"stratum": STRATUM, "sd": "range"}),
    "simple": (WithoutReplacement(3, 6), {}),
    "gaussian": (WithoutReplacement(3, 6), {"noise": "gaussian", "delta": 1e-3}),
    "poisson": (Poisson(0.5), {"population": 6}),
    "poisson ratio": (Poisson(0.5), {}),
}


KEYS = itertools.count(9400)


def drawn(design):
    return design.draw(Population(6, stratum=STRATUM), seeded_key(next(KEYS)))


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_idealised(name):
    design, options = CASES[name]
    sample = drawn(design)
    found = estimate(sample, np.arange(6.0), bounds=(0, 7), epsilon=1.0, **options)
    delta = options.get("delta", 0.0)
    assert 1.0 - 1e-6 <= found.guarantee.epsilon(delta) <= 1.0
    assert WORDS not in found.guarantee.assumes
    (mechanism,) = sample.ledger.entries
    noise = getattr(mechanism, "noise", mechanism)
    if name != "poisson ratio":  # a ratio of two multiples of the grid
        steps = (found.value * 6 - 6 * 3.5) / noise.grid  # the total, measured from the middle of the bounds
        assert abs(steps - round(steps)) * noise.grid < 1e-9 * noise.grid * max(1.0, abs(steps))


def test_declared_noise_is_exact_as_well():
    for noise in (Laplace(2.0), ExactGaussian(2.0)):
        found = estimate(drawn(WithoutReplacement(3, 6)), np.arange(6.0), bounds=(0, 7), sd="range", mechanism=noise)
        assert WORDS not in found.guarantee.assumes
        assert found.noise_error == pytest.approx(2.0 * (math.sqrt(2.0) if isinstance(noise, Laplace) else 1.0))


def whole_answers(values, kept, kind, theta, *, nearest=False):
    """What noise is added to, for one sample of a stratum of 5, and the release."""
    frame = frame_of(WithoutReplacement(3, 5).draw(5, seeded_key(1)), values, (0.0, 1.0), None, None)
    task = WeightedTotals(frame, "mean", groups_of(frame, None, None), None)
    release = release_of(kind, task._asked(kind, theta, None, 0.2, 5.0), theta, 3)
    at = np.array(kept)
    sample = Drawn(at, np.ones(at.size, dtype=np.int64), np.ones(at.size))
    total = task.totals(release, sample)
    if nearest:  # the wrong twin: each share one unit farther from zero
        total = total + int(np.sign(task.z[at]).sum())
    return np.concatenate([total, task.variances(release, sample)]), release


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_no_replacement_moves_the_whole_numbers_farther_than_declared(kind):
    """Brute force: every sample of 3 records, every replacement of one, over values that do not fit the grid."""
    theta = signal((0.6,), 1.0, 1e-3 if kind == "gaussian" else 0.0, kind)
    p = 1 if kind == "laplace" else 2
    levels = (0.0, 1.0, 1.0 / 3.0, 0.1)
    worst, wrong = 0.0, 0.0
    for values in itertools.product(levels, repeat=3):
        for at, new in itertools.product(range(3), levels):
            other = list(values)
            other[at] = new
            pair = [np.array([*v, 0.5, 0.5]) for v in (values, other)]
            (one, release), (two, _) = (whole_answers(v, [0, 1, 2], kind, theta) for v in pair)
            limit = math.floor(float(release.reach[0]) / release.grid) if p == 1 else release.reach[0] / release.grid
            worst = max(worst, np.linalg.norm((one - two).astype(float), p) / limit)
            far = [whole_answers(v, [0, 1, 2], kind, theta, nearest=True)[0] for v in pair]
            wrong = max(wrong, float(abs(int(far[0][0] - far[1][0])) * release.grid / (5 / 3)))
    assert 0.9 < worst <= 1.0
    assert wrong > 1.0  # rounded away from zero the total alone is over its sensitivity


def test_an_exact_release_of_a_tiny_stratum_keeps_its_epsilon():
    """The law of what is released, enumerated: samples times discrete Laplace noise, all neighbours in one stratum."""
    design, epsilon = WithoutReplacement(1, 2), 0.7
    theta = signal((0.5,), epsilon, 0.0, "laplace")
    release = release_of("laplace", [Statistic(np.array([2.0]), 2.0 / float(theta[0]))], theta, 1)
    mechanism = release.mechanism(("everybody",), replaced=True, within=False)
    rate = release.grid / release.scale

    def loss(reach_units: int) -> float:
        """max log of (half noise(0) + half noise(reach))/noise at 0, both directions, from the worst points."""
        far = 0.5 + 0.5 * math.exp(rate * reach_units)
        return math.log(far)

    certified = amplify(mechanism, design, Neighbors.REPLACE_ONE).epsilon()
    units = math.floor(2.0 / release.grid)
    assert loss(units) <= certified <= epsilon
    assert loss(units) >= epsilon - 1e-6  # and no noise is wasted
    assert loss(2 * units) > epsilon  # the twin that forgets that a replacement moves two shares


def test_the_lattice_adds_up_exactly():
    lattice = Lattice.of(np.array([3.0]), 1000)
    values = np.array([3.0, -3.0, 2.9999999, 0.1])
    whole = lattice.whole(values)
    assert np.abs(whole).max() == lattice.most
    assert 1000 * lattice.most**2 < 2**63
    assert np.abs(whole * lattice.unit[0] - values).max() <= lattice.unit[0]


def test_gaussian_estimates_may_follow_each_other():
    """Exact noise is post-processing of continuous noise, whose squared shifts add up."""
    sample, design = drawn(WithoutReplacement(3, 6)), WithoutReplacement(3, 6)
    options = {"bounds": (0, 7), "sd": "range", "mechanism": ExactGaussian(2.0)}
    for _ in range(2):
        found = estimate(sample, np.arange(6.0), **options)
    alone = amplify(Gaussian(2.0, 7 / 3, RO), design, RO).delta(1.0)
    both = amplify(Gaussian(2.0, 7 / 3 * math.sqrt(2.0), RO), design, RO).delta(1.0)
    assert found.guarantee.delta(1.0) == pytest.approx(both, rel=1e-6)
    assert found.guarantee.delta(1.0) >= both > alone  # never below continuous noise
    assert WORDS not in found.guarantee.assumes
