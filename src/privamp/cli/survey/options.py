"""Options that the survey commands share, and how they are parsed: files, columns, bounds, standard deviations."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from ..console import warn
from ..options import read_pair

File = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="The records to draw from: .csv, .csv.gz or .parquet.")
]
OldFile = Annotated[Path | None, typer.Option("--population", hidden=True)]  # elsewhere a number of records
Strata = Annotated[
    str | None, typer.Option("--strata", metavar="COLUMN", help="The public column with each record's stratum.")
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="COLUMN[=NAMES]",
        help=(
            "The public column with each record's cluster. If the design distinguishes clusters, the column holds "
            "their numbers from 0, or give their names in the design's order: unit=north,south."
        ),
    ),
]
Probability = Annotated[
    str | None,
    typer.Option("--probability", metavar="COLUMN", help="The public column of drawing probabilities (poisson-pps)."),
]
Bounds = Annotated[
    str | None,
    typer.Option(
        "--bounds", metavar="LOW:HIGH", help="Public range of the values, or one per stratum: E=0:1600,H=0:4200"
    ),
]
Sd = Annotated[
    str | None,
    typer.Option("--sd", metavar="SD", help="PUBLIC standard deviation, or one per stratum (E=180,H=690)."),
]
Size = Annotated[int | None, typer.Option("--size", metavar="N", help="Number of records to draw.")]
DesignOrSize = Annotated[
    str | None, typer.Option("--design", metavar="SPEC", help="Instead of --size: a design, e.g. poisson:rate=0.1")
]
Method = Annotated[
    str, typer.Option("--method", metavar="WORD", help="Sizes per stratum: optimal, minimax, proportional or neyman.")
]
Delta = Annotated[
    float, typer.Option("--delta", metavar="D", help="0: Laplace noise, pure DP. Above 0: Gaussian noise.")
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups", metavar="LIST", help="The PUBLIC groups of --by, A,B,C, or with their sizes, A=120,B=80,C=9."
    ),
]
Id = Annotated[
    str | None, typer.Option("--id", metavar="COLUMN", help="Column of unique ids; by default the row number.")
]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out records with an empty entry in one of these columns.")
]

Pair = tuple[float, float]
RANGE = "range"
EVERYBODY = "everybody"
_SHOWN = 12


def listed(words: Iterable[str]) -> str:
    """The first few words of a list, for an error sentence."""
    every = [word if len(word) <= 40 else f"{word[:39]}…" for word in words]
    return ", ".join(every[:_SHOWN]) + (f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else "")


def file_of(file: Path | None, population: Path | None) -> Path:
    """The file of records; --population FILE is the form of the previous version."""
    from ...errors import InvalidInput

    if (file is None) == (population is None):
        raise InvalidInput("a survey needs the file of records to draw from: privamp survey COMMAND FILE …")
    if population is not None:
        warn("--population FILE is now just FILE, without the option; the old form will be removed in the next version")
    return Path(file or population or "")


def noise_of(delta: float) -> str:
    """Gaussian noise if delta is above 0."""
    return "gaussian" if delta else "laplace"


def read_bounds(text: str | None, strata: list[str]) -> dict[str, Pair]:
    """(lowest, highest) of every stratum."""
    given = "0:1" if text is None else text
    return {name: read_pair(entry) for name, entry in _per_stratum("bounds", given, strata).items()}


def read_sd(text: str | None, strata: list[str]) -> dict[str, float] | None:
    """The public standard deviation of every stratum, where there is one."""
    if text is None or text == RANGE:
        return None
    return {name: _sd(entry) for name, entry in _per_stratum("sd", text, strata).items()}


def read_groups(text: str | None) -> list[str] | dict[str, float] | None:
    """Public groups: A,B,C, or with their public numbers of records, A=120,B=80."""
    from ...errors import InvalidInput

    if text is None:
        return None
    items = [item.strip() for item in text.split(",")]
    if all("=" not in item for item in items):
        names, sizes = items, []
    else:
        pairs = [item.rpartition("=") for item in items]
        names, sizes = [name.strip() for name, _, _ in pairs], [_records(size, text) for _, _, size in pairs]
    if "" in names or len(set(names)) < len(names):
        raise InvalidInput(f"--groups must name groups, each once, as in A,B or A=120,B=80, got {text!r} instead")
    return dict(zip(names, sizes, strict=True)) if sizes else names


def _records(size: str, text: str) -> float:
    from ...errors import InvalidInput

    if not size.strip().isdecimal():
        raise InvalidInput(f"--groups takes whole numbers of records for all groups or for none, got {text!r} instead")
    return float(size)


def _per_stratum(what: str, text: str, strata: list[str]) -> dict[str, str]:
    """One entry for all, or NAME=ENTRY for every stratum."""
    from ...errors import InvalidInput

    if "=" not in text:
        return dict.fromkeys(strata, text)
    pairs = [item.rpartition("=") for item in text.split(",")]
    names = [name.strip() for name, _, _ in pairs]
    unknown = [name for name in names if name not in strata]
    missing = [name for name in strata if name not in names]
    if unknown and strata == [EVERYBODY]:
        raise InvalidInput(f"--{what} has one entry per stratum, which needs --strata; got {text!r} instead")
    if unknown:
        raise InvalidInput(
            f"--{what} names stratum {unknown[0]!r}, which has no records; the strata are {listed(strata)}"
        )
    if missing or len(names) > len(strata):
        wrong = f"stratum {missing[0]!r} is missing" if missing else "a name repeats"
        raise InvalidInput(f"--{what} must name every stratum once, but {wrong} in {text!r}")
    return dict(zip(names, (entry for _, _, entry in pairs), strict=True))


def _sd(text: str) -> float:
    from ...errors import InvalidInput

    try:
        sd = float(text)
    except ValueError:
        sd = math.nan
    if not 0 <= sd < math.inf:
        raise InvalidInput(f"--sd must be finite numbers of at least 0, got {text!r} instead")
    return sd
