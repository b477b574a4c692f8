"""A violation says which side failed, and what a design says about itself is checked: every lie here is caught."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from privamp import Neighbors, Poisson, PoissonPPS, Population, Theorem, WithoutReplacement
from privamp.core.curves import pure_curve
from privamp.core.profile import Profile
from privamp.verify import check_design, exact, exact_delta
from privamp.verify.exact import programs
from privamp.verify.structure import check_structure

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
WITH, WITHOUT = "D(with the record ‖ without it)", "D(without the record ‖ with it)"


def _only(direction):
    """Poisson's true bound in one direction, a tenth of it in the other."""

    def bound(design, mechanism, neighbors):
        true = Poisson.theorems[0].bound(design, mechanism, neighbors)
        small = pure_curve(0.1 * true.largest_loss)
        return Profile(true.forward, small) if direction == "forward" else Profile(small, true.backward)

    return (Theorem("one-eyed", "nobody", AR.kind, AR.kind, False, bound),)


@dataclass(frozen=True, slots=True)
class ForwardOnly(Poisson):
    theorems: ClassVar[tuple[Theorem, ...]] = _only("forward")

    def attack(self, mechanism, neighbors):
        return None


@dataclass(frozen=True, slots=True)
class BackwardOnly(Poisson):
    theorems: ClassVar[tuple[Theorem, ...]] = _only("backward")

    def attack(self, mechanism, neighbors):
        return None


@dataclass(frozen=True, slots=True)
class Boastful(WithoutReplacement):
    """Its attack is stronger than any attack can be."""

    def attack(self, mechanism, neighbors):
        found = WithoutReplacement.attack(self, mechanism, neighbors)
        return None if found is None else Profile.symmetric(pure_curve(3.0 * mechanism.profile(RO).largest_loss))


@pytest.mark.parametrize(("kind", "failed", "fine"), [(ForwardOnly, WITHOUT, WITH), (BackwardOnly, WITH, WITHOUT)])
def test_a_violation_names_the_side_and_the_direction(kind, failed, fine):
    report = check_design(kind, checks=60)
    deltas = [v for tally in report.tallies if tally.kind == "delta of noisy sums" for v in tally.violations]
    assert deltas
    assert all("the UPPER bound" in v and "is below the truth" in v for v in deltas)
    for violation in deltas:  # below 0 a direction is bounded by the other one's curve
        below_zero = "delta(-" in violation
        assert (fine if below_zero else failed) in violation
        assert (failed if below_zero else fine) not in violation


def test_a_violation_of_an_attack_is_one_of_the_lower_side():
    report = check_design(Boastful, checks=60)
    lower = [v for tally in report.tallies if tally.kind == "pure attacks" for v in tally.violations]
    assert lower
    assert all("the LOWER bound (attack)" in v and "is above the truth" in v for v in lower)
    assert not any("UPPER bound" in v for v in lower)


def test_directions_of_the_truth():
    one = programs(Poisson(0.3), 2, AR, AR.kind)[0]
    q, a = 0.3, np.e
    there, back = one.directed([1.0])[0]
    assert there == pytest.approx(np.log1p(q * (a - 1)), abs=1e-7)
    assert back == pytest.approx(-np.log1p(-q * (1 - 1 / a)), abs=1e-7)
    assert one.epsilon(1.0) == max(there, back)
    from privamp import Laplace

    each = [exact_delta(Poisson(0.3), Laplace(1.0), 2, AR, 0.1, direction=d) for d in ("forward", "backward")]
    assert exact_delta(Poisson(0.3), Laplace(1.0), 2, AR, 0.1) == max(each)
    assert each[0] != each[1]


def test_programs_solved_together_answer_for_themselves(monkeypatch):
    asked = [
        (program, [0.3 * (k + 1), 1.0])
        for k, rate in enumerate((0.1, 0.5, 0.9))
        for out in (AR, RO)
        for program in programs(Poisson(rate), 2, out, AR.kind)
    ]
    alone = [program.directed(epsilons) for program, epsilons in asked]
    assert np.allclose(exact.directed_together(asked), alone, rtol=0, atol=1e-12)
    monkeypatch.setattr(exact, "_VARIABLES", 5)  # a few at a time
    assert np.allclose(exact.directed_together(asked), alone, rtol=0, atol=1e-12)
    assert len({x for found in alone for x in np.round(found, 9).ravel()}) >= 15


@dataclass(frozen=True, slots=True)
class WrongWeight(Poisson):
    @property
    def weight(self):
        return 2.0 / self.rate


@dataclass(frozen=True, slots=True)
class SmallSpread(Poisson):
    @property
    def spread(self):
        return 0.5 * (1.0 / self.rate - 1.0)


@dataclass(frozen=True, slots=True)
class SaysNothing(PoissonPPS):
    @property
    def reads(self):
        return {}


@dataclass(frozen=True, slots=True)
class NotAlone(WithoutReplacement):
    decides_alone: ClassVar[bool] = True

    def finish(self, part, subkey):
        return Poisson(1.0).finish(np.sort(part.positions[: self.size]), subkey)


@dataclass(frozen=True, slots=True)
class SharedIdentity(Poisson):
    def identity_fields(self):
        return {}


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (WrongWeight, "`weight`"),
        (SmallSpread, "`spread` is"),
        (SaysNothing, "'probability', which is not in `reads`"),
        (NotAlone, "`decides_alone` is True"),
        (SharedIdentity, "share an identity"),
    ],
)
def test_a_false_answer_is_caught(kind, said):
    found = check_structure(kind, list(kind.small_cases()))
    assert any(said in violation for violation in found.violations), found.violations[:3]
    honest = kind.__mro__[1]
    assert not check_structure(honest, list(honest.small_cases())).violations


def test_weights_are_those_of_the_population_at_hand():
    design = PoissonPPS(0.5, 0.1)
    weights = design.weights(Population(3, probability=[0.5, 0.2, 9.0]))
    assert weights.tolist() == [2.0, 5.0, 2.0]
    assert design.weight is None
