"""Errors of the command line: one sentence and an exit code, never a traceback.

0 success; 1 failure (a violation was found, numerics failed, something unexpected); 2 a wrong request (usage, invalid
input, no theorem, not reachable); 130 interrupted, 143 terminated.
"""

import contextlib
import errno
import json
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from ..errors import Infeasible, InvalidInput, NoTheorem, PrivampError
from ..extras import missing
from .console import SCHEMA, visible
from .surroundings import discard_output, interrupted, is_output_error

_INTERRUPTED = 130
_ARGUMENT = re.compile(r"""(?<![\w:,])(?P<name>[a-z_]+)=(?:(?P<quote>["'])(?P<value>[\w-]+)(?P=quote))?(?![\w"'…])""")
_QUESTION_WAS_WRONG = (InvalidInput, NoTheorem, Infeasible)
# typer carries its own copy of click in some versions and not in others: the family of BadParameter is right in both
_CLICK_ERROR: Any = typer.BadParameter.__mro__[2]


class OneSentenceGroup(TyperGroup):
    """A group of commands that report every failure as one sentence on stderr, or as JSON on stdout."""

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *_: Any, **extra: Any) -> Any:
        """Run a command and exit with its code."""
        arguments = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        try:
            code = super().main(args=arguments, prog_name=prog_name, **extra)
            sys.stdout.flush()  # write errors are reported now, not by the interpreter at exit
        except (KeyboardInterrupt, typer.Abort):
            code = _INTERRUPTED
        except Exception as error:
            code = _explain(error, arguments, self)
        if code == _INTERRUPTED:
            code = interrupted()
            _say("interrupted; no half-written file was left behind", "Interrupted", code, arguments)
        sys.exit(code if isinstance(code, int) else 0)


def _explain(error: Exception, arguments: list[str], group: Any) -> int:
    """The sentence and the exit code of an error."""
    if isinstance(error, ModuleNotFoundError):
        error = missing(error, "this command")
    kind = type(error).__name__
    if isinstance(error, _CLICK_ERROR):
        return _usage(error, arguments)
    if isinstance(error, (PrivampError, ArithmeticError)) and str(error):
        code = 2 if isinstance(error, _QUESTION_WAS_WRONG) else 1
        return _say(_with_options(str(error), group, arguments), kind, code, arguments)
    if isinstance(error, OSError) and error.errno == errno.EPIPE:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the pipe is closed: nobody reads the message
        return 1
    if is_output_error(error):
        discard_output()
        return _print(f"the output cannot be written ({error.strerror}); redirect it", 1)  # type: ignore[attr-defined]
    if isinstance(error, OSError) and error.filename is not None:
        name = os.fsdecode(error.filename)
        return _say(f"{name!r} cannot be used ({error.strerror}); check name and permissions", kind, 2, arguments)
    if isinstance(error, UnicodeEncodeError) or "null byte" in str(error):  # of a name: it is not shown
        return _say(
            "a name, a label or another word of this command is not UTF-8 text, or holds a NUL character; rename it",
            kind, 2, arguments,
        )  # fmt: skip
    found = f"{kind}: {error.name}" if isinstance(error, ModuleNotFoundError) else kind
    sentence = f"privamp stopped with an unexpected error ({found}); please report this command"
    return _say(sentence, kind, 1, arguments)


def _with_options(sentence: str, group: Any, arguments: list[str]) -> str:
    """The sentence with arguments of Python, such as radius= or noise='norm', as options of the command."""
    command = group
    for word in arguments:
        command = getattr(command, "commands", {}).get(word, command)
    options = {name for parameter in command.params for name in parameter.opts}

    def option(found: re.Match[str]) -> str:
        name = "--" + found["name"].replace("_", "-")
        return f"{name} {found['value'] or ''}".rstrip() if name in options else found[0]

    return _ARGUMENT.sub(option, sentence)


def _usage(error: Any, arguments: list[str]) -> int:
    sentence = error.format_message()
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":  # no arguments: help is printed
        if sentence.strip():  # not yet printed
            typer.echo(sentence)
        return 2
    where = context.command_path if context else "privamp"
    return _say(f"{sentence.rstrip('.')}; see '{where} --help'", "Usage", 2, arguments)


def _say(sentence: str, kind: str, code: int, arguments: list[str]) -> int:
    sentence = " ".join(sentence.split())
    if "--json" not in arguments:
        return _print(sentence, code)
    try:
        typer.echo(json.dumps({"schema": SCHEMA, "error": sentence, "kind": kind}, ensure_ascii=False))
    except OSError:  # a full disk, a closed stdout
        discard_output()
        _print(sentence, code)
    return code


def _print(sentence: str, code: int) -> int:
    """One line on stderr, if there is one."""
    with contextlib.suppress(OSError, ValueError):
        typer.echo(f"Error: {visible(sentence)}", err=True)
    return code
