"""What a bootstrap answers: estimates with their errors and intervals, and what they cost."""

import math
from dataclasses import dataclass, field
from typing import Any

from ..core.guarantee import Guarantee
from .planning import Plan
from .spread import Finding

CHECKED = "the number of records is public (replace-one neighbours)"


@dataclass(frozen=True)
class Result:
    """Private estimates. All of it may be published; the guarantee covers everything together."""

    findings: tuple[Finding, ...]
    plan: Plan
    privacy: Guarantee = field(repr=False)
    spent: tuple[tuple[str, str], ...]  # (what, on what)

    @property
    def estimate(self) -> float:
        """The point estimate (of the first number, where there are several)."""
        return self.findings[0].value

    @property
    def standard_error(self) -> float:
        """Sampling, resampling and noise together."""
        return self.findings[0].standard_error

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval."""
        return self.findings[0].interval

    def __getitem__(self, name: str) -> Finding:
        """A finding by its name, such as a regression coefficient."""
        return {f.name: f for f in self.findings}[name]

    def to_json(self) -> dict[str, Any]:
        """A dictionary for machines: released numbers and public facts only; infinite ones become null."""
        procedure = self.plan.procedure
        return {
            "estimates": [
                {
                    "name": f.name,
                    "estimate": f.value,
                    "standard_error": _finite(f.standard_error),
                    "standard_error_sampling": f.standard_error_sampling,
                    "standard_error_noise": f.standard_error_noise,
                    "interval": [_finite(end) for end in f.interval],
                }
                for f in self.findings
            ],
            "confidence": self.plan.confidence,
            "method": procedure.method,
            "population": procedure.population,
            "sizes": list(procedure.sizes),
            "groups": procedure.groups,
            "resamples_of_each": procedure.each,
            "spent": [{"budget": cost, "on": what} for cost, what in self.spent],
            "privacy": self.privacy.to_json(epsilon=self.plan.epsilon),
        }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
