"""Spec words: the name a design has in a spec string, and which keys follow it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any


@dataclass(frozen=True, slots=True)
class Word:
    """One spec word, `name:key=value,…`: which keys it takes and what it makes of them.

    Keys are `required` or `optional`; those listed as `whole` are whole numbers, those as `text` are words, all others
    numbers. `make` takes the keys as arguments; None means the class itself.
    """

    name: str
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()  # keys whose value is a whole number
    text: tuple[str, ...] = ()  # keys whose value is a word
    make: Callable[..., Any] | None = None  # takes the keys as arguments


_ADDED: dict[str, tuple[Word, type]] = {}


def add_word(word: Word, kind: type) -> None:
    """Register the word of a class outside privamp; the last registration wins, as when a file is run again."""
    _ADDED[word.name] = replace(word, make=word.make or kind), kind


def added_words(kind: type) -> dict[str, Word]:
    """The words of classes outside privamp that make a `kind`."""
    return {name: word for name, (word, made) in _ADDED.items() if issubclass(made, kind)}


def spec_of(thing: Any, word: Word | None) -> str | None:
    """`name:key=value,…` of all fields that are not None; None where the word's keys are not its fields."""
    if word is None or word.make is not None:
        return None
    pairs = [(key, getattr(thing, key)) for key in (*word.required, *word.optional)]
    written = [(key, _written(value)) for key, value in pairs if value is not None]
    if any(value is None for _, value in written):
        return None
    return f"{word.name}:{','.join(f'{key}={value}' for key, value in written)}"


def _written(value: Any) -> str | None:
    """A number with all its digits, or a word; None for what a spec cannot express."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, str)):
        return str(value)
    if isinstance(value, Fraction):
        return repr(float(value)) if Fraction(str(float(value))) == value else None
    return repr(value) if isinstance(value, float) else None
