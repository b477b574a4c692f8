"""Samples that are charged to a budget: once, for all that they may release."""

import numpy as np
import pytest

from privamp import (
    Budget,
    BudgetExceeded,
    Guarantee,
    InvalidInput,
    Key,
    Laplace,
    Poisson,
    PureDP,
    PureFilter,
    amplify,
    compose,
)
from privamp.testing import seeded_key


@pytest.fixture
def budget(tmp_path):
    return Budget.create(tmp_path / "study.db", population="patients", epsilon=1.0)


def spent(budget):
    return budget.status().spent["epsilon"]


def states(budget):
    return [entry.state for entry in budget.log()]


def test_a_sample_is_charged_once_for_all_that_it_may_release(budget):
    sample = Poisson(0.1).draw(40, Key.generate()).limit(PureFilter(2.0)).charge(budget, note="panel")
    cost = sample.guarantee().epsilon()
    assert spent(budget) == pytest.approx(cost, abs=1e-14)
    assert budget.log()[0].state == "reserved"
    for _ in range(2):
        sample.release(Laplace(1.0), np.ones(40))
    assert spent(budget) == pytest.approx(cost, abs=1e-14)
    assert states(budget) == ["answered"]
    with pytest.raises(InvalidInput, match="once and before"):
        sample.charge(budget)


def test_one_draw_cannot_be_charged_in_two_pieces(budget):
    """Negative control: two charges of log(1 + q(e^.5 - 1)) would add up below the truth, log(1 + q(e^1 - 1))."""
    key, design = Key.generate(), Poisson(0.1)
    one = amplify(PureDP(0.5), design).epsilon()
    assert 2 * one < amplify(PureDP(1.0), design).epsilon()
    design.draw(40, key).declare([PureDP(0.5)]).charge(budget)
    from privamp.core.ledger import REGISTRY

    for other in ([PureDP(0.25)], [PureDP(0.5)] * 2, []):
        REGISTRY.clear()  # as if in another process, which does not know this draw
        with pytest.raises(InvalidInput, match="already charged"):
            design.draw(40, key).declare(other).charge(budget)
    REGISTRY.clear()
    with pytest.raises(InvalidInput, match="already charged"):
        design.draw(40, key).limit(PureFilter(0.5)).charge(budget)
    with pytest.raises(InvalidInput, match="already charged"):
        budget.reserve(PureDP(0.1), draw=design.draw(40, key)._key.fingerprint)
    design.draw(40, key, round=1).declare([PureDP(0.5)]).charge(budget)
    assert spent(budget) == pytest.approx(2 * one, rel=1e-9)


def test_samples_that_are_charged_together_are_not_forgotten(budget):
    """Two composed guarantees that share a sample were two charges of it: 0.1257 for a true 0.1586."""
    key, design = Key.generate(), Poisson(0.1)
    one = design.draw(40, key).declare([PureDP(0.5)]).guarantee()
    other = design.draw(40, key, round=1).declare([PureDP(0.5)]).guarantee()
    with pytest.raises(InvalidInput, match="2 samples"):
        budget.spend(compose([one, other]))
    for each in (one, other):
        budget.spend(each)
    with pytest.raises(InvalidInput, match="already charged"):
        budget.spend(Guarantee.from_json(one.to_json()))
    assert spent(budget) == pytest.approx(one.epsilon() + other.epsilon(), rel=1e-9)


def test_what_cannot_be_charged_costs_nothing(budget):
    sample = Poisson(0.5).draw(40, Key.generate()).declare([Laplace(0.1)])
    with pytest.raises(BudgetExceeded):
        sample.charge(budget)
    assert spent(budget) == 0.0
    with pytest.raises(InvalidInput, match="declare its plan"):
        Poisson(0.5).draw(40, Key.generate()).charge(budget)
    with pytest.raises(InvalidInput, match="known seed"):
        Poisson(0.1).draw(40, seeded_key(1)).declare([Laplace(9.0)]).charge(budget)
    cancelled = Poisson(0.1).draw(40, Key.generate()).declare([Laplace(9.0)]).charge(budget)
    cancelled.ledger.payment.cancel()
    with pytest.raises(InvalidInput, match="cancelled"):
        cancelled.release(Laplace(9.0), np.ones(40))
    assert cancelled.ledger.entries == ()


def test_a_refused_charge_closes_the_sample(budget):
    key, noise = Key.generate(), Laplace(0.1)
    sample = Poisson(0.5).draw(40, key).declare([noise])
    with pytest.raises(BudgetExceeded):
        sample.charge(budget)
    for again in (sample, Poisson(0.5).draw(40, key)):  # the same draw is the same sample
        with pytest.raises(InvalidInput, match="closed; draw a fresh sample"):
            again.release(noise, np.ones(40))
        with pytest.raises(InvalidInput, match="closed; draw a fresh sample"):
            again.charge(budget)
    assert sample.ledger.entries == ()
    assert spent(budget) == 0.0
