"""One release: draw, make rows, add noise, split the answer."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..chance.keys import Key
from ..core.guarantee import Guarantee
from ..core.ledger import BudgetLike
from ..core.population import Population
from ..core.release import Release
from ..core.sample import Bounded, Drawn, Sample
from ..errors import InvalidInput, NoTheorem
from ..mechanisms.fixed_point import ExactGaussian, ExactLaplace
from ..numerics.entries import rows_of
from ..numerics.log_domain import FloatArray
from ..numerics.row_norms import clipped, finite
from .options import SumOptions
from .plan import Plan, plan
from .rows import Rows

Released = tuple[FloatArray, FloatArray | None, float | None]  # sums from the centre, sampling variances, count


class SumRelease:
    """One release of a sum, perhaps with its squares and its count, all in one row per record."""

    def __init__(self, asked: SumOptions, centre: tuple[float, ...], count_share: float = 0.0) -> None:
        self.asked = asked
        self.rows = Rows(asked, centre, count_share)
        self.plan: Plan = plan(self.rows)
        self.gain = self._gain()

    def _gain(self) -> float:
        """What squares are multiplied with, so that few of them reach their share of the norm and are cut."""
        if not self.rows.squares_share:
            return 0.0
        most = self.plan.worst(1, self.rows.radius) if self.plan.rule is not None else self.rows.radius
        return self.rows.squares_share / most if most > 0 else 1.0  # all weights 1: the squares are all zero

    @property
    def noise_error(self) -> float:
        """Of one coordinate of the answer."""
        return self.plan.factor * self.asked.noise_error(self.plan.mechanism.noise, self.rows.width)

    def draw(self, x: FloatArray, key: Key | None) -> Sample:
        """The sample; weights are computed from the clipped records."""
        rule = self.plan.rule
        columns: dict[str, Any] = {} if rule is None else {"x": self.clip(x)}
        self.check_records(len(x))
        return self.plan.design.draw(Population(len(x), self.asked.label, **columns), key)

    def check_records(self, records: int) -> None:
        """Raise unless there are as many records as the design declares, if that is public."""
        if self.plan.records not in (None, records):
            raise InvalidInput("the number of records must be the design's population; declare the number that X has")

    def certify(self, sample: Sample, budget: BudgetLike | None) -> Guarantee:
        """The guarantee of the release, certified and charged before it is made; a sample allows one release."""
        if sample.ledger.entries or sample.ledger.plan is not None:
            raise InvalidInput(
                "this key has already drawn this sample, and a release was made from it; use a fresh key, or none"
            )
        name, delta = type(self.asked).__name__, self.asked.delta or None
        return sample._planned([self.plan.mechanism], budget, name, delta).guarantee(self.asked.neighbors)

    def clip(self, x: FloatArray) -> FloatArray:
        """Within the bounds, and in the ball of the rule where it has its own."""
        x, rule = self.asked.cut(x, self.rows.centre), self.plan.rule
        return x if rule is None or rule.radius is None else clipped(x, rule.radius, rule.p)

    def rows_of(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        """What kept records add, before weights."""
        more = weights - 1.0 if self.plan.rule is not None else np.ones(len(x))
        return self.rows.of(self.clip(x), more, self.gain)

    def release(self, sample: Sample, x: FloatArray) -> Released:
        """Sums, sampling variances and count, as requested, rescaled."""
        noise = self.plan.mechanism.noise

        def statistic(drawn: Drawn) -> Any:
            rows = self.rows_of(x[drawn.positions], drawn.weights)
            if isinstance(noise, (ExactLaplace, ExactGaussian)):
                return noise.total(rows, drawn)
            bound = noise.row_bound
            assert bound is not None  # Laplace, Gaussian and norm noise declare it
            return bound.total(rows, drawn)

        return self.taken_apart(sample.release(self.plan.mechanism, Bounded(statistic)))

    def taken_apart(self, noisy: Any) -> Released:
        """A noisy total as sums, sampling variances and count."""
        answer, d = np.asarray(noisy) * self.plan.factor, self.rows.dimension
        variance = None
        if self.gain:
            blur = self.noise_error / self.gain  # one standard error of its own noise, to be conservative
            assert self.plan.spread is not None  # no squares are released otherwise
            variance = self.plan.spread * (np.maximum(answer[d : 2 * d] / self.gain, 0.0) + blur)
        count = float(answer[-1]) / self.rows.count if self.rows.count else None
        return answer[:d], variance, count

    def answered(
        self,
        value: Any,
        noise_error: Any,
        sampling_error: Any,
        guarantee: Guarantee,
        source: str,
        resolution: float,
        count: float | None = None,
    ) -> Release:
        """The release. `resolution` is the most by which rounding moves one record's share of one coordinate."""
        asked = {"epsilon": self.asked.epsilon, "delta": self.asked.delta}
        details = {"resolution": resolution, "count": count, **asked}
        return Release(value, noise_error, sampling_error, guarantee, self.asked.noise, source, details=details)

    def sampling_error(
        self, variance: FloatArray | None, records: float | None
    ) -> tuple[FloatArray | float | None, str]:
        """Of one coordinate of the sum."""
        if self.plan.rule is None and self.plan.spread == 0.0:
            return 0.0, "no sampling"
        if variance is not None:
            return np.sqrt(variance), "private estimate"
        records = self.plan.records or records
        if records is None:
            return None, "unknown"
        try:
            return math.sqrt(max(records, 1.0) * self.plan.worst(2, self.rows.radius)), "public bound"
        except NoTheorem:  # a rule that looks at more than the norm
            return None, "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class SumJob(SumOptions, ABC):
    """What sums and means have in common; they differ in their rows and in the answer."""

    def release(self, X: Any, key: Key | None = None, *, budget: BudgetLike | None = None) -> Release:
        """The noisy answer for the rows of X (or for its numbers, for one column), charged to `budget` if given."""
        x, flat = records(X)
        task = self.task(x.shape[1])
        sample = task.draw(x, key)
        privacy = task.certify(sample, budget)
        return self.answer(task, privacy, task.release(sample, x), flat)

    @abstractmethod
    def task(self, dimension: int) -> SumRelease:
        """The release, planned for rows of so many numbers."""

    @abstractmethod
    def answer(self, task: SumRelease, privacy: Guarantee, released: Released, flat: bool) -> Release:
        """The estimate from what was released; `flat` for numbers instead of rows."""


def records(X: Any) -> tuple[FloatArray, bool]:
    """Rows of finite numbers, and whether X was a single column.

    Only the type and the shape of X, which are public, can be rejected. Entries that are missing (NaN, masked, None) or
    not numbers count as 0, infinite or too large ones as the largest double: clipped later, like every record.
    """
    x = rows_of(X)
    if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[1] == 0):
        raise InvalidInput("X must have one row per record and at least one column, in one or two dimensions")
    x = finite(x)
    return (x[:, None], True) if x.ndim == 1 else (x, False)


def flattened(flat: bool, *parts: Any) -> list[Any]:
    """Numbers for a single column."""
    return [part[0].item() if flat and isinstance(part, np.ndarray) else part for part in parts]
