"""What a private sum or mean says: the value, its two errors, its privacy."""

from dataclasses import dataclass
from typing import Any, Literal

from ..core.guarantee import Guarantee
from ..numerics.log_domain import FloatArray

Source = Literal["no sampling", "public bound", "private estimate", "unknown"]


@dataclass(frozen=True, slots=True)
class Estimated:
    """A released sum or mean. Both errors are standard errors of one coordinate; neither knows of the clipping.

    `sampling_error` is a fact about the data: a bound from public facts, or an estimate that was paid for, or None
    where neither is there. `resolution` is the most by which rounding moves one record's share of one coordinate.
    """

    value: Any  # a number, or one per coordinate
    noise_error: FloatArray | float
    sampling_error: FloatArray | float | None
    sampling_error_is: Source
    resolution: float
    privacy: Guarantee
    count: float | None = None  # the noisy number of records, where a mean needed one

    def to_json(self) -> dict[str, Any]:
        """A dictionary for machines, with the guarantee and what it assumes."""

        def plain(x: Any) -> Any:
            return x.tolist() if hasattr(x, "tolist") else x

        return {
            "value": plain(self.value),
            "noise_error": plain(self.noise_error),
            "sampling_error": plain(self.sampling_error),
            "sampling_error_is": self.sampling_error_is,
            "resolution": self.resolution,
            "count": self.count,
            "privacy": self.privacy.to_json(),
        }
