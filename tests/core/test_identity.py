"""One identity for equal designs, another for every other one; the key of a draw is made of it."""

import subprocess
import sys
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privamp
from privamp import (
    BallsInBins,
    ClusterSampling,
    Guarantee,
    ImportanceSampling,
    InvalidInput,
    Laplace,
    LinearProfile,
    MultiStage,
    Named,
    Poisson,
    Population,
    Proportional,
    RandomSize,
    Rounds,
    Stratified,
    Systematic,
    WithoutReplacement,
    amplify,
    privacy_constrained,
)
from privamp.cli.audit.designs import all_designs
from privamp.core.identity import VERSION, class_name, identity
from privamp.testing import seeded_key

KEY = seeded_key(5)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Poisson(0.1), Poisson(np.float64(0.1))),
        (Poisson(0.1), Poisson(Fraction(1, 10))),
        (Poisson(0.5), Poisson(Fraction(1, 2))),
        (Poisson(0.5), Poisson(np.float32(0.5))),
        (Poisson(1), Poisson(1.0)),
        (WithoutReplacement(3, 10), WithoutReplacement(np.int64(3), np.uint8(10))),
        (MultiStage([("wor", 3), ("wr", 2)], 10), MultiStage((("wor", np.int64(3)), ("wr", 2)), np.int64(10))),
        (Proportional(0.1), Proportional(Fraction(1, 10))),
        (Proportional(0.1), Proportional(np.float64(0.1))),
        (Stratified({"a": Poisson(0.1), "b": Poisson(1)}), Stratified([("b", Poisson(1.0)), ("a", Poisson(0.1))])),
        (Stratified({1: Poisson(0.1)}), Stratified({np.int64(1): Poisson(0.1)})),
        (ClusterSampling(1, 2, [3, 4]), ClusterSampling(1, 2, (np.int64(3), 4))),
        (RandomSize([0.5, 0.5]), RandomSize(np.array([0.5, 0.5]))),
        (Rounds(Poisson(0.1), 3), Rounds(Poisson(np.float64(0.1)), np.int64(3))),
        (BallsInBins(3), BallsInBins(np.int64(3), 1)),
    ],
)
def test_equal_designs_have_one_identity(one, other):
    assert one.identity == other.identity
    assert one == other or isinstance(one, Proportional)  # 0.1 is one tenth here
    if isinstance(one, Poisson):
        drawn = [design.draw(100, KEY).reveal_secret().positions.tolist() for design in (one, other)]
        assert drawn[0] == drawn[1]


def test_a_float_and_a_fraction_next_to_it_are_told_apart():
    assert Proportional(Fraction(1, 3)).identity != Proportional(1 / 3).identity  # 0.3333333333333333 as a decimal
    assert identity_of_number(Fraction(1, 3)) != identity_of_number(1 / 3)
    assert identity_of_number(0.0) == identity_of_number(-0.0) == identity_of_number(0)


@dataclass(frozen=True)
class Holder:
    value: object


def identity_of_number(value):
    return identity(Holder(value))


@given(st.floats(allow_nan=False) | st.integers() | st.fractions(), st.floats(allow_nan=False) | st.integers())
def test_numbers_count_by_their_value(one, other):
    assert (identity_of_number(one) == identity_of_number(other)) == (one == other)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(alphabet="a',=)[\\", max_size=3),
    lambda inside: (
        st.lists(inside, max_size=3).map(tuple) | st.dictionaries(st.text("ab,", max_size=2), inside, max_size=2)
    ),
    max_leaves=6,
)


def as_key(value):
    """Equal only for values that mean the same: True is not 1."""
    if isinstance(value, dict):
        return ("dict", frozenset((k, as_key(v)) for k, v in value.items()))
    if isinstance(value, tuple):
        return ("list", tuple(map(as_key, value)))
    return (type(value).__name__, value)


@given(values, values)
def test_no_two_values_share_a_text(one, other):
    assert (identity(Holder(one)) == identity(Holder(other))) == (as_key(one) == as_key(other))


@pytest.mark.parametrize("kind", all_designs(), ids=lambda kind: kind.__name__)
def test_small_cases_have_identities_of_their_own(kind):
    designs = {design for design, _ in kind.small_cases()}
    assert len({design.identity for design in designs}) == len(designs)
    assert all(design.identity.startswith(f"{VERSION}:{kind.__name__}") for design in designs)


def test_pinned_identities():
    """Stored samples are opened by these: a change here needs a new VERSION."""
    assert VERSION == 1
    assert Poisson(0.1).identity == "1:Poisson(rate=0x1.999999999999ap-4)"
    assert Stratified({"a": WithoutReplacement(2, 5), 3: Poisson(1)}).identity == (
        "1:Stratified(strata=[[3,Poisson(rate=1)],['a',WithoutReplacement(population=5,size=2)]])"
    )
    assert Systematic(4, "slots", 2).identity == "1:Systematic(at_most=none,max_slot=2,order='slots',step=4)"
    assert Proportional(0.1).identity == "1:Proportional(at_most=none,rate=1/10,rounding='random')"


def test_an_identity_is_the_same_in_another_process():
    script = "from privamp import RandomSize; print(RandomSize.truncated_normal(50, 9, 1000).identity)"
    seen = {
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert seen == {RandomSize.truncated_normal(50, 9, 1000).identity}
    assert len(seen.pop()) < 200


def test_names_of_privamp_classes_are_unique():
    """The identity names a class without its file, so that files can be moved."""
    seen = {}
    for room in ("core", "designs", "rules", "schedules", "mechanisms"):
        package = import_module(f"privamp.{room}")
        for info in iter_modules(package.__path__):
            module = import_module(f"privamp.{room}.{info.name}")
            for kind in vars(module).values():
                own = isinstance(kind, type) and kind.__module__ == module.__name__
                if own and is_dataclass(kind) and fields(kind):
                    seen.setdefault(class_name(kind), set()).add(kind.__module__)
    twice = {name: where for name, where in seen.items() if len(where) > 1}
    assert twice.keys() <= {"Part"}, twice  # what a draw has seen so far; never inside a design


def squared(rows):
    return (np.asarray(rows) ** 2).sum(axis=1) / 40.0


def test_a_function_needs_a_name_and_a_version():
    bare = ImportanceSampling(privacy_constrained(LinearProfile(squared), epsilon=1.0))
    with pytest.raises(InvalidInput, match="needs a name and a version"):
        bare.draw(Population(3, x=np.ones((3, 1))), KEY)
    one, other, again = (
        ImportanceSampling(privacy_constrained(LinearProfile(Named("squares", version, function)), epsilon=1.0))
        for version, function in (("1", squared), ("2", squared), ("1", lambda rows: squared(rows)))
    )
    assert one.identity == again.identity != other.identity
    assert "function('squares','1')" in one.identity
    assert one.draw(Population(3, x=np.ones((3, 1))), KEY).reveal_secret().positions.size <= 3
    with pytest.raises(InvalidInput, match="both text"):
        Named("squares", 1, squared)


@privamp.register
@dataclass(frozen=True, slots=True)
class Scored(Poisson):
    """Poisson sampling that a stranger steers with a function of the record, up to `rate`."""

    score: Named | None = None


def test_a_certificate_says_which_functions_it_needs(monkeypatch):
    design = Scored(0.1, Named("squares", "1", squared))
    assert design.identity == f"1:{__name__}:Scored(rate=0x1.999999999999ap-4,score=function('squares','1'))"
    written = amplify(Laplace(2.0), design).to_json()
    assert written["certificate"]["needs"] == ["function 'squares', version '1'"]
    assert Guarantee.from_json(written).epsilon() == written["epsilon_upper"]
    monkeypatch.setattr("privamp.core.identity._FUNCTIONS", {})
    with pytest.raises(InvalidInput, match="needs the function 'squares' in version '1'"):
        Guarantee.from_json(written)
    assert "needs" not in amplify(Laplace(2.0), Poisson(0.1)).to_json()["certificate"]
