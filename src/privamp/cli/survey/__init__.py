"""`privamp survey`: plan a survey, draw its sample, release its estimates."""

import typer

from ..options import ExampleCommand
from . import draw, estimate, pilot, plan

group = typer.Typer(no_args_is_help=True, help="Plan a survey, draw its sample and release its estimates.")
group.command("plan", cls=ExampleCommand, epilog=plan.EXAMPLES)(plan.plan)
group.command("pilot", cls=ExampleCommand, epilog=pilot.EXAMPLES)(pilot.pilot)
group.command("draw", cls=ExampleCommand, epilog=draw.EXAMPLES)(draw.draw)
group.command("estimate", cls=ExampleCommand, epilog=estimate.EXAMPLES)(estimate.estimate)
