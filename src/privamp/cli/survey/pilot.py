"""`privamp survey pilot`: standard deviations of strata from a small private sample, for the sizes of the main one."""

from pathlib import Path
from typing import Annotated

import typer

from ..console import degrading, say, waiting
from ..options import BudgetFile, BudgetLabel, Json, Report, opened_budget
from ..released import ReleaseOutput, check_page
from .options import EVERYBODY, Bounds, Delta, DropMissing, File, Id, Size, Strata, file_of, noise_of, read_bounds

EXAMPLES = """\
Examples:
  privamp example schools > schools.csv

  privamp survey pilot schools.csv --strata level --size 90 --value enroll \\
      --bounds E=0:1600,M=0:4200,H=0:4200 --epsilon 1"""
HOW = "variances of the pilot's strata with noise, raised by half its standard deviation"


def pilot(
    value: Annotated[str, typer.Option("--value", metavar="COLUMN", help="The column that will be estimated.")],
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="E", help="The privacy loss of the pilot.")],
    file: File = None,
    size: Size = None,
    strata: Strata = None,
    bounds: Bounds = None,
    delta: Delta = 0.0,
    id: Id = None,
    drop_missing: DropMissing = False,
    answers: Annotated[
        Path | None,
        typer.Option("--answers", metavar="FILE", help="The interviews of a drawn pilot: ids and answers."),
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option("--key-file", metavar="FILE", help="With --answers: the key of the draw.")
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="TEXT", help="With --answers: the label of the survey.")
    ] = None,
    budget: BudgetFile = None,
    budget_population: BudgetLabel = None,
    report: Report = None,
    json: Json = False,
) -> None:
    """Release the standard deviation of every stratum from a small sample, drawn in proportion to the strata.

    Pass the printed --sd to survey plan, draw or estimate, which use it to allocate the main sample. The pilot costs
    its own epsilon; the main estimate adds to it. Each stratum can use the whole epsilon, because no record is in two
    strata.

    With --answers FILE --key-file KEY the pilot is the sample that survey draw drew with that key, by strata of fixed
    size; it needs --budget. A missing value counts as the middle of the bounds.
    """
    from ...errors import InvalidInput
    from ...survey import pilot as release
    from ...validation import positive
    from .design import choose
    from .filed import facts_of, tables_of
    from .interviews import KNOWN, interviews_of
    from .population import READABLE, read_records

    source = file_of(file, None)
    positive(epsilon=epsilon)
    if bounds is None:
        raise InvalidInput("a pilot needs --bounds LOW:HIGH, the public range of its values")
    if answers is None and (key_file is not None or label is not None):
        raise InvalidInput("--key-file and --label need --answers FILE, the interviews of a drawn sample")
    if answers is not None and (size is not None or strata is not None or id is not None):
        raise InvalidInput("--size, --strata and --id are known from the draw (--key-file); omit them")
    if answers is not None and budget is None:
        raise InvalidInput(
            "--answers needs --budget FILE (privamp budget create): the sample was drawn before, and only a budget "
            "knows what else was released from it"
        )
    if answers is None and size is None:
        raise InvalidInput("give --size N, the number of records of the pilot")
    check_page(report)
    paying = opened_budget(budget, budget_population)
    with degrading(), waiting("drawing and releasing", quiet=json):
        if answers is not None:
            came = interviews_of(source, answers, key_file, label)
            records, sample, numbers = came.records, came.sample, came.numbers(value, "value")
        else:
            records = read_records(source, drop_missing=drop_missing, value=value, strata=strata, id=id)
            design = choose(records, None, size, "proportional", bounds, None, epsilon, delta)
            sample, numbers = design.draw(records.population(design)), records.numbers("value")
        names = [str(name) for name, _ in sample.design.parts] or [EVERYBODY]
        limits = read_bounds(bounds, names)
        found = release(
            sample, numbers, bounds=limits if sample.design.parts else limits[EVERYBODY], epsilon=epsilon, delta=delta,
            noise=noise_of(delta), budget=paying,
        )  # fmt: skip
    sd = {str(name): one for name, one in found.sd.items() if one is not None}
    option = ",".join(f"{name}={one:.6g}" if sample.design.parts else f"{one:.6g}" for name, one in sd.items())
    head = {"statistic": "standard deviation", "value": value, "bounds": limits, "sd": found.sd, "option": option}
    how = [*facts_of(records, True), ("standard deviations", HOW)]
    assumes = [READABLE, *([KNOWN] if answers is not None else [])]
    told = ReleaseOutput(
        {"": found.release}, f"standard deviation of {value}", head, how, delta=delta or None, assumes=assumes,
        tables=tables_of(sample.design),
    )  # fmt: skip
    with degrading():
        told.tell(json=json, report=report)
    if not json and len(sd) == len(found.sd):
        say(f"For the main sample: --sd {option}")
