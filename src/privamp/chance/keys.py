"""Secret keys: 32 bytes that decide who is drawn and which noise is added.

A key is never printed, pickled or copied by accident. `subkey` derives an independent key for
every use; the derivation is a keyed BLAKE2b, so one subkey reveals nothing about another.

>>> Key.from_bytes(bytes(32))
Key(secret)
"""

import hmac
import operator
import secrets
from hashlib import blake2b
from typing import Any, NoReturn, final

from ..errors import InvalidInput

_SIZE = 32  # bytes
_REFUSED = (
    "a Key is secret and is not pickled or copied; send key.secret_bytes() over a channel "
    "you trust and rebuild it with Key.from_bytes"
)

Label = str | int | bytes


@final
class Key:
    """32 secret bytes. Make one with `Key.generate()`; keep it as secret as the data."""

    __slots__ = ("_is_kept", "_is_test", "_secret")
    _secret: bytes
    _is_test: bool
    _is_kept: bool

    def __init__(self) -> None:
        raise InvalidInput("Key() cannot be called directly; use Key.generate() or Key.from_bytes(secret)")

    @classmethod
    def generate(cls) -> "Key":
        """Make a fresh key from the operating system."""
        return build(secrets.token_bytes(_SIZE))

    @classmethod
    def from_bytes(cls, secret: bytes) -> "Key":
        """Rebuild a key from the 32 bytes that `secret_bytes` gave."""
        if not isinstance(secret, (bytes, bytearray, memoryview)):
            raise InvalidInput(f"secret must be {_SIZE} bytes, got a {type(secret).__name__} instead")
        secret = bytes(secret)
        if len(secret) != _SIZE:
            raise InvalidInput(f"secret must be {_SIZE} bytes, got {len(secret)} instead; see Key.generate()")
        return build(secret, is_kept=True)

    def subkey(self, *labels: Label) -> "Key":
        """Return the independent key that belongs to `labels`: the same labels, the same key.

        Order, type and the boundaries between labels all matter: ("a", "bc"), ("ab", "c"), 1 and "1" differ.
        """
        if not labels:
            raise InvalidInput("subkey needs at least one label, got none instead")
        message = b"".join(map(_encode, labels))
        return build(derive(self, b"subkey", message), is_test=self._is_test, is_kept=self._is_kept)

    @property
    def fingerprint(self) -> bytes:
        """16 bytes that identify the key without revealing it; safe to log and to compare."""
        return derive(self, b"fingerprint")[:16]

    @property
    def is_test(self) -> bool:
        """True when the key came from a seed in `privamp.testing`, so that nothing it made is private."""
        return self._is_test

    @property
    def is_kept(self) -> bool:
        """True when the key was read from stored bytes (a file, the environment, a keyring), so that other programs
        may draw with it too; its draws then need a label.
        """
        return self._is_kept

    def secret_bytes(self) -> bytes:
        """Return the secret itself. Store it like the data it protects."""
        return self._secret

    def __repr__(self) -> str:
        return "Key(secret)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Key):
            return NotImplemented
        return hmac.compare_digest(self._secret, other._secret) and self._is_test == other._is_test

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise InvalidInput(f"a Key cannot be changed ({name} was not set); make another with subkey")

    def __delattr__(self, name: str) -> NoReturn:
        raise InvalidInput(f"a Key cannot be changed ({name} was not deleted); make another with subkey")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise InvalidInput(_REFUSED)

    def __getstate__(self) -> NoReturn:
        raise InvalidInput(_REFUSED)


def build(secret: bytes, *, is_test: bool = False, is_kept: bool = False) -> Key:
    """Make a key from checked bytes; only `privamp.testing` sets `is_test` itself."""
    key = object.__new__(Key)
    object.__setattr__(key, "_is_kept", is_kept)
    object.__setattr__(key, "_secret", secret)
    object.__setattr__(key, "_is_test", is_test)
    return key


def given_key(key: Key | None) -> Key:
    """The given key, or a fresh one for None."""
    if key is not None and not isinstance(key, Key):
        raise InvalidInput(
            f"key must be a Key, got a {type(key).__name__} instead; load it with Key.from_bytes or a provider's "
            "key(), or omit it for a fresh one"
        )
    return Key.generate() if key is None else key


def derive(key: Key, purpose: bytes, message: bytes = b"") -> bytes:
    """Return 32 bytes for one purpose inside this package; no subkey label can reach another purpose."""
    return blake2b(message, key=key.secret_bytes(), digest_size=_SIZE, person=purpose).digest()


def _encode(label: Label) -> bytes:
    """Tag, length, content: no two lists of labels share an encoding."""
    if isinstance(label, str):
        tag, content = b"s", label.encode("utf-8", "surrogatepass")
    elif isinstance(label, bytes):
        tag, content = b"b", label
    else:
        number = _whole(label)
        tag, content = b"i", number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
    return tag + len(content).to_bytes(8, "little") + content


def _whole(label: Any) -> int:
    try:
        if isinstance(label, bool):
            raise TypeError
        return operator.index(label)
    except TypeError:
        raise InvalidInput(f"labels must be str, int or bytes, got {type(label).__name__} instead") from None
