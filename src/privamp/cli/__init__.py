"""The command line: `privamp`, one file per command."""


def main() -> None:
    """Run `privamp` with the arguments of this process."""
    try:
        from .surroundings import before_imports, prepare

        before_imports()
        from .application import app

        prepare()
        app(prog_name="privamp")
    except KeyboardInterrupt:  # interrupted before the start or after the end: nothing to clean up
        raise SystemExit(130) from None
