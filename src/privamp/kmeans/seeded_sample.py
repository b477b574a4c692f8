"""A seeded sample, for tests: its ledger is its own, so that one seed fitted twice gives the same centres twice."""

from ..core.sample import Ledger, Sample


class SeededSample(Sample):
    """A sample drawn with a test key. NOT PRIVATE, as its key says."""

    __slots__ = ()

    @classmethod
    def of(cls, sample: Sample) -> "SeededSample":
        """The same draw, with a new ledger."""
        return cls(sample.design, sample._ids, sample._drawn, sample._key)

    @property
    def ledger(self) -> Ledger:
        """Only what was asked through this object."""
        return self._unused

    def _opened_ledger(self) -> Ledger:
        return self._unused
