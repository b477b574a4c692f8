"""The keyed function's known answers, and that another one is noticed."""

import pytest

from privamp.chance import known_answer
from privamp.chance.keyed import keyed_pairs
from privamp.errors import InvalidInput


def test_the_keyed_function_gives_its_known_answers():
    known_answer.check_known_answer.__wrapped__()


def test_another_function_is_noticed(monkeypatch):
    def swapped(key, ids):
        high, low = keyed_pairs(key, ids)
        return low, high

    monkeypatch.setattr(known_answer, "keyed_pairs", swapped)
    with pytest.raises(InvalidInput, match="another sample"):
        known_answer.check_known_answer.__wrapped__()
