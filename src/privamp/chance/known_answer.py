"""Whether this machine's keyed function is the one that samples are drawn with: answers that are known are computed.

A library of another version, another byte order or a faulty processor would draw another sample on one of several
machines, and nobody would notice.
"""

from functools import cache

import numpy as np

from ..errors import InvalidInput
from .keyed import keyed_pairs
from .keys import Key

_KEY = bytes(range(32))
_NUMBERS = (0, 1, 1 << 63)
_TEXTS = ("", "a", "ä" * 20)
_OF_NUMBERS = (
    (0xF2BA548CCA27B2E4, 0x093EAE21BEF654F6, 0xD02B5B39B28D96FE),
    (0xA5345F97DB329BBA, 0x8221819FEA452D6F, 0xAF05A6EBD8AE8F9B),
)
_OF_TEXTS = (
    (0x119024925A5F295F, 0xC5E90E92D7074953, 0x4FED2B8DF0B41353),
    (0x7FADEBB93CCF50DF, 0x51224CC3D6313B3F, 0x575DB3EDB061D870),
)


@cache
def check_known_answer() -> None:
    """Raise unless the keyed function gives its known answers here; computed once in a process."""
    key = Key.from_bytes(_KEY).subkey("known answer")
    numbers = keyed_pairs(key, np.array(_NUMBERS, dtype=np.uint64))
    texts = keyed_pairs(key, np.array(_TEXTS, dtype=object))
    for found, known in ((numbers, _OF_NUMBERS), (texts, _OF_TEXTS)):
        if [half.tolist() for half in found] != [list(half) for half in known]:
            raise InvalidInput(
                "the keyed function gives other numbers here than everywhere else, so this machine would draw another "
                "sample; install the same version of privamp and of its dependencies on every machine"
            )
