"""Canaries in ids, values and keys, and a search for them in all that an object says of itself."""

import contextlib
import json
import pickle
import re
import struct
import traceback
from collections.abc import Callable

import numpy as np

import privamp
from privamp import (
    Key,
    Laplace,
    Population,
)
from privamp.chance.keys import build

VALUE, ID, SECRET = 7351.9173, "canary-id-", bytes(range(0xC0, 0xE0))
PEOPLE = 3001
VALUES = np.random.default_rng(5).uniform(0.0, 9000.0, PEOPLE)
VALUES[::7] = VALUE
NAMES = [f"{ID}{i}" for i in range(PEOPLE)]
FORBIDDEN = [
    "7351.9", "7,351.9", ID, SECRET.hex(), repr(SECRET)[2:-1], SECRET.decode("latin-1"),
    struct.pack("<d", VALUE).decode("latin-1"), struct.pack("<f", VALUE).decode("latin-1"),
]  # fmt: skip


def leaks(text: str, *numbers: float) -> list[str]:
    """Canaries in the text, and numbers (a size, a weight) that stand in it as a word of their own."""
    words = [str(int(n)) if n == int(n) else repr(float(n)) for n in numbers]
    found = [word for word in words if re.search(rf"(?<![\d.]){re.escape(word)}(?![\d.])", text.replace(",", ""))]
    return found + [canary for canary in FORBIDDEN if canary in text]


def spoken(thing: object, *, may_be_pickled: bool = True) -> str:
    """All that an object says of itself."""
    words = [repr(thing), str(thing), f"{thing}"]
    if hasattr(thing, "to_json"):
        with contextlib.suppress(TypeError, privamp.PrivampError):
            words.append(json.dumps(thing.to_json(delta=1e-6)))
        with contextlib.suppress(TypeError, privamp.PrivampError):
            words.append(json.dumps(thing.to_json()))
    if may_be_pickled:
        with contextlib.suppress(Exception):  # many refuse, which is fine
            words.append(pickle.dumps(thing).decode("latin-1"))
    return "\n".join(words)


def key(number: int = 0) -> Key:
    """A key whose secret is known here, a fresh one for every number."""
    return build(SECRET).subkey("leaks", number) if number else build(SECRET)


def people(**columns: object) -> Population:
    return Population(NAMES, **columns)


def errors_of(action: Callable[[], object]) -> str:
    """The traceback of what an action raises, or nothing."""
    try:
        action()
    except Exception:
        return traceback.format_exc()
    return ""


# Every mechanism, with arguments that make one.
MECHANISMS = {
    "ApproxDP": (1.0, 1e-6),
    "DiscreteGaussian": (2.0,),
    "DiscreteLaplace": (2.0,),
    "ExactGaussian": (2.0,),
    "ExactLaplace": (2.0,),
    "Gaussian": (2.0,),
    "GeometricCount": (1.0,),
    "Joint": ([Laplace(1.0), Laplace(2.0)],),
    "Laplace": (2.0,),
    "NormNoise": (2.0, 1),
    "PureDP": (1.0,),
    "RandomizedResponse": (1.0, 3),
    "SumAndCount": (Laplace(1.0), Laplace(1.0)),
}
