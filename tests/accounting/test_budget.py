"""A budget in a file: what is reserved counts, what is spent stays spent, and the limit holds."""

import os
import pickle
import sqlite3

import pytest

from privamp import (
    ApproxDP,
    Budget,
    BudgetExceeded,
    DiscreteGaussian,
    Gaussian,
    InvalidInput,
    Joint,
    Laplace,
    Neighbors,
    Poisson,
    PrivampError,
    PureDP,
    PureFilter,
    RenyiFilter,
    amplify,
    compose,
)


def spent(budget):
    return budget.status().spent["epsilon"]


def states(budget):
    return [entry.state for entry in budget.log()]


def test_reserve_spend_commit(budget):
    with budget.reserve(PureDP(0.25), note="mean age") as held:
        assert spent(budget) == 0.25  # before any noise
        assert budget.status().reserved == {"epsilon": 0.25}
        held.spend()
    assert budget.status().reserved == {"epsilon": 0.0}
    assert budget.status().left == {"epsilon": 0.75}
    (entry,) = budget.log()
    assert (entry.note, entry.cost, entry.state) == ("mean age", {"epsilon": 0.25}, "answered")
    assert "answered" in repr(held)
    assert "patients" in repr(budget)


def test_only_an_unused_reservation_is_given_back(budget):
    held = budget.reserve(PureDP(0.5))
    held.cancel()
    assert spent(budget) == 0.0
    with pytest.raises(InvalidInput, match="cancelled"):
        held.spend()
    with pytest.raises(InvalidInput):
        held.cancel()
    held = budget.reserve(PureDP(0.5))
    held.spend()
    with pytest.raises(InvalidInput, match="noise was not drawn"):
        held.cancel()
    held.commit()
    held.commit()
    assert spent(budget) == 0.5
    assert states(budget) == ["cancelled", "answered"]


def test_a_reservation_pays_for_one_release(budget):
    """Entered again it would pay for any number of answers at the price of one."""
    held = budget.reserve(PureDP(0.25))
    with held:
        pass
    for again in (held.spend, held.__enter__):
        with pytest.raises(InvalidInput, match="not pay for a second release"):
            again()
    failed = budget.reserve(PureDP(0.25))
    with pytest.raises(ZeroDivisionError), failed:
        raise ZeroDivisionError
    with pytest.raises(InvalidInput, match="not pay for a second release"), failed:
        pass
    failed.commit()  # says nothing new
    assert states(budget) == ["answered", "failed"]


@pytest.mark.parametrize(
    "label", ["", " ", "patients ", " patients", "patients\u200b", "pat\ufeffients", "patients\u00a0", 7]
)
def test_labels_that_look_the_same_are_the_same(budget, label):
    with pytest.raises(InvalidInput, match="label in plain text"):
        Budget.create(budget.path, population=label, epsilon=1.0)
    Budget.create(budget.path, population="patients of 2020 (É)", epsilon=1.0)


def test_noise_that_was_drawn_is_not_given_back(budget):
    """`with` spends on entry, on disk: neither this program nor another one can cancel what is inside."""
    with budget.reserve(PureDP(0.25)) as held:
        assert states(Budget.open(budget.path)) == ["spent"]
        with pytest.raises(InvalidInput, match="noise was not drawn"):
            held.cancel()
    with budget.reserve(PureDP(0.25)) as held, pytest.raises(InvalidInput, match="is spent"):
        Budget.open(budget.path).cancel(held.number, "a try")
    assert states(budget) == ["answered", "answered"]
    assert spent(budget) == 0.5


def test_a_reservation_of_a_crashed_program_is_cancelled_with_a_reason(budget):
    budget.reserve(PureDP(0.25), note="crashed")
    alive = budget.reserve(PureDP(0.25), note="still running")
    for number in [entry.number for entry in budget.log()]:
        with pytest.raises(InvalidInput, match="reason"):
            budget.cancel(number, " ")
        budget.cancel(number, "the machine was switched off")
    assert spent(budget) == 0.0
    assert [entry.reason for entry in budget.log()] == ["the machine was switched off"] * 2
    with pytest.raises(InvalidInput, match="is already cancelled"):
        alive.spend()  # it was alive after all: it learns so before it draws noise
    for wrong, words in ((99, "no entry 99"), (1, "no entry 1"), (5, "records the outcome of entry")):
        with pytest.raises(InvalidInput, match=words):
            budget.cancel(wrong, "why not")


def test_entries_say_who_bought_what(budget):
    certificate = {"epsilon": 0.25, "because": ["a theorem"], "private": True}
    budget.reserve(
        PureDP(0.25), note="ages", job="mean", columns=["age"], certificate=certificate, draw=b"d" * 16, key=b"k" * 16
    ).commit()
    (entry,) = Budget.open(budget.path, read_only=True).log()
    assert (entry.job, entry.columns, entry.certificate) == ("mean", ("age",), certificate)
    assert (entry.draw, entry.key) == ((b"d" * 16).hex(), (b"k" * 16).hex())
    assert entry.process == os.getpid()
    assert "privamp" in entry.version
    assert all([entry.user, entry.host, entry.program])
    assert entry.time <= entry.ended
    with pytest.raises(InvalidInput, match="JSON"):
        budget.reserve(PureDP(0.1), certificate={"epsilon": float("nan")})
    with pytest.raises(InvalidInput, match="read-only"):
        Budget.open(budget.path, read_only=True).spend(PureDP(0.1))


def test_entries_are_told_in_the_order_they_were_opened(budget):
    """Also where a later one ends first, and beside another population of the store."""
    other = Budget.create(budget.path, population="others", epsilon=1.0)
    first = budget.reserve(PureDP(0.01), note="first")
    budget.spend(PureDP(0.02), note="second")
    other.spend(PureDP(0.03), note="elsewhere")
    budget.spend(PureDP(0.04), note="third")
    first.commit()
    assert [entry.note for entry in budget.log()] == ["first", "second", "third"]
    assert [entry.note for entry in budget.log(last=2)] == ["second", "third"]
    assert [entry.note for entry in budget.log(last=1)] == ["third"]
    assert [entry.note for entry in other.log()] == ["elsewhere"]
    numbers = [event.number for event in budget._store.events()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_an_error_or_a_forgotten_commit_counts(budget):
    def fail():
        raise RuntimeError

    with pytest.raises(RuntimeError), budget.reserve(PureDP(0.25)):
        fail()
    budget.reserve(PureDP(0.25))
    again = Budget.open(budget.path)
    assert spent(again) == 0.5
    assert states(again) == ["failed", "reserved"]


def test_past_the_limit_nothing_is_written(budget):
    budget.spend(PureDP(0.9))
    before = budget.path.read_bytes()
    with pytest.raises(BudgetExceeded, match=r"costs epsilon 0\.2 and 0\.1 of 1 is left.*not made"):
        budget.reserve(PureDP(0.2))
    assert spent(budget) == 0.9
    assert len(budget.log()) == 1
    budget.spend(PureDP(0.1))  # the rest, exactly
    assert budget.status().left == {"epsilon": 0.0}
    with pytest.raises(BudgetExceeded):
        budget.spend(PureDP(1e-300))
    assert before


def test_one_epsilon_and_delta_belong_to_the_basic_rule(tmp_path):
    """A Rényi limit refuses a black box of its own epsilon and delta, and names the rule that takes it."""
    within, whole = {"epsilon": 1.0, "delta": 1e-6}, ApproxDP(1.0, 1e-6)
    renyi = Budget.create(tmp_path / "renyi", population="p", **within)
    with pytest.raises(BudgetExceeded, match=r"unused budget of the Rényi rule would refuse it too, .* rule='basic'"):
        renyi.spend(whole)
    basic = Budget.create(tmp_path / "basic", population="p", rule="basic", **within)
    basic.spend(whole)
    assert basic.status().left == {"epsilon": 0.0, "delta": 0.0}
    renyi.spend(Gaussian(8.0))
    with pytest.raises(BudgetExceeded, match="wait for a new budget"):
        renyi.spend(ApproxDP(0.5, 1e-9))  # an unused one would take it


def test_ten_thousand_small_ones_do_not_drift():
    pieces = [PureDP(0.0001)] * 10_000
    PureFilter(1.0).admit(pieces[1:], pieces[0])
    with pytest.raises(BudgetExceeded):
        PureFilter(1.0).admit(pieces, pieces[0])


def test_one_store_many_populations(budget, path):
    nurses = Budget.create(path, population="nurses", epsilon=3.0, delta=1e-6)
    budget.spend(PureDP(0.5))
    assert nurses.status().spent == {"renyi_loss": 0.0, "delta": 0.0}
    with pytest.raises(InvalidInput, match="not overwritten"):
        Budget.create(path, population="nurses", epsilon=100.0)
    with pytest.raises(InvalidInput, match="give the population"):
        Budget.open(path)
    with pytest.raises(InvalidInput, match="'patients', 'nurses'"):
        Budget.open(path, "doctors")
    assert Budget.open(path, "nurses").limit == nurses.limit
    assert pickle.loads(pickle.dumps(budget)).status() == budget.status()


def test_rules(path):
    certified = amplify(Gaussian(2.0), Poisson(0.1))
    renyi = Budget.create(path, population="a", limit=RenyiFilter(8.0, 3.0, 1e-6))
    renyi.spend(certified)
    renyi.spend(compose(certified, 5))
    one, five = (entry.cost["renyi_loss"] for entry in renyi.log())
    assert five == pytest.approx(5 * one, rel=1e-9)
    assert renyi.guarantee().delta(3.0) <= 1e-6 * (1 + 1e-9)
    renyi.spend(amplify(DiscreteGaussian(4.0), Poisson(0.1)))
    renyi.spend(amplify(Joint([Gaussian(4.0), Laplace(4.0)]), Poisson(0.1)))
    assert 0 < renyi.status().spent["delta"] < 1e-15
    with pytest.raises(BudgetExceeded, match="delta"):
        renyi.spend(ApproxDP(0.01, 1e-9))
    basic = Budget.create(path, population="b", epsilon=1.0, delta=1e-6, rule="basic")
    basic.spend(ApproxDP(0.3, 5e-7))
    basic.spend(certified, delta=5e-7)
    assert basic.status().left["delta"] == 0.0
    with pytest.raises(BudgetExceeded, match="delta"):
        basic.spend(ApproxDP(0.01, 1e-18))
    basic.spend(PureDP(0.01))
    gdp = Budget.create(path, population="c", epsilon=1.0, delta=1e-6, rule="gdp")
    gdp.spend(Gaussian(5.0))
    assert gdp.status().spent["mu_squared"] == pytest.approx(0.04)
    assert gdp.guarantee().epsilon(1e-6) == pytest.approx(1.0, rel=1e-6)
    persons = Budget.create(path, population="d", epsilon=1.0, neighbors=Neighbors.ADD_REMOVE.for_person(3))
    persons.spend(PureDP(0.1))
    assert persons.status().spent["epsilon"] == pytest.approx(0.3)
    with pytest.raises(InvalidInput, match="relation"):
        persons.spend(amplify(PureDP(0.1), Poisson(0.1)))
    assert persons.guarantee().epsilon() == pytest.approx(1.0)
    assert any("another label" in a for a in persons.guarantee().assumes)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"population": "", "epsilon": 1.0}, "label"),
        ({"population": "\ud800", "epsilon": 1.0}, "label"),
        ({"population": "a"}, "either an epsilon"),
        ({"population": "a", "epsilon": 1.0, "limit": PureFilter(1.0)}, "either an epsilon"),
        ({"population": "a", "epsilon": -1.0}, "above 0"),
        ({"population": "a", "epsilon": 1e-20}, "smallest amount"),
        ({"population": "a", "epsilon": 1e8}, "must be from 0"),
    ],
)
def test_bad_limits_leave_no_file(path, arguments, words):
    with pytest.raises(InvalidInput, match=words):
        Budget.create(path, **arguments)
    assert not path.exists()
    assert list(path.parent.iterdir()) == []


def test_foreign_and_damaged_files_are_one_sentence(tmp_path, budget):
    text, other, empty = (tmp_path / name for name in ("notes.txt", "other.db", "empty.db"))
    text.write_text("not a database, but long enough to be looked at by anyone who opens it\n" * 20)
    empty.write_bytes(b"")
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE budgets (id INTEGER)")
    connection.close()
    for bad in (text, other, empty):
        before = bad.read_bytes()
        with pytest.raises(InvalidInput, match="not a privamp budget store"):
            Budget.open(bad)
        with pytest.raises(InvalidInput, match="not a privamp budget store"):
            Budget.create(bad, population="a", epsilon=1.0)
        assert bad.read_bytes() == before
    for missing in (tmp_path / "none.db", tmp_path):
        with pytest.raises(InvalidInput, match="no budget store"):
            Budget.open(missing)
    with pytest.raises(InvalidInput, match="no folder"):
        Budget.create(tmp_path / "nowhere" / "study.db", population="a", epsilon=1.0)
    for n in range(40):
        budget.spend(PureDP(0.001), note=f"release {n}")
    copy = tmp_path / "copy.db"
    budget.backup(copy)
    assert len(Budget.open(copy).log()) == 40

    def changed(name, content):
        bad = tmp_path / name
        bad.write_bytes(content)
        bad.chmod(0o600)
        with pytest.raises(InvalidInput, match="not a privamp budget store, or it is damaged"):
            Budget.open(bad).spend(PureDP(0.001))
        with pytest.raises(InvalidInput, match="not a privamp budget store, or it is damaged"):
            Budget.open(bad, read_only=True).verify()

    whole = copy.read_bytes()
    changed("foreign.db", whole[:18] + b"\x07\x07" + whole[20:])  # a format of the future
    changed("damaged.db", whole[: len(whole) // 2] + bytes(6000) + whole[len(whole) // 2 + 6000 :])
    changed("cut.db", whole[:9000])
    changed("longer.db", whole + bytes(4096))


def test_a_total_that_is_not_the_sum_of_its_entries_is_refused(budget):
    budget.spend(PureDP(0.5))
    with sqlite3.connect(budget.path) as connection:
        connection.execute("DROP TRIGGER nothing_is_changed")
        connection.execute("UPDATE events SET main_spent = 0")
    connection.close()
    with pytest.raises(InvalidInput, match="damaged"):
        Budget.open(budget.path)


@pytest.mark.parametrize("edit", ["UPDATE events SET main = 0", "DELETE FROM events", "UPDATE events SET number = 7"])
def test_the_file_itself_refuses_to_change_an_entry(budget, edit):
    budget.spend(PureDP(0.5))
    with sqlite3.connect(budget.path) as connection, pytest.raises(sqlite3.IntegrityError, match="entries of a budget"):
        connection.execute(edit)
    connection.close()


def test_a_newer_store_is_refused(budget):
    with sqlite3.connect(budget.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(InvalidInput, match="version 99"):
        Budget.open(budget.path)


def test_a_store_that_cannot_be_written(budget, monkeypatch):
    import privamp.accounting.budget_file as file

    monkeypatch.setattr(file, "PATIENCE", 0.05)
    impatient = Budget.open(budget.path)
    blocker = sqlite3.connect(budget.path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(PrivampError, match="busy"):
        impatient.spend(PureDP(0.1))
    blocker.execute("ROLLBACK")
    blocker.close()
    impatient.spend(PureDP(0.1))
    assert spent(impatient) == 0.1


def test_notes_are_kept_as_text(budget):
    note = 'Müller\'s "mean"; DROP TABLE entries; \ud800\n'
    budget.spend(PureDP(0.1), note=note)
    assert budget.log()[0].note == note.replace("\ud800", "?")
