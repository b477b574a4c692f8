"""A private pilot: standard deviations of strata, with which `allocate` divides the main sample.

Each stratum h of the pilot is drawn without replacement, n_h of N_h records, values cut to their bounds. Released is
the vector of the variances s_h^2 (divisor n_h - 1). One record is in one stratum and moves that stratum's variance
alone, by at most R_h^2/n_h when it is replaced (R_h the range of the bounds), so every variance can use the whole
budget. Sampling amplifies as for any estimate.

The allocation that follows is a function of the release, and the main sample is drawn afresh, by another key: pilot and
main estimate compose, at most epsilon of the one plus epsilon of the other (`docs/composition.md`); a budget adds them.

A variance is raised by half a standard deviation of its noise and cut to the largest that the bounds allow: a stratum
whose variance is hidden by noise is treated as varied, never as one without spread. One record shows no spread, so a
stratum of which the pilot draws one has no standard deviation, and `allocate` takes the largest.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ..chance.keys import Key
from ..core.design import Design
from ..core.guarantee import Guarantee
from ..core.ledger import BudgetLike
from ..core.release import Release
from ..core.sample import Drawn, Sample
from ..errors import InvalidInput
from ..mechanisms.fixed_point import Whole, in_grid_units
from ..numerics.log_domain import FloatArray
from ..validation import options_of
from .allocation import Allocation, Stratum, allocate
from .exact import ExactRelease, Lattice, Statistic, release_of, summed
from .frame import Frame, frame_of, usual
from .hidden_signal import signal
from .options import EstimateKeywords, EstimateOptions
from .released import Source, paid_sample

_TAKEN = ("bounds", "epsilon", "delta", "noise", "stratum", "label")


@dataclass(frozen=True)
class Pilot:
    """The results of a pilot for the strata. All of it may be published."""

    strata: tuple[Stratum, ...]  # for `allocate`
    release: Release = field(repr=False)  # the standard deviations, by name

    @property
    def sd(self) -> dict[str | int, float | None]:
        """By stratum; None where the pilot drew one record."""
        return {h.name: h.sd for h in self.strata}

    @property
    def guarantee(self) -> Guarantee:
        """Of the pilot alone; the main estimate adds its own."""
        return self.release.guarantee

    def allocate(self, size: int, epsilon: float, **options: Any) -> Allocation:
        """Divide the main sample: `privamp.survey.allocate` with these strata."""
        return allocate(self.strata, size, epsilon, **options)


def pilot(
    sample: Sample | Design,
    values: ArrayLike,
    options: EstimateOptions | None = None,
    *,
    key: Key | None = None,
    budget: BudgetLike | None = None,
    **asked: Unpack[EstimateKeywords],
) -> Pilot:
    """Release the standard deviation of every stratum from a small sample.

    `sample` is drawn by strata of `WithoutReplacement` (or by it alone), or is the design that draws it, by `key`, with
    the column `stratum`. `values`, `bounds`, `epsilon`, `delta`, `noise` and `budget` are those of `estimate`.

    Formal guarantee: epsilon (and delta) for one record replaced within its stratum.

    >>> import numpy as np
    >>> from privamp import Stratified, WithoutReplacement, testing
    >>> strata = np.repeat(["low", "high"], [3000, 1000])
    >>> design = Stratified({"low": WithoutReplacement(300, 3000), "high": WithoutReplacement(100, 1000)})
    >>> values = np.where(strata == "low", 20.0 + np.arange(4000) % 20, np.arange(4000) % 100)
    >>> found = pilot(design, values, stratum=strata, bounds=(0, 100), epsilon=1.0, key=testing.seeded_key(1))
    >>> found.allocate(800, epsilon=1.0).sizes
    {'high': 483, 'low': 317}
    """
    found = options_of(EstimateOptions, options, asked)
    others = [name for name in EstimateKeywords.__annotations__ if name not in _TAKEN]
    plain = EstimateOptions(bounds=(0, 1), epsilon=1.0)
    unused = [name for name in others if not _same(getattr(found, name), getattr(plain, name))]
    if unused or found.epsilon is None:
        raise InvalidInput(f"a pilot takes {', '.join(_TAKEN)}, got {unused[0] if unused else 'no epsilon'} instead")
    source = paid_sample(sample, values, found, key, budget)
    if source.sample.ledger.entries:
        raise InvalidInput("a release was already made from this sample; a pilot needs a sample of its own")
    if not source.design.parts and source.design.equal_chances is None:
        raise InvalidInput(_STRATA)
    frame = frame_of(source.sample, values, found.bounds, found.stratum, None)
    if not frame.fixed:
        raise InvalidInput(_STRATA)
    if np.all(frame.drawn <= 1):
        raise InvalidInput(_ONE_EACH)
    for pair in zip(frame.low.tolist(), frame.high.tolist(), strict=True):
        usual(pair)
    theta = signal(tuple(frame.rate.tolist()), float(found.epsilon), found.delta, found.noise)
    release = _release(frame, found.noise, theta)
    mechanism = release.mechanism(frame.names, replaced=True, within=frame.relation.scope == "within stratum")
    source.plan(mechanism)
    noisy = source.release(mechanism, lambda drawn: in_grid_units(_variances(frame, release, drawn)))
    unit = math.sqrt(2.0 if found.noise == "laplace" else 1.0)
    errors = np.array([unit * release.scale_of(k) for k in range(len(frame.names))])
    return _made(frame, np.concatenate(release.answers(noisy)), errors, Source(
        source.sample, found.noise, "unknown", frame.relation
    ))  # fmt: skip


_STRATA = (
    "a pilot needs strata that are drawn without replacement, or one such sample: sizes are public there, and one "
    "record moves the variance of its stratum alone"
)
_ONE_EACH = "this pilot draws one record of every stratum, which shows no spread; draw at least two of some stratum"


def _same(given: Any, plain: Any) -> bool:
    """Whether an option has its default; columns and mappings never do."""
    return given is plain or (isinstance(given, (bool, int, float, str)) and bool(given == plain))


def _release(frame: Frame, noise: str, theta: FloatArray) -> ExactRelease:
    """One variance per stratum, each with the noise that its own stratum needs."""
    reach = frame.range**2 / frame.drawn
    each = [
        Statistic(np.where(np.arange(reach.size) == k, one, 0.0), float(one / theta[k]), is_sum=False)
        for k, one in enumerate(reach)
    ]
    return release_of(noise, each, theta, float(frame.drawn.sum()))


def _variances(frame: Frame, release: ExactRelease, drawn: Drawn) -> Whole:
    """s_h^2 of the drawn records, in units of the grid; 0 for a stratum of one."""
    at, count = np.repeat(drawn.positions, drawn.counts), len(frame.names)
    lattice = Lattice.of(frame.farthest, float(frame.drawn.max()))
    which = frame.which[at]
    u = lattice.whole(frame.values[at] - frame.centre[which], which)
    squares, sums = (summed(which, part, count).tolist() for part in (u * u, u))
    found = []
    for k, n in enumerate(frame.drawn.astype(int).tolist()):
        spread = Fraction(n * squares[k] - sums[k] ** 2, max(n * (n - 1), 1)) * Fraction(float(lattice.unit[k])) ** 2
        found.append(release.once(k, spread if n > 1 else Fraction(0)))
    return np.array(found, dtype=np.int64)


def _made(frame: Frame, variances: FloatArray, errors: FloatArray, source: Source) -> Pilot:
    sizes = frame.records.astype(int).tolist()
    plain = [Stratum(name, n, float(r)) for name, n, r in zip(frame.names, sizes, frame.range, strict=True)]
    largest = np.array([h.largest_sd for h in plain])
    sd = np.minimum(np.sqrt(np.maximum(variances, 0.0) + 0.5 * errors), largest)
    known = [float(one) if n > 1 else None for one, n in zip(sd, frame.drawn, strict=True)]
    strata = tuple(
        Stratum(h.name, h.population, h.range, one) for h, one in zip(plain, known, strict=True)
    )  # fmt: skip
    names = tuple(str(name) for name in frame.names)
    told = np.where(frame.drawn > 1, sd, largest)
    noise = 0.5 * errors / np.maximum(told, 1e-300)  # of a root, by linearisation
    release = Release(told, noise, None, source.certify(), source.noise, source.sampling_error_is, names)
    return Pilot(strata, release)
