"""From options to a design, and from a design to its weights."""

from typing import TYPE_CHECKING, Any

from ..options import given
from .options import Pair, noise_of, read_bounds, read_sd

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...core.design import Design
    from .population import Records


def choose(
    records: "Records", spec_text: str | None, size: int | None, method: str, bounds: str | None, sd: str | None,
    epsilon: float | None, delta: float,
) -> "Design":  # fmt: skip
    """The requested design: a spec, simple random, or strata with allocated sizes."""
    from ... import spec
    from ...designs.simple_random import WithoutReplacement
    from ...errors import InvalidInput
    from ...survey.allocation import METHODS
    from ...validation import one_of, whole

    one_of(METHODS, method=method)
    if (spec_text is None) == (size is None):
        raise InvalidInput("give --design SPEC, or --size N (with --strata and --method if there are strata)")
    if spec_text is not None:
        if "strata" in records.roles:
            raise InvalidInput("--strata goes with --size and --method; a spec after --design knows no strata")
        with given("--design"):
            design = spec.design(spec_text)
        if design.public_size not in (None, records.size):
            raise InvalidInput(
                f"the design declares {design.public_size} records but the file has {records.size}; declare that number"
            )
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
    """Designs that read clusters or probabilities need the option that names the column; others must not have it."""
    from ...errors import InvalidInput

    others = [name for name in design.reads if name not in ("stratum", "cluster", "probability")]
    if "size" in others and design.decides_alone:
        raise InvalidInput("give the probabilities themselves with --probability COLUMN, and omit per_size")
    for role, example in (("cluster", "cluster"), ("probability", "poisson-pps")):
        if role in design.reads and role not in records.roles:
            raise InvalidInput(f"a design {_word(design)} needs --{role} COLUMN, with one value per record")
        if role in records.roles and role not in design.reads:
            raise InvalidInput(f"--{role} is only for --design {example}:…; omit it for other designs")
    check_clusters(design, records)
    if others:
        raise InvalidInput(
            f"a design {_word(design)} reads {others[0]!r}, which no option names; use privamp.survey in Python"
        )


def _word(design: "Design") -> str:
    return (design.spec or type(design).__name__).partition(":")[0]


def check_clusters(design: "Design", records: "Records") -> None:
    """Clusters are numbered in the order of their names: one more than declared would renumber the others."""
    import numpy as np

    from ...core.reads import Labels
    from ...errors import InvalidInput

    read = design.reads.get("cluster")
    if isinstance(read, Labels) and read.names is not None:
        found = np.unique(records.text("cluster")).size
        if found > len(read.names):
            raise InvalidInput(
                f"the public column {records.roles['cluster']!r} names more clusters than the {len(read.names)} of the "
                "design; declare all of them"
            )


def design_weights(design: "Design", records: "Records") -> "NDArray[Any]":
    """One over the expected number of times each record is drawn; raises if that is not known."""
    import numpy as np

    from ...errors import InvalidInput

    population = records.population(design)
    missing = [name for name in design.reads if name not in population.columns]
    if missing:
        raise InvalidInput(f"the weights of {type(design).__name__} depend on {missing[0]!r}; draw it in Python")
    found = design.weights(population)
    if found is None:
        raise InvalidInput(
            f"the weights of {type(design).__name__} depend on more than the design, or it draws no one from so few "
            "records; draw it in Python, or use a larger rate"
        )
    return np.asarray(found)
