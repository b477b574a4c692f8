"""A seeded sample, for tests: its ledger is its own, so that one seed gives the same answers twice."""

from .ledger import Ledger
from .sample import Sample


class SeededSample(Sample):
    """A sample drawn with a test key. NOT PRIVATE, as its key says."""

    __slots__ = ()

    @classmethod
    def of(cls, sample: Sample) -> "SeededSample":
        """The same draw, with a new ledger."""
        return cls(sample.design, sample._ids, sample._drawn, sample._key, sample._key_id, **sample._columns)

    @classmethod
    def if_test(cls, sample: Sample) -> Sample:
        """The sample itself where its key is a real one."""
        return cls.of(sample) if sample._key.is_test else sample

    @property
    def ledger(self) -> Ledger:
        """Only what was asked through this object."""
        return self._unused

    def _opened_ledger(self) -> Ledger:
        return self._unused
