"""A drawn sample and its ledger. What was drawn is secret; the only door out is `release`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..chance.keys import Key
from ..chance.stream import Stream
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from .guarantee import Guarantee
from .log import logger
from .mechanism import Mechanism
from .neighbors import Neighbors

if TYPE_CHECKING:
    from .design import Design


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a design drew: secret. `positions` index the population's ids."""

    positions: NDArray[np.int64] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)
    weights: FloatArray = field(repr=False)


@dataclass(slots=True)
class Ledger:
    """Every mechanism run on one sample, in order; `plan` is set when it was declared beforehand."""

    plan: tuple[Mechanism, ...] | None = None
    entries: list[Mechanism] = field(default_factory=list)

    def declare(self, mechanisms: Iterable[Mechanism]) -> None:
        """Fix the whole plan before the first release, which allows the tightest composition."""
        if self.entries or self.plan is not None:
            raise InvalidInput("a plan must be declared once and before the first release from a sample")
        self.plan = tuple(mechanisms)

    def register(self, mechanism: Mechanism) -> None:
        """Write the mechanism down, before its noise is drawn."""
        if self.plan is not None and (len(self.entries) >= len(self.plan) or self.plan[len(self.entries)] != mechanism):
            raise InvalidInput(
                f"release {len(self.entries) + 1} is {mechanism}, which the declared plan does not have there; "
                "follow the plan or draw a fresh sample"
            )
        self.entries.append(mechanism)


# One ledger per subkey, kept from the first release on: the same draw is the same sample, drawn again or not.
_LEDGERS: dict[bytes, Ledger] = {}


class Sample:
    """Records drawn by a design. Indices, counts, weights and the realised size are secret."""

    __slots__ = ("_drawn", "_ids", "_key", "_unused", "design")

    def __init__(self, design: "Design", ids: NDArray[Any], drawn: Drawn, key: Key) -> None:
        self.design = design
        self._ids = ids
        self._drawn = drawn
        self._key = key
        self._unused = Ledger()

    @property
    def ledger(self) -> Ledger:
        """What was asked of this sample so far, through this object or another one of the same draw."""
        return _LEDGERS.get(self._key.fingerprint, self._unused)

    def _opened_ledger(self) -> Ledger:
        return _LEDGERS.setdefault(self._key.fingerprint, self._unused)

    def declare(self, mechanisms: Iterable[Mechanism]) -> "Sample":
        """Declare every mechanism that will be run on this sample; returns the sample."""
        self._opened_ledger().declare(mechanisms)
        return self

    def release(self, mechanism: Mechanism, statistic: Callable[[Drawn], Any] | ArrayLike) -> Any:
        """Register the mechanism, compute the statistic on the sample, add noise.

        `statistic` is an array with one row per record of the population (its sum over the sample is
        released; the mechanism's sensitivity must bound one record's row), or a function of the secret
        `Drawn` for anything else.
        """
        value = statistic(self._drawn) if callable(statistic) else self._sum(np.asarray(statistic), mechanism)
        self._opened_ledger().register(mechanism)
        logger.info("release %d from a sample by %s: %s", len(self.ledger.entries), self.design, mechanism)
        stream = Stream(self._key.subkey("noise", len(self.ledger.entries))) if self._key.is_test else Stream.from_os()
        return mechanism.release(value, stream)

    def guarantee(self, neighbors: Neighbors | None = None) -> Guarantee:
        """Everything asked of this sample, composed inside it, then amplified once."""
        from ..amplification import certify_ledger  # the one call back to the right: a sample certifies itself

        return certify_ledger(self.ledger, self.design, neighbors, is_test=self._key.is_test)

    def reveal_secret(self) -> Drawn:
        """The drawn positions, counts and weights, for code that does its own accounting."""
        logger.warning("a sample by %s was opened outside its ledger", self.design)
        return self._drawn

    def _sum(self, values: NDArray[Any], mechanism: Mechanism) -> Any:
        if values.shape[:1] != self._ids.shape:
            raise InvalidInput("the statistic needs one row per record of the population, in the order of its ids")
        if values.ndim > 1 and not mechanism.hides_vectors:
            raise InvalidInput(
                f"{type(mechanism).__name__} is proved for one number, got a sum of rows instead; "
                "release the columns one by one, or use Laplace, Gaussian or NormNoise"
            )
        drawn = self._drawn
        scale = drawn.counts * drawn.weights if np.any(drawn.weights != 1.0) else drawn.counts
        return np.tensordot(scale, values[drawn.positions], axes=(0, 0))

    def __repr__(self) -> str:
        return f"Sample(design={self.design}, releases={len(self.ledger.entries)}, contents=secret)"

    def __reduce__(self) -> Any:
        raise InvalidInput("a Sample is secret and cannot be pickled; keep the key and draw it again")
