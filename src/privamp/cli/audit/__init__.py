"""`privamp audit`: check the library's claims against exact results and attacks."""

import typer

from ..options import ExampleCommand
from . import bounds, designs, records, release

group = typer.Typer(no_args_is_help=True, help="Check the library's claims against exact results and attacks.")
group.command("designs", cls=ExampleCommand, epilog=designs.EXAMPLES)(designs.designs)
group.command("bounds", cls=ExampleCommand, epilog=bounds.EXAMPLES)(bounds.bounds)
group.command("records", cls=ExampleCommand, epilog=records.EXAMPLES)(records.records)
group.command("release", cls=ExampleCommand, epilog=release.RELEASE_EXAMPLES)(release.release)
group.command("workloads", cls=ExampleCommand, epilog=release.WORKLOADS_EXAMPLES)(release.workloads)
group.command("mistakes", cls=ExampleCommand, epilog=release.MISTAKES_EXAMPLES)(release.mistakes)
