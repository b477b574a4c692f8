from pathlib import Path

import numpy as np
import pytest

import privamp.testing
from privamp.chance.keys import Key
from privamp.errors import InvalidInput
from privamp.testing import seeded_key, seeded_stream


def test_seeds_repeat_and_are_marked():
    assert seeded_key(5) == seeded_key(5) != seeded_key(6)
    assert seeded_key(5).is_test
    assert seeded_key(5).subkey("a", 1).is_test
    assert seeded_stream(5).is_test
    assert np.array_equal(seeded_stream(5).words(9), seeded_stream(5).words(9))


def test_a_test_key_is_never_equal_to_a_real_one():
    assert Key.from_bytes(seeded_key(5).secret_bytes()) != seeded_key(5)


def test_bad_seeds():
    for bad in (-1, 1.5, True, "1", 2**64):
        with pytest.raises(InvalidInput, match="seed must be"):
            seeded_key(bad)


def test_the_warning_is_loud():
    for text in (privamp.testing.__doc__, seeded_key.__doc__, seeded_stream.__doc__):
        assert "NOT" in text
        assert "PRIVATE" in text


def test_only_the_testing_module_marks_keys():
    source = Path(privamp.testing.__file__).parent
    texts = {path.name: path.read_text(encoding="utf-8") for path in source.rglob("*.py")}
    assert [name for name, text in texts.items() if "is_test=True)" in text] == ["testing.py"]
