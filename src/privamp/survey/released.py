"""What a survey releases: numbers with the two errors they have, certified by the ledger of their sample."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ..chance.keys import Key
from ..core.design import Design
from ..core.guarantee import Guarantee
from ..core.ledger import BudgetLike
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.population import Population
from ..core.release import Release
from ..core.sample import Bounded, Drawn, Sample
from ..errors import InvalidInput
from .adjust_options import AdjustOptions
from .options import EstimateOptions
from .within_bounds import WithinBounds

Options = EstimateOptions | AdjustOptions
UNBOUNDED = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class PaidSample:
    """A drawn sample and the budget that pays for its releases, if there is one."""

    sample: Sample
    budget: BudgetLike | None = None
    delta: float = 0.0

    @property
    def design(self) -> Design:
        """What drew it."""
        return self.sample.design

    def plan(self, *mechanisms: Mechanism) -> None:
        """Declare everything that will be released, before the first release: a budget is charged for it as a whole, or
        refuses."""
        is_several = len(mechanisms) > 1 and bool(self.design.parts)  # only a plan is composed stratum by stratum
        if self.budget is not None or is_several:
            self.sample._planned(mechanisms, self.budget, "survey estimate", self.delta or None)

    def release(self, mechanism: Mechanism, statistic: Callable[[Drawn], Any]) -> Any:
        """One release, of a statistic whose sensitivity holds by construction."""
        return self.sample.release(mechanism, Bounded(statistic))


def paid_sample(
    source: Sample | Design, values: Any, options: Options, key: Key | None, budget: BudgetLike | None
) -> PaidSample:
    """The sample that was given, or a fresh one by the design that was given."""
    if isinstance(source, Sample):
        if key is not None or options.label is not None:
            raise InvalidInput(
                "this sample was already drawn with its own key and label; omit key= and label=, or give a design "
                "instead"
            )
        return PaidSample(source, budget, options.delta)
    if not isinstance(source, Design):
        raise InvalidInput(f"estimate takes a sample or a design that draws one, got {type(source).__name__} instead")
    given = {name: column for name, column in options.columns.items() if column is not None}
    return PaidSample(source.draw(Population(len(values), options.label, **given), key), budget, options.delta)


@dataclass(frozen=True, slots=True)
class Source:
    """What all numbers of one estimate have in common: the noise, the source of the sampling error, the certifying
    sample."""

    sample: Sample
    noise: str  # "laplace" or "gaussian"
    sampling_error_is: str
    relation: Neighbors
    assumes: tuple[str, ...] = ()

    def certify(self) -> Callable[[], Guarantee]:
        """The guarantee of all releases from the sample so far, evaluated once, on demand."""

        @cache
        def found() -> Guarantee:
            whole = self.sample.guarantee(self.relation)
            return replace(whole, assumes=(*whole.assumes, *self.assumes))

        return found

    def release(
        self, value: Any, sampling: Any, noise: Any, certify: Callable[[], Guarantee] | None = None, *,
        ends: tuple[float, float] = UNBOUNDED, df: float = math.inf, details: Mapping[str, Any] | None = None,
    ) -> Release:  # fmt: skip
        """One number, with its errors; `ends` are what it can be, `df` the degrees of freedom of its sampling error."""
        guarantee, errors = certify or self.certify(), (float(noise), float(sampling))
        law: Any = self.noise
        if math.isfinite(df) or any(map(math.isfinite, ends)):
            law = WithinBounds(float(value), errors[1], errors[0], self.noise, *ends, df)
        return Release(float(value), *errors, guarantee, law, self.sampling_error_is, details=details)


def source_of(share: float, sd: Any) -> str:
    """Where the sampling error comes from, in the words of `Release.sampling_error_is`."""
    return "private estimate" if share else "public bound" if isinstance(sd, str) else "public sd"
