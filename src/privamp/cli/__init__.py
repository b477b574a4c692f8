"""The command line: `privamp`, one file per command."""


def main() -> None:
    """Run `privamp` with the arguments of this process."""
    from .surroundings import before_imports, prepare

    before_imports()
    from .application import app

    prepare()
    app(prog_name="privamp")
