"""The application: every command under one name. Each command imports what it needs when it is called."""

from typing import Annotated

import typer

from .. import __version__
from . import (
    amplify,
    audit,
    audit_records,
    audit_release,
    bootstrap,
    budget,
    budget_audit,
    calibrate,
    compare,
    demo,
    kmeans,
    reproduce,
    sample,
    survey_draw,
    survey_estimate,
    survey_plan,
    train,
    verify,
    weights,
)
from .errors import OneSentenceGroup
from .options import ExampleCommand

app = typer.Typer(
    cls=OneSentenceGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with [bold]privamp demo[/bold]; every command shows an example under --help.",
)
audits = typer.Typer(no_args_is_help=True, help="Hold what the library claims against the exact truth.")
audits.command("designs", cls=ExampleCommand, epilog=audit.EXAMPLES)(audit.designs)
audits.command("records", cls=ExampleCommand, epilog=audit_records.EXAMPLES)(audit_records.records)
audits.command("release", cls=ExampleCommand, epilog=audit_release.RELEASE_EXAMPLES)(audit_release.release)
audits.command("workloads", cls=ExampleCommand, epilog=audit_release.WORKLOADS_EXAMPLES)(audit_release.workloads)
audits.command("mistakes", cls=ExampleCommand, epilog=audit_release.MISTAKES_EXAMPLES)(audit_release.mistakes)
surveys = typer.Typer(no_args_is_help=True, help="Plan a survey, draw its sample, release its estimates.")
surveys.command("plan", cls=ExampleCommand, epilog=survey_plan.EXAMPLES)(survey_plan.plan)
surveys.command("draw", cls=ExampleCommand, epilog=survey_draw.EXAMPLES)(survey_draw.draw)
surveys.command("estimate", cls=ExampleCommand, epilog=survey_estimate.EXAMPLES)(survey_estimate.estimate)
budgets = typer.Typer(no_args_is_help=True, help="Limit what is released about a population, across programs.")
budgets.command("create", cls=ExampleCommand, epilog=budget.CREATE_EXAMPLES)(budget.create)
budgets.command("show", cls=ExampleCommand, epilog=budget.SHOW_EXAMPLES)(budget.show)
budgets.command("log", cls=ExampleCommand, epilog=budget.LOG_EXAMPLES)(budget.log)
budgets.command("cancel", cls=ExampleCommand, epilog=budget.CANCEL_EXAMPLES)(budget.cancel)
budgets.command("head", cls=ExampleCommand, epilog=budget_audit.HEAD_EXAMPLES)(budget_audit.head)
budgets.command("verify", cls=ExampleCommand, epilog=budget_audit.VERIFY_EXAMPLES)(budget_audit.verify)
budgets.command("backup", cls=ExampleCommand, epilog=budget_audit.BACKUP_EXAMPLES)(budget_audit.backup)

app.command(cls=ExampleCommand, epilog=demo.EXAMPLES)(demo.demo)
app.command(cls=ExampleCommand, epilog=amplify.EXAMPLES)(amplify.amplify)
app.command(cls=ExampleCommand, epilog=compare.EXAMPLES)(compare.compare)
app.command(cls=ExampleCommand, epilog=calibrate.EXAMPLES)(calibrate.calibrate)
app.command(cls=ExampleCommand, epilog=sample.EXAMPLES)(sample.sample)
app.add_typer(surveys, name="survey")
app.command(cls=ExampleCommand, epilog=bootstrap.EXAMPLES)(bootstrap.bootstrap)
app.command(cls=ExampleCommand, epilog=weights.EXAMPLES)(weights.weights)
app.command(cls=ExampleCommand, epilog=kmeans.EXAMPLES)(kmeans.kmeans)
app.command(cls=ExampleCommand, epilog=train.EXAMPLES)(train.train)
app.add_typer(budgets, name="budget")
app.add_typer(audits, name="audit")
app.command(cls=ExampleCommand, epilog=verify.EXAMPLES)(verify.verify)
app.command(cls=ExampleCommand, epilog=reproduce.EXAMPLES)(reproduce.reproduce)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"privamp {__version__}")
        raise typer.Exit


@app.callback()
def privamp(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Privacy amplification by sampling: what a release from a sample really guarantees, and why."""
