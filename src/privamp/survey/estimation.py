"""A private mean, total or proportion from a sample, with both of its errors.

Weights are public: N_h/n_h in strata drawn without replacement, 1/rate for Poisson; clusters, fixed shares, unequal
coins and every other design with public weights are estimated in `weighted`. The weighted total goes through
`Sample.release` with just the noise that the budget needs, each stratum with its own sensitivity, in exact arithmetic
(`exact`). The sampling error is itself a fact about the data: it comes from a public standard deviation (`sd={...}`),
from the bounds (`sd="range"`, wide but free), or, by default, from a variance that is released too and paid for with
`variance_share` of the budget.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..chance.keys import Key
from ..core.design import Design
from ..core.ledger import BudgetLike
from ..core.sample import Drawn, Sample
from ..errors import InvalidInput
from ..mechanisms.fixed_point import ExactLaplace, Whole, in_grid_units
from ..mechanisms.laplace import Laplace
from ..numerics.log_domain import FloatArray, as_floats
from ..validation import one_of, options_of
from .effects import EFFECT_PART, NOT_HERE, Effect
from .exact import ExactRelease, Lattice, Statistic, release_of, summed
from .frame import Frame, frame_of
from .groups import Groups, groups_of
from .hidden_signal import signal
from .options import Declared, EstimateKeywords, EstimateOptions
from .ratio import poisson_mean
from .released import UNBOUNDED, PaidSample, Source, paid_sample, source_of
from .weighted import estimate_weighted


def estimate(
    sample: Sample | Design,
    values: ArrayLike,
    statistic: str = "mean",
    options: EstimateOptions | None = None,
    *,
    key: Key | None = None,
    budget: BudgetLike | None = None,
    **asked: Unpack[EstimateKeywords],
) -> Any:
    """Release one estimate (or one per value of the public column `by`, as a dictionary) from a drawn sample.

    Instead of a sample you may give a design, which then draws one from the records with `key` (a fresh one by
    default). A `budget` is charged for everything that is released here, before any of it; such a sample allows no
    other release. Options are keywords, or `EstimateOptions` with the same names.

    `values` has one number per record of the population, in its order; it is clipped to `bounds` ((lowest, highest), or
    one pair per stratum), which must be public; an entry that is not a number (missing, nan, text) counts as the middle
    of them. `statistic` is "mean", "total" or "proportion". Give the budget as `epsilon` (and `delta` for Gaussian
    `noise`), or the noise itself as `mechanism` (its scale, that of the released statistic, is kept; the noise is exact
    in any case). `population` is the public number of records for Poisson designs; a Poisson mean without it, or
    `weights`="hajek", is a ratio of two released sums.

    The sampling error is released too, for `variance_share` of the budget, unless `sd` gives it: public standard
    deviations, or "range" for the largest that the bounds allow. `design_effect`=True releases that too, from the same
    share, for samples and strata of fixed size; clusters' estimates have one in any case (`effects`).

    `by` is public for designs of fixed size. For Poisson designs it is not, so `groups` lists the public groups (for
    totals), or give their public sizes as a dictionary (for means and for sd="range"; {group: {stratum: size}} with
    strata); records of other groups are left out.

    Every other design with public weights takes either noise in the same way, under its own relation: `Systematic`,
    `Proportional` (random rounding), `ClusterSampling`, `ClusterPPS`, `PoissonPPS`, `RandomSize`, `WithReplacement`,
    and designs of your own.
    Strata, clusters and probabilities are those of the draw. `stratum`, `cluster` and `probability` need not be given;
    where they are, they must be the columns of the draw.
    """
    one_of(("mean", "total", "proportion"), statistic=statistic)
    if statistic == "proportion" and options is None and asked.get("bounds") is None:
        asked["bounds"] = (0.0, 1.0)
    found = options_of(EstimateOptions, options, asked)
    source = paid_sample(sample, values, found, key, budget)
    design = source.design
    if source.sample.ledger.entries and design.parts:
        raise InvalidInput(
            "a release was already made from this stratified sample; combine everything in one estimate, or draw a "
            "fresh sample"
        )
    if not design.parts and design.equal_chances is None:
        return estimate_weighted(source, values, statistic, found)
    return _by_chances(source, values, statistic, found)


def _by_chances(source: PaidSample, values: ArrayLike, statistic: str, options: EstimateOptions) -> Any:
    """Designs with one probability in each stratum."""
    by, mechanism, epsilon = options.by, options.mechanism, float(options.epsilon or 0)
    frame = frame_of(source.sample, values, options.bounds, options.stratum, options.population)
    secret = by is None and bool(np.any(np.isnan(frame.records)))
    ratio = statistic != "total" and not frame.fixed and (options.weights == "hajek" or secret)
    if mechanism is not None and (options.sd is None or ratio or by is not None):
        raise InvalidInput("a declared mechanism releases one number: give sd= (or sd='range'), no by=, no hajek ratio")
    if ratio:
        if by is not None or len(frame.names) > 1:
            raise InvalidInput(
                "a ratio of two sums is only for the whole population; give population= by strata, groups= by groups"
            )
        theta = float(signal((float(frame.rate[0]),), epsilon, options.delta, options.law)[0])
        return poisson_mean(source, frame, options.law, theta, options.sd, options.share)
    split = groups_of(frame, by, options.groups)
    if by is not None and not frame.fixed:  # what is measured from the middle of the bounds needs public sizes
        frame = replace(frame, records=split.sizes.sum(axis=0))
    if options.design_effect and (not frame.fixed or by is not None or not options.share):
        raise InvalidInput(NOT_HERE)
    task = WeightedTotals(frame, statistic, split, options.sd, options.design_effect)
    theta_each = None if mechanism else signal(tuple(frame.rate.tolist()), epsilon, options.delta, options.law)
    return task.run(source, options.law, theta_each, mechanism, options.share)


class WeightedTotals:
    """Weighted totals of one or several groups, and their sampling variances."""

    def __init__(self, frame: Frame, statistic: str, groups: Groups, sd: Any, has_effect: bool = False) -> None:
        self.frame, self.statistic, self.groups, self.has_effect = frame, statistic, groups, has_effect
        if isinstance(sd, str):
            one_of(("range",), sd=sd)
        elif sd is not None and not groups.is_one:
            raise InvalidInput("with by=, omit sd (a private variance) or give sd='range'")
        if sd is not None and np.any(np.isnan(frame.records)):
            raise InvalidInput(
                "a public error of a Poisson total needs population=, the public number of records, or that of groups"
            )
        self.sd: FloatArray | str | None = sd if sd is None or isinstance(sd, str) else _sds(sd, frame)
        self.z = frame.values - frame.centre[frame.which]
        self.known = np.nan_to_num(groups.sizes * frame.centre).sum(axis=1)
        self.records = groups.records

    def totals(self, release: ExactRelease, drawn: Drawn) -> Whole:
        """Weighted sums of the centred values, one per group, in units of the grid."""
        at = drawn.positions
        parts = drawn.counts * release.shares(0, self.z[at], self.frame.weight[self.frame.which[at]])
        return summed(self.groups.which[at], parts, len(self.groups.names) + 1)[:-1]

    def variances(self, release: ExactRelease, drawn: Drawn, which: int = 1) -> Whole:
        """Estimated sampling variances of the totals, in units of the grid."""
        f, at, H, groups = self.frame, drawn.positions, len(self.frame.names), len(self.groups.names) + 1
        group = self.groups.which[at]
        if not f.fixed:
            parts = release.shares(which, self.z[at] ** 2, ((1.0 - f.rate) / f.rate**2)[f.which[at]])
            return summed(group, parts, groups)[:-1]
        lattice = Lattice.of(f.farthest, f.drawn.max())
        u, cell = lattice.whole(self.z[at], f.which[at]), group * H + f.which[at]
        squares, sums = (summed(cell, part, groups * H).reshape(groups, H)[:-1].tolist() for part in (u * u, u))
        known, each = self._per_square(lattice)
        sizes = f.drawn.astype(int).tolist()
        found = [
            known + sum(c * (n * q - s * s) for n, c, q, s in zip(sizes, each, *row, strict=True))
            for row in zip(squares, sums, strict=True)
        ]
        return np.array([release.once(which, value) for value in found], dtype=np.int64)

    @property
    def _middle(self) -> float:
        """Of all strata's bounds: squares for a design effect are measured from there."""
        return 0.5 * float(self.frame.low.min() + self.frame.high.max())

    @property
    def _most_square(self) -> FloatArray:
        f = self.frame
        return np.maximum((f.low - self._middle) ** 2, (f.high - self._middle) ** 2)

    def squares(self, release: ExactRelease, drawn: Drawn) -> Whole:
        """The weighted sum of squares, each less half of its stratum's largest one, in units of the grid."""
        f, at = self.frame, np.repeat(drawn.positions, drawn.counts)
        rows = (f.values[at] - self._middle) ** 2 - 0.5 * self._most_square[f.which[at]]
        return release.total(2, rows, f.weight[f.which[at]])

    def _effect(self, squares: FloatArray, noise: float, total: float, total_noise: float) -> Effect:
        f, records = self.frame, float(self.records[0])
        known = 0.5 * float(np.sum(f.records * self._most_square))
        away = total + float(self.known[0]) - records * self._middle
        return Effect(float(squares[0]) + known, noise, away, records, records / float(f.drawn.sum()), total_noise)

    def _per_square(self, lattice: Lattice) -> tuple[Fraction, list[Fraction]]:
        """The variance is the first number plus, from each stratum, its own times n sum u^2 - (sum u)^2."""
        f, n = self.frame, np.maximum(self.frame.drawn, 2.0)
        alone = f.drawn <= 1  # one record shows no spread: half the range is assumed
        known = float((self.factor * (0.5 * f.range) ** 2)[alone].sum())
        each = np.where(alone, 0.0, self.factor * lattice.unit**2 / (n * (n - 1.0)))
        return Fraction(known), [Fraction(c) for c in each.tolist()]

    @property
    def factor(self) -> FloatArray:
        """N_h^2 (1 - f_h)/n_h: what a stratum's variance is multiplied with."""
        return self.frame.records**2 * (1.0 - self.frame.rate) / self.frame.drawn

    @property
    def variance_reach(self) -> FloatArray:
        """How far one record moves the estimated variance: R^2/n_h for a stratum's variance."""
        f = self.frame
        found = self.factor * f.range**2 / f.drawn if f.fixed else (1.0 - f.rate) / f.rate**2 * f.farthest**2
        return np.maximum(found, 1e-12 * f.reach**2)  # a stratum that is drawn in full still needs a sensitivity

    def _asked(
        self, kind: str, theta: FloatArray | None, declared: Declared | None, share: float, per: float
    ) -> list[Statistic]:
        """The total, and its variance where a share of the budget pays for it."""
        f = self.frame
        if theta is None:
            assert declared is not None  # one of the two is given
            return [Statistic(f.reach, _scale_of(declared) * per)]
        if not share:
            return [Statistic(f.reach, float(np.max(f.reach / theta)))]
        reaches = [self.variance_reach, *([f.weight * self._most_square] if self.has_effect else [])]
        parts = [share * (1.0 - EFFECT_PART), share * EFFECT_PART] if self.has_effect else [share]
        wide = [float(np.max(r / (theta * _portion(p, kind)))) for r, p in zip(reaches, parts, strict=True)]
        spent = [r / w for r, w in zip(reaches, wide, strict=True)]
        together = sum(spent) if kind == "laplace" else np.sqrt(sum(one**2 for one in spent))
        scale = float(np.max(f.reach / _rest(theta, as_floats(together), kind)))
        others = [Statistic(r, w, k > 0 or not f.fixed) for k, (r, w) in enumerate(zip(reaches, wide, strict=True))]
        return [Statistic(f.reach, scale), *others]

    def public_variance(self, totals: FloatArray) -> FloatArray:
        """From public standard deviations, or from the bounds."""
        f = self.frame
        if not isinstance(self.sd, np.ndarray):
            if not f.fixed:
                return np.asarray((self.groups.sizes * (1.0 - f.rate) / f.rate * f.farthest**2).sum(axis=1))
            share = self.groups.sizes / np.maximum(f.records - 1.0, 1.0)
            return np.asarray((self.factor * share * (0.5 * f.range) ** 2).sum(axis=1))
        if f.fixed:
            return np.asarray([(self.factor * self.sd**2).sum()])
        away = totals / self.records  # how far the estimated mean is from the centre
        return np.asarray([((1.0 - f.rate) / f.rate * f.records * (self.sd**2 + away**2)).sum()])

    def run(
        self, sample: PaidSample, kind: str, theta: FloatArray | None, declared: Declared | None, share: float
    ) -> Any:
        """Release, then compute value and errors."""
        f, one = self.frame, np.ones(1)
        per = one if self.statistic == "total" else self.records  # the statistic is total / per
        if np.any(np.isnan(per)):
            raise InvalidInput(
                "a Poisson mean by strata or groups needs public sizes: population= per stratum, groups= per group"
            )
        if np.any(per <= 0):
            raise InvalidInput("the mean of a group needs a public size above 0; omit empty groups, or estimate totals")
        unit = float(np.sqrt(2.0 if kind == "laplace" else 1.0))  # standard deviation of noise of scale 1
        asked = self._asked(kind, theta, declared, share, float(per[0]))
        public = float(np.sum(f.drawn if f.fixed else f.records))
        release = release_of(kind, asked, theta, None if np.isnan(public) else public)
        mechanism = release.mechanism(f.names, replaced=f.fixed, within=f.relation.scope == "within stratum")
        parts = (self.totals, self.variances, self.squares)[: len(asked)]
        sample.plan(mechanism)
        noisy = sample.release(
            mechanism, lambda drawn: in_grid_units(np.concatenate([part(release, drawn) for part in parts]))
        )
        totals, *spread = release.answers(noisy)
        scale = release.scale
        if spread:  # raised by half its noise, to be conservative
            variances = np.maximum(spread[0], 0.0) + 0.5 * unit * release.scale_of(1)
        else:
            variances = self.public_variance(totals)
        source = Source(sample.sample, kind, source_of(share, self.sd), f.relation, self.groups.assumes)
        certify = source.certify()
        errors = np.sqrt(np.maximum(variances, 0.0)) / per
        noisy = scale * unit / per * np.ones_like(errors)
        ends = UNBOUNDED if self.statistic == "total" else (float(f.low.min()), float(f.high.max()))
        details = None
        if self.has_effect:
            effect = self._effect(spread[1], unit * release.scale_of(2), float(totals[0]), unit * scale)
            details = {"design_effect": effect.of(float(spread[0][0]), unit * release.scale_of(1))}
        found = [
            source.release(v, s, e, certify, ends=ends, details=details)
            for v, s, e in zip((totals + self.known) / per, errors, noisy, strict=True)
        ]
        return found[0] if self.groups.is_one else dict(zip(self.groups.names, found, strict=True))


def _scale_of(noise: Declared) -> float:
    return noise.scale if isinstance(noise, (Laplace, ExactLaplace)) else noise.sigma


def _portion(share: float, kind: str) -> float:
    """Laplace losses add up, Gaussian ones in squares."""
    return share if kind == "laplace" else float(np.sqrt(share))


def _rest(theta: FloatArray, spent: FloatArray, kind: str) -> FloatArray:
    """The rest of each stratum's budget, after the variance."""
    return theta - spent if kind == "laplace" else np.sqrt(theta**2 - spent**2)


def _sds(sd: Any, frame: Frame) -> NDArray[np.float64]:
    if isinstance(sd, Mapping):
        missing = [name for name in frame.names if name not in sd]
        if missing:
            raise InvalidInput(f"sd must name every stratum, got nothing for {missing[0]!r} instead")
        found = np.array([float(sd[name]) for name in frame.names])
    else:
        found = np.full(len(frame.names), float(sd))
    if not (np.all(np.isfinite(found)) and np.all(found >= 0)):
        raise InvalidInput("sd must be finite numbers of at least 0")
    return found
