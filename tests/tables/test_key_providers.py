"""Keys from a file, the environment and the system's keyring; messages never hold a key."""

import os
import pickle
import sys

import pytest

from privamp import InvalidInput, Key
from privamp.tables.key_providers import EnvironmentKey, FileKey, KeyProvider, KeyringKey, provider


@pytest.fixture
def memory():
    """The real library with a keyring that lives in this test."""
    keyring = pytest.importorskip("keyring")
    from keyring.backend import KeyringBackend

    class Memory(KeyringBackend):
        priority = 1

        def __init__(self):
            super().__init__()
            self.entries = {}

        def get_password(self, service, username):
            return self.entries.get((service, username))

        def set_password(self, service, username, password):
            self.entries[service, username] = password

    before, backend = keyring.get_keyring(), Memory()
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)


def test_files(tmp_path):
    place = FileKey(str(tmp_path / "study.key"))
    key = place.make()
    assert place.key() == key
    assert provider(tmp_path / "study.key").key_id == key.fingerprint.hex()
    with pytest.raises(InvalidInput, match="never overwritten"):
        place.make()


def test_the_environment(monkeypatch):
    key = Key.generate()
    monkeypatch.setenv("STUDY_KEY", f"{key.secret_bytes().hex()}\n")
    assert provider("env:STUDY_KEY").key() == key
    with pytest.raises(InvalidInput, match="no variable 'NOTHING'"):
        EnvironmentKey("NOTHING").key()
    secret = key.secret_bytes().hex()[:-1]
    monkeypatch.setenv("STUDY_KEY", secret)
    with pytest.raises(InvalidInput, match="64 hexadecimal digits") as caught:
        provider("env:STUDY_KEY").key()
    assert secret not in str(caught.value)


def test_the_keyring(memory):
    place = provider("keyring:wave 1")
    with pytest.raises(InvalidInput, match="no key 'wave 1'"):
        place.key()
    key = place.make()
    assert provider("keyring:privamp/wave 1").key() == key
    with pytest.raises(InvalidInput, match="never overwritten"):
        place.make()
    assert provider("keyring:other/wave 1") == KeyringKey("wave 1", "other")
    memory.entries["privamp", "wave 1"] = "short"
    with pytest.raises(InvalidInput, match="64 hexadecimal"):
        place.key()


def test_a_keyring_that_keeps_nothing_or_is_not_there(memory, monkeypatch):
    import keyring
    from keyring.backends import fail, null

    keyring.set_keyring(null.Keyring())
    with pytest.raises(InvalidInput, match="did not store"):
        KeyringKey("a").make()
    keyring.set_keyring(fail.Keyring())
    with pytest.raises(InvalidInput, match=r"cannot be used \(NoKeyringError\)"):
        KeyringKey("a").key()
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(InvalidInput, match=r"privamp\[keyring\]"):
        KeyringKey("a").key()


def test_a_service_of_ones_own():
    """Whatever can hand out 32 bytes is a provider."""

    class Service(KeyProvider):
        def key(self):
            return Key.from_bytes(bytes(range(32)))

    assert Service().key_id == Key.from_bytes(bytes(range(32))).fingerprint.hex()


@pytest.mark.parametrize("place", ["env:", "keyring:", "file:"])
def test_nothing_named(place):
    with pytest.raises(InvalidInput, match="does not name a key"):
        provider(place)


def test_places_are_no_secrets(monkeypatch):
    monkeypatch.setenv("STUDY_KEY", "11" * 32)
    place = pickle.loads(pickle.dumps(provider("env:STUDY_KEY")))
    assert place.key() == Key.from_bytes(b"\x11" * 32)
    assert "11" * 32 not in repr(place)
    for name in ("a\0b", "x" * 5000):
        with pytest.raises(InvalidInput, match="no key file"):
            provider(name).key()
    assert os.environ["STUDY_KEY"]
