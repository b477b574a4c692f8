"""Show the doctests of docstrings as code: Markdown would take their prompts for quotations."""

import re
from typing import Any

import griffe

_DOCTEST = re.compile(r"(?:^[ ]*>>> .*\n?(?:^[ ]*\S.*\n?)*)(?:\n?^[ ]*>>> .*\n?(?:^[ ]*\S.*\n?)*)*", re.M)


def fenced(text: str) -> str:
    """The text with each run of doctest lines inside a code block."""

    def block(found: re.Match[str]) -> str:
        lines = found[0].rstrip("\n").splitlines()
        indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
        return "\n```pycon\n" + "\n".join(line[indent:] for line in lines) + "\n```\n"

    return _DOCTEST.sub(block, text)


class Doctests(griffe.Extension):
    """Rewrites every docstring when it is collected."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Griffe calls this for every module, class, function and attribute."""
        if obj.docstring is not None and ">>> " in obj.docstring.value:
            obj.docstring.value = fenced(obj.docstring.value)
