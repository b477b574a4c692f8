"""The result of a bootstrap: estimates with errors and intervals computed from the released group averages."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..core.guarantee import Guarantee
from ..core.release import Release, renamed
from ..numerics.log_domain import FloatArray
from ..numerics.printing import as_asked
from .planning import Plan
from .spread import Finding
from .statistic import Series, Statistic

CHECKED = "the number of records is public (replace-one neighbours)"


@dataclass(frozen=True, eq=False)
class Averages:
    """The released averages and the rule that reads them; nothing here is secret."""

    statistic: Statistic
    plan: Plan
    released: FloatArray = field(repr=False)  # (groups, d)

    def findings(self, level: float) -> tuple[Finding, ...]:
        """Estimates, errors and intervals at this level."""
        procedure = self.plan.procedure
        noise = self.plan.sigma(self.statistic.sensitivity(procedure.size)) / procedure.each**0.5
        spread = replace(self.plan.spread, level=level)
        return self.statistic.conclude(Series(self.released, noise, spread, procedure.kept))

    def interval(self, level: float) -> tuple[Any, Any]:
        """Accounts for sampling, resampling, noise, and for the spread itself being estimated."""
        ends = [f.interval for f in self.findings(level)]
        low, high = ends[0] if len(ends) == 1 else np.array(ends).T
        return low, high

    def standard_error(self) -> Any:
        """Sampling, resampling and noise together."""
        errors = [f.standard_error for f in self.findings(self.plan.confidence)]
        return errors[0] if len(errors) == 1 else np.array(errors)


class Result(Release):
    """The release of a bootstrap: estimates by name, and the public `plan` behind them."""

    law: Averages

    @classmethod
    def of(cls, averages: Averages, guarantee: Guarantee) -> "Result":
        """Everything after the release."""
        plan, procedure = averages.plan, averages.plan.procedure
        found = averages.findings(plan.confidence)
        numbers = [(f.value, f.standard_error_noise, f.standard_error_sampling) for f in found]
        value, noise, sampling = numbers[0] if len(found) == 1 else map(np.array, zip(*numbers, strict=True))
        details = {
            "epsilon": plan.epsilon,
            "confidence": plan.confidence,
            "method": procedure.method,
            "population": procedure.population,
            "sizes": list(procedure.sizes),
            "groups": procedure.groups,
            "resamples_of_each": procedure.each,
            "spent": _spent(plan),
        }
        names = tuple(f.name for f in found)
        return cls(value, noise, sampling, guarantee, averages, "private estimate", names, details)

    @property
    def plan(self) -> Plan:
        """The plan that was run."""
        return self.law.plan

    @property
    def interval(self) -> "Interval":
        """`interval(level)`; the level of the plan where none is given."""
        return Interval(self)

    @property
    def estimate(self) -> float:
        """The first number: an old name of `value`."""
        renamed("estimate", "value")
        return float(np.ravel(self.value)[0])

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The numbers one by one: an old name for iterating over the release."""
        renamed("findings", "names, or for one in release")
        return self.law.findings(self.plan.confidence)

    def numbers(self, level: float | None = None) -> dict[str, Any]:
        """As for every release, at the level of the plan by default."""
        return super().numbers(self.plan.confidence if level is None else level)

    def to_json(self, level: float | None = None) -> dict[str, Any]:
        """As for every release, at the level of the plan by default."""
        return super().to_json(self.plan.confidence if level is None else level)


class Interval:
    """The interval of a bootstrap at any level. Used as a pair, as in earlier versions, it has the plan's level."""

    def __init__(self, result: Result) -> None:
        self._result = result

    def __call__(self, level: float | None = None) -> tuple[Any, Any]:
        """(low, high) of the statistic's value over the population, at this level."""
        return Release.interval(self._result, self._result.plan.confidence if level is None else level)

    def _first(self) -> tuple[float, float]:
        renamed("interval", "interval()", 4)
        low, high = self()
        return float(np.ravel(low)[0]), float(np.ravel(high)[0])

    def __iter__(self) -> Iterator[float]:
        return iter(self._first())

    def __getitem__(self, end: int) -> float:
        return self._first()[end]


def _spent(plan: Plan) -> tuple[tuple[str, str], ...]:
    """(what, on what)."""
    everything = f"epsilon {as_asked(plan.epsilon)}, delta {as_asked(plan.delta)}"
    if plan.procedure.method == "direct":
        return ((everything, "the mean and the mean square of all records, released together"),)
    return (
        (everything, f"{plan.resamples} released resample statistics, each for the estimate and for the spread"),
        ("nothing", "estimate, standard error and interval: computed from those"),
    )
