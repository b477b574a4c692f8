"""The application: every command under one name. Each command imports what it needs when it is called."""

from typing import Annotated

import typer

from .. import __version__
from . import amplify, audit, calibrate, compare, demo, reproduce, survey_draw, survey_estimate, survey_plan
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
surveys = typer.Typer(no_args_is_help=True, help="Plan a survey, draw its sample, release its estimates.")
surveys.command("plan", cls=ExampleCommand, epilog=survey_plan.EXAMPLES)(survey_plan.plan)
surveys.command("draw", cls=ExampleCommand, epilog=survey_draw.EXAMPLES)(survey_draw.draw)
surveys.command("estimate", cls=ExampleCommand, epilog=survey_estimate.EXAMPLES)(survey_estimate.estimate)

app.command(cls=ExampleCommand, epilog=demo.EXAMPLES)(demo.demo)
app.command(cls=ExampleCommand, epilog=amplify.EXAMPLES)(amplify.amplify)
app.command(cls=ExampleCommand, epilog=compare.EXAMPLES)(compare.compare)
app.command(cls=ExampleCommand, epilog=calibrate.EXAMPLES)(calibrate.calibrate)
app.add_typer(surveys, name="survey")
app.add_typer(audits, name="audit")
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
