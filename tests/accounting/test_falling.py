"""Composed delta falls as epsilon grows, whatever is asked and in whatever order; against enumeration and mistakes."""

import math
from itertools import product

import numpy as np
import pytest

from privamp import ApproxDP, Gaussian, Laplace, Neighbors, Poisson, PureDP, WithoutReplacement, amplify, compose
from privamp.accounting import composed
from privamp.accounting.composed import Composed
from privamp.accounting.discretize import LossLaw
from privamp.accounting.tilts import LADDER, Tilts

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
STEPS = (2, 7, 100, 10**4, 10**6)


def made_up(seed: int) -> tuple[LossLaw, int]:
    """A few losses on both sides of 0, sometimes rare, sometimes lost for sure."""
    random = np.random.default_rng(seed)
    index = np.unique(np.append(random.integers(-300, 300, 5), 0))
    weights = random.dirichlet(np.full(index.size, 0.5))
    rare = float(random.choice([1.0, 1e-2, 1e-6]))
    weights = np.where(index == 0, 0.0, weights * rare)
    infinite = float(random.choice([0.0, 1e-9, 1e-30]))
    weights[index == 0] = max(1.0 - weights.sum() - infinite, 0.0)
    return LossLaw(float(random.choice([1e-4, 3e-3])), index, weights, infinite), STEPS[seed % len(STEPS)]


def changes(made: Composed, reach: float) -> np.ndarray:
    """The epsilons where other tables answer, and their neighbours."""
    found, at = [], 0.0
    while at < reach and float(made.ceiling(np.asarray(at))) > -3000.0:
        at = made._piece(at).right
        if math.isfinite(at):
            found += [math.nextafter(at, 0.0), at, at * (1 + 1e-13), at + 1e-9, at + 1e-7, at + 1e-5]
    return np.unique([e for e in found if e < reach])


def asked(made: Composed, law: LossLaw, steps: int) -> np.ndarray:
    reach = max(law.index[-1] * law.interval * steps, 1e-3)
    at = np.concatenate([np.linspace(0, 1.01 * reach, 400), np.geomspace(1e-6 * reach, reach, 200)])
    return np.unique(np.append(at, changes(made, reach)))


def rises(values: np.ndarray) -> int:
    return int(np.sum(values[1:] > values[:-1]))


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("seed", range(15))
def test_made_up_laws_fall_and_no_order_of_questions_matters(seed, upper) -> None:
    law, steps = made_up(seed)
    made = Composed([(law, steps)], upper=upper)
    at = asked(made, law, steps)
    together = made.log_delta(at)
    assert rises(together) == 0
    backwards = Composed([(law, steps)], upper=upper)
    some = np.linspace(0, at.size - 1, 40).astype(int)[::-1]
    assert [float(backwards.log_delta(at[i : i + 1])[0]) for i in some] == together[some].tolist()


@pytest.mark.parametrize("seed", [0, 1, 5, 6, 10, 11, 15, 16])  # 2 or 7 steps
def test_made_up_laws_enclose_what_enumeration_gives(seed) -> None:
    law, steps = made_up(seed)
    outcomes = list(product(range(law.index.size), repeat=min(steps, 5)))
    steps = min(steps, 5)
    losses = np.array([law.index[list(o)].sum() for o in outcomes]) * law.interval
    masses = np.array([law.weights[list(o)].prod() for o in outcomes])
    lost = -math.expm1(steps * math.log1p(-law.infinite))
    above, below = (Composed([(law, steps)], upper=upper) for upper in (True, False))
    at = asked(above, law, steps)
    exact = np.array([math.fsum(masses * np.maximum(-np.expm1(e - losses), 0.0)) + lost for e in at])
    assert np.all(np.exp(below.log_delta(at)) <= exact * (1 + 1e-12))
    assert np.all(np.exp(above.log_delta(at)) >= exact * (1 - 1e-12))
    near = exact > 1e-6 * exact[0] + 2 * lost
    assert np.all(np.exp(above.log_delta(at[near])) <= exact[near] * (1 + 1e-4))


SETTINGS = {
    "sampled": lambda: compose(amplify(Gaussian(1.0), Poisson(0.01)), 100),
    "long": lambda: compose(amplify(Gaussian(1.0), Poisson(0.01)), 1000, interval=1e-3),
    "wide": lambda: compose(amplify(Gaussian(2.0), WithoutReplacement(50, 1000), RO), 500, interval=1e-2),
    "laplace": lambda: compose(amplify(Laplace(1.0), Poisson(0.1)), 40, interval=1e-3),
    "lost": lambda: compose(amplify(ApproxDP(0.5, 1e-6), Poisson(0.01)), 100),
    "pure": lambda: compose(amplify(PureDP(0.3), Poisson(0.5)), 30, interval=1e-3),
    "rare": lambda: compose(amplify(Gaussian(0.7), Poisson(1e-5)), 10**4),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_composed_guarantees_fall(name) -> None:
    guarantee = SETTINGS[name]()
    end = min(guarantee.upper.largest_loss, 40.0)
    at = np.unique(np.concatenate([np.linspace(0, end, 150), np.geomspace(1e-6, end, 100)]))
    assert rises(np.asarray(guarantee.delta(at))) == 0
    assert rises(guarantee.upper.log_delta(at)) == 0
    if guarantee.lower is not None:
        assert rises(np.asarray(guarantee.lower.delta(at))) == 0
        assert np.all(guarantee.lower.delta(at) <= guarantee.delta(at))


def test_where_the_tilt_changes_the_bound_rose_by_a_millionth() -> None:
    guarantee = SETTINGS["sampled"]()
    assert rises(guarantee.upper.forward(np.linspace(11.66, 11.67, 2001))) == 0
    assert np.all(np.isfinite(guarantee.lower.profile.forward(np.linspace(0.0, 11.0, 300))))


@pytest.mark.parametrize(("upper", "beside"), [(True, math.inf), (False, -math.inf)])
def test_forgetting_the_pieces_beside_is_caught(upper, beside, monkeypatch) -> None:
    def count() -> int:
        total = 0
        for seed in (0, 1, 2, 5, 6, 7, 10, 11):
            law, steps = made_up(seed)
            made = Composed([(law, steps)], upper=upper)
            total += rises(made.log_delta(changes(made, law.index[-1] * law.interval * steps)))
        return total

    assert count() == 0
    monkeypatch.setattr(Composed, "_before" if upper else "_after", lambda *_: beside)
    assert count() > 0


def test_an_error_that_is_taken_at_epsilon_itself_is_caught(monkeypatch) -> None:
    """A lower bound is a difference: where the error falls faster than delta, it would rise."""
    caught = 0
    for seed in (0, 1, 2, 5, 6, 7):
        law, steps = made_up(seed)
        made = Composed([(law, steps)], upper=False)
        at = asked(made, law, steps)
        caught += sum(rises(made.table(tilt).below(at, -math.inf)) for tilt in list(made._tables))
        assert sum(rises(made.table(tilt).below_falling(at, -math.inf)) for tilt in list(made._tables)) == 0
    assert caught > 0


def test_quick_bounds_are_nowhere_below() -> None:
    for seed in (0, 1, 2, 5, 8):
        law, steps = made_up(seed)
        for upper in (True, False):
            made = Composed([(law, steps)], upper=upper)
            at = asked(made, law, steps)
            assert np.all(made.ceiling(at) >= made.log_delta(at))


def test_every_epsilon_has_one_rung_and_the_next_one_begins_where_it_ends() -> None:
    def log_moment(tilt: float) -> float:
        return 0.5 * tilt * (tilt + 1)

    tilts = Tilts(log_moment, lambda tilt: tilt != LADDER[8])
    at = 0.0
    for _ in range(20):
        rung = tilts.at(at, 2.0)
        assert rung.left <= at < rung.right
        assert rung.tilt != LADDER[8]
        best = min(log_moment(t) - t * at for t in LADDER if t != LADDER[8])
        assert log_moment(rung.tilt) - rung.tilt * at <= best + 2.0 + 1e-12
        at = rung.right
        assert tilts.at(at, 2.0).left == at


def test_roots_are_found_where_they_are_without_the_quick_bound() -> None:
    from privamp.core.profile import Curve, Profile

    for name in ("laplace", "lost", "pure"):
        profile = SETTINGS[name]().upper
        slow = Profile(Curve(profile.forward, profile.forward.largest_loss), Curve(profile.backward))
        for delta in (0.3, 1e-3, 1.0000001e-6, 1e-12):
            assert profile.epsilon(delta) == pytest.approx(slow.epsilon(delta), rel=1e-12)
            assert profile.log_delta(profile.epsilon(delta)) <= math.log(delta)


def test_pieces_do_not_depend_on_the_largest_tables_that_fit(monkeypatch) -> None:
    """Tilts whose tables are too large are left out for every epsilon alike."""
    monkeypatch.setattr(composed, "_WORTH", 2000)
    law, steps = LossLaw(1e-3, np.array([-200, 0, 250]), np.array([0.3, 0.3, 0.4]), 0.0), 3000
    for upper in (True, False):
        made = Composed([(law, steps)], upper=upper)
        at = asked(made, law, steps)[::3]
        assert rises(made.log_delta(at)) == 0
