"""`privamp serve`: the explorer, a local web page."""

from contextlib import suppress
from typing import Annotated

import typer

from .console import say

EXAMPLES = """\
Examples:
  privamp serve --help

  privamp serve --check"""


def serve(
    port: Annotated[int, typer.Option("--port", metavar="P", help="The port; 0 means any free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
    check: Annotated[bool, typer.Option("--check", help="Only check whether it can start.")] = False,
) -> None:
    """Open the explorer: compare designs and plan surveys or training with sliders.

    The page is served on 127.0.0.1 to this machine only, at an address with a token that changes with every start.
    It needs only public facts, reads no records, loads nothing from elsewhere and sends nothing. Ctrl-C stops it.
    """
    from ..extras import need
    from ..validation import whole

    whole(0, 65535, port=port)
    need("nicegui", "the explorer")
    if not check:
        from ..app.work import begin

        begin()
    from ..app.web.server import bound
    from ..app.web.server import serve as run

    if check:
        bound(port).close()
        say("The explorer can start: privamp serve")
        return
    with suppress(KeyboardInterrupt):  # the usual way to stop it
        run(port, lambda address: typer.echo(f"privamp explorer: {address}\nCtrl-C stops it."), browser=browser)
