"""The linear program itself: closed forms, wrong formulas caught, symmetry, and failure modes."""

import math
import subprocess
import sys
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privamp import Neighbors
from privamp.errors import InvalidInput
from privamp.numerics.roots import NumericalFailure
from privamp.verify import exact, exact_epsilon, exact_epsilon_of_laws
from privamp.verify.exact import Program
from privamp.verify.symmetry import alike, collect

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


def subsets(ids, size):
    return {s: Fraction(1, math.comb(len(ids), size)) for s in combinations(ids, size)}


def multisets(ids, draws):
    return collect((s, Fraction(1, len(ids) ** draws)) for s in product(ids, repeat=draws))


def coins(ids, q):
    return {s: q ** len(s) * (1 - q) ** (len(ids) - len(s)) for k in range(len(ids) + 1) for s in combinations(ids, k)}


@pytest.mark.parametrize(("n", "m"), [(2, 1), (3, 2), (5, 3), (7, 4), (4, 4)])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0, 8.0])
def test_without_replacement_closed_forms(n, m, epsilon):
    old, new, more = subsets(range(n), m), subsets(range(1, n + 1), m), subsets(range(n + 1), m)
    a = math.exp(epsilon)
    for pair, metric, ratio in [
        ((old, new), "replace-one", m / n * (a - 1)),
        ((old, new), "add-remove", m / n * (a * a - 1)),
        ((old, more), "add-remove", m / (n + 1) * (a * a - 1)),
    ]:
        assert exact_epsilon_of_laws(*pair, epsilon, metric) == pytest.approx(math.log1p(ratio), rel=1e-12)


@pytest.mark.parametrize(("n", "m"), [(1, 3), (2, 2), (3, 4), (4, 3)])
def test_with_replacement_uses_the_multiset_metric(n, m):
    pair = multisets(range(n), m), multisets(range(1, n + 1), m)
    for epsilon in (0.1, 1.0, 2.5):
        truth = m * math.log1p((math.exp(epsilon) - 1) / n)
        assert exact_epsilon_of_laws(*pair, epsilon, "replace-one") == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("q", [Fraction(1, 100), Fraction(1, 3), Fraction(9, 10)])
def test_poisson_closed_forms(q):
    old, new, more = coins(range(3), q), coins(range(1, 4), q), coins(range(4), q)
    for epsilon in (0.1, 1.0, 3.0):
        a = math.exp(epsilon)
        added, swapped = math.log1p(q * (a - 1)), math.log((1 + q * (a - 1)) / (1 - q * (1 - 1 / a)))
        assert exact_epsilon_of_laws(old, more, epsilon, "add-remove") == pytest.approx(added, rel=1e-12)
        assert exact_epsilon_of_laws(old, new, epsilon, "add-remove") == pytest.approx(swapped, rel=1e-12)


WRONG = {  # tempting formulas for m of n, mechanism under add/remove, one record replaced
    "the printed relation (SD Theorem 3.1)": lambda q, a: math.log1p(q * (a - 1)),
    "the linear approximation of a small epsilon": lambda q, a: q * 2 * math.log(a),
    "one percent too little": lambda q, a: 0.99 * math.log1p(q * (a * a - 1)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_formulas_are_caught(name):
    """Negative control: each of these claims less than some mechanism loses."""
    pair = subsets(range(4), 2), subsets(range(1, 5), 2)
    for epsilon in (0.1, 1.0, 3.0):
        assert exact_epsilon_of_laws(*pair, epsilon, "add-remove") > WRONG[name](0.5, math.exp(epsilon)) + 1e-6


def test_unrelated_sizes_are_unbounded_under_replace_one():
    q = Fraction(1, 2)
    assert exact_epsilon_of_laws(coins(range(2), q), coins(range(3), q), 1.0, "replace-one") == math.inf
    assert exact_epsilon_of_laws({(): Fraction(1)}, {(): Fraction(1)}, 1.0, "replace-one") == 0.0


def test_epsilon_zero_hides_everything():
    assert exact_epsilon_of_laws(subsets(range(3), 1), subsets(range(1, 4), 1), 0.0, "add-remove") == 0.0


def test_many_epsilons_at_once_agree_with_one_at_a_time():
    program = Program(multisets(range(3), 3), multisets(range(1, 4), 3), "add-remove")
    epsilons = np.random.default_rng(0).uniform(0.05, 3.0, 70).tolist()
    assert program.epsilons(epsilons) == pytest.approx([program.epsilon(e) for e in epsilons], rel=1e-12)


def without_symmetry(first, second, epsilon, metric, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(exact, "alike", lambda p, q: tuple((i,) for i in sorted({u for s in (*p, *q) for u in s})))
        return exact_epsilon_of_laws(first, second, epsilon, metric)


@pytest.mark.parametrize("metric", ["add-remove", "replace-one"])
def test_symmetry_changes_no_value(metric, monkeypatch):
    random = np.random.default_rng(1)
    for pair in [
        (multisets(range(3), 2), multisets(range(1, 4), 2)),
        (subsets(range(5), 2), subsets(range(1, 6), 2)),
    ]:
        for epsilon in random.uniform(0.05, 3.0, 5).tolist():
            plain = without_symmetry(*pair, epsilon, metric, monkeypatch)
            assert exact_epsilon_of_laws(*pair, epsilon, metric) == pytest.approx(plain, rel=1e-9)


def test_alike_ids_are_found():
    assert alike(subsets(range(4), 2), subsets(range(1, 5), 2)) == ((0,), (1, 2, 3), (4,))


def _laws(draw, ids=4):
    every = [s for k in range(3) for s in combinations(range(ids), k)]
    weights = draw(st.lists(st.integers(0, 5), min_size=len(every), max_size=len(every)).filter(any))
    return {s: Fraction(w, sum(weights)) for s, w in zip(every, weights, strict=True) if w}


@settings(max_examples=40, deadline=None)
@given(data=st.data(), epsilon=st.floats(0.05, 3.0))
def test_random_laws_lie_between_chains_and_the_diameter(data, epsilon):
    """No Lipschitz function beats the program, it is at most diameter * epsilon, both orders are equal."""
    first, second = data.draw(st.composite(_laws)()), data.draw(st.composite(_laws)())
    value = exact_epsilon_of_laws(first, second, epsilon, "add-remove")
    assert value == pytest.approx(exact_epsilon_of_laws(second, first, epsilon, "add-remove"), abs=1e-12)
    assert value <= 4 * epsilon + 1e-12
    levels = data.draw(st.lists(st.integers(-1, 1), min_size=4, max_size=4))  # any such sum is 1-Lipschitz

    def expectation(law):
        return sum(float(p) * math.exp(epsilon * sum(levels[i] for i in s)) for s, p in law.items())

    assert math.log(expectation(first) / expectation(second)) <= value + 1e-12


def test_a_failing_solver_raises(monkeypatch):
    import scipy.optimize

    class Failed:
        status = 4

    monkeypatch.setattr(scipy.optimize, "linprog", lambda *a, **k: Failed())
    with pytest.raises(NumericalFailure, match="could not be solved"):
        exact_epsilon_of_laws(subsets(range(3), 1), subsets(range(1, 4), 1), 1.0, "add-remove")


def test_bad_arguments_are_refused():
    law = subsets(range(2), 1)
    with pytest.raises(InvalidInput):
        exact_epsilon_of_laws(law, law, -1.0, "add-remove")
    with pytest.raises(InvalidInput):
        exact_epsilon_of_laws(law, law, 1.0, "deletion")


def test_designs_are_asked_for_their_law():
    from privamp import WithoutReplacement

    design = WithoutReplacement(size=3, population=5)
    assert exact_epsilon(design, 5, RO, 2.0) == pytest.approx(1.575557118, abs=1e-8)
    assert exact_epsilon(design, 5, RO, 2.0, mechanism_neighbors=AR) == pytest.approx(3.501310856, abs=1e-8)
    assert exact_epsilon(design, 5, AR, 2.0) == pytest.approx(3.325002747, abs=1e-8)


def test_import_is_light():
    slow = "('scipy.optimize', 'scipy.stats')"
    code = f"import sys, privamp.verify; sys.exit(any(m in sys.modules for m in {slow}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
