"""Estimates from designs with public weights: clusters, shares, unequal coins, random sizes, repeated draws.

Exact Laplace or Gaussian noise, calibrated so that the amplified loss of everything released here is the target,
through `Sample.release`, whose ledger certifies it. The sampling error is private (paid from the budget) or, with
sd="range", the largest that bounds and caps allow: free, but too large. Weights and sensitivities: `units`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.design import Design
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.release import Release
from ..core.sample import Drawn
from ..errors import InvalidInput
from ..mechanisms.fixed_point import Whole, in_grid_units
from ..numerics.log_domain import FloatArray
from ..validation import nonnegative, one_of, positive
from .clustered import ClusterQuestion, clusters_of, estimate_clusters
from .effects import NOT_HERE
from .exact import ExactRelease, Statistic, release_of
from .frame import EVERYBODY, Frame, bounds_of, cut, numbers_of
from .hidden_signal import strength
from .options import EstimateOptions
from .ratio import poisson_mean
from .released import UNBOUNDED, PaidSample, Source, source_of
from .units import SignalToNoise, Units, signal_to_noise, units_of

AR = Neighbors.ADD_REMOVE


@dataclass(frozen=True)
class Question:
    """The question: clipped values, the statistic, and the source of the sampling error."""

    values: FloatArray
    low: float
    high: float
    statistic: str
    population: float | None
    sd: Any
    share: float

    @property
    def source(self) -> str:
        """As `Release.sampling_error_is` says it."""
        return source_of(self.share, self.sd)


def estimate_weighted(sample: PaidSample, values: ArrayLike, statistic: str, options: EstimateOptions) -> Release:
    """Release a total, a mean (total / public size) or, with the size secret, a ratio of two totals."""
    population, sd, share = options.population, options.sd, options.share
    if options.epsilon is None or options.by is not None:
        raise InvalidInput(
            f"{type(sample.design).__name__} needs epsilon= and no by=; for one group, set the values of all others "
            "to 0"
        )
    strength(options.noise, np.array([float(options.epsilon)]), options.delta)  # a budget that the noise can keep
    if population is not None:
        positive(population=population)
    if isinstance(sd, str):
        one_of(("range",), sd=sd)
    elif sd is not None:
        nonnegative(sd=sd)
    if options.design_effect and not share:
        raise InvalidInput(NOT_HERE)
    numbers = numbers_of(sample.sample, values)
    (low,), (high,) = bounds_of(options.bounds, (EVERYBODY,))
    known = _records(sample.design, numbers.size, population)
    units = units_of(sample.sample, known, options.columns)
    if share and units.by.refusal:
        raise InvalidInput(f"{units.by.refusal}, or give sd='range' for the largest error that the bounds allow")
    is_share = units.by.is_share
    if sd is not None and not isinstance(sd, str) and not is_share:
        raise InvalidInput("a public sd needs equal weights of records; omit sd, or give sd='range'")
    asked = Question(cut(numbers, low, high), float(low), float(high), statistic, known, sd, share)
    snr = signal_to_noise(sample.design, options.noise, float(options.epsilon), options.delta)
    clusters = clusters_of(units) if share else None
    if clusters is not None:
        question = ClusterQuestion(asked.values, asked.low, asked.high, statistic == "total", known)
        return estimate_clusters(sample, units, clusters, question, snr, share)
    if options.design_effect:
        raise InvalidInput(NOT_HERE)
    if statistic == "total" and known is None and is_share and share:
        return _share_total(sample, units, asked, snr)
    if statistic == "total" or (known is not None and options.weights != "hajek"):
        return _total(sample, units, asked, snr)
    simple = is_share or units.by.is_subset
    return _simple_ratio(sample, units, asked, snr) if simple else _ratio(sample, units, asked, snr)


def _records(design: Design, records: int, population: Any) -> float | None:
    """The public number of records: the one that was given, or that of a design stated for replaced records."""
    if design.natural.kind == AR.kind or design.public_size is None:
        return None if population is None else float(population)
    if design.public_size != records:
        raise InvalidInput("the design must declare as many records as the frame has; declare that number")
    return float(records)


def _asked(reach: float, theta: float, is_sum: bool = True) -> Statistic:
    return Statistic(np.array([reach]), reach / theta, is_sum)


def _noise(release: ExactRelease) -> Mechanism:
    return release.mechanism((EVERYBODY,), replaced=False, within=False)


def _released(
    sample: PaidSample, release: ExactRelease, statistics: Callable[[Drawn], list[Whole]], is_planned: bool = False
) -> list[float]:
    """The statistics, each one number, through the sample's ledger."""
    if not is_planned:
        sample.plan(_noise(release))
    noisy = sample.release(_noise(release), lambda drawn: in_grid_units(np.concatenate(statistics(drawn))))
    return [float(answer[0]) for answer in release.answers(noisy)]


def _total(sample: PaidSample, units: Units, asked: Question, snr: SignalToNoise) -> Release:
    """The total, measured from the middle of the bounds where the number of records is public."""
    known, sd = asked.population, asked.sd
    if sd is not None and known is None and units.by.per_record:
        raise InvalidInput("a public error of this total needs population=, the number of records; or omit sd")
    centre = 0.0 if known is None else 0.5 * (asked.low + asked.high)
    z, most = asked.values - centre, max(abs(asked.low - centre), abs(asked.high - centre))
    reach = most * units.by.heaviest
    statistics = [_asked(reach, snr.part(1.0 - asked.share))]
    if asked.share:
        far = units.squares_reach(most)
        statistics.append(_asked(far, snr.part(asked.share), units.is_sum))
    release = release_of(snr.noise, statistics, snr.theta, known)
    scale = release.scale
    if asked.share:
        wide = release.scale_of(1)
        total, squares = _released(
            sample, release, lambda d: [units.total(release, 0, z, d), units.squares(release, 1, z, most, d)]
        )
        variance = squares - units.by.shrink * max(total**2 - (snr.sd * scale) ** 2, 0.0)
        shaken = float(np.hypot(wide, 2.0 * units.by.shrink * total * scale))
        variance = max(variance, 0.0) + 0.5 * snr.sd * shaken  # raised by half its noise, to be conservative
    else:
        (total,) = _released(sample, release, lambda d: [units.total(release, 0, z, d)])
        if isinstance(sd, str):
            variance = units.largest_variance(most, known or 0.0)
        else:
            part = (known or 0.0) * units.by.rate % 1.0  # the rounded size varies by part (1 - part)
            mean = total / (units.by.rate * (known or 1.0))
            variance = units.largest_variance(float(sd), known or 0.0) + part * (1.0 - part) * mean**2
    per = 1.0 if asked.statistic == "total" else float(known or 1.0)
    value = (total + (known or 0.0) * centre) / per
    source = Source(sample.sample, snr.noise, asked.source, sample.design.natural)
    ends = UNBOUNDED if asked.statistic == "total" else (asked.low, asked.high)
    is_fixed = bool(asked.share) and units.by.cluster is None and not units.by.is_share and units.by.shrink > 0.0
    df = 1.0 / units.by.shrink if is_fixed else math.inf  # m - 1 of m draws
    return source.release(value, np.sqrt(variance) / per, snr.sd * scale / per, ends=ends, df=df)


def _share_total(sample: PaidSample, units: Units, asked: Question, snr: SignalToNoise) -> Release:
    """A fixed share q of secretly many records: T and, for its variance, squares around the centre c and the count C.

    The variance is (1-q)/q^2 (sum z^2 - (sum z)^2/C) C/(C-1) with z = x - c and sum z = qT - cC, and the rounded size
    adds at most (mean/q)^2/4.
    """
    q, centre, half = units.by.rate, 0.5 * (asked.low + asked.high), 0.5 * (asked.high - asked.low)
    x, z = asked.values, asked.values - centre
    rest, part = snr.part(1.0 - asked.share), snr.part(asked.share / 2.0)
    reach = max(abs(asked.low), abs(asked.high)) * units.by.heaviest, units.squares_reach(half), 1.0
    asked_for = [_asked(r, p) for r, p in zip(reach, (rest, part, part), strict=True)]
    release = release_of(snr.noise, asked_for, snr.theta)
    scale, wide, loose = (release.scale_of(i) for i in range(3))

    def statistics(drawn: Drawn) -> list[Whole]:
        ones = np.ones(drawn.positions.size)
        squares = units.squares(release, 1, z, half, drawn)
        return [units.total(release, 0, x, drawn), squares, release.total(2, ones)]

    total, squares, count = _released(sample, release, statistics)
    many = max(count, 2.0)
    noise = snr.sd**2 * ((q * scale) ** 2 + (centre * loose) ** 2)
    shift = max((q * total - centre * many) ** 2 - noise, 0.0) / many
    spread = max(squares + 0.5 * snr.sd * wide - (1.0 - q) / q**2 * shift, 0.0) * many / (many - 1.0)
    middle = min(abs(q * total / many), abs(centre) + half)
    error = float(np.sqrt(spread + (middle / q) ** 2 / 4.0))
    source = Source(sample.sample, snr.noise, asked.source, sample.design.natural)
    return source.release(total, error, snr.sd * scale)


def _simple_ratio(sample: PaidSample, units: Units, asked: Question, snr: SignalToNoise) -> Release:
    """Equal weights: they cancel, and the Poisson ratio's variance is that of a fixed share.

    Where every subset of the drawn size is equally likely, the share is that of the size, whatever its law.
    """
    none, rate = np.full(1, np.nan), np.full(1, units.by.rate)
    frame = Frame(
        (EVERYBODY,), False, rate, none, none, np.full(1, asked.low), np.full(1, asked.high),
        np.zeros(asked.values.size, dtype=np.intp), asked.values, sample.design.natural,
    )  # fmt: skip
    whole = asked.population if units.by.is_subset else None
    return poisson_mean(sample, frame, snr.noise, snr.theta, asked.sd, asked.share, whole)


def _ratio(sample: PaidSample, units: Units, asked: Question, snr: SignalToNoise) -> Release:
    """centre + T/N, both weighted totals noisy; then Q of the residuals from the released mean, each at most R."""
    centre, half = 0.5 * (asked.low + asked.high), 0.5 * (asked.high - asked.low)
    z, ones = asked.values - centre, np.ones_like(asked.values)
    part = snr.part(0.5 * (1.0 - asked.share))
    reach = half * units.by.heaviest, units.by.heaviest
    release = release_of(snr.noise, [_asked(r, part) for r in reach], snr.part(1.0 - asked.share))
    scales = [release.scale_of(i) for i in range(2)]
    spread = None
    if asked.share:
        far = units.squares_reach(2.0 * half)
        rest = snr.part(asked.share)
        spread = release_of(snr.noise, [_asked(far, rest, units.is_sum)], rest)
    sample.plan(*map(_noise, [release, *([spread] if spread else [])]))
    total, count = _released(
        sample, release, lambda d: [units.total(release, 0, z, d), units.total(release, 1, ones, d)], is_planned=True
    )
    records = max(count, units.by.heaviest)
    away = float(np.clip(total / records, -half, half))
    if spread is not None:
        (squares,) = _released(
            sample, spread, lambda d: [units.squares(spread, 0, z - away, 2.0 * half, d)], is_planned=True
        )
        variance = max(squares, 0.0) + 0.5 * snr.sd * spread.scale
    else:
        variance = units.largest_variance(2.0 * half, records)
    noisy = snr.sd * float(np.hypot(scales[0], away * scales[1])) / records
    source = Source(sample.sample, snr.noise, asked.source, sample.design.natural)
    ends = (asked.low, asked.high)
    return source.release(centre + away, np.sqrt(variance) / records, noisy, ends=ends)
