"""`privamp survey draw`: the sample with its design weights, written to a file that only its owner can read."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..console import emit, facts, grid, number, say, waiting
from ..options import Json, population_label
from .options import (
    Bounds,
    Cluster,
    Delta,
    DesignOrSize,
    DropMissing,
    File,
    Id,
    Method,
    OldFile,
    Sd,
    Size,
    Strata,
    file_of,
)

if TYPE_CHECKING:
    from ...core.design import Design
    from .population import Records

EXAMPLES = """\
Examples:
  privamp example schools > schools.csv

  privamp survey draw schools.csv --id school --strata level --size 60 --method minimax \\
      --bounds E=0:1600,M=0:4200,H=0:4200 --epsilon 1 --out sample.parquet --key-file sample.key --label schools

  privamp survey draw schools.csv --id school --design poisson:rate=0.1 --out sample.csv --json"""
WEIGHT = "design_weight"
FORGOTTEN = "population"  # for a key that is not stored, which draws once
SECRET = "who is in this file is secret: the amplified guarantee is void once anyone sees it"
KNOWN = (
    "interviewers and respondents know who was drawn: against them an estimate has only the guarantee of its noise, "
    "without amplification; bind interviewers to secrecy, and ask respondents not to tell others"
)


def draw(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Output file: .csv or .parquet.")],
    file: File = None,
    design: DesignOrSize = None,
    size: Size = None,
    strata: Strata = None,
    method: Method = "optimal",
    bounds: Bounds = None,
    sd: Sd = None,
    epsilon: Annotated[
        float | None,
        typer.Option("--epsilon", metavar="E", help="The epsilon of the later release; determines the sizes."),
    ] = None,
    delta: Delta = 0.0,
    cluster: Cluster = None,
    id: Id = None,
    drop_missing: DropMissing = False,
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--key-file", metavar="FILE", help="The key: read, or created for its owner only (64 hex digits)."
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="TEXT", help="Name of the population; required with --key-file.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --out if it exists.")] = False,
    population: OldFile = None,
    json: Json = False,
) -> None:
    """Draw a sample and write its records, with the column design_weight, for interviews.

    The file is SECRET, and only its owner may read it: amplification holds only while the sample is secret.
    Its number of records is not printed, because it may be secret too. The sizes of the population and its strata are
    treated as public.

    The same key, label, ids and design draw the same sample again. How it was drawn is recorded next to the key
    (KEY.survey.json, as secret as the key), and survey estimate --answers draws it again from there. With no --key-file
    the key is discarded, and answers cannot be used later. Interviewers and respondents know who was
    drawn: against them there is no amplification.
    Without public standard deviations (--sd) the method optimal is minimax.
    """
    from .design import check_clusters, choose, design_weights
    from .files import check_output, key_from, write_secrets
    from .population import read_records
    from .surveys import remember, survey_of

    source = file_of(file, population)
    named = FORGOTTEN if key_file is None and label is None else population_label(label)
    check_output(out, overwrite, source, key_file)
    key, is_fresh = key_from(key_file)
    with waiting("drawing", quiet=json):
        records = read_records(source, drop_missing=drop_missing, whole=True, strata=strata, cluster=cluster, id=id)
        _check(records)
        chosen = choose(records, design, size, method, bounds, sd, epsilon, delta)
        if "cluster" in records.roles:
            check_clusters(chosen, records)
        weights = design_weights(chosen, records)
        drawn = chosen.draw(records.population(chosen, named), key).reveal_secret()  # the file is secret too
        table = records.rows(drawn.positions, with_types=out.suffix.lower() == ".parquet")
        table = table.append_column(WEIGHT, [drawn.counts * weights[drawn.positions]])
        write_secrets(out, table, key, key_file if is_fresh else None, overwrite=overwrite)
        if key_file is not None:
            made = survey_of(records, chosen, design, named, key, drop_missing=drop_missing, cluster=cluster)
            remember(key_file, made)
    _print(chosen, design, records, out, key_file, json)


def _check(records: "Records") -> None:
    from ...errors import InvalidInput

    if WEIGHT in records.table.column_names:
        raise InvalidInput(f"{records.name!r} already has a column {WEIGHT!r}; rename it")


def _print(
    chosen: "Design", text: str | None, records: "Records", out: Path, key_file: Path | None, json: bool
) -> None:
    strata = _strata(chosen)
    if json:
        answer: dict[str, Any] = {"design": text or type(chosen).__name__}
        if text is None or chosen.public_size is not None:  # the number is public
            answer["population"] = records.size
        if text is None:
            answer |= {"strata": strata} if strata else {"size": getattr(chosen, "size", None)}
        answer |= {"out": str(out), "key_file": str(key_file) if key_file else None}
        emit(answer | {"secret": SECRET, "known_to": KNOWN})
        return
    if strata:
        rows = ([h["name"], f"{h['population']:,}", f"{h['size']:,}", number(h["weight"])] for h in strata)
        grid("Without replacement per stratum", ["<stratum", "records", "drawn", "weight"], rows)
    else:
        facts([("design", text or str(chosen))])
    say(f"Sample: {out}")
    if key_file:
        say(f"Key: {key_file}")
    say(f"SECRET: {SECRET}.", "bold yellow")
    say(f"Who knows: {KNOWN}.")


def _strata(chosen: "Design") -> list[dict[str, Any]]:
    from ...core.weighting import Subset

    drawn = [(name, part.equal_chances) for name, part in chosen.parts]
    return [
        {"name": name, "population": one.population, "size": one.size, "weight": one.population / one.size}
        for name, one in drawn
        if isinstance(one, Subset)
    ]
