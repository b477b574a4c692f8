"""From options to a design, and from a design to its weights."""

from typing import TYPE_CHECKING, Any

from .options import Pair, noise_of, read_bounds, read_sd

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...core.design import Design
    from .population import Records


def choose(
    records: "Records", spec_text: str | None, size: int | None, method: str, bounds: str | None, sd: str | None,
    epsilon: float | None, delta: float,
) -> "Design":  # fmt: skip
    """The design that was asked for: a spec, simple random, or strata with allocated sizes."""
    from ... import spec
    from ...designs.simple_random import WithoutReplacement
    from ...errors import InvalidInput
    from ...survey.allocation import METHODS
    from ...validation import one_of, whole

    one_of(METHODS, method=method)
    if (spec_text is None) == (size is None):
        raise InvalidInput("give --design SPEC, or --size N (with --strata and --method where there are strata)")
    if spec_text is not None:
        if "strata" in records.roles:
            raise InvalidInput("--strata goes with --size and --method; a spec after --design knows no strata")
        design = spec.design(spec_text)
        declared = getattr(design, "population", records.size)
        if declared != records.size:
            raise InvalidInput(f"the design declares {declared} records but the file has {records.size}; declare those")
        return design
    whole(1, records.size, size=size)
    if "strata" not in records.roles:
        return WithoutReplacement(int(size or 0), records.size)
    return _allocated(records, int(size or 0), method, bounds, sd, epsilon, delta)


def _allocated(
    records: "Records", size: int, method: str, bounds: str | None, sd: str | None, epsilon: float | None, delta: float
) -> "Design":
    import numpy as np

    from ...errors import InvalidInput
    from ...survey import Stratum, allocate

    if method != "proportional" and (bounds is None or epsilon is None):
        raise InvalidInput(f"--method {method} needs --bounds and --epsilon; --method proportional needs neither")
    labels, counts = np.unique(records.strata(), return_counts=True)
    names = labels.tolist()
    ends: dict[str, Pair] = read_bounds(bounds, names)
    known = read_sd(sd, names) or {}
    strata = [
        Stratum(name, int(count), ends[name][1] - ends[name][0], known.get(name))
        for name, count in zip(names, counts, strict=True)
    ]
    return allocate(strata, size, 1.0 if epsilon is None else epsilon, method, delta, noise_of(delta)).design()


def check_columns(design: "Design", records: "Records") -> None:
    """A design for clusters or with probabilities comes with the option that names their column, others do not."""
    from ...designs.cluster import ClusterSampling
    from ...designs.poisson_pps import PoissonPPS
    from ...errors import InvalidInput

    for role, kind, word in (("cluster", ClusterSampling, "cluster"), ("probability", PoissonPPS, "poisson-pps")):
        if isinstance(design, kind) and role not in records.roles:
            raise InvalidInput(f"a design {word} needs --{role} COLUMN, which says it for every record")
        if role in records.roles and not isinstance(design, kind):
            raise InvalidInput(f"--{role} goes with --design {word}:…; leave it out for other designs")
    if isinstance(design, PoissonPPS) and design.per_size is not None:
        raise InvalidInput("give the probabilities themselves with --probability COLUMN, and leave per_size out")


def design_weights(design: "Design", records: "Records") -> "NDArray[Any]":
    """One over the expected number of times each record is drawn; a sentence where that is not known."""
    import numpy as np

    from ...designs.stratified import Stratified

    if not isinstance(design, Stratified):
        return np.full(records.size, _weight(design, records.size))
    names, which, counts = np.unique(records.strata(), return_inverse=True, return_counts=True)
    parts = dict(design.strata)
    return np.array([_weight(parts[name], int(n)) for name, n in zip(names.tolist(), counts, strict=True)])[which]


def _weight(design: "Design", records: int) -> float:
    from ...designs.cluster import ClusterSampling
    from ...designs.keyed_order import SizeOnly
    from ...designs.multistage import MultiStage
    from ...designs.poisson import Poisson
    from ...designs.simple_random import WithoutReplacement
    from ...designs.systematic import Systematic
    from ...designs.with_replacement import WithReplacement
    from ...errors import InvalidInput

    drawn = None  # expected number of draws
    if isinstance(design, (Poisson, WithoutReplacement, WithReplacement, MultiStage)):
        drawn = design.expected_size(records)
    elif isinstance(design, Systematic):
        drawn = records / design.step
    elif isinstance(design, SizeOnly):
        law = design.size_weights(records)
        drawn = sum(size * weight for size, weight in law.items()) / sum(law.values())
    elif isinstance(design, ClusterSampling) and design.most_kept is None:
        drawn = records * design.share * design.rate
    if drawn is None:
        raise InvalidInput(f"the weights of {type(design).__name__} depend on more than the design; draw it in Python")
    if drawn <= 0:
        raise InvalidInput("this design draws nobody from so few records; give it a larger rate")
    return float(records / drawn)
