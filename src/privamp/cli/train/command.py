"""`privamp train`: train a network with differential privacy."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...numerics.printing import as_asked, shown_up
from ..console import number, say, waiting, warn
from ..options import BudgetFile, BudgetLabel, Json, opened_budget
from ..released import ReleaseOutput, check_files, check_page

if TYPE_CHECKING:
    from .data import TrainingData

EXAMPLES = """\
Examples:
  privamp example pictures --out pictures.npz

  privamp example incomes > incomes.csv

  privamp train --data pictures.npz --model logistic --epsilon 3 --delta 1e-5 --sampler importance \\
      --population 60000 --rate 0.01 --steps 50 --out model.pt --report report.html

  privamp train --data incomes.csv --label income --classes '<=50K,>50K' --model logistic --epsilon 1 \\
      --population 30000 --rate 0.02 --steps 30 --out incomes.pt --checkpoint incomes.secret --json"""

_MODELS = ("cnn", "mlp", "lstm", "logistic")
_SAMPLERS = ("uniform", "importance", "importance-reject", "dpis")
_LOOKS = 10  # at the held-out data
HELD_OUT = "computed from the held-out records without noise: NOT PRIVATE for them"


@dataclass(frozen=True, slots=True)
class Look:
    """The state of training: epsilon spent so far, and loss and accuracy on held-out records (not private for them)."""

    step: int
    epsilon: float
    held_out_loss: float | None
    held_out_accuracy: float | None


def train(
    data: Annotated[
        Path, typer.Option("--data", metavar="FILE", help=".npz with X_train, y_train (or tokens), or .csv, .parquet.")
    ],
    model: Annotated[str, typer.Option("--model", metavar="WORD", help="cnn, mlp, lstm or logistic.")],
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="E", help="The total privacy loss of all steps.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Output file for the model; may be shared.")],
    delta: Annotated[float, typer.Option("--delta", metavar="D", help="The total delta.")] = 1e-5,
    sampler: Annotated[
        str, typer.Option("--sampler", metavar="WORD", help="importance, importance-reject, uniform (DP-SGD) or dpis.")
    ] = "importance",
    population: Annotated[
        int | None, typer.Option("--population", metavar="N", help="PUBLIC rough number of records to divide by.")
    ] = None,
    rate: Annotated[
        float, typer.Option("--rate", metavar="R", help="Largest probability of a record being in a batch.")
    ] = 0.01,
    steps: Annotated[int, typer.Option("--steps", metavar="T", help="Number of optimiser steps.")] = 500,
    clip: Annotated[float, typer.Option("--clip", metavar="C", help="Clipping norm of one record's gradient.")] = 1.0,
    learning_rate: Annotated[float, typer.Option("--learning-rate", metavar="L", help="Learning rate of SGD.")] = 0.15,
    momentum: Annotated[float, typer.Option("--momentum", metavar="M", help="Momentum of SGD.")] = 0.9,
    classes: Annotated[
        str | None,
        typer.Option("--classes", metavar="K|A,B,…", help="How many (.npz), or their names (tables). PUBLIC."),
    ] = None,
    label: Annotated[str | None, typer.Option("--label", metavar="COLUMN", help="The label column of a table.")] = None,
    vocabulary: Annotated[
        int, typer.Option("--vocabulary", metavar="V", help="Vocabulary size: word ids are below it.")
    ] = 10_002,
    device: Annotated[str, typer.Option("--device", metavar="cpu|cuda", help="Where to compute.")] = "cpu",
    largest_batch: Annotated[
        int | None, typer.Option("--largest-batch", metavar="B", help="Records held in memory at a time.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", metavar="FILE", help="SECRET file to resume from after a crash."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
    budget: BudgetFile = None,
    budget_population: BudgetLabel = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write a report with curves, .html.")
    ] = None,
    public_size: Annotated[int | None, typer.Option("--public-size", hidden=True)] = None,
    json: Json = False,
) -> None:
    """Train a classifier under differential privacy on importance-sampled batches.

    Records with small gradients are drawn less often and weighted more: the privacy of DP-SGD at --rate, with fewer
    gradients computed. Test records in the file (X_test, or a column 'split' that says train or test) are held out;
    loss and accuracy on them have no noise. Every record is encoded independently of the others.

    Each run draws with a fresh key, and its epsilon adds to that of other runs; a run that resumes from its checkpoint
    does not. Needs PyTorch: pip install 'privamp\\[torch]'
    """

    if public_size is not None and population is None:
        warn("--public-size is now --population; the old name will be removed in the next version")
        population = public_size
    _check_options(model, sampler, population, learning_rate, momentum, vocabulary)
    _check_files(data, out, report, checkpoint, overwrite)
    torch_engine = _torch()
    where = torch_engine.device(device)
    plan: dict[str, Any] = {
        "sampler": sampler, "sample_rate": rate, "steps": steps, "max_grad_norm": clip, "population": population,
        "target_epsilon": epsilon, "target_delta": delta, "max_physical_batch_size": largest_batch,
    }  # fmt: skip
    paying = opened_budget(budget, budget_population)
    with waiting("training", quiet=json) as advance:
        from .data import load

        found = load(data, label, classes, vocabulary)
        from .run import Training

        run = Training(found, model, where, learning_rate, momentum, plan | {"checkpoint": checkpoint}, paying)
        looks: list[Look] = []

        def look(step: int) -> None:
            loss, accuracy = run.held_out()
            looks.append(Look(step, run.engine.get_epsilon(delta), loss, accuracy))
            if not json:
                _progress(looks[-1], steps, delta)

        run.train(_LOOKS, look, advance)
        told = _told(run, looks, model, found, epsilon, delta)
        trained = run.engine.published(delta=delta)
    told.tell(json=json, report=report, files={"out": (out, trained)})


def _torch() -> Any:
    from ... import torch
    from ...extras import need

    need("torch", "training")
    return torch


def _check_options(
    model: str, sampler: str, population: int | None, learning_rate: float, momentum: float, vocabulary: int
) -> None:
    from ...errors import InvalidInput
    from ...validation import in_range, one_of, positive, whole

    one_of(_MODELS, model=model)
    one_of(_SAMPLERS, sampler=sampler)
    if population is None:
        raise InvalidInput(
            "--population is missing: a public (rough) number of records to divide by, since the true one is secret"
        )
    positive(learning_rate=learning_rate)
    in_range(0, 0.9999, momentum=momentum)
    whole(2, 10**7, vocabulary=vocabulary)


def _check_files(data: Path, out: Path, report: Path | None, checkpoint: Path | None, overwrite: bool) -> None:
    """Check the file names before anything is read."""
    from ...errors import InvalidInput
    from ...extras import need
    from ..tables import check_file
    from .data import ENDINGS

    if not data.name.lower().endswith(ENDINGS):
        raise InvalidInput(f"the records must be named .npz, .csv, .csv.gz or .parquet, got {data.name!r} instead")
    check_file(data)
    check_page(report)
    if report is not None:
        need("matplotlib", "the report's picture")
    check_files(data, [out, report], overwrite=overwrite, kept=checkpoint)


def _progress(look: Look, steps: int, delta: float) -> None:

    held_out = ""
    if look.held_out_accuracy is not None:
        held_out = f", held-out loss {look.held_out_loss:.4f}, accuracy {look.held_out_accuracy:.2%} (not private)"
    say(f"step {look.step} of {steps}: epsilon {shown_up(look.epsilon, 4)} spent at delta {as_asked(delta)}{held_out}")


def _about(run: Any, model: str, found: "TrainingData") -> list[tuple[str, str]]:
    plan = run.engine.plan
    rows = [
        ("model", f"{model}, {run.parameters:,} trainable parameters, {found.classes} classes"),
        ("batches", f"{plan.sampler}, rate at most {plan.rate:g}, {run.engine.step} steps, clip {plan.clip:g}"),
    ]
    if plan.sampler != "dpis":
        rows.append(("noise", f"multiplier {number(plan.noise_multiplier)} on the sum of gradients"))
    return rows


def _told(
    run: Any, looks: list[Look], model: str, found: "TrainingData", epsilon: float, delta: float
) -> ReleaseOutput:
    """The trained parameters, how they were trained, and the held-out scores by step."""
    from ...report.learning import picture_of_learning

    plan = run.engine.plan.facts()
    scores = None if looks[0].held_out_accuracy is None else [look.held_out_accuracy or 0.0 for look in looks]
    losses = None if looks[0].held_out_loss is None else [look.held_out_loss or 0.0 for look in looks]
    steps, spent = [look.step for look in looks], [look.epsilon for look in looks]
    rows = [[str(look.step), shown_up(look.epsilon), *_scores(look)] for look in looks]
    return ReleaseOutput(
        {"": run.engine.result(delta=delta)}, f"A private {model} model",
        {"model": model, "parameters": run.parameters, "classes": found.classes}, _about(run, model, found),
        delta=delta, called="Model",
        more={
            "plan": plan, "steps_run": run.engine.step, "not_private_for_held_out": [asdict(look) for look in looks]
        },
        summary=f"Trained within epsilon {as_asked(epsilon)} at delta {as_asked(delta)}, add/remove of one record.",
        picture=(
            lambda: picture_of_learning(steps, spent, scores, losses),
            "Epsilon spent and held-out loss and accuracy, by step.",
        ),
        tables=[
            (["step", "epsilon spent", "held-out loss", "held-out accuracy"], rows, "By step."),
            (["what", "how"], [[name, str(value)] for name, value in plan.items()], "The public plan."),
        ],
        not_private=None if scores is None else (
            "NOT PRIVATE: held-out scores",
            f"Loss and accuracy were {HELD_OUT}. Do not release this page unless those records are public.",
        ),
    )  # fmt: skip


def _scores(look: Look) -> tuple[str, str]:
    if look.held_out_accuracy is None or look.held_out_loss is None:
        return "-", "-"
    return f"{look.held_out_loss:.4f}", f"{look.held_out_accuracy:.4f}"
