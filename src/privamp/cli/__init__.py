"""The command line: `privamp`, one file per command."""

import sys


def main() -> None:
    """Run `privamp` with the arguments of this process."""
    from .application import app

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without Greek letters is no reason to fail
    app(prog_name="privamp")
