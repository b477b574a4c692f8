"""Where keys are stored: a file, the environment, the system's keyring, or any subclass of KeyProvider.

A provider holds a location, not a secret: it can be printed and passed around. Its `key_id` is the key's fingerprint,
which identifies the key without revealing it; a budget's log stores it, so that you can see which samples a key drew
before you replace it. A key management service is one more subclass with a `key` method.
"""

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from ..chance.keys import Key
from ..errors import InvalidInput
from ..extras import missing
from .key_files import key_from_digits, make_key_file, read_key_file

_SERVICE = "privamp"


class KeyProvider(ABC):
    """A place that holds a key."""

    @abstractmethod
    def key(self) -> Key:
        """Read the key; raises if there is none, or if others could read it."""

    @property
    def key_id(self) -> str:
        """The key's fingerprint in hexadecimal digits: no secret."""
        return self.key().fingerprint.hex()


@dataclass(frozen=True, slots=True)
class FileKey(KeyProvider):
    """A key file that only its owner may read."""

    path: str

    def key(self) -> Key:
        """Read the key from the file; InvalidInput when it is not one."""
        return read_key_file(self.path)

    def make(self) -> Key:
        """A fresh key in a new file."""
        return make_key_file(self.path)


@dataclass(frozen=True, slots=True)
class EnvironmentKey(KeyProvider):
    """64 hexadecimal digits in an environment variable, as container platforms provide secrets."""

    variable: str

    def key(self) -> Key:
        """Read the key from the variable; InvalidInput when it is not one."""
        digits = os.environ.get(self.variable)
        if digits is None:
            raise InvalidInput(f"the environment has no variable {self.variable!r}; set it, or give another key")
        return key_from_digits(digits, f"the variable {self.variable!r}")


@dataclass(frozen=True, slots=True)
class KeyringKey(KeyProvider):
    """An entry of the system's keyring (macOS Keychain, Windows Credential Locker, Secret Service, KWallet).

    Needs the `keyring` library: pip install 'privamp[keyring]'.
    """

    name: str
    service: str = _SERVICE

    def key(self) -> Key:
        """The key under this name."""
        digits = self._asked("get_password", self.service, self.name)
        if digits is None:
            raise InvalidInput(
                f"the keyring has no key {self.name!r} of {self.service!r}; make one, or give another name"
            )
        return key_from_digits(digits, f"the keyring's entry {self.name!r}")

    def make(self) -> Key:
        """A fresh key under a new name; an old one is never replaced."""
        if self._asked("get_password", self.service, self.name) is not None:
            raise InvalidInput(
                f"the keyring already has a key {self.name!r}; keys are never overwritten, so choose another name"
            )
        key = Key.generate()
        self._asked("set_password", self.service, self.name, key.secret_bytes().hex())
        if self._asked("get_password", self.service, self.name) != key.secret_bytes().hex():
            raise InvalidInput("the keyring did not store the key; choose another backend of the keyring library")
        return Key.from_bytes(key.secret_bytes())  # a stored key

    @staticmethod
    def _asked(what: str, *arguments: str) -> Any:
        try:
            import keyring
            from keyring.errors import KeyringError
        except ModuleNotFoundError as error:
            raise missing(error, "a key in the system's keyring") from None
        try:
            return getattr(keyring, what)(*arguments)
        except KeyringError as error:
            kind = type(error).__name__
            raise InvalidInput(f"the system's keyring cannot be used ({kind}); unlock it, or use a key file") from None


def provider(place: str | os.PathLike[str]) -> KeyProvider:
    """The provider that a text names: `env:NAME`, `keyring:NAME`, `keyring:SERVICE/NAME`, `file:PATH`, or a path.

    >>> provider("env:STUDY_KEY")
    EnvironmentKey(variable='STUDY_KEY')
    >>> provider("keyring:wave 1")
    KeyringKey(name='wave 1', service='privamp')
    """
    text = os.fspath(place)
    kind, colon, rest = text.partition(":")
    if not colon or kind not in ("env", "keyring", "file"):
        return FileKey(text)
    if not rest:
        raise InvalidInput(f"{text!r} does not name a key; write {kind}:NAME")
    if kind == "env":
        return EnvironmentKey(rest)
    if kind == "file":
        return FileKey(rest)
    service, slash, name = rest.partition("/")
    return KeyringKey(name, service) if slash and service and name else KeyringKey(rest)
