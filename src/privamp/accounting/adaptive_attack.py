"""An attack on many rounds that switches the two data sets: a lower bound by the recursion of adaptive.py.

Under replace-one two data sets have no order. A pair (P, Q) that a design's attack reaches in one round is reached as
(Q, P) by the query that exchanges the two records, so the family {(P, Q), (Q, P)} is open to him in every round, and he
may choose by what came out before. One kind of record at a time: the record is the same in all rounds. Theorem 1 of
docs/designs/rounds.md makes the recursion over this family a lower bound for all rounds together.
"""

import math
from collections.abc import Callable

import numpy as np

from ..core.guarantee import Guarantee, Part
from ..core.profile import Profile
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..validation import positive, whole
from .adaptive import adaptive_delta

_POINTS = 16_000  # of the window, on either side of 0


def turning_attack(one: Guarantee, rounds: int, reach: float) -> Callable[[float], float]:
    """delta(epsilon), from below, of so many rounds attacked in turn from both sides, for epsilon up to `reach`.

    >>> from privamp import Gaussian, Neighbors, WithoutReplacement, amplify
    >>> one = amplify(Gaussian(4.0), WithoutReplacement(100, 1000), Neighbors.REPLACE_ONE)
    >>> f"{turning_attack(one, 20, 2.0)(0.5):.4f}"
    '0.0035'
    """
    whole(1, rounds=rounds)
    positive(reach=reach)
    if one.neighbors.kind != "replace-one":
        raise InvalidInput(
            f"this attack needs replace-one neighbours, got {one.neighbors}; call amplify with that relation"
        )
    if len(one.parts) != 1 or one.parts[0].steps != 1 or one.parts[0].lower is None:
        raise InvalidInput(
            "this attack needs the guarantee of one round with a known attack, got another one; use the result of "
            "amplify"
        )
    found = [_one_kind(pair, rounds, reach) for pair in _pairs(one.parts[0])]
    epsilons, deltas = found[0][0], np.max([delta for _, delta in found], axis=0)

    def delta(epsilon: float) -> float:
        place = math.ceil(max(epsilon, 0.0) / float(epsilons[1]))  # the next point of the grid: delta falls
        return float(deltas[place]) if place < deltas.size else 0.0

    return delta


def _pairs(part: Part) -> list[Profile]:
    """What one kind of record reaches in one round."""
    if part.attacks:
        return [pair for _, pair in part.attacks]
    return [part.lower] if part.lower is not None else []


def _one_kind(pair: Profile, rounds: int, reach: float) -> tuple[FloatArray, FloatArray]:
    both = [pair] if pair.is_symmetric else [pair, Profile(pair.backward, pair.forward)]
    return adaptive_delta(both, rounds, interval=reach / _POINTS, reach=reach, upper=False)
