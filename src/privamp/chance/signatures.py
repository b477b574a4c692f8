"""Signatures made with a secret key and checked with a public one.

Ed25519 (RFC 8032), with the signing key derived from a `Key`, so that one key file is enough; the derivation is that of
`subkey`, so the signatures reveal nothing about samples drawn with the same key.
"""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ..errors import InvalidInput
from .keys import Key

_DIGITS = 64  # of a public key


def sign(key: Key, message: bytes) -> str:
    """The signature, in hexadecimal digits."""
    return _signer(key).sign(message).hex()


def public_key(key: Key) -> str:
    """What others need to check the signatures of `key`: 64 hexadecimal digits, no secret.

    >>> len(public_key(Key.from_bytes(bytes(32))))
    64
    """
    return _signer(key).public_key().public_bytes_raw().hex()


def check_public_key(digits: str) -> str:
    """The key in lower case; raises if it is not a public key."""
    digits = digits.strip().lower()
    if len(digits) != _DIGITS or set(digits) - set("0123456789abcdef"):
        raise InvalidInput(f"a public key has {_DIGITS} hexadecimal digits, got {len(digits)} characters instead")
    return digits


def is_signed(public: str, message: bytes, signature: str) -> bool:
    """Whether the owner of `public` signed this message."""
    if signature != signature.lower():
        return False
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _signer(key: Key) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(key.subkey("privamp signature").secret_bytes())
