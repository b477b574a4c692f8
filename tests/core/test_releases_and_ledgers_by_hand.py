"""Releases, ledgers, the registry and certificates: every answer and every refusal, without a design behind them."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from privamp import Gaussian, Guarantee, InvalidInput, Laplace, Neighbors, Poisson, PureDP, amplify
from privamp.chance.keys import Key
from privamp.core.certificate import disagreements
from privamp.core.ledger import REGISTRY, Finished, Ledger, Registry, certificate_of, check_budget, whole_job
from privamp.core.release import Release, plain
from privamp.core.sample import Bounded, Drawn
from privamp.testing import seeded_key

AR = Neighbors.ADD_REMOVE
PURE = amplify(Laplace(2.0), Poisson(0.5))
WIDE = float(norm.interval(0.9)[1])


def made(value=1.5, noise=3.0, sampling=4.0, **more):
    return Release(value, noise, sampling, PURE, **more)


# --- releases


def test_errors_and_intervals_of_one_number():
    one = made()
    assert one.standard_error == 5.0
    low, high = one.interval(0.9)
    assert (low, high) == (pytest.approx(1.5 - 5.0 * WIDE), pytest.approx(1.5 + 5.0 * WIDE))
    assert [type(part) for part in (one.standard_error, low, high)] == [float] * 3
    assert one.interval()[1] == pytest.approx(1.5 + 5.0 * 1.959963984540054)
    for level in (0.0, 1.0, 1.1):
        with pytest.raises(InvalidInput, match="level must be a number strictly between 0 and 1"):
            one.interval(level)
    unknown = made(sampling=None)
    assert unknown.standard_error is None
    assert made(noise=None).standard_error is None
    with pytest.raises(InvalidInput):
        unknown.interval()
    quiet = made(noise=0.0, sampling=0.0)
    assert quiet.interval() == (1.5, 1.5)


def test_errors_and_intervals_of_several_numbers_and_their_names():
    several = made(np.array([1.0, 2.0]), np.array([3.0, 6.0]), 4.0, names=("a", "b"), sampling_error_is="public bound")
    assert several.standard_error == pytest.approx([5.0, math.hypot(6.0, 4.0)])
    assert several.interval(0.9)[0] == pytest.approx([1.0 - 5.0 * WIDE, 2.0 - math.hypot(6, 4) * WIDE])
    second = several["b"]
    assert (second.value, second.noise_error, second.sampling_error, second.names) == (2.0, 6.0, 4.0, ("b",))
    assert second.sampling_error_is == "public bound"
    assert [part.value for part in several] == [1.0, 2.0]
    with pytest.raises(InvalidInput, match="this release has 'a', 'b', got 'c'"):
        several["c"]
    with pytest.raises(InvalidInput, match="this release has no names, got 'c'"):
        made()["c"]
    assert list(made()) == []
    assert made(np.array([1.0]), None, None, names=("a",))["a"].noise_error is None


class Skewed:
    """A law with its own interval."""

    extra = 7

    def interval(self, level):
        return np.array([0.0, level]), np.array([1.0, 2.0])

    def standard_error(self):
        return np.array([0.5, 0.25])


def test_a_law_of_its_own_says_its_interval():
    one = made(np.array([1.0, 2.0]), None, None, law=Skewed(), names=("a", "b"))
    assert one.standard_error.tolist() == [0.5, 0.25]
    assert one["b"].interval(0.8) == (0.8, 2.0)
    assert one["b"].standard_error == 0.25
    assert one["b"].law.extra == 7
    assert one.numbers(0.8)["interval"] == [[0.0, 0.8], [1.0, 2.0]]
    with pytest.raises(AttributeError):
        one["b"].law._hidden  # noqa: B018


def test_a_release_as_json():
    one = made(details={"epsilon": 0.5, "delta": 1e-6, "count": np.int64(3), "odd": {"x": math.inf}}, names=("a",))
    answer = one.to_json(0.9)
    assert answer["schema"] == 1
    assert (answer["value"], answer["noise_error"], answer["sampling_error"], answer["level"]) == (1.5, 3.0, 4.0, 0.9)
    assert answer["interval"] == pytest.approx([1.5 - 5.0 * WIDE, 1.5 + 5.0 * WIDE])
    assert (answer["standard_error"], answer["sampling_error_is"], answer["names"]) == (5.0, "unknown", ["a"])
    assert (answer["count"], answer["odd"]) == (3, {"x": None})
    assert {"epsilon", "delta"}.isdisjoint(answer)
    assert "names" not in made().to_json()
    assert made(sampling=None).numbers()["interval"] is None
    assert (one.count, one.epsilon) == (3, 0.5)
    assert {"count", "value"} <= set(dir(one))
    for wrong in ("missing", "_hidden"):
        with pytest.raises(AttributeError, match=wrong):
            getattr(one, wrong)


@pytest.mark.parametrize(
    ("guarantee", "details", "stated"),
    [
        (PURE, {}, {"epsilon_upper": PURE.epsilon()}),
        (PURE, {"epsilon": 0.5}, {"epsilon_upper": PURE.epsilon()}),
        (PURE, {"delta": 1e-6, "epsilon": 0.5}, {"delta": 1e-6, "epsilon_upper": PURE.epsilon(1e-6)}),
        (amplify(Gaussian(2.0), Poisson(0.5)), {"epsilon": 0.5, "delta": 0.0}, {"epsilon": 0.5}),
        (amplify(Gaussian(2.0), Poisson(0.5)), {}, {"epsilon_upper": None}),
    ],
)
def test_the_certificate_of_a_release_is_about_what_was_asked_for(guarantee, details, stated):
    answer = Release(1.0, 1.0, 0.0, guarantee, details=details).certificate()
    assert {name: answer[name] for name in stated} == stated
    assert ("delta_upper" in answer) == ("delta" not in stated)
    assert Guarantee.from_json(answer) == guarantee


def test_releases_are_compared_by_their_numbers_and_shown_shortly():
    assert made() == made(details={"count": 3})
    assert made() != made(1.6)
    assert made() != made(names=("a",))
    assert made() != 1.5
    assert repr(made(1.23456789)) == "Release(value=1.23457, noise_error=3, sampling_error=4)"
    assert "value={a, b}" in repr(made({"a": 1, "b": 2}, None, None))
    assert "[1.2346 2.    ], noise_error=None" in repr(made(np.array([1.23456789, 2.0]), None))
    assert "..." in repr(made(np.arange(9.0)))
    assert "..." not in repr(made(np.arange(8.0)))
    calls = []
    later = Release(1.0, 1.0, 1.0, lambda: calls.append(1) or PURE)
    assert later.guarantee is PURE
    assert later.guarantee is PURE
    assert calls == [1]
    assert plain({"a": [math.nan, np.float32(0.5), np.int8(3)], 2: "x"}) == {"a": [None, 0.5, 3], "2": "x"}


# --- what was drawn


def test_draws_are_joined_by_position_with_the_lengths_of_their_weights():
    one = Drawn(np.array([7, 1]), np.array([1, 2]), np.array([2.0, 3.0]), np.array([0.5, 0.25]), 3.0)
    other = Drawn(np.array([4, 0]), np.array([5, 6]), np.array([1.0, 9.0]))
    third = Drawn(np.array([2]), np.array([1]), np.array([4.0]), np.array([8.0]), 1.0)
    both = Drawn.joined([one, other, third])
    assert both.positions.tolist() == [0, 1, 2, 4, 7]
    assert both.counts.tolist() == [6, 2, 1, 5, 1]
    assert both.weights.tolist() == [9.0, 3.0, 4.0, 1.0, 2.0]
    assert both.lengths.tolist() == [math.inf, 0.25, 8.0, math.inf, 0.5]
    assert both.p == 1.0
    free = Drawn.joined([other])
    assert (free.lengths, free.p, free.positions.tolist()) == (None, 2.0, [0, 4])
    assert Drawn.joined([]).positions.size == 0
    assert Drawn.joined([one]).p == 3.0


def test_rows_are_fitted_to_the_lengths_of_their_weights():
    drawn = Drawn(np.arange(2), np.ones(2, int), np.ones(2), np.array([5.0, 1.0]), 2.0)
    rows = np.array([[3.0, 4.0], [3.0, 4.0]])
    assert drawn.fitted(rows)[0] == pytest.approx([3.0, 4.0], rel=1e-14)
    assert drawn.fitted(rows)[1] == pytest.approx([0.6, 0.8], rel=1e-14)
    assert drawn.fitted(rows.reshape(2, 2, 1)).shape == (2, 2, 1)
    assert drawn.fitted([9.0, -9.0]).tolist() == [5.0, -1.0]
    free = Drawn(np.arange(2), np.ones(2, int), np.ones(2))
    assert free.fitted(["a", "b"]).tolist() == ["a", "b"]
    with pytest.raises(InvalidInput, match="rows must be numbers, one row per record"):
        drawn.fitted(["a", "b"])
    assert Bounded(lambda x: x + 1)(2) == 3


# --- ledgers


def test_a_plan_is_followed_to_its_end():
    ledger = Ledger()
    ledger.declare([Laplace(1.0), Gaussian(2.0)], functions=False)
    assert ledger.terms()["functions"] is False
    with pytest.raises(InvalidInput, match="functions=False was declared for this sample"):
        ledger.register(Laplace(1.0), trusted=True)
    with pytest.raises(InvalidInput, match=r"release 1 is Gaussian\(.*which the declared plan does not have there"):
        ledger.register(Gaussian(2.0))
    assert ledger.register(Laplace(1.0)) == 1
    assert not ledger.is_used_up
    assert ledger.register(Gaussian(2.0)) == 2
    assert ledger.is_used_up
    with pytest.raises(InvalidInput, match="given all answers of its declared plan, 2 releases, and gives no more"):
        ledger.register(Laplace(1.0))
    single = Ledger(plan=(Laplace(1.0),))
    single.register(Laplace(1.0))
    with pytest.raises(InvalidInput, match="its declared plan, 1 release, and gives no more"):
        single.register(Laplace(1.0))
    for call in (lambda: ledger.declare([]), lambda: ledger.limit(SimpleNamespace(neighbors=AR))):
        with pytest.raises(InvalidInput, match="once and before the first release from a sample"):
            call()


def test_claims_and_functions_are_remembered():
    for claimed, trusted in ((True, False), (False, True), (False, False)):
        ledger = Ledger()
        ledger.register(PureDP(1.0), claimed=claimed, trusted=trusted)
        assert (ledger.has_claims, ledger.has_functions) == (claimed, trusted)
        ledger.register(PureDP(1.0))
        assert (ledger.has_claims, ledger.has_functions) == (claimed, trusted)
    assert not Ledger().is_used_up
    assert "functions" not in Ledger(plan=()).terms()
    assert list(Ledger(plan=(Laplace(1.0),)).terms()) == ["plan"]


class Paid:
    """A budget's record of one sample, with what earlier programs released."""

    def __init__(self, releases=0, claims=False, functions=False, assumes=()):
        self.past = SimpleNamespace(releases=releases, has_claims=claims, has_functions=functions, assumes=assumes)
        self.told = []

    def record(self, mechanism, number, limit, *, claimed, trusted):
        self.told.append((mechanism, number, limit, claimed, trusted))


def test_a_charge_comes_once_before_the_first_release_and_may_continue():
    ledger, paid = Ledger(plan=(Laplace(1.0), Laplace(2.0))), Paid(1, True, False, ("x",))
    ledger.pay(lambda: paid)
    assert (ledger.entries, ledger.past_assumes, ledger.has_claims, ledger.has_functions) == (
        (Laplace(1.0),), ("x",), True, False
    )  # fmt: skip
    ledger.register(Laplace(2.0), trusted=True)
    assert paid.told == [(Laplace(2.0), 1, None, False, True)]
    assert ledger.is_used_up
    for late in (ledger, Ledger(plan=(Laplace(1.0),), payment=paid)):
        with pytest.raises(InvalidInput, match="must be charged once and before its first release"):
            late.pay(lambda: paid)
    with pytest.raises(InvalidInput, match="declare its plan or set its limit first"):
        Ledger().pay(lambda: paid)
    refused = Ledger(plan=(Laplace(1.0),))
    with pytest.raises(ZeroDivisionError):
        refused.pay(lambda: 1 / 0)
    assert refused.is_closed
    with pytest.raises(InvalidInput, match="a budget refused the charge for this sample, so it is closed"):
        refused.register(Laplace(1.0))
    assert not Ledger(plan=(), is_closed=True).is_used_up


def test_what_is_left_of_a_ledger_refuses_everything():
    ledger = Ledger(plan=(Laplace(1.0),), functions=False, past_assumes=("x",))
    ledger.register(Laplace(1.0))
    total = ledger.total()
    assert total == Finished((Laplace(1.0),), False, False, False, ("x",))
    assert total.entries == (Laplace(1.0),)
    for call, match in (
        (lambda: total.declare([]), "a plan must be declared once"), (lambda: total.limit(None), "a limit must be set"),
        (lambda: total.pay(None), "must be charged once"), (lambda: total.terms(), "must be charged once"),
        (lambda: total.register(Laplace(1.0)), "1 release, and gives no more"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=match):
            call()


def test_a_registry_keeps_totals_and_shares_them():
    registry = Registry()
    first, second = Ledger(plan=(Laplace(1.0),)), Ledger(plan=(Laplace(1.0),))
    assert registry.find(b"a") is None
    assert registry.opened(b"a", first) is first
    assert registry.opened(b"a", second) is first
    registry.opened(b"b", second)
    registry.settle(b"a")
    assert registry.find(b"a") is first  # not used up yet
    for ledger, draw in ((first, b"a"), (second, b"b")):
        ledger.register(Laplace(1.0))
        registry.settle(draw)
    assert registry.find(b"a") is registry.find(b"b")
    assert isinstance(registry.find(b"a"), Finished)
    registry.claim(b"c", "fit")
    for used in (b"a", b"c"):
        with pytest.raises(InvalidInput, match="this key has already drawn for this fit"):
            registry.claim(used, "fit")
    assert len(registry) == 3
    with registry.set_aside():
        assert len(registry) == 0
    assert len(registry) == 3
    registry.clear()
    assert len(registry) == 0


class Purse:
    """A budget that writes down what happened."""

    neighbors = AR

    def __init__(self):
        self.said = []

    def pay_for_sample(self):
        """Only its name is looked for."""

    def reserve(self, guarantee, **facts):
        self.said.append(("reserve", guarantee.is_private, facts))
        return self

    def cancel(self, why):
        self.said.append(("cancel", why))

    def describe(self, certificate):
        self.said.append(("describe", certificate["numbers"]))

    def __enter__(self):
        self.said.append(("enter",))

    def __exit__(self, *_):
        self.said.append(("exit",))


def test_a_whole_job_is_charged_and_claimed_once():
    key, purse = Key.generate(), Purse()
    with whole_job("fit 1", key, lambda neighbors: PURE, purse, 1e-6) as done:
        done(amplify(Laplace(3.0), Poisson(0.5)))
    (_, private, facts), *rest = purse.said
    assert private
    assert facts["draw"] == key.subkey("job", "fit 1").fingerprint
    assert (facts["key"], facts["note"], facts["job"], facts["delta"]) == (key.fingerprint, "fit 1", "fit 1", 1e-6)
    assert facts["certificate"]["numbers"]["delta"] == 1e-6
    assert [one[0] for one in rest] == ["enter", "describe", "exit"]
    purse.said.clear()
    with (
        pytest.raises(InvalidInput, match="this key has already drawn for this fit 1"),
        whole_job("fit 1", key, lambda neighbors: PURE, purse),
    ):
        raise AssertionError
    assert [one[0] for one in purse.said] == ["reserve", "cancel"]
    assert purse.said[1] == ("cancel", "the key was used before")
    with whole_job("fit 2", key, lambda neighbors: PURE) as done:
        assert done(PURE) is None
    test = seeded_key(5)
    for _ in range(2):  # test keys may draw again, and are not private
        purse.said.clear()
        with whole_job("fit 1", test, lambda neighbors: PURE, purse):
            pass
        assert purse.said[0][1] is False
    assert REGISTRY.find(test.subkey("job", "fit 1").fingerprint) is None
    with pytest.raises(InvalidInput, match="budget must be a Budget, got a int instead"):
        check_budget(3)


def test_a_charge_is_certified_at_its_delta_or_pure_or_at_epsilon_one():
    gaussian = amplify(Gaussian(2.0), Poisson(0.5))
    assert certificate_of(gaussian, 1e-6)["numbers"]["epsilon_upper"] == gaussian.epsilon(1e-6)
    assert certificate_of(PURE)["numbers"]["epsilon_upper"] == PURE.epsilon()
    assert certificate_of(gaussian)["numbers"] == {
        "epsilon": 1.0, "delta_upper": gaussian.delta(1.0), "delta_lower": gaussian.lower.delta(1.0)
    }  # fmt: skip


# --- certificates


def test_a_number_may_differ_by_a_billionth_and_no_more():
    one = amplify(Gaussian(2.0), Poisson(0.5))
    for share, agrees in ((1.0 + 0.9e-9, True), (1.0 - 0.9e-9, True), (1.0 + 2e-9, False), (1.0 - 2e-9, False)):
        answer = one.to_json(delta=1e-6)
        answer["epsilon_upper"] = answer["epsilon_upper"] * share
        assert (disagreements(answer, one) == []) == agrees
    for name in ("epsilon_lower", "delta_lower"):
        answer = one.to_json(epsilon=0.1, delta=1e-6)
        answer[name] = 2.0 * answer[name]
        assert any(f"lower end of {name[:-6].rstrip('_')}" in told for told in disagreements(answer, one))
