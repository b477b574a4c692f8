"""Stored samples and the identity they were drawn by, this version's or an earlier one's.

A file says by which version of the identity its design made the key of the draw. Files without one are from before
designs had an identity: there the subkey came from the design's `repr`, which they hold.
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
    """The kernel that drew a stored sample, or a sentence that says what does not fit: key, design or version."""
    if key.fingerprint.hex() != facts["key_fingerprint"]:
        raise InvalidInput(f"{path!r} was drawn with another key; give the one it was drawn with")
    version = facts.get("identity_version")
    if version is None:
        kernel = _by_repr(kernel, key, facts, path)
    elif version != VERSION:
        raise InvalidInput(
            f"{path!r} was drawn by a privamp whose designs have identities of version {version}, and this one knows "
            f"version {VERSION}; open it with that privamp, or draw it again"
        )
    if kernel.ledger_id != facts["ledger_id"]:
        raise InvalidInput(f"{path!r} was drawn with another design; give the one it was drawn with")
    return kernel


def _by_repr(kernel: Kernel, key: Key, facts: Mapping[str, Any], path: str) -> Kernel:
    """The draw of a file from before identities; NumPy's numbers are shown as Python's, which is all that differs."""
    stored = str(facts["design"])
    if _NUMPY.sub(r"\1", stored) != repr(kernel.design):
        raise InvalidInput(
            f"{path!r} was drawn by an earlier privamp with the design {stored}, and {kernel.design} was given; "
            "give the one it was drawn with"
        )
    return replace(kernel, subkey=key.subkey(stored, str(facts["label"]), int(facts["round"])))
