"""`privamp survey estimate`: draw and release in one step, or release estimates from the interviews of a drawn
sample."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..console import waiting
from ..options import BudgetFile, BudgetLabel, Json, Report, opened_budget
from ..released import ReleaseOutput, check_page
from .options import (
    EVERYBODY,
    RANGE,
    Bounds,
    Cluster,
    Delta,
    DesignOrSize,
    DropMissing,
    File,
    Groups,
    Id,
    Method,
    OldFile,
    Probability,
    Size,
    Strata,
    file_of,
    noise_of,
    read_bounds,
    read_groups,
    read_sd,
)

if TYPE_CHECKING:
    from ...core.design import Design
    from ...core.release import Release

EXAMPLES = """\
Examples:
  privamp example schools > schools.csv

  privamp survey estimate schools.csv --strata level --size 60 \\
      --value enroll --bounds E=0:1600,M=0:4200,H=0:4200 --statistic mean --epsilon 1

  privamp survey estimate schools.csv --size 60 --value enroll --bounds 0:4200 \\
      --statistic total --by level --epsilon 1 --delta 1e-6 --json

  privamp survey estimate schools.csv --size 90 --value enroll --bounds 0:4200 --epsilon 1 --classes level"""
PUBLIC = "how many records the population and its strata have is public, and so is who is in which stratum"
COLUMNS = "the columns given as clusters or probabilities are public, and keep to the design"
SOURCES = {
    "private estimate": "released privately too, for a fifth of the budget",
    "public bound": "the largest that the bounds allow",
    "public sd": "from the public standard deviations",
}


def estimate(
    value: Annotated[
        list[str],
        typer.Option("--value", metavar="COLUMN", help="The column to estimate; several columns share epsilon."),
    ],
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="E", help="The privacy loss of the release.")],
    file: File = None,
    statistic: Annotated[
        str, typer.Option("--statistic", metavar="WORD", help="mean, total, proportion (of 0 and 1) or ratio (--over).")
    ] = "mean",
    bounds: Bounds = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="COLUMN", help="One estimate for every value of this PUBLIC column.")
    ] = None,
    groups: Groups = None,
    design: DesignOrSize = None,
    size: Size = None,
    strata: Strata = None,
    method: Method = "optimal",
    sd: Annotated[
        str | None,
        typer.Option(
            "--sd", metavar="SD", help="PUBLIC standard deviation, one per stratum (E=180,H=690), or 'range'."
        ),
    ] = None,
    delta: Delta = 0.0,
    cluster: Cluster = None,
    probability: Probability = None,
    id: Id = None,
    drop_missing: DropMissing = False,
    answers: Annotated[
        Path | None,
        typer.Option("--answers", metavar="FILE", help="The interviews of a drawn sample: ids and answers."),
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option("--key-file", metavar="FILE", help="With --answers: the key of the draw.")
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="TEXT", help="With --answers: the label of the survey.")
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            metavar="COLUMN[=NAMES]",
            help="PUBLIC column of the frame: respondents represent the nonrespondents of their class. Poisson, "
            "cluster and other samples need the names, level=E,M,H, or sizes, level=E:400,M:120.",
        ),
    ] = None,
    margin: Annotated[
        list[str] | None,
        typer.Option(
            "--margin",
            metavar="COLUMN=TOTALS",
            help="PUBLIC totals to adjust to, sex=f:5100,m:4900: one poststratifies, several rake.",
        ),
    ] = None,
    over: Annotated[
        str | None, typer.Option("--over", metavar="COLUMN", help="With --statistic ratio: the denominator.")
    ] = None,
    over_bounds: Annotated[
        str | None, typer.Option("--over-bounds", metavar="LOW:HIGH", help="PUBLIC range of --over.")
    ] = None,
    design_effect: Annotated[
        bool,
        typer.Option("--design-effect", help="Release the design effect too, from the budget of the sampling error."),
    ] = False,
    budget: BudgetFile = None,
    budget_population: BudgetLabel = None,
    report: Report = None,
    population: OldFile = None,
    json: Json = False,
) -> None:
    """Draw a fresh sample and release one estimate from it, with its errors and its guarantee.

    With --answers FILE --key-file KEY the sample is the one that survey draw drew with that key, from the same frame,
    and the answers are those that came back: the id column and one column per question. It needs --budget, because only
    a budget knows what else was released from the sample. Otherwise each run is a fresh draw with a fresh key, and its
    epsilon adds to that of other runs.

    With --answers, --classes, --margin or --over, a missing value is not an answer, and respondents represent those who
    did not answer. Answers of people not drawn or not in the frame are left out; several answers of one person count
    once if they agree and not at all if they differ.

    --design also takes clusters, systematic samples, shares and unequal probabilities: cluster:chosen=20,clusters=400,
    max_size=9 or pps-clusters:sizes=30+20+25+25,chosen=2,take=5 with --cluster COLUMN, systematic:step=10,
    proportional:rate=0.1, poisson-pps:low=0.1,high=0.5 with --probability COLUMN. Their noise is Laplace, or Gaussian
    with --delta.

    Values are clipped to the bounds. Bounds, strata, the column --by and all their sizes must be public. A value that
    is missing or not a number counts as the middle of the bounds. With --groups, the column --by need not be public:
    records of other groups, or of none, are left out. Poisson samples need it, with sizes for means. The sampling error
    is released too, for a fifth of the budget, unless --sd provides it at no cost.
    """
    import numpy as np

    from ...errors import InvalidInput
    from ...survey import estimate as release
    from .design import check_columns, choose
    from .filed import SUMMARY, effects_of, facts_of, tables_of
    from .population import DROPPED, READABLE, read_records

    source = file_of(file, population)
    _check(statistic, bounds, epsilon)
    if answers is not None or classes or margin or over or statistic == "ratio" or len(value) > 1:
        from .adjusted import Adjusted

        chosen_by = {"--design": design, "--size": size, "--strata": strata, "--cluster": cluster, "--id": id}
        Adjusted(
            source, tuple(dict.fromkeys(value)), statistic, bounds, epsilon, delta, by, groups, classes,
            tuple(margin or ()), over, over_bounds, design_effect,
        ).tell(
            chosen_by, (answers, key_file, label), (method, sd, drop_missing, probability), (budget, budget_population),
            report, json,
        )  # fmt: skip
        return
    if key_file is not None or label is not None:
        raise InvalidInput("--key-file and --label need --answers FILE, the interviews of a drawn sample")
    declared = read_groups(groups)
    if declared is not None and by is None:
        raise InvalidInput("--groups needs --by COLUMN, the column of the groups")
    check_page(report)
    paying = opened_budget(budget, budget_population)
    with waiting("drawing and releasing", quiet=json):
        records = read_records(
            source, drop_missing=drop_missing, may_be_empty=design is not None, value=value[0], strata=strata,
            by=by if groups is None else None, group=None if groups is None else by, id=id, cluster=cluster,
            probability=probability,
        )  # fmt: skip
        ends = "0:1" if bounds is None else bounds
        chosen = choose(records, design, size, method, ends, sd, epsilon, delta)
        _check_design(chosen, by, declared, statistic)
        check_columns(chosen, records)
        alone = "strata" not in records.roles
        names = [EVERYBODY] if alone else np.unique(records.strata()).tolist()
        limits, known = read_bounds(ends, names), read_sd(sd, names)
        found = release(
            chosen.draw(records.population(chosen)), records.numbers("value"), statistic,
            bounds=limits[EVERYBODY] if alone else limits, epsilon=epsilon, delta=delta, noise=noise_of(delta),
            by=records.text("by" if declared is None else "group") if by else None, groups=declared,
            sd=RANGE if sd == RANGE else known[EVERYBODY] if known and alone else known,
            design_effect=design_effect, budget=paying,
        )  # fmt: skip
        each: dict[str, Release] = found if isinstance(found, dict) else {"": found}
        one = next(iter(each.values()))
        is_fixed = one.guarantee.neighbors.kind == "replace-one"  # else the number of records is secret, and not used
    assumes = [PUBLIC if is_fixed else COLUMNS, READABLE] + [DROPPED] * drop_missing
    name = _name(chosen, design)
    head = {"statistic": statistic, "value": value[0], "by": by, "design": name, "bounds": limits}
    title = f"{statistic} of {value[0]}" + (f" by {by}" if by else "")
    how = [("design", name), ("sampling error", SOURCES[one.sampling_error_is])]
    how = facts_of(records, is_fixed) + how + effects_of(each)
    tables = tables_of(chosen)
    told = ReleaseOutput(each, title, head, how, delta=delta or None, assumes=assumes, summary=SUMMARY, tables=tables)
    told.tell(json=json, report=report)


def _check(statistic: str, bounds: str | None, epsilon: float) -> None:
    from ...errors import InvalidInput
    from ...validation import one_of, positive

    one_of(("mean", "total", "proportion", "ratio"), statistic=statistic)
    positive(epsilon=epsilon)
    if bounds is None and statistic != "proportion":
        raise InvalidInput(f"a {statistic} needs --bounds LOW:HIGH, the public range of its values")


def _check_design(chosen: "Design", by: str | None, groups: Any, statistic: str) -> None:
    from ...core.weighting import Coins, Subset
    from ...errors import InvalidInput

    if by is None:
        return
    chances = chosen.equal_chances
    if not chosen.parts and not isinstance(chances, Subset) and (groups is None or not isinstance(chances, Coins)):
        raise InvalidInput(
            "--by needs a design of fixed size (give --size, with or without --strata), or a Poisson design with "
            "--groups, because which groups occur is secret there"
        )
    if isinstance(chances, Coins) and statistic != "total" and not isinstance(groups, dict):
        raise InvalidInput(f"a {statistic} by groups of a Poisson sample needs their public sizes: --groups A=120,B=80")


def _name(chosen: "Design", text: str | None) -> str:
    if chosen.parts:
        return "strata of " + ", ".join(f"{name}: {getattr(part, 'size', part)}" for name, part in chosen.parts)
    return text or str(chosen)
