"""Identities of designs: the text of every kind of value, and what has none."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from privamp import InvalidInput, Named, Poisson, WithoutReplacement
from privamp.core.identity import class_name, identity, keep_doubles, keep_in_order, keep_plain, plain
from privamp.core.words import Word, spec_of


@dataclass(frozen=True)
class Thing:
    a: object
    b: object = None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"), (1.0, "1"), (np.int64(1), "1"), (Fraction(2, 2), "1"), (True, "true"), (False, "false"),
        (0.5, "0x1.0000000000000p-1"), (Fraction(1, 2), "0x1.0000000000000p-1"), (Fraction(1, 3), "1/3"),
        (np.float32(0.1), float(np.float32(0.1)).hex()),
        (Fraction(10**400, 3), f"{10**400}/3"), (10**400, f"{10**400}"),
        (math.inf, "inf"), (-math.inf, "-inf"), (None, "none"), ("it's \\", "'it\\'s \\\\'"),
        (b"\x01\xff", "bytes 01ff"),
        ((1, "a"), "[1,'a']"), ([2, (3,)], "[2,[3]]"), ({"b": 1, "a": 2}, "{'a':2,'b':1}"),
        (np.array([[1, 2], [3, 4]]), "array[2, 2][1,2,3,4]"), (Named("f", "2", abs), "function('f','2')"),
        (-2.5, (-2.5).hex()),
    ],
)  # fmt: skip
def test_an_identity_is_this_text(value, text):
    assert identity(value) == f"1:{text}"


def test_identities_of_objects():
    assert identity(Poisson(0.25)) == "1:Poisson(rate=0x1.0000000000000p-2)"
    assert identity(WithoutReplacement(3, 9)) == "1:WithoutReplacement(population=9,size=3)"
    mine = identity(Thing(1, "x"))
    assert mine == f"1:{__name__}:Thing(a=1,b='x')"
    long = identity(Thing("y" * 2000))
    assert long.startswith(f"1:{__name__}:Thing#")
    assert len(long.partition("#")[2]) == 64
    short = identity(Thing("y" * (1000 - len(f"{__name__}:Thing(a='',b=none)"))))
    assert "#" not in short
    assert len(short) == 1002
    assert "#" in identity(Thing("y" * (1001 - len(f"{__name__}:Thing(a='',b=none)"))))
    versioned = type("Versioned", (), {"version": 3, "__module__": "other"})
    assert (class_name(versioned), class_name(Poisson)) == ("other:Versioned@3", "Poisson")
    with pytest.raises(InvalidInput, match="the numbers of a design must not be nan"):
        identity(math.nan)
    with pytest.raises(InvalidInput, match="a function inside a design needs a name and a version"):
        identity(Thing(abs))
    with pytest.raises(InvalidInput, match="a set inside a design has no identity"):
        identity(Thing({1}))


def test_numbers_of_array_libraries_become_pythons():
    assert [plain(v) for v in (np.float32(0.5), Fraction(4, 2), Fraction(1, 2), (np.int8(1), [2]))] == [
        0.5,
        2,
        0.5,
        (1, (2,)),
    ]
    assert [type(plain(v)) for v in (np.int64(1), Fraction(4, 2), np.longdouble(1))] == [int, int, float]
    thing = Thing(np.float64(2.5), (np.int64(1), "a"))
    keep_plain(thing)
    assert (type(thing.a), type(thing.b[0])) == (float, int)
    other = Thing(np.array(3.0), (np.float32(0.5), (np.int8(1),)))
    keep_doubles(other)
    assert (type(other.a), type(other.b[0]), type(other.b[1][0])) == (float, float, int)
    listed = Thing([1, 2], "text")
    keep_in_order(listed, "a", "b")
    assert (listed.a, listed.b) == ((1, 2), "text")
    for unordered in ({1}, {"a": 1}):
        with pytest.raises(InvalidInput, match="a must be a list or tuple in a public order"):
            keep_in_order(Thing(unordered), "a")


def test_named_functions():
    with pytest.raises(InvalidInput, match="a function needs a name and a version, both text"):
        Named("", "1", abs)
    with pytest.raises(InvalidInput, match="a function needs a name and a version, both text"):
        Named("f", 1, abs)
    with pytest.raises(InvalidInput, match="Named takes a function, got a int instead"):
        Named("f", "1", 3)
    assert Named("f", "1", pow)(2, 3) == 8


def test_specs_are_names_and_keys():
    word = Word("thing", ("a",), ("b",))
    assert spec_of(Thing(0.1), word) == "thing:a=0.1"
    assert spec_of(Thing(3, "x"), word) == "thing:a=3,b=x"
    assert spec_of(Thing(Fraction(1, 4), 2), word) == "thing:a=0.25,b=2"
    for beyond in (Thing(Fraction(1, 3)), Thing(True), Thing((1,)), Thing(1, (2,))):
        assert spec_of(beyond, word) is None
    assert spec_of(Thing(1), None) is None
    assert spec_of(Thing(1), Word("thing", ("a",), make=Thing)) is None
