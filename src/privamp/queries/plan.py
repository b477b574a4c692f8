"""Several questions about one sample: the noise is split by need, and everything is released at once.

A record adds one row to the release, the rows of all questions side by side, each multiplied by a public factor a_k. In
the norm of the noise it is at most sum a_k r_k (Laplace) or sqrt(sum a_k^2 r_k^2) (Gaussian), r_k the question's reach.
The error of question k is c_k s / a_k for noise s. The factors with the least sum of w_k (c_k / a_k)^2, where the norm
is 1, are

    Laplace   a_k ~ (w_k c_k^2 / r_k)^(1/3),      Gaussian   a_k ~ (w_k c_k^2 / r_k^2)^(1/4),

by Lagrange's condition; both problems are convex. Rows are added up as whole numbers, so the total does not depend on
the order of the records, and the total is rounded to the grid of the noise (fine_sums.py). For that the norm of a row
is shorter by one unit of the grid for each of its entries.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..calibration import calibrate
from ..core.design import Design
from ..core.guarantee import Guarantee
from ..core.release import Release
from ..core.sample import Bounded
from ..engines.stored_sample import ExactNoise, StoredSample, drawn_of
from ..errors import InvalidInput
from ..mechanisms.chosen_quantiles import ChosenQuantiles
from ..mechanisms.fixed_point import RECORDS, ExactGaussian, ExactLaplace, GridUnits, grid_for
from ..numerics.log_domain import FloatArray
from ..validation import in_range, positive
from . import on_spark
from .answers import release_parts
from .chosen import Choice
from .fine_sums import FineSums, norm_left
from .public_facts import PublicFacts
from .quantiles import Quantiles
from .questions import Asking, Question

if TYPE_CHECKING:
    from .table import Table

_INSIDE = 1.0 - 1e-9  # of the norm that records may have: so that none is clipped for rounding
_MOST_CELLS = 10**7


@dataclass(frozen=True, slots=True)
class Plan:
    """Questions that are answered together from one sample of a table."""

    table: "Table"
    questions: tuple[Question, ...]

    def __post_init__(self) -> None:
        if not self.questions:
            raise InvalidInput("a plan needs at least one question, such as table.count()")
        for question in self.questions:
            if not isinstance(question, Question) or question.table is not self.table:
                raise InvalidInput("a plan takes only questions of its own table, such as table.mean('age', (0, 110))")

    def plot(self) -> Any:
        """A matplotlib figure of the questions' weights (pip install 'privamp[plots]')."""
        return import_module("..report.shown_plans", __package__).questions_figure(self)

    def _repr_html_(self) -> str:
        """The plan as notebooks show it."""
        text: str = import_module("..report.shown_plans", __package__).questions_fragment(self)
        return text

    def run(self, *, epsilon: float, delta: float = 0.0) -> list[Release]:
        """One release per question, in order; they share one guarantee, which covers all of them together."""
        self.table._check_size()
        choice = self.choice()
        if choice is not None:
            on_spark.refuse_chosen(self.table.source)
            return [self._chosen(choice, epsilon, delta)]
        noise = self.noise(epsilon, delta)
        design, asking = self.table.design, self._asking(noise.p)
        layout = Layout.of(self.questions, asking, noise.grid)
        columns = tuple(dict.fromkeys(c for q in self.questions for c in q.columns))
        sample = self.table._drawn(columns)
        names = "; ".join(question.name for question in self.questions)
        sample._planned([noise], self.table.budget, names, delta or None)
        if on_spark.is_spark(self.table.source):
            noisy = on_spark.release(sample, columns, layout, noise)
        else:
            noisy = sample.release(noise, Bounded(lambda batches: layout.total(batches, noise)))
        facts = {"epsilon": epsilon, "delta": delta, "design": str(design)}
        return layout.releases(np.asarray(noisy), noise, design, self._guarantee(sample), facts)

    def choice(self) -> Choice | None:
        """For a single question about quantiles without intervals; None if noise is added instead."""
        only = self.questions[0]
        if len(self.questions) > 1 or not isinstance(only, Quantiles) or only.interval:
            return None
        return Choice(only, only.scale)

    def chosen_by(self, choice: Choice, epsilon: float, delta: float = 0.0) -> ChosenQuantiles:
        """The mechanism for this epsilon."""
        positive(epsilon=epsilon)
        in_range(0, 1, delta=delta)
        found = calibrate(
            lambda x: choice.mechanism(1.0 / x),
            self.table.design,
            epsilon=epsilon,
            delta=delta,
            neighbors=self.table.relation,
            within=(2.0**-24, 1e12),
        )
        assert isinstance(found, ChosenQuantiles)
        return found

    def _chosen(self, choice: Choice, epsilon: float, delta: float) -> Release:
        mechanism, question = self.chosen_by(choice, epsilon, delta), choice.question
        sample = self.table._drawn(question.columns)
        sample._planned([mechanism], self.table.budget, question.name, delta or None)
        rows = sample.release(mechanism, Bounded(choice.counts))
        names = _names(question)
        value = choice.values(rows) if names else float(choice.values(rows)[0])
        details = {"question": question.name, "epsilon": epsilon, "delta": delta, "design": str(self.table.design)}
        return Release(value, None, None, self._guarantee(sample), names=names, details=details)

    def _guarantee(self, sample: StoredSample) -> Callable[[], Guarantee]:
        return lambda: sample.guarantee(self.table.relation)

    def noise(self, epsilon: float, delta: float = 0.0) -> ExactNoise:
        """The noise for this epsilon: exact Laplace without a delta, exact Gaussian with one."""
        positive(epsilon=epsilon)
        in_range(0, 1, delta=delta)
        records = self.table.rows or RECORDS
        kind: Callable[..., ExactNoise] = ExactGaussian if delta else ExactLaplace
        found = calibrate(
            lambda s: kind(s, 1.0, grid_for(s, 1.0, records)), self.table.design, epsilon=epsilon, delta=delta,
            neighbors=self.table.relation,
            within=(max(2.0**-24, records * 2.0**-54), 1e12),  # beyond, sums of so many do not fit 64 bits
        )  # fmt: skip
        assert isinstance(found, (ExactLaplace, ExactGaussian))
        return found

    def _asking(self, p: float) -> Asking:
        design = self.table.design
        size = design.public_size if design.natural.kind == "replace-one" else None
        return Asking(p, bool(design.spread), size, size is not None and design.spread_of_size == 0.0)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where in the released vector each question's totals are, and what its rows are multiplied with."""

    questions: tuple[Question, ...]
    asking: Asking
    factors: tuple[float, ...]

    @classmethod
    def of(cls, questions: Sequence[Question], asking: Asking, grid: float = 0.0) -> "Layout":
        """The layout with the least weighted error, for rows of norm 1 with this grid."""
        made = cls(tuple(questions), asking, split(questions, asking, grid))
        if made.size > _MOST_CELLS:
            raise InvalidInput(f"these questions have {made.size} cells in all, but at most {_MOST_CELLS} are allowed")
        return made

    @property
    def size(self) -> int:
        """Numbers that are released."""
        return sum(self._size(question) for question in self.questions)

    def _groups(self, question: Question) -> int:
        return 1 if question.groups is None else len(question.groups.values)

    def _size(self, question: Question) -> int:
        return self._groups(question) * sum(cells * width for cells, width in question.cells(self.asking))

    def total(self, batches: Iterable[pa.RecordBatch], noise: ExactNoise) -> GridUnits:
        """The sum of all records' rows, in units of the noise's grid."""
        sums = FineSums.of(self.size, noise.grid)
        for batch in batches:
            self.add(sums, batch, noise)
        return sums.rounded()

    def add(self, sums: FineSums, batch: pa.RecordBatch, noise: ExactNoise) -> None:
        """Add one batch: rows without their cells are clipped as one, then every number goes to its cell."""
        drawn, entries, places = drawn_of(batch), [], []
        start = 0
        for question, factor in zip(self.questions, self.factors, strict=True):
            group = np.zeros(batch.num_rows, dtype=np.int64)
            if question.groups is not None:
                group = question.groups.places(batch)
            for (cells, width), (rows, cell) in zip(
                question.cells(self.asking), question.levels(batch, self.asking), strict=True
            ):
                inside = (group >= 0) & (cell >= 0)
                entries.append(np.where(inside[:, None], factor * rows, 0.0))
                first = np.where(inside, start + (group * cells + cell) * width, 0)
                places.append(first[:, None] + np.arange(width))
                start += self._groups(question) * cells * width
        rows = np.concatenate(entries, axis=1)
        radius = norm_left(noise.sensitivity, rows.shape[1], noise.grid)
        sums.add(rows, np.concatenate(places, axis=1), drawn, radius, noise.p)

    def releases(
        self, sums: FloatArray, noise: ExactNoise, design: Design, guarantee: Any, facts: dict[str, Any]
    ) -> list[Release]:
        """One per question, from the noisy sums over the sample."""
        kind, error = _law(noise)
        public = told_of(design, self.asking, error, kind)
        totals = sums * public.weight
        made, start = [], 0
        for question, factor in zip(self.questions, self.factors, strict=True):
            part = totals[start : start + self._size(question)] / factor
            start += self._size(question)
            told = replace(public, noise=public.noise / factor)
            answers = [a for group in self._by_group(question, part) for a in question.answer(group, told, self.asking)]
            names = _names(question)
            value, noise_error, sampling_error, law = release_parts(answers, kind, is_one=not names)
            details = {"question": question.name, **facts}
            made.append(
                Release(value, noise_error, sampling_error, guarantee, law, told.source, names, details=details)
            )
        return made

    def _by_group(self, question: Question, part: FloatArray) -> Iterable[list[FloatArray]]:
        groups, levels, start = self._groups(question), [], 0
        for cells, width in question.cells(self.asking):
            size = groups * cells * width
            levels.append(part[start : start + size].reshape(groups, cells, width))
            start += size
        return ([level[g] for level in levels] for g in range(groups))


def told_of(design: Design, asking: Asking, error: float, kind: str) -> PublicFacts:
    """The public facts about totals of one question, each with this error of noise."""
    weight, spread = design.weight, design.spread
    assert weight is not None  # the table rejects designs without one
    assert spread is not None
    of_size = spread if design.spread_of_size is None else design.spread_of_size
    return PublicFacts(error * weight, kind, spread, weight, asking.size, of_size, design.equal_chances)


def split(questions: Sequence[Question], asking: Asking, grid: float = 0.0) -> tuple[float, ...]:
    """The factors with the least weighted error, on the ball of norm 1, less what rounding to this grid takes."""
    entries = sum(width for question in questions for _, width in question.cells(asking))
    reach = np.array([question.reach(asking) for question in questions])
    worth = np.array([question.weight * question.need(asking) ** 2 for question in questions])
    if asking.p == 1.0:
        raw = (worth / reach) ** (1.0 / 3.0)
        norm = math.fsum(raw * reach)
    else:
        raw = (worth / reach**2) ** 0.25
        norm = math.hypot(*(raw * reach))
    return tuple((raw * (_INSIDE * norm_left(1.0, entries, grid) / norm)).tolist())


def _law(noise: ExactNoise) -> tuple[str, float]:
    """The kind of the noise and its standard error."""
    return ("gaussian", noise.sigma) if isinstance(noise, ExactGaussian) else ("laplace", math.sqrt(2.0) * noise.scale)


def _names(question: Question) -> tuple[str, ...]:
    groups = () if question.groups is None else question.groups.names
    if not groups or not question.parts:
        return groups or question.parts
    return tuple(f"{group}: {part}" for group in groups for part in question.parts)
