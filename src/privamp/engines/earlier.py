"""Stored samples drawn by this version or an earlier one.

A file stores the version of the identity from which the key of the draw was derived. Files without one are older: their
subkey was derived from the design's `repr`, which they store.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..chance.keys import Key
from ..core.identity import VERSION
from ..errors import InvalidInput
from .kernel import Kernel

_NUMPY = re.compile(r"np\.(?:float|int|uint|str|bool)\w*\(([^()]*)\)")


def drawn_before(kernel: Kernel, key: Key, facts: Mapping[str, Any], path: str) -> Kernel:
    """The kernel that drew a stored sample; raises if key, design or version do not match."""
    if key.fingerprint.hex() != facts["key_fingerprint"]:
        raise InvalidInput(f"{path!r} was drawn with another key; give that key")
    version = facts.get("identity_version")
    if version is None:
        kernel = _by_repr(kernel, key, facts, path)
    elif version != VERSION:
        raise InvalidInput(
            f"{path!r} was drawn by a privamp with design identities of version {version}, and this one has version "
            f"{VERSION}; open it with that privamp, or draw it again"
        )
    if kernel.ledger_id != facts["ledger_id"]:
        raise InvalidInput(f"{path!r} was drawn with another design; give that design")
    return kernel


def _by_repr(kernel: Kernel, key: Key, facts: Mapping[str, Any], path: str) -> Kernel:
    """The draw of a file older than identities; only the repr of NumPy's numbers may differ."""
    stored = str(facts["design"])
    if _NUMPY.sub(r"\1", stored) != repr(kernel.design):
        raise InvalidInput(
            f"{path!r} was drawn by an earlier privamp with the design {stored}, and {kernel.design} was given; "
            "give the one it was drawn with"
        )
    return replace(kernel, subkey=key.subkey(stored, str(facts["label"]), int(facts["round"])))
