"""The Hajek mean of a Poisson sample: a noisy sum over a noisy count, when the number of records is secret.

Values are measured from the middle of their bounds, c: mean = c + T/C, T the sum of (x - c) and C the count over the
sample. One record moves T by at most R/2, C by 1, and the sum of squares Q by R^2/4 (add/remove). The sampling variance
is (1-q)(Q - T^2/C)/C^2 and the noise adds (var T + (T/C)^2 var C)/C^2, both by linearisation.

A subset of a size drawn by a public law has, given its size C out of n, the variance (1 - C/n)(Q - T^2/C)/(C(C-1)).
"""

from typing import Any

import numpy as np

from ..core.release import Release
from ..core.sample import Drawn
from ..mechanisms.fixed_point import Whole, in_grid_units
from ..validation import nonnegative
from .exact import Statistic, release_of
from .frame import Frame
from .released import PaidSample, Source, source_of


def poisson_mean(
    source: PaidSample, frame: Frame, noise: str, theta: float, sd: Any, share: float, records: float | None = None
) -> Release:
    """Release T, C and, unless `sd` is public, Q; `theta` is the loss that is allowed inside the sample.

    `records` is n where the sample is a subset of a random size.
    """
    q, low, high = float(frame.rate[0]), float(frame.low[0]), float(frame.high[0])
    centre, half = 0.5 * (low + high), 0.5 * (high - low)
    z = frame.values - centre
    if sd is not None and not isinstance(sd, str):
        nonnegative(sd=sd)
    shares = [(1.0 - share) / 2.0] * 2 + ([share] if share else [])
    reach = [half, 1.0, half * half][: len(shares)]
    portions = shares if noise == "laplace" else [s**0.5 for s in shares]
    asked = [Statistic(np.array([r]), r / (theta * p)) for r, p in zip(reach, portions, strict=True)]
    release = release_of(noise, asked, theta)
    scales = [release.scale_of(i) for i in range(len(asked))]

    def sums(drawn: Drawn) -> Whole:
        kept = z[drawn.positions]
        rows = (kept, np.ones_like(kept), kept**2)[: len(asked)]
        return in_grid_units(np.concatenate([release.total(i, row) for i, row in enumerate(rows)]))

    mechanism = release.mechanism(frame.names, replaced=False, within=False)
    source.plan(mechanism)
    answers = [float(x[0]) for x in release.answers(source.release(mechanism, sums))]
    total, count = answers[0], max(answers[1], 1.0)
    away = float(np.clip(total / count, -half, half))
    if share:
        extra = 0.5 * scales[2] * (2.0 if noise == "laplace" else 1.0) ** 0.5  # half its noise, to be conservative
        spread = max((answers[2] + extra) / count - away**2, 0.0)
    elif isinstance(sd, str):
        spread = half * half
    else:
        spread = float(sd) ** 2
    if records is not None:
        q, spread = min(count / records, 1.0), spread * count / (count - 1.0) if count >= 2.0 else half * half
    unit = 2.0 if noise == "laplace" else 1.0
    noisy = np.sqrt(unit * (scales[0] ** 2 + (away * scales[1]) ** 2)) / count
    made = Source(source.sample, noise, source_of(share, sd), frame.relation)
    return made.release(centre + away, np.sqrt((1.0 - q) * spread / count), noisy, ends=(low, high))
