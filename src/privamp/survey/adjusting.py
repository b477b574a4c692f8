"""Estimates adjusted for nonresponse and to public totals: means, totals, ratios and domains of noisy cells.

What one record adds depends on that record, the public weights of the design and public facts alone; everything that
depends on several records (adjustment factors, raking, ratios, residuals' means) is computed from what was released.
Two releases come from one sample, planned together: the cells (`cells`), then the sampling variances of the linearised
estimates (`fitting`), for `variance_share` of the budget. Replicate weights are never made: each of them would be a
weight that other records move.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..chance.keys import Key
from ..core.bounds import Pair, pair_of, pairs_by_name
from ..core.design import Design
from ..core.ledger import BudgetLike
from ..core.mechanism import Mechanism
from ..core.sample import Drawn, Sample
from ..errors import InvalidInput
from ..mechanisms.fixed_point import in_grid_units
from ..numerics.log_domain import FloatArray
from ..validation import nonnegative, one_of, options_of
from .adjust_options import AdjustKeywords, AdjustOptions
from .basis import Basis, basis_of
from .by_stratum import bounds_by_stratum
from .cells import Cells
from .effects import EFFECT_PART, NO_EFFECT, Effect
from .exact import ExactRelease, Statistic, release_of
from .fitting import Fit, Linear, Margin, check_margins, fit_of, linear
from .frame import Frame, numbers_of, usual
from .groups import in_order, labels_of, places
from .released import UNBOUNDED, PaidSample, Source, paid_sample

STATISTICS = ("mean", "total", "proportion", "ratio")
RESPONSES = {  # by what divides the cells: classes or margins, and strata
    ("", False): "answers stand for everybody who gave none",
    ("classes", False): "answers stand for the people of their class who gave none",
    ("margins", False): "answers stand for the people of their categories of the margins who gave none",
    ("", True): "answers stand for the people of their stratum who gave none",
    ("classes", True): "answers stand for the people of their class and stratum who gave none",
}
PUBLIC_CLASSES = "the column given as `classes` is public, and a replaced record keeps its value of it"


def adjust(
    sample: Sample | Design,
    values: ArrayLike | Mapping[Any, ArrayLike],
    statistic: str = "mean",
    options: AdjustOptions | None = None,
    *,
    key: Key | None = None,
    budget: BudgetLike | None = None,
    **asked: Unpack[AdjustKeywords],
) -> Any:
    """Release one estimate (or one per domain, as a dictionary), adjusted for nonresponse.

    `values` has one entry per record of the population, in its order (see `answers`); an entry that is not a number is
    not an answer. Design, `key`, `budget`, `bounds`, `epsilon`, `delta` and `noise` are those of `estimate`.

    `classes` is a column of the frame: within a class, respondents represent nonrespondents. For designs of fixed size
    it is public and so are its counts; for others give its public names as `class_sizes`, with sizes where they are
    public. `margins={name: (column, {category: total})}` adjusts the answers to public totals: poststratification to
    one margin, raking to several. `statistic` "ratio" divides by the total of `denominator`, whose `denominator_bounds`
    are public. `domain` is a column, public or answered, and `domains` the public list of its names.
    `design_effect`=True releases that too, as `design_effect` of each estimate (see `effects`).

    Formal guarantee: that of `estimate`, under the design's own relation.

    >>> from privamp import Poisson, testing
    >>> drawn = Poisson(0.5).draw(2000, testing.seeded_key(1))
    >>> found = adjust(drawn, [1.0, 0.0, None, 1.0] * 500, "proportion", epsilon=2.0)
    >>> round(found.value, 1)
    0.7
    """
    one_of(STATISTICS, statistic=statistic)
    if statistic == "proportion" and options is None and asked.get("bounds") is None:
        asked["bounds"] = (0.0, 1.0)
    found = options_of(AdjustOptions, options, asked)
    if (statistic == "ratio") != (found.denominator is not None):
        raise InvalidInput("statistic='ratio' needs denominator=, the column to divide by; give both or none")
    questions = values if isinstance(values, Mapping) else {None: values}
    if not questions:
        raise InvalidInput("values must hold the answers to at least one question, got none instead")
    source = paid_sample(sample, next(iter(questions.values())), found, key, budget)
    if source.sample.ledger.entries and source.design.parts:
        raise InvalidInput(
            "a release was already made from this stratified sample; combine everything in one estimate, or draw a "
            "fresh sample"
        )
    basis = basis_of(source, source.sample._ids.size, found).part(1.0 / len(questions), found.noise)
    pairs = {name: _pairs(found.bounds, name, basis) for name in questions}
    tasks = {name: _Task(source, basis, statistic, found, one, pairs[name]) for name, one in questions.items()}
    source.plan(*(mechanism for task in tasks.values() for mechanism in task.mechanisms))
    made = {name: task.run() for name, task in tasks.items()}
    return made if isinstance(values, Mapping) else made[None]


@dataclass(frozen=True, slots=True)
class _Groups:
    """Cells and their public totals."""

    cell: NDArray[np.intp]
    cells: int
    people: FloatArray | None = None  # (C,) public totals
    margins: tuple[Margin, ...] = ()
    assumes: tuple[str, ...] = ()


class _Task:
    """One adjusted estimate of every domain."""

    def __init__(
        self, source: PaidSample, basis: Basis, statistic: str, options: AdjustOptions, values: ArrayLike,
        pairs: tuple[Pair, ...],
    ) -> None:  # fmt: skip
        self.source, self.basis, self.options = source, basis, options
        self.statistic = "mean" if statistic == "proportion" else statistic
        n = basis.weight.size
        self.by = bounds_by_stratum(
            tuple(map(usual, pairs)), basis.of, basis.heaviest, basis.theta, n, options.margins is None
        )
        self.ends = usual(self.by.ends)
        self.over_ends = None if options.denominator is None else usual(pair_of(options.denominator_bounds))
        if self.over_ends is not None and self.over_ends[0] < 0:
            raise InvalidInput(f"denominator_bounds must not be negative, got {options.denominator_bounds!r} instead")
        self.groups = _groups(options, basis, n)
        if self.by.is_divided:
            self.groups = _divided(self.groups, basis)
        self.names = (None,) if options.domains is None else _names(options.domains, "domains")
        self.cells = self._cells(values, n)
        self.first = self.cells.release(basis, options.noise, 1.0 - options.variance_share)
        if options.design_effect and basis.average_weight is None:
            raise InvalidInput(NO_EFFECT)
        self.second = self._spread(options.variance_share)

    @property
    def mechanisms(self) -> list[Mechanism]:
        """What is released: the cells, then the variances."""
        form = {"replaced": self.basis.is_replaced, "within": self.basis.is_within}
        return [made.mechanism(self.basis.names, **form) for made in (self.first, self.second)]

    def _cells(self, values: ArrayLike, n: int) -> Cells:
        o, sample = self.options, self.source.sample
        numbers = numbers_of(sample, values)
        answered, z, half = ~np.isnan(numbers), self.by.centred(numbers), 0.5 * (self.ends[1] - self.ends[0])
        halves, offset = None, None
        if self.by.is_divided:
            w = self.basis.heaviest
            half, halves = float(np.max(w * self.by.half) / np.max(w)), self.by.half
            offset = np.tile(self.by.offset, self.groups.cells // w.size)
        x, over_half = None, 0.0
        if self.over_ends is not None and o.denominator is not None:
            others = numbers_of(sample, o.denominator)
            answered &= ~np.isnan(others)
            x, over_half = _centred(others, self.over_ends)
        domain = np.zeros(n, dtype=np.intp)
        if o.domain is not None:
            domain = places(_column(o.domain, n, "domain"), self.names)
        known = self.groups.people is not None or bool(self.groups.margins)
        everybody = not known and (self.groups.cells > 1 or self.statistic == "total")
        domains = 1 if o.domain is None else len(self.names) + 1
        return Cells(
            self.groups.cell, domain, self.groups.cells, domains, answered, z, half, x, over_half, everybody, halves,
            offset,
        )  # fmt: skip

    def run(self) -> Any:
        """Release the cells, adjust, release the variances."""
        basis, cells, first, second, plan = self.basis, self.cells, self.first, self.second, self.mechanisms
        noisy = self.source.release(plan[0], lambda d: in_grid_units(cells.totals(first, basis, d)))
        found = cells.answers(first, noisy)
        fit = fit_of(found, self.groups.margins, self.groups.people, float(basis.heaviest.max()))
        middle, over = (0.5 * sum(ends) if ends else 0.0 for ends in (self.ends, self.over_ends))
        each = [linear(found, fit, d, self.statistic, middle, over, self.ends) for d in range(len(self.names))]
        rows = [self._residuals(one, fit) for one in each]
        farthest = float(np.max(self.by.half + np.abs(self.by.offset)))
        bounds = [one.bound(farthest, cells.over_half) for one in each]

        def variances(drawn: Drawn) -> Any:
            parts = [
                basis.variance(second, k, _within(row, bound), drawn)
                for k, (row, bound) in enumerate(zip(rows, bounds, strict=True))
            ]
            if self.options.design_effect:
                parts += [
                    basis.squares(second, len(rows) + k, _within(row, bound), drawn)
                    for k, (row, bound) in enumerate(zip(rows, bounds, strict=True))
                ]
            return in_grid_units(np.concatenate(parts))

        squares = [float(one[0]) for one in second.answers(self.source.release(plan[1], variances))]
        effects = self._effects(each, squares[len(each) :], bounds)
        return self._released(each, squares[: len(each)], bounds, effects)

    def _effects(self, each: list[Linear], squares: list[float], bounds: list[float]) -> list[Effect | None]:
        """What the variances are compared with, for design effects."""
        basis, unit = self.basis, math.sqrt(2.0 if self.options.noise == "laplace" else 1.0)
        weight, known = basis.average_weight, basis.half_square * (basis.records or 0.0)
        if not squares or weight is None:
            return [None] * len(each)
        found: list[Effect | None] = []
        for k, (one, square, bound) in enumerate(zip(each, squares, bounds, strict=True)):
            total = one.value if self.statistic == "total" and one.fit.is_estimated else 0.0
            noise = unit * self.second.scale_of(len(each) + k)
            records = float(one.fit.people.sum())
            found.append(Effect((square + known) * bound**2, noise * bound**2, total, records, weight, one.noise))
        return found

    def _spread(self, share: float) -> ExactRelease:
        """The noise for one variance per domain, and for the squares that a design effect is made of."""
        theta, noise = self.basis.share(share, self.options.noise), self.options.noise
        part = EFFECT_PART if self.options.design_effect else 0.0
        reach, squares = self.basis.variance_reach, self.basis.squares_reach
        wide, other = (float(np.max(r / theta)) * len(self.names) for r in (reach, squares))
        statistics = [Statistic(reach, wide / (1.0 - part), self.basis.is_sum) for _ in self.names]
        statistics += [Statistic(squares, other / part) for _ in self.names if part]
        return release_of(noise, statistics, theta, self.basis.records)

    def _residuals(self, one: Linear, fit: Fit) -> FloatArray:
        pool = np.append(fit.pool, fit.people.size)[self.cells.cell]
        x = 0.0 if self.cells.over is None else self.cells.over
        z = self.cells.value + self.by.offset[self.by.which]
        return one.residuals(pool, self.cells.domain, self.cells.answered, z, x)

    def _released(
        self, each: list[Linear], squares: list[float], bounds: list[float], effects: list[Effect | None]
    ) -> Any:
        noise = self.options.noise
        unit = math.sqrt(2.0 if noise == "laplace" else 1.0)
        by = "margins" if self.options.margins is not None else "" if self.options.classes is None else "classes"
        assumes = (RESPONSES[by, self.by.is_divided], *self.groups.assumes)
        source = Source(self.source.sample, noise, "private estimate", self.basis.relation, assumes)
        certify = source.certify()
        found = []
        for k, (one, square, bound, effect) in enumerate(zip(each, squares, bounds, effects, strict=True)):
            noisy = unit * self.second.scale_of(k)
            spread = max(square, 0.0) + 0.5 * noisy  # raised by half its noise, to be conservative
            error = bound * math.sqrt(spread)
            ends = self.ends if self.statistic == "mean" else UNBOUNDED
            details = {"design_effect": effect.of(bound**2 * square, bound**2 * noisy)} if effect else None
            found.append(
                source.release(one.value, error, one.noise, certify, ends=ends, df=self.basis.df, details=details)
            )
        return found[0] if self.options.domains is None else dict(zip(self.names, found, strict=True))


def _within(rows: FloatArray, bound: float) -> FloatArray:
    """Rows over their bound, within -1 and 1."""
    return np.clip(np.nan_to_num(rows / bound), -1.0, 1.0)


def _centred(numbers: FloatArray, ends: tuple[float, float]) -> tuple[FloatArray, float]:
    """Numbers measured from the middle of their bounds and clipped to them, 0 for nan; and half the range."""
    low, high = ends
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    return np.nan_to_num(np.clip(np.clip(numbers, low, high) - middle, -half, half), nan=0.0), half


def _groups(options: AdjustOptions, basis: Basis, n: int) -> _Groups:
    if options.margins is not None:
        return _margins(options.margins, n)
    if options.classes is not None:
        return _classes(options, basis, n)
    people = None if basis.records is None else np.array([basis.records])
    return _Groups(np.zeros(n, dtype=np.intp), 1, people)


def _pairs(bounds: Any, question: Any, basis: Basis) -> tuple[Pair, ...]:
    """One pair per stratum: from one for all, one per question, one per stratum, or one per stratum of a question."""
    own = bounds[question] if isinstance(bounds, Mapping) and question is not None and question in bounds else bounds
    if isinstance(own, Mapping) and not isinstance(basis.of, Frame):
        raise InvalidInput("bounds by stratum need a design of strata; give one pair, or one per question")
    return pairs_by_name(own, basis.names)


def _divided(groups: _Groups, basis: Basis) -> _Groups:
    """Cells by strata, with the public number of people of each; for strata of fixed size."""
    assert isinstance(basis.of, Frame)
    strata = basis.heaviest.size
    cell = np.minimum(groups.cell * strata + basis.of.which, groups.cells * strata)
    cell = np.where(groups.cell >= groups.cells, groups.cells * strata, cell)
    return replace(groups, cell=cell, cells=groups.cells * strata, people=_counted(cell, groups.cells * strata, basis))


def _counted(cell: NDArray[np.intp], cells: int, basis: Basis) -> FloatArray:
    """People of each cell who can be drawn."""
    drawable = np.ones(cell.size, dtype=bool)
    if isinstance(basis.of, Frame):
        drawable[np.array(basis.of.strangers, dtype=np.intp)] = False  # in no stratum: never drawn
    return np.bincount(cell[drawable], minlength=cells + 1)[:-1].astype(np.float64)


def _classes(options: AdjustOptions, basis: Basis, n: int) -> _Groups:
    labels, sizes = _column(options.classes, n, "classes"), options.class_sizes
    if basis.relation.kind == "replace-one" and basis.is_replaced:
        names = in_order(labels) if sizes is None else _names(sizes, "class_sizes")
        cell = places(labels, names)
        return _Groups(cell, len(names), _counted(cell, len(names), basis), assumes=(PUBLIC_CLASSES,))
    if sizes is None:
        raise InvalidInput(
            "classes of this design need class_sizes=, the public list of their names, or a dictionary with their "
            "public sizes: which classes occur, and how large they are, is secret here"
        )
    names = _names(sizes, "class_sizes")
    people = _totals(sizes, "class_sizes") if isinstance(sizes, Mapping) else None
    return _Groups(places(labels, names), len(names), people)


def _margins(margins: Mapping[str, Any], n: int) -> _Groups:
    """Cells are the combinations of the categories; a record outside the listed ones is in none."""
    if not isinstance(margins, Mapping) or not margins:
        raise InvalidInput("margins must be {name: (column, {category: public total})}, with at least one name")
    cell, cells = np.zeros(n, dtype=np.intp), 1
    inside = np.ones(n, dtype=bool)
    sizes: list[tuple[str, FloatArray]] = []
    for name, given in margins.items():
        try:
            column, totals = given
        except (TypeError, ValueError):
            raise InvalidInput(f"the margin {name!r} must be (column, {{category: public total}})") from None
        if not isinstance(totals, Mapping) or not totals:
            raise InvalidInput(f"the margin {name!r} needs a public total for every category, as a dictionary")
        at = places(_column(column, n, f"the margin {name!r}"), tuple(totals))
        inside &= at < len(totals)
        cell, cells = cell * len(totals) + np.minimum(at, len(totals) - 1), cells * len(totals)
        sizes.append((str(name), _totals(totals, f"margin {name}")))
    made, after = [], cells
    for name, totals in sizes:
        after //= totals.size
        made.append(Margin(name, (np.arange(cells) // after) % totals.size, totals))
    check_margins(tuple(made))
    cell = np.where(inside, cell, cells)
    people = made[0].totals if len(made) == 1 else None
    return _Groups(cell, cells, people, tuple(made) if len(made) > 1 else ())


def _totals(sizes: Mapping[Any, Any], what: str) -> FloatArray:
    for size in sizes.values():
        nonnegative(**{f"a total of {what}": size})
    found = np.array([float(size) for size in sizes.values()])
    if not np.all(found > 0):
        raise InvalidInput(f"every total of {what} must be above 0; omit empty ones")
    return found


def _names(given: Any, what: str) -> tuple[Any, ...]:
    names = tuple(given)
    if not names or len(set(names)) < len(names):
        raise InvalidInput(f"{what} must name at least one, and each once")
    return names


def _column(given: Any, n: int, what: str) -> list[Any]:
    labels = labels_of(given)
    if len(labels) != n:
        raise InvalidInput(f"{what} must have one value per record, in the order of the values")
    return labels
