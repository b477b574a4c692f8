"""Plan a survey: candidate designs side by side, from public facts only.

For each design: what an epsilon-DP mechanism on its sample amplifies to (upper and lower), the noise that the weighted
mean needs for the target epsilon, and the expected standard error from sampling and from noise. Noise is computed for
replace-one neighbours (within a stratum for stratified designs; clusters state their own relation), so that rows can be
compared. A cluster's noise is that of `estimate`, which pays for the count and the sampling error too; the other rows
have what `estimate` needs where the standard deviations are public (sd=…).
"""

import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..amplification import amplify
from ..calibration import calibrate
from ..core.design import Design
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..designs.poisson import Poisson
from ..designs.simple_random import WithoutReplacement
from ..errors import InvalidInput, NoTheorem
from ..mechanisms.black_box import PureDP
from ..mechanisms.gaussian import Gaussian
from ..mechanisms.laplace import Laplace
from ..numerics.entries import texts_of
from ..validation import in_range, nonnegative, options_of, positive, whole
from .allocation import Stratum, allocate
from .candidates import clusters_variance, column_of, expected_variance, noise_scale, sampling_variance, weights_of
from .clustered import clusters_of, noise_factor
from .frame import bounds_of
from .hidden_signal import strength
from .units import Units

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One candidate design and its expected errors."""

    name: str
    design: Design
    relation: Neighbors  # of the noise and of the amplified epsilon
    amplified_upper: float  # of a mechanism that is epsilon-DP on the sample
    amplified_lower: float | None
    noise_scale: float  # on the released mean, for the target epsilon
    standard_error_sampling: float
    standard_error_noise: float
    note: str = ""

    @property
    def standard_error(self) -> float:
        """Sampling and noise together."""
        return math.hypot(self.standard_error_sampling, self.standard_error_noise)


@dataclass(frozen=True, slots=True)
class Plan:
    """Candidates, best first; the recommendation and its reason; what was assumed or left out; the target epsilon."""

    rows: tuple[PlanRow, ...]
    recommendation: str
    reason: str
    notes: tuple[str, ...]
    epsilon: float

    def plot(self) -> Any:
        """A matplotlib figure of the errors to expect and of the amplified epsilons (pip install 'privamp[plots]')."""
        return import_module("..report.pictures", __package__).plan_figure(self)

    def _repr_html_(self) -> str:
        """The plan as notebooks show it."""
        text: str = import_module("..report.shown_plans", __package__).survey_fragment(self)
        return text


@dataclass(frozen=True, slots=True)
class _Facts:
    """Public facts: the population and, if given, strata and clusters."""

    records: int
    size: int
    epsilon: float
    delta: float
    noise: str
    range: float
    sd: float
    icc: float
    away: float | None  # of the mean from the middle of the bounds, where it is public

    @property
    def square(self) -> float:
        """The mean square of the values about the middle of their bounds; the largest where it is not public."""
        most = (0.5 * self.range) ** 2
        return most if self.away is None else min(most, self.sd**2 + self.away**2)

    @property
    def unit(self) -> float:
        return math.sqrt(2.0 if self.noise == "laplace" else 1.0)

    def calibrated(self, design: Design, reach: float, stated: Neighbors, asked: Neighbors) -> float:
        """The least noise for the target when one record moves the mean by `reach`."""
        make = Laplace if self.noise == "laplace" else Gaussian
        found = calibrate(
            lambda scale: make(scale, 1.0, stated), design, epsilon=self.epsilon, delta=self.delta, neighbors=asked
        )
        return reach * (found.scale if isinstance(found, Laplace) else found.sigma)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """Public facts that designs are compared by; each is also a keyword of `plan`."""

    bounds: Any = None  # (lowest, highest), a number, or one of them per stratum
    strata: str | None = None  # a column
    cluster: str | None = None  # a column
    sd: Any = None  # one per stratum
    overall_sd: float | None = None
    overall_mean: float | None = None  # with it, the error of designs whose weights do not cancel is exact
    delta: float = 0.0
    noise: str = "laplace"
    icc: float = 0.05
    designs: Mapping[str, Design] | None = None  # further candidates by name; they read columns of the frame

    def __post_init__(self) -> None:
        in_range(0, 1, icc=self.icc)
        if self.overall_sd is not None:
            nonnegative(overall_sd=self.overall_sd)
        if self.overall_mean is not None and self.overall_sd is None:
            raise InvalidInput(
                "overall_mean needs overall_sd, the standard deviation of all records: give both or none"
            )


class PlanKeywords(TypedDict, total=False):
    """The fields of `PlanOptions`, as keywords of a call."""

    bounds: Any
    strata: str | None
    cluster: str | None
    sd: Any
    overall_sd: float | None
    overall_mean: float | None
    delta: float
    noise: str
    icc: float
    designs: Mapping[str, Design] | None


def plan(
    frame: Mapping[str, ArrayLike],
    *,
    size: int,
    epsilon: float,
    options: PlanOptions | None = None,
    **given: Unpack[PlanKeywords],
) -> Plan:
    """Compare designs for a private mean of `size` records at `epsilon` before anything is drawn.

    `frame` holds the public columns, one value per record; `strata` and `cluster` name two of them. `bounds` is
    (lowest, highest), or one pair per stratum; `sd` the public standard deviations per stratum and `overall_sd` that of
    everybody (the largest that the bounds allow where they are not given), `overall_mean` their public mean. `icc` is
    the assumed correlation inside clusters. `designs` are further candidates by name, of any kind that has public
    weights; what they read ("cluster", "probability", ...) are columns of the frame of that name, or the one that
    `cluster` names. They are keywords, or `PlanOptions` with the same names, as are `delta` and `noise`.
    """
    asked = options_of(PlanOptions, options, given)
    strata, cluster, sd, overall_sd = asked.strata, asked.cluster, asked.sd, asked.overall_sd
    columns = {name: _column(values) for name, values in frame.items()}
    for name in (strata, cluster):
        if name is not None and name not in columns:
            raise InvalidInput(f"the frame has no column {name!r}; it has {', '.join(sorted(columns)) or 'none'}")
        if name is not None and _has_missing(columns[name]):
            raise InvalidInput(f"every record of the frame needs a value in {name!r}; give the missing ones a name")
    lengths = {len(values) for values in columns.values()}
    if len(lengths) != 1 or 0 in lengths:
        raise InvalidInput("the frame must have at least one record and columns of one length")
    records = lengths.pop()
    whole(1, records, size=size)
    positive(epsilon=epsilon)
    names, counts = np.unique(columns[strata], return_counts=True) if strata else (np.array(["everybody"]), [records])
    labels = tuple(names.tolist())
    low, high = bounds_of(asked.bounds, labels)
    widest = float(high.max() - low.min())
    largest = 0.5 * widest * math.sqrt(records / max(records - 1, 1))
    spread = largest if overall_sd is None else float(overall_sd)
    if records > 1 and spread > largest * (1.0 + 1e-9):
        raise InvalidInput(
            f"overall_sd must be at most {largest:.6g}, the largest that the bounds allow, got {spread:g} instead; "
            "correct it, or widen the bounds"
        )
    away = None
    if asked.overall_mean is not None:
        in_range(float(low.min()), float(high.max()), overall_mean=asked.overall_mean)
        away = float(asked.overall_mean) - 0.5 * float(high.max() + low.min())
    facts = _Facts(records, size, epsilon, asked.delta, asked.noise, widest, spread, asked.icc, away)
    strength(asked.noise, np.array([epsilon]), asked.delta)  # a budget that the noise can keep
    notes = ["the sampling error of unstratified designs uses the largest sd that the bounds allow; give overall_sd="]
    notes = [] if overall_sd is not None else notes
    rows = [_simple(facts), _poisson(facts)]
    if strata:
        known = sd if isinstance(sd, Mapping) else dict.fromkeys(labels, sd)
        cells = [
            Stratum(name, int(n), float(r), known.get(name))
            for name, n, r in zip(labels, counts, high - low, strict=True)
        ]
        rows += _stratified(facts, cells, notes)
    if cluster:
        rows += _clusters(facts, columns[cluster], notes)
    public = dict(columns) | ({"cluster": column_of(columns[cluster])} if cluster else {})
    rows += [_given(facts, name, design, public) for name, design in (asked.designs or {}).items()]
    rows.sort(key=lambda row: row.standard_error)
    return Plan(tuple(rows), rows[0].name, _reason(rows), tuple(notes), epsilon)


def _has_missing(column: NDArray[Any]) -> bool:
    """Whether entries of a public column are None, nan, or another value that is not equal to itself."""
    return any(entry is None or type(entry).__name__ in ("NAType", "NaTType") or entry != entry
               for entry in column.tolist())  # fmt: skip


def _column(values: ArrayLike) -> NDArray[Any]:
    """A public column; one long name in a list does not make the others long."""
    if isinstance(values, (list, tuple)) and all(isinstance(name, str) for name in values):
        return texts_of(values)
    return np.asarray(values)


def _row(
    facts: _Facts, name: str, design: Design, asked: Neighbors, stated: Neighbors, scale: float, sampling: float,
    note: str = "",
) -> PlanRow:  # fmt: skip
    upper, lower = _amplified(PureDP(facts.epsilon, neighbors=stated), design, asked)
    return PlanRow(name, design, asked, upper, lower, scale, math.sqrt(sampling), facts.unit * scale, note)


def _amplified(mechanism: Mechanism, design: Design, asked: Neighbors) -> tuple[float, float | None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a degrading design shows its larger number in the table
        found = amplify(mechanism, design, asked)
    return found.epsilon(), found.lower.epsilon() if found.lower else None


def _simple(f: _Facts) -> PlanRow:
    rate = np.array([f.size / f.records])
    scale = f.range / f.records / float(strength(f.noise, np.array([f.epsilon]), f.delta).phi(rate)[0])
    sampling = f.sd**2 * (1.0 / f.size - 1.0 / f.records)
    return _row(f, "simple random", WithoutReplacement(f.size, f.records), RO, RO, scale, sampling)


def _poisson(f: _Facts) -> PlanRow:
    """The better of the centred Horvitz-Thompson mean (public number of records) and the Hajek ratio of two sums."""
    design = Poisson(f.size / f.records)
    scale = f.calibrated(design, 0.5 * f.range / f.size, AR, RO)
    part = 1.0 / f.size - 1.0 / f.records
    halves = 2.0 if f.noise == "laplace" else math.sqrt(2.0)  # half the budget for the sum, half for the count
    choices = [
        (scale, part * f.square, "weights 1/rate with the public number of records"),
        (scale * halves * math.sqrt(2.0), part * f.sd**2, "hajek weights"),
    ]
    best = min(choices, key=lambda c: (f.unit * c[0]) ** 2 + c[1])
    return _row(f, "poisson", design, RO, AR, best[0], best[1], f"random size; {best[2]}")


def _stratified(f: _Facts, cells: list[Stratum], notes: list[str]) -> Iterator[PlanRow]:
    methods = ["proportional", "minimax"]
    if all(h.sd is not None for h in cells):
        methods.append("optimal")
    else:
        notes.append("no optimal allocation, because not every stratum has a public sd; minimax is used instead")
    if f.size < len(cells):
        notes.append(f"no stratified design: {f.size} draws are fewer than {len(cells)} strata")
        return
    for method in methods:
        found = allocate(cells, f.size, f.epsilon, method, f.delta, f.noise)
        design = found.design()
        note = "sizes " + ", ".join(f"{name}: {n}" for name, n in list(found.sizes.items())[:8])
        yield _row(f, f"stratified, {method}", design, design.natural, RO, found.scale, found.cost.sampling, note)


def _clusters(f: _Facts, column: Any, notes: list[str]) -> Iterator[PlanRow]:
    try:
        from ..designs.cluster import ClusterSampling
    except ImportError:
        notes.append("cluster sampling is not available here")
        return
    sizes = np.unique(column, return_counts=True)[1]
    k, most = int(sizes.size), int(sizes.max())
    chosen = max(1, min(k, round(f.size * k / f.records)))
    design = ClusterSampling(chosen, k, most)
    try:
        scale = f.calibrated(design, 0.5 * f.range * k / (chosen * f.records), AR, AR) * noise_factor(f.noise)
    except NoTheorem as error:
        notes.append(f"cluster sampling: {error}")
        return
    sampling = clusters_variance(sizes, chosen, 1.0, f.sd, f.icc)
    note = f"{chosen} of {k} clusters of up to {most} records; icc {f.icc:g} assumed; noise for add/remove only"
    yield _row(f, "cluster", design, AR, AR, scale, sampling, note)


def _given(f: _Facts, name: str, design: Design, columns: Mapping[str, Any]) -> PlanRow:
    """A candidate of any kind that has public weights."""
    if not isinstance(design, Design):
        raise InvalidInput(f"designs maps names to designs, got {type(design).__name__} for {name!r} instead")
    if design.parts:
        raise NoTheorem(
            f"{name!r} is a design of strata, whose sizes the plan chooses itself; "
            "name their column as strata=, or give the sizes to estimate"
        )
    weights, half = weights_of(design, f.records, columns), 0.5 * f.range
    scale = noise_scale(design, weights, f.noise, f.epsilon, f.delta, half) / f.records
    clusters = clusters_of(Units(weights))
    if clusters is not None:  # estimated as a ratio, whose count and sampling error are paid for
        sizes = np.unique(columns["cluster"], return_counts=True)[1]
        sampling = clusters_variance(sizes, clusters.drawn, clusters.rate, f.sd, f.icc)
        note = f"icc {f.icc:g} assumed"
        return _row(f, name, design, design.natural, AR, scale * noise_factor(f.noise), sampling, note)
    known = None if weights.is_share or f.away is None else expected_variance(weights, f.records, f.sd, f.away)
    if known is None:
        known = sampling_variance(weights, f.records, half, f.sd)
    is_largest = not weights.is_share and (f.away is None or weights.cluster is not None)
    note = "sampling error: the largest that the bounds allow; give overall_sd= and overall_mean=" if is_largest else ""
    return _row(f, name, design, design.natural, AR, scale, known / f.records**2, note)


def _reason(rows: list[PlanRow]) -> str:
    best = rows[0]
    words = (
        f"smallest expected standard error, {best.standard_error:.4g} ({best.standard_error_sampling:.4g} "
        f"from sampling, {best.standard_error_noise:.4g} from noise)"
    )
    if len(rows) > 1:
        words += f"; next is {rows[1].name} with {rows[1].standard_error:.4g}"
    return words + "; sampling saves interviews, but never reduces the noise that a mean needs"
