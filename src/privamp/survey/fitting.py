"""Adjustments as post-processing of noisy cells: the weight of each cell, and the influence of one record on the
result.

N_c is what a cell c counts for: its public total (poststratification, nonresponse classes of a public frame), its noisy
number of people (classes of secret sizes), or what raking gives it. R_c and Z_dc are the noisy number of answers and
their total in domain d. An answer in cell c counts g_c = N_c / R_c times, and

    count_d = sum_c g_c R_dc,   total_d = sum_c g_c (Z_dc + m R_dc),   mean_d = total_d / count_d,   m the middle.

Cells with too few answers for their noise are pooled with the next smaller ones first (poststratification), so no g_c
is made of noise. All of it is a function of released numbers and public ones: it has no privacy cost, and no weight of
a record is ever computed from other records (rule R1).

Linearised, the result moves with the weighted sum of e_i = g_c (u_i - v_c) / den over answers, u_i = 1_d (z_i - rho x_i
+ k) and v_c the cell's mean of u, or for raking its additive fit to the margins; where N_c is estimated, everybody adds
v_c / den too. Deville & Sarndal 1992; Lundstrom & Sarndal 1999 for nonresponse.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray, as_floats
from .cells import Answers

_ROUNDS = 500
_ENOUGH = 4.0  # a cell with at least this many standard deviations of its noise is not pooled


@dataclass(frozen=True, slots=True)
class Margin:
    """One public column with the totals of its categories."""

    name: str
    of_cell: NDArray[np.intp]  # (C,) the category of each cell
    totals: FloatArray  # (A,)


@dataclass(frozen=True, slots=True)
class Fit:
    """The weight of every cell."""

    pool: NDArray[np.intp]  # (C,) the pool that a cell is in
    people: FloatArray  # (P,) N of each pool
    answers: FloatArray  # (P,) R of each pool
    margins: tuple[Margin, ...] = field(default=(), repr=False)
    is_estimated: bool = False  # N is released, not public

    @property
    def factor(self) -> FloatArray:
        """g of each pool."""
        return self.people / self.answers

    def pooled(self, table: FloatArray) -> FloatArray:
        """(D, P) of a table (D, C)."""
        return np.stack([np.bincount(self.pool, row, self.people.size) for row in table])

    def fitted(self, means: FloatArray) -> FloatArray:
        """v: cell means (P,) themselves, or for raking their additive fit to the margins, weighted by answers."""
        if len(self.margins) < 2:
            return means
        columns = [np.eye(m.totals.size)[m.of_cell] for m in self.margins]
        x, w = np.concatenate(columns, axis=1), np.sqrt(self.answers)
        return np.asarray(x @ np.linalg.lstsq(w[:, None] * x, w * means, rcond=None)[0])


def fit_of(found: Answers, margins: tuple[Margin, ...], people: FloatArray | None, heaviest: float) -> Fit:
    """Rake to several margins, poststratify to one, or let respondents represent their class.

    `people` are the totals of the cells, public (C,); None where `found.everybody` has them, with noise, or for a mean
    of the whole population, which needs no total.
    """
    answers, few = found.count.sum(axis=0), _few(found, heaviest)
    if len(margins) > 1:
        start = as_floats(np.maximum(answers, few))
        raked = _raked(start, margins)
        everybody = float(margins[0].totals.sum())
        told = max(float((raked / start) @ answers), 0.5 * everybody)  # empty cells have people but no answers
        return Fit(np.arange(answers.size), raked * (everybody / told), start, margins)
    pool = _pools(answers, few)
    size = int(pool.max(initial=0)) + 1
    answered = np.maximum(np.bincount(pool, answers, size), few)
    known = found.everybody if people is None else people
    wanted = answered if known is None else np.maximum(np.bincount(pool, known, size), few if people is None else 0.0)
    return Fit(pool, as_floats(wanted), answered, (), is_estimated=people is None and known is not None)


def _few(found: Answers, heaviest: float) -> float:
    """Fewer answers than this, weighted, may be noise."""
    return max(heaviest, _ENOUGH * found.count_noise * float(np.sqrt(found.count.shape[0])))


def _pools(answers: FloatArray, few: float) -> NDArray[np.intp]:
    """Cells in the order of their answers; one with too few is joined by the next, the last ones by those before."""
    pool, number, gathered = np.zeros(answers.size, dtype=np.intp), 0, 0.0
    order = np.argsort(answers, kind="stable")
    for place, cell in enumerate(order):
        pool[cell] = number
        gathered += float(answers[cell])
        if gathered >= few and place + 1 < order.size:
            number, gathered = number + 1, 0.0
    if gathered < few and number > 0:
        pool[pool == number] = number - 1
    return pool


def _raked(start: FloatArray, margins: tuple[Margin, ...]) -> FloatArray:
    """Iterative proportional fitting (Deming & Stephan 1940); margins have one sum, so it converges."""
    cells = start.copy()
    for _ in range(_ROUNDS):
        before = cells
        for margin in margins:
            now = np.bincount(margin.of_cell, cells, margin.totals.size)
            cells = cells * (margin.totals / np.maximum(now, 1e-300))[margin.of_cell]
        if np.max(np.abs(cells - before)) <= 1e-10 * float(np.sum(cells)):
            break
    return cells


def check_margins(margins: tuple[Margin, ...]) -> float:
    """The common sum of the margins; raises if they differ."""
    sums = [float(margin.totals.sum()) for margin in margins]
    if any(abs(one - sums[0]) > 1e-6 * sums[0] for one in sums[1:]):
        raise InvalidInput(
            "the public totals of all margins must have one sum, the number of people, got "
            f"{', '.join(f'{m.name}: {s:g}' for m, s in zip(margins, sums, strict=True))} instead"
        )
    return sums[0]


@dataclass(frozen=True, slots=True)
class Linear:
    """An estimate, and the influence of a record on it: u = z - rho x + k in its domain, v of its pool, both over
    `den`."""

    value: float
    domain: int
    rho: float
    k: float
    v: FloatArray  # (P,)
    den: float
    noise: float  # standard deviation
    fit: Fit = field(repr=False)
    has_others: bool = False  # whether there are answers outside the domain

    def bound(self, half: float, over_half: float) -> float:
        """No |e| is larger: of an answer in the domain, of one in another domain, of no answer."""
        g, v, also = self.fit.factor, self.v, float(self.fit.is_estimated)
        own = g * (half + abs(self.rho) * over_half) + np.abs(g * (self.k - v) + also * v)
        other = np.abs((g - also) * v) if self.has_others else np.zeros_like(v)
        return float(np.max([own, other, also * np.abs(v)])) / abs(self.den)

    def residuals(
        self, pool: NDArray[np.intp], domain: NDArray[np.intp], answered: NDArray[np.bool_], z: FloatArray,
        x: FloatArray | float,
    ) -> FloatArray:  # fmt: skip
        """e of every record; `pool` is P for a record in no cell."""
        v, g = np.append(self.v, 0.0)[pool], np.append(self.fit.factor, 0.0)[pool]
        u = np.where(domain == self.domain, z - self.rho * x + self.k, 0.0)
        found = np.where(answered, g * (u - v), 0.0)
        return np.asarray((found + v if self.fit.is_estimated else found) / self.den)


def linear(found: Answers, fit: Fit, domain: int, statistic: str, middle: float, over_middle: float,
           ends: tuple[float, float]) -> Linear:  # fmt: skip
    """The estimate of one domain; `ends` are the bounds of the values, which a mean is cut to."""
    count, total = fit.pooled(found.count), fit.pooled(found.total)
    over = None if found.over is None else fit.pooled(found.over)
    g = fit.factor
    people = float(g @ count[domain])
    grown = float(np.sqrt(np.sum(np.bincount(fit.pool, minlength=g.size) * g**2)))  # of a count's noise
    if statistic != "total":  # a mean of fewer than noise alone would be is no mean
        people = max(people, 2.0 * found.count_noise * grown, float(np.min(g)))
    sums = float(g @ total[domain]) + middle * people
    if statistic == "total":
        made = Linear(sums, domain, 0.0, middle, _v(fit, count, total, None, domain, 0.0, middle), 1.0, 0.0, fit)
    elif over is not None:
        den = float(g @ over[domain]) + over_middle * people
        den = max(den, 2.0 * grown * float(np.hypot(found.over_noise, over_middle * found.count_noise)))
        rho = sums / den
        k = middle - rho * over_middle
        made = Linear(rho, domain, rho, k, _v(fit, count, total, over, domain, rho, k), den, 0.0, fit)
    else:
        mean = float(np.clip(sums / people, *ends))
        k = middle - mean
        made = Linear(mean, domain, 0.0, k, _v(fit, count, total, None, domain, 0.0, k), people, 0.0, fit)
    return replace(made, noise=_noise(found, made, count.shape[0]), has_others=count.shape[0] > 1)


def _v(fit: Fit, count: FloatArray, total: FloatArray, over: FloatArray | None, d: int, rho: float, k: float
       ) -> FloatArray:  # fmt: skip
    rows = total[d] + k * count[d] - (0.0 if over is None else rho * over[d])
    return fit.fitted(rows / fit.answers)


def _noise(found: Answers, one: Linear, domains: int) -> float:
    """The effect of the cells' noise on the result."""
    fit = one.fit
    g, v = fit.factor[fit.pool], one.v[fit.pool]
    own = found.total_noise**2 + (0.0 if found.over is None else (one.rho * found.over_noise) ** 2)
    counts = ((found.offset + one.k - v) ** 2 + (domains - 1) * v**2) * found.count_noise**2
    parts = g**2 * (own + counts) + (v**2 * domains * found.count_noise**2 if fit.is_estimated else 0.0)
    return float(np.sqrt(np.sum(parts))) / abs(one.den)
