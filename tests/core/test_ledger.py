"""One sample, many releases: composed inside the sample, amplified once, and never past its limit."""

import os
import threading
import warnings

import numpy as np
import pytest

from privamp import (
    ApproxDP,
    BudgetExceeded,
    Gaussian,
    GaussianFilter,
    InvalidInput,
    Key,
    Laplace,
    Neighbors,
    NoTheorem,
    Poisson,
    PureDP,
    PureFilter,
    RenyiFilter,
    Sample,
    WithReplacement,
    amplify,
)
from privamp.accounting.renyi import RenyiDP, loss_within

TRUTH = [(0.1, 10, 2.7563), (0.01, 20, 5.3993)]
PEOPLE = 40
ONES = np.ones(PEOPLE)


def drawn(rate):
    return Poisson(rate).draw(PEOPLE, Key.generate())


@pytest.mark.parametrize(("rate", "queries", "truth"), TRUTH)
def test_the_truth_about_many_queries_on_one_sample(rate, queries, truth):
    """Amplifying each and adding up would say .6285 and .1293."""
    query = Laplace(2.0)
    planned = drawn(rate).declare([query] * queries)
    limited = drawn(rate).limit(PureFilter(0.5 * queries))
    adaptive = drawn(rate)
    own = drawn(rate)
    for _ in range(queries):
        for sample in (planned, limited, adaptive):
            sample.release(query, ONES)
        own.run(PureDP(0.5), lambda drawn, stream: float(stream.laplaces(())))
    false = queries * amplify(PureDP(0.5), Poisson(rate)).epsilon()
    for sample in (planned, limited, adaptive, own):
        assert sample.guarantee().epsilon() == pytest.approx(truth, abs=1e-4)
        assert sample.guarantee().epsilon() > 4 * false
    with pytest.raises(BudgetExceeded):
        limited.release(query, ONES)
    with pytest.raises(InvalidInput, match="declared plan"):
        planned.release(query, ONES)


def test_a_release_past_the_limit_is_refused_before_its_noise_and_leaves_no_trace():
    sample = drawn(0.1).limit(PureFilter(1.0))
    sample.release(Laplace(2.0), ONES)
    seen = []
    with pytest.raises(BudgetExceeded, match=r"costs epsilon 0\.6 and 0\.5 of 1 is left"):
        sample.run(PureDP(0.6), lambda drawn, stream: seen.append(drawn))
    assert seen == []
    assert sample.ledger.entries == (Laplace(2.0),)
    sample.release(Laplace(2.0), ONES)  # what fits is still there
    with pytest.raises(BudgetExceeded):
        sample.release(Laplace(1e6), ONES)


def test_the_limit_is_certified_not_what_was_used_of_it():
    sample = drawn(0.1).limit(PureFilter(5.0))
    before = sample.guarantee()
    sample.release(Laplace(2.0), ONES)
    after = sample.guarantee()
    assert before.epsilon() == after.epsilon() == pytest.approx(2.7563, abs=1e-4)
    assert any("Filter" in reason for reason in after.because)
    assert any("Balle" in reason for reason in after.because)
    assert not any("odometer" in a for a in after.assumes)
    assert "idealised real arithmetic" in after.assumes
    assert after.is_private


def test_a_gaussian_limit_is_one_gaussian():
    limit = GaussianFilter.within(1.0, 1e-6)
    sample = drawn(0.05).limit(limit)
    for _ in range(4):
        sample.release(Gaussian(2.0 / limit.mu + 1e-6), ONES)
    with pytest.raises(BudgetExceeded):
        sample.release(Gaussian(1e3), ONES)
    with pytest.raises(NoTheorem, match="only Gaussian"):
        sample.release(Laplace(1e9), ONES)
    one = amplify(Gaussian(1.0, limit.mu), Poisson(0.05))
    assert sample.guarantee().delta(0.3) == pytest.approx(one.delta(0.3), rel=1e-6)
    everyone = Poisson(1.0).draw(PEOPLE, Key.generate()).limit(limit).guarantee()
    assert everyone.epsilon(1e-6) == pytest.approx(1.0, rel=1e-9)


def test_a_renyi_limit_takes_every_kind_and_reports_its_own_order_only():
    sample = drawn(0.1).limit(RenyiFilter(8.0, 3.0, 1e-6))
    sample.release(Gaussian(4.0), ONES)
    sample.release(Laplace(4.0), ONES)
    guarantee = sample.guarantee()
    only = amplify(RenyiDP(8.0, loss_within(8.0, 3.0, 1e-6 * (1 - 1e-6)), 1e-12), Poisson(0.1))
    assert guarantee.epsilon(1e-7) == pytest.approx(only.epsilon(1e-7), rel=1e-9)
    spent = drawn(0.1).declare([Gaussian(4.0), Laplace(4.0)]).guarantee().epsilon(1e-7)
    assert guarantee.epsilon(1e-7) > spent  # the limit, at its order: never the best reading of what was used
    with pytest.raises(BudgetExceeded):
        sample.release(Gaussian(0.5), ONES)
    with pytest.raises(BudgetExceeded, match="delta"):
        sample.run(ApproxDP(0.1, 1e-9), lambda drawn, stream: 0)
    assert len(sample.ledger.entries) == 2


def test_limits_hold_for_samples_of_copies():
    design = WithReplacement(10, PEOPLE)
    ro = Neighbors.REPLACE_ONE
    sample = design.draw(PEOPLE, Key.generate()).limit(PureFilter(1.0, neighbors=ro))
    assert sample.guarantee().epsilon() == pytest.approx(amplify(PureDP(1.0, neighbors=ro), design).epsilon())


def test_a_limit_or_a_plan_comes_first_and_once():
    sample = drawn(0.1)
    sample.release(Laplace(2.0), ONES)
    with pytest.raises(InvalidInput, match="before the first release"):
        sample.limit(PureFilter(1.0))
    for one, two in ((0, 0), (0, 1), (1, 0), (1, 1)):
        sample = drawn(0.1)
        steps = [lambda s: s.declare([Laplace(2.0)]), lambda s: s.limit(PureFilter(1.0))]
        steps[one](sample)
        with pytest.raises(InvalidInput, match="before the first release"):
            steps[two](sample)
    with pytest.raises(InvalidInput, match="for one record"):
        drawn(0.1).limit(PureFilter(1.0, neighbors=Neighbors.ADD_REMOVE.for_person(3)))


def test_two_objects_of_one_draw_share_the_limit():
    key = Key.generate()
    one, two = (Poisson(0.1).draw(PEOPLE, key) for _ in range(2))
    one.limit(PureFilter(1.0))
    two.release(Laplace(1.0), ONES)
    with pytest.raises(BudgetExceeded):
        one.release(Laplace(1.0), ONES)


def test_what_is_run_in_its_own_way_is_registered_and_named():
    sample = drawn(0.5)
    answer = sample.run(PureDP(0.5), lambda drawn, stream: int(drawn.counts.sum()) * 0 + int(stream.below(7, 1)[0]))
    assert 0 <= answer < 7
    assert sample.ledger.entries == (PureDP(0.5),)
    assert any("as private as" in a for a in sample.guarantee().assumes)
    with pytest.raises(RuntimeError):
        sample.run(PureDP(0.5), lambda drawn, stream: exec("raise RuntimeError"))
    assert len(sample.ledger.entries) == 2  # it may have seen the data: counted


def test_the_only_ways_out_are_named():
    public = {name for name in dir(Sample) if not name.startswith("_")}
    assert public == {"charge", "declare", "design", "guarantee", "ledger", "limit", "release", "reveal_secret", "run"}
    ledger = drawn(0.5).ledger
    assert isinstance(ledger.entries, tuple)  # nothing registered can be struck out
    with pytest.raises(AttributeError):
        ledger.entries = ()


def test_threads_cannot_pass_the_limit_together():
    sample = drawn(0.1).limit(PureFilter(1.0))
    made, refused = [], []

    def ask():
        for _ in range(20):
            try:
                made.append(sample.release(Laplace(20.0), ONES))
            except BudgetExceeded:
                refused.append(1)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), len(refused)) == (20, 60)
    assert len(set(made)) == 20  # and no two share their noise


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("used_before", [False, True])
def test_a_fork_cannot_release_behind_its_parents_back(used_before):
    sample = drawn(0.1).limit(PureFilter(1.0))
    if used_before:
        sample.release(Laplace(2.0), ONES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            sample.release(Laplace(2.0), ONES)
        except InvalidInput:
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    sample.release(Laplace(2.0), ONES)


def test_the_last_release_under_a_limit_costs_as_much_work_as_the_first(monkeypatch):
    """Counted in evaluations of a cost, not in seconds."""
    asked = []
    original = PureFilter.cost
    monkeypatch.setattr(PureFilter, "cost", lambda self, *rest: asked.append(1) or original(self, *rest))
    sample = drawn(0.1).limit(PureFilter(1.0))
    for n in range(1, 1601):
        sample.release(Laplace(1600.0), ONES)
        assert len(asked) == n
    with pytest.raises(BudgetExceeded):
        sample.release(Laplace(1600.0), ONES)
