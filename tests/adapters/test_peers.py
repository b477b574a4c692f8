"""A failure of another library is one sentence: which library, which version, what it was doing, what was tested."""

import pytest

from privamp import InvalidInput, NoTheorem
from privamp.adapters.peers import answered


def test_a_failure_is_a_sentence_without_the_other_librarys_words():
    words = r"^opendp .* failed while drawing \(KeyError\); .* tested with opendp"
    with pytest.raises(InvalidInput, match=words) as told, answered("opendp", "drawing"):
        raise KeyError("a record's value: 123456")
    assert "123456" not in str(told.value)
    assert told.value.__suppress_context__


def test_our_own_sentences_pass():
    with pytest.raises(NoTheorem, match="nothing is proved"), answered("opendp", "drawing"):
        raise NoTheorem("nothing is proved")


def test_an_interrupt_passes():
    with pytest.raises(KeyboardInterrupt), answered("opendp", "drawing"):
        raise KeyboardInterrupt
