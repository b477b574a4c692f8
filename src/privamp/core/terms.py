"""Texts of mechanisms and limits that are equal only if their parameters are: stored plans are compared by them.

The text is the full name of the class and its `repr`, which shows every digit of every parameter. An object that hides
a parameter, or holds an array or a function, gets a text that is never used again: another program cannot show that it
means the same, so it cannot continue the plan.
"""

import os
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

_PLAIN = (bool, int, float, str, bytes, type(None), Fraction)


def in_words(thing: Any) -> str:
    """The same text for equal parameters, in every program.

    >>> from .neighbors import Neighbors
    >>> in_words(Neighbors.ADD_REMOVE) == in_words(Neighbors("add-remove"))
    True
    """
    words = f"{type(thing).__module__}.{thing!r}"
    return words if _shows_all(thing) else f"{words}, not comparable: {os.urandom(16).hex()}"


def _shows_all(thing: Any) -> bool:
    if type(thing) in _PLAIN:
        return True
    if isinstance(thing, (tuple, list)):
        return all(map(_shows_all, thing))
    if not is_dataclass(thing) or isinstance(thing, type):
        return False
    values = {field.name: getattr(thing, field.name) for field in fields(thing)}
    told = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return repr(thing) == f"{type(thing).__qualname__}({told})" and all(map(_shows_all, values.values()))
