"""Climbed statistics find what wrong certificates leave out, and nothing in right ones."""

from dataclasses import replace

import numpy as np
import pytest

from privamp import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Neighbors, Poisson, Stratified, amplify
from scripts import script

pytestmark = pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")


@pytest.fixture(scope="module", name="script")
def loaded():
    return script("benchmarks/statistic_attacks.py")


def continuous(noise, design, relation):
    """As if discrete noise hid as much as continuous noise."""
    kinds = {DiscreteLaplace: lambda: Laplace(noise.scale), DiscreteGaussian: lambda: Gaussian(noise.sigma)}
    return amplify(kinds.get(type(noise), lambda: noise)(), design, relation)


def coins(noise, design, relation):
    """As if shares were coins: one record more then moves no other."""
    parts = {name: Poisson(part.rate) for name, part in design.strata}
    return amplify(noise, Stratified(parts), relation)


def displacing_nobody(noise, design, relation):
    """As if a newcomer of a full cluster displaced no member."""
    return amplify(noise, replace(design, trim=False), relation)


def replaced_at_the_price_of_one(noise, design, relation):
    """As if a record replaced moved a sum no more than one that is added."""
    return amplify(replace(noise, neighbors=Neighbors.REPLACE_ONE), design, relation)


def at_most_one(noise, design, relation):
    """The bound for fewer records than there are."""
    return amplify(noise, replace(design, at_most=1), relation)


def others_that_stay(noise, design, relation):
    """As if one record more did not lower the others' chances: plain coins of the largest chance."""
    return amplify(noise, Poisson(design.largest_probability(design.at_least)), relation)


PLANTS = [
    ("clusters", continuous),
    ("strata, moved", coins),
    ("trimmed clusters", displacing_nobody),
    ("fixed strata", replaced_at_the_price_of_one),
    ("shares, at most", at_most_one),
    ("by private size", others_that_stay),
]


@pytest.mark.parametrize(("kind", "certify"), PLANTS, ids=lambda part: getattr(part, "__name__", part))
def test_wrong_certificates_are_caught(script, kind, certify):
    rng = np.random.default_rng(5)
    tried = (attack for _ in range(40) for attack in script.attacks(kind, rng, certify))
    assert any(script.is_false(reached, certified) for reached, certified, _ in tried)


def test_right_certificates_hold(script):
    rng = np.random.default_rng(5)
    for kind in script.KINDS:
        found = [script.is_false(*attack[:2]) for _ in range(2) for attack in script.attacks(kind, rng)]
        assert not any(found), kind


def test_statistics_move_by_at_most_one_per_record(script):
    rng, samples = np.random.default_rng(1), [(), (1,), (1, 2), (2, 3), (1, 1, 3), (4,)]
    apart = script.distances(samples)
    assert apart[1, 2] == 1
    assert apart[2, 3] == 2
    assert apart[1, 4] == 2
    values = -apart[0]
    for _ in range(200):
        values = script.moved(values, int(rng.integers(len(samples))), int(rng.choice([-1, 1])), apart)
        assert np.all(np.abs(values[:, None] - values) <= apart)
