"""The application: every command under one name. Each command imports what it needs when it is called."""

from typing import Annotated

import typer

from .. import __version__
from . import (
    amplify,
    audit,
    bootstrap,
    budget,
    calibrate,
    compare,
    example,
    kmeans,
    query,
    reproduce,
    sample,
    serve,
    survey,
    theorem,
    verify,
    weights,
)
from .demo import command as demo
from .errors import OneSentenceGroup
from .options import ExampleCommand
from .train import command as train

app = typer.Typer(
    cls=OneSentenceGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with [bold]privamp demo[/bold]; every command shows an example under --help.",
)

app.command(cls=ExampleCommand, epilog=demo.EXAMPLES)(demo.demo)
app.command(cls=ExampleCommand, epilog=example.EXAMPLES)(example.example)
app.command(cls=ExampleCommand, epilog=amplify.EXAMPLES)(amplify.amplify)
app.command(cls=ExampleCommand, epilog=compare.EXAMPLES)(compare.compare)
app.command(cls=ExampleCommand, epilog=calibrate.EXAMPLES)(calibrate.calibrate)
app.command(cls=ExampleCommand, epilog=serve.EXAMPLES)(serve.serve)
app.command(cls=ExampleCommand, epilog=sample.EXAMPLES)(sample.sample)
app.command(cls=ExampleCommand, epilog=query.EXAMPLES)(query.query)
app.add_typer(survey.group, name="survey")
app.command(cls=ExampleCommand, epilog=bootstrap.EXAMPLES)(bootstrap.bootstrap)
app.command(cls=ExampleCommand, epilog=weights.EXAMPLES)(weights.weights)
app.command(cls=ExampleCommand, epilog=kmeans.EXAMPLES)(kmeans.kmeans)
app.command(cls=ExampleCommand, epilog=train.EXAMPLES)(train.train)
app.add_typer(budget.group, name="budget")
app.add_typer(audit.group, name="audit")
app.command(cls=ExampleCommand, epilog=verify.EXAMPLES)(verify.verify)
app.command(cls=ExampleCommand, epilog=theorem.EXAMPLES)(theorem.theorem)
app.command(cls=ExampleCommand, epilog=reproduce.EXAMPLES)(reproduce.reproduce)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"privamp {__version__}")
        raise typer.Exit


@app.callback()
def privamp(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Privacy amplification by sampling: what a release from a sample guarantees, and why."""
