"""Shuffled batches: an attack. No upper bound is known that is of use, and this shows why one is needed.

In every epoch the records are shuffled and cut into `rounds` batches of equal size; one record is replaced. Let all
other records be equal to the new one: then every round but the record's looks the same under both, the record is in
each round with chance 1/rounds, and the run has the pair of random allocation at the *replace-one* distance,

    P = (1/t) sum_i N(theta e_i, I),    Q = N(0, I).

So epsilon is at least that of this pair, and epochs compose. Proof: docs/schedules/shuffled.md.
"""

from ..core.guarantee import Lower, Part
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..errors import NoTheorem
from ..mechanisms.laplace import Laplace
from ..validation import whole
from .composition import Composition
from .convex_order import one_of_many


def shuffling_attack(mechanism: Mechanism, rounds: int, epochs: int = 1) -> Lower:
    """What an adversary reaches under replace-one when every epoch shuffles the records and cuts them into batches.

    `mechanism` releases each batch (Gaussian or Laplace noise), each of `epochs` passes has `rounds` batches. The
    answer is a lower bound only: `epsilon(delta)` and `delta(epsilon)` of an attack. Nothing is certified.

    >>> from privamp import Gaussian
    >>> f"{shuffling_attack(Gaussian(1.0), 100).epsilon(1e-6):.2f}"
    '6.39'
    """
    whole(1, 2**32, rounds=rounds)
    whole(1, 10**9, epochs=epochs)
    if not (mechanism.is_gaussian or isinstance(mechanism, Laplace)):
        raise NoTheorem(
            "the attack on shuffled batches is known only for Gaussian and Laplace noise, got "
            f"{type(mechanism).__name__}"
        )
    one = one_of_many(mechanism.profile(Neighbors.REPLACE_ONE), rounds, upper=False).rounded_down()
    lower = one if epochs == 1 else Composition((Part(one, one, epochs),)).lower
    if lower is None:
        raise NoTheorem(f"no attack on {epochs} epochs is known")
    return Lower(lower)
