"""Designs side by side: one mechanism, one relation, and for each design its guarantee and the records it reads.

Ranked by epsilon at a fixed delta. MUST's numbers (`aligned.py`) are shown beside it, but do not rank designs.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..accounting.composition import compose
from ..amplification import amplify
from ..core.design import Design
from ..core.guarantee import Guarantee
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..errors import DegradingDesign, NoTheorem
from ..numerics.roots import NumericalFailure
from .aligned import Aligned, align

WHY_NOT_EPS_PRIME = (
    "ε' alone misleads: it only measures how few different records are used (n·η of them), not the privacy loss of a "
    "record that is drawn several times."
)
ADVICE = (
    "Use Poisson or WOR, with a smaller sample if compute is limited; use designs that repeat records (WR, "
    "multistage) only if the procedure needs the repeats."
)


@dataclass(frozen=True, slots=True)
class Question:
    """The question for every design."""

    mechanism: Mechanism
    neighbors: Neighbors = Neighbors.REPLACE_ONE
    delta: float = 1e-6
    epsilon: float = 1.0  # of delta(epsilon), and the base epsilon of MUST's view
    steps: int = 1


@dataclass(frozen=True)
class Row:
    """One design: its numbers, or the reason why there are none."""

    design: Design
    label: str
    eta: float
    repeats: bool  # whether a record can appear more than once
    expected_size: float | None
    expected_distinct: float | None
    reason: str | None = None  # why nothing is certified
    failed: bool = False  # the reason is numerical
    one: Guarantee | None = field(default=None, repr=False)  # of one draw
    guarantee: Guarantee | None = field(default=None, repr=False)  # of all steps
    aligned: Aligned | None = None
    epsilon_upper: float | None = None
    epsilon_lower: float | None = None
    delta_upper: float | None = None
    delta_lower: float | None = None

    def to_json(self) -> dict[str, Any]:
        """For machines; missing numbers are null."""
        names = ("label", "epsilon_upper", "epsilon_lower", "delta_upper", "delta_lower", "expected_size")
        answer = {name: getattr(self, name) for name in (*names, "expected_distinct", "repeats", "eta")}
        if self.aligned:
            answer |= {"amplified_epsilon": self.aligned.epsilon, "amplified_delta": self.aligned.delta}
            answer |= {"type": self.aligned.kind, "aligned": [self.aligned.ratio, self.aligned.difference]}
        answer["because"] = list(self.guarantee.because) if self.guarantee else []
        answer["degrades"] = self.guarantee.degrades if self.guarantee else None
        return answer | ({"reason": self.reason} if self.reason else {})


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rows in order of epsilon at the question's delta, smallest first; designs without a number last."""

    question: Question
    rows: tuple[Row, ...]
    population: int | None

    @property
    def has_repeats(self) -> bool:
        """Whether a design in the list may draw a record several times."""
        return any(row.repeats for row in self.rows)

    def uneven(self) -> str | None:
        """A sentence when the expected sizes differ by more than 1%, so that the comparison is not fair."""
        sizes = [row.expected_size for row in self.rows if row.expected_size is not None]
        if not sizes or max(sizes) <= 1.01 * min(sizes):
            return None
        return f"expected sizes run from {min(sizes):g} to {max(sizes):g}; compare designs at equal expected size"

    def plot(self) -> Any:
        """A matplotlib figure of delta(epsilon) of every design, from both sides, and of MUST's view."""
        from .pictures import comparison_figure

        return comparison_figure(self)

    def _repr_html_(self) -> str:
        """The comparison as notebooks show it."""
        from .shown_plans import comparison_fragment

        return comparison_fragment(self)


def compare_designs(designs: Sequence[Design], question: Question, population: int | None = None) -> Comparison:
    """Compare several designs, ranked by epsilon at the question's delta.

    >>> from privamp import Gaussian, Poisson, WithoutReplacement
    >>> found = compare_designs([WithoutReplacement(400, 1000), Poisson(0.4)], Question(Gaussian(2.0)))
    >>> [(row.label, round(row.epsilon_upper, 3)) for row in found.rows]
    [('Poisson 0.4', 1.856), ('WOR 400', 3.788)]
    """
    n = population if population is not None else common_population(designs)
    rows = [_row(design, question, n) for design in designs]
    rows.sort(key=lambda row: math.inf if row.epsilon_upper is None else row.epsilon_upper)
    rows.sort(key=lambda row: row.guarantee is None)
    return Comparison(question, tuple(rows), n)


def common_population(designs: Sequence[Design]) -> int | None:
    """The population the designs declare, when they declare one and the same."""
    declared = {design.public_size for design in designs if design.public_size is not None}
    return declared.pop() if len(declared) == 1 else None


def label(design: Design) -> str:
    """A short name for tables and pictures, such as 'WOR 500 → WR 400'."""
    if hasattr(design, "stages"):
        return " → ".join(f"{kind.upper()} {size}" for kind, size in design.stages)
    name = {"WithoutReplacement": "WOR", "WithReplacement": "WR"}.get(type(design).__name__, type(design).__name__)
    first = next(iter(getattr(design, "__dataclass_fields__", {})), None)
    value = getattr(design, first) if first else None
    return f"{name} {value:g}" if isinstance(value, (int, float)) else name


def _row(design: Design, question: Question, population: int | None) -> Row:
    law = design.appearances()
    n = design.public_size or population
    row = Row(
        design,
        label(design),
        law.eta,
        repeats=bool(np.any(np.isfinite(law.log_p[1:]))),
        expected_size=None if n is None else design.expected_size(n),
        expected_distinct=None if n is None else design.expected_distinct(n),
    )
    try:
        return replace(row, **_numbers(design, question, law.eta))
    except NoTheorem as error:
        return replace(row, reason=str(error))
    except NumericalFailure as error:
        return replace(row, reason=f"no number, because {error}", failed=True)


def _numbers(design: Design, question: Question, eta: float) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegradingDesign)  # each row has its own mark
        one = amplify(question.mechanism, design, question.neighbors)
    guarantee = compose(one, question.steps) if question.steps > 1 else one
    lower = guarantee.lower
    is_one_record = question.neighbors.unit == "record"  # MUST's view is about the draws of one record
    return {
        "one": one,
        "guarantee": guarantee,
        "aligned": align(one, question.mechanism, eta, question.epsilon) if is_one_record else None,
        "epsilon_upper": guarantee.epsilon(question.delta),
        "epsilon_lower": lower.epsilon(question.delta) if lower else None,
        "delta_upper": float(guarantee.delta(question.epsilon)),
        "delta_lower": float(lower.delta(question.epsilon)) if lower else None,
    }
