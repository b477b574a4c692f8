"""Answers of interviews, matched to the people of the frame by their ids.

The interviews are a list of (id, answer). Each person of the frame gets a number, or nan where there is no answer, by a
rule that reads only this person's own rows (rule R1, docs/surveys.md):

    one answer                   counts
    several that are the same    count once
    several that differ          count as no answer, whatever their order
    an id that is not in the frame                    is left out
    a person who was not drawn                        is left out, because an estimate reads only drawn people
    no row, an empty entry, an entry that is no number   no answer

No row is rejected or reported: an error or a warning would reveal that it is there.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InvalidInput
from ..numerics.entries import each, texts_of
from ..numerics.log_domain import FloatArray


def answers(ids: ArrayLike, who: ArrayLike, values: ArrayLike) -> FloatArray:
    """One number per person of the frame, in its order: what `estimate` and `adjust` take as `values`.

    Parameters
    ----------
    ids : the ids of the frame, whole numbers or text; its type is public.
    who : whose answer it is, one id per row of the interviews.
    values : the answers, one per row.

    >>> answers(["a", "b", "c", "d"], ["c", "a", "z", "c", "b", "b"], [3, 1, 9, 3, 5, 6]).tolist()
    [1.0, nan, 3.0, nan]
    """
    return each(_matched(ids, who, each(_listed(values, "values")).tolist()))


def labels(ids: ArrayLike, who: ArrayLike, values: ArrayLike) -> Any:
    """One text per person of the frame, '' where there is none: for groups that people name themselves."""
    return texts_of([entry or "" for entry in _matched(ids, who, [_text(e) for e in _listed(values, "values")])])


def _matched(ids: ArrayLike, who: ArrayLike, entries: list[Any]) -> list[Any]:
    """The only entry of each person, None where there is none or where rows differ."""
    names, rows = ([_text(one) for one in _listed(column, what)] for column, what in ((ids, "ids"), (who, "who")))
    if "" in names or len(set(names)) < len(names):
        raise InvalidInput("every person of the frame needs a unique id, and one is missing or repeated; check the ids")
    if len(rows) != len(entries):
        raise InvalidInput(f"who and values must have one entry per row, got {len(rows)} and {len(entries)} instead")
    told: dict[str, list[Any]] = {}
    for name, entry in zip(rows, entries, strict=True):
        told.setdefault(name, []).append(entry)
    return [_only(told.get(name, ())) for name in names]


def _only(entries: Sequence[Any]) -> Any:
    """The entry that all entries of one person agree on; empty ones are ignored."""
    said = [entry for entry in entries if not _is_empty(entry)]
    return said[0] if said and all(other == said[0] for other in said[1:]) else None


def _is_empty(entry: Any) -> bool:
    if entry is None or (isinstance(entry, str) and not entry.strip()):
        return True
    try:
        return bool(entry != entry)
    except Exception:  # pandas' missing value is neither equal nor unequal; an entry may be any object
        return type(entry).__name__ == "NAType"


def _listed(column: ArrayLike, what: str) -> list[Any]:
    """The entries of one column, each as it is."""
    if isinstance(column, (list, tuple)):
        return list(column)
    array = np.asanyarray(column)  # a masked array stays one, and lists its masked entries as None
    if array.ndim != 1:
        raise InvalidInput(f"{what} must be one column, got an array of {array.ndim} dimensions instead")
    return list(array.tolist())


def _text(one: Any) -> str:
    """An id or a label as text, '' where there is none; 7, 7.0 and "7" are one, "007" is another."""
    if _is_empty(one):
        return ""
    if isinstance(one, float) and one.is_integer():
        one = int(one)
    try:
        return str(one).strip() if isinstance(one, Hashable) else ""
    except Exception:  # an entry of the interviews may be any object, and is then ignored
        return ""
