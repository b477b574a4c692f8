"""`privamp sample`: a sample of files larger than memory, written to a file that only its owner can read."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import emit, facts, say, waiting
from .options import DesignSpec, Json, given, population_label

if TYPE_CHECKING:
    from ..chance.keys import Key

EXAMPLES = """\
Examples:
  privamp example schools > schools.csv

  privamp sample --new-key sample.key

  privamp sample schools.csv --id school --label schools --design poisson:rate=0.1 --key-file sample.key \\
      --out sample.parquet

  privamp sample schools.csv --design wor:size=30,population=300 --label schools --key-file sample.key \\
      --out thirty.parquet --json

  privamp sample schools.csv --id school --label schools --key-file sample.key --out weighted.parquet --clip \\
      --design importance:rule=privacy-constrained,epsilon=1,scale=20000,radius=1600,column=enroll"""


def _make_key(path: Path | None) -> None:
    """Write a fresh key and exit."""
    if path is None:
        return
    from ..tables.key_files import make_key_file

    make_key_file(path)
    say(f"Key: {path}")
    say("SECRET: protect it like the data; anyone who has it knows who is in the samples drawn with it.", "bold yellow")
    raise typer.Exit


def sample(
    source: Annotated[
        list[str], typer.Argument(metavar="DATA…", help="Parquet, CSV or Feather files, or a folder of them.")
    ],
    design: DesignSpec,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Output file: .parquet or .feather.")],
    key_file: Annotated[Path, typer.Option("--key-file", metavar="FILE", help="The key; create one with --new-key.")],
    id: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="Column of unique ids; by default the row number is the id."),
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="A,B", help="Columns to keep; all by default.")
    ] = None,
    reads: Annotated[
        list[str] | None,
        typer.Option("--reads", metavar="NAME=COLUMN", help="Where the design finds a column, e.g. cluster=school."),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--label", metavar="TEXT", help="Name of the population, not of the file."),
    ] = None,
    round: Annotated[int, typer.Option("--round", metavar="N", help="Use a new round for each fresh draw.")] = 0,
    clip: Annotated[bool, typer.Option("--clip", help="Importance rules: use records clipped to the ball.")] = False,
    trust_ids: Annotated[bool, typer.Option("--trust-ids", help="Do not search for repeated ids.")] = False,
    spark: Annotated[
        str | None,
        typer.Option("--spark", metavar="URL", help="Draw on Spark: spark://…, local[*], connect or sc://…."),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option("--format", metavar="NAME", help="With --spark: the kind of files, e.g. delta or iceberg."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", metavar="N", help="Number of threads; all cores by default.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --out if it exists.")] = False,
    new_key: Annotated[
        Path | None,
        typer.Option(
            "--new-key", metavar="FILE", help="Create a key file and exit.", callback=_make_key, is_eager=True
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Draw a sample by any design and write its rows, with privamp_weight and privamp_count.

    The file is SECRET, and only its owner may read it: a sample is not a release. It is written atomically, and
    its number of rows is not printed. Its metadata name the design, the fingerprint of the key and the ledger id.

    The same key, label, round, design and ids write the same sample again: on any number of cores, after a kill, and,
    with --id, in any order of the rows. New data or a second sample need a new --round: draws that share random numbers
    are not independent. Memory use does not grow with the number of rows for Poisson and importance designs, and grows
    with the sample for those of fixed size.
    """
    from .. import spec
    from ..engines import local
    from ..engines.options import WriteOptions

    with given("--design"):
        chosen = spec.design(design)
    named = population_label(label)
    key = _key(key_file)
    kept = None if columns is None else [name.strip() for name in columns.split(",")]
    with waiting("sampling", quiet=json) as advance:
        asked: dict[str, Any] = {"key": key, "id": id, "label": named, "round": round}
        asked["options"] = WriteOptions(
            columns=kept, reads=_reads(reads or []), clip=clip, trust_ids=trust_ids, overwrite=overwrite, spec=design,
            threads=threads, progress=lambda done, rows: advance(done, rows) if rows else None,
        )  # fmt: skip
        if spark is None:
            if format is not None:
                from ..errors import InvalidInput

                raise InvalidInput(f"--format {format} is for Spark, which reads other kinds of files; add --spark URL")
            ledger = local.write(source, chosen, out, **asked).ledger_id
        else:
            from ..engines import spark_files, spark_session

            data = source if format is None else spark_files.read(spark_session.session(spark), source, id, format)
            ledger = spark_files.write(data, chosen, out, spark=spark, **asked).ledger_id
    fingerprint = key.fingerprint.hex()
    if json:
        emit(
            {"design": design, "label": named, "round": round, "id": id, "out": str(out)}
            | {"key_fingerprint": fingerprint, "ledger_id": ledger, "secret": local.SECRET}
        )
        return
    facts(
        [
            ("design", design),
            ("population", f"{named}, round {round}, ids by {id or 'row number'}"),
            ("key fingerprint", fingerprint),
            ("ledger", ledger),
            ("sample", str(out)),
        ]
    )
    say(f"SECRET: {local.SECRET}.", "bold yellow")


def _key(path: Path) -> "Key":
    from ..tables.key_providers import provider

    return provider(path).key()


def _reads(pairs: list[str]) -> dict[str, list[str]]:
    from ..errors import InvalidInput

    found: dict[str, list[str]] = {}
    for pair in pairs:
        name, equals, places = pair.partition("=")
        if not (name and equals and places):
            raise InvalidInput(f"--reads must be NAME=COLUMN or NAME=COLUMN+COLUMN, got {pair!r} instead")
        found[name] = places.split("+")
    return found
