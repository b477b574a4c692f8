"""One release, or one per group, as text, as JSON or as an HTML page."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .amplify import answers, findings
from .console import emit, facts, grid, say

if TYPE_CHECKING:
    from ..core.release import Release

Groups = Mapping[str, "Release"]
Files = Mapping[str, tuple[Path, bytes]]  # the word for machines, where it goes, and its bytes


@dataclass(slots=True)
class ReleaseOutput:
    """What a command released, its heading, and further facts to print."""

    groups: Groups  # "" if there is only one
    title: str
    head: dict[str, Any]  # for machines: the question
    how: list[tuple[str, str]] = field(default_factory=list)  # for people: how it was made
    printed: list[tuple[str, str]] = field(default_factory=list)  # for people: what the page shows in a table
    epsilon: float | None = None
    delta: float | None = None
    assumes: list[str] = field(default_factory=list)  # of reading the file
    level: float = 0.95
    more: dict[str, Any] = field(default_factory=dict)  # for machines: how it was made
    called: str = "Written"  # what the file --out holds
    summary: str = ""  # of the page
    picture: "tuple[Callable[[], Any], str] | None" = None  # makes the figure of the page, and says what is in it
    tables: list[tuple[list[str], list[list[str]], str]] = field(default_factory=list)  # of the page: heads, rows, what
    not_private: tuple[str, str] | None = None  # a heading and a text about numbers without noise

    @property
    def first(self) -> "Release":
        """The only release, or the first of the groups: all share one guarantee."""
        return next(iter(self.groups.values()))

    def tell(self, *, json: bool, report: Path | None = None, files: Files | None = None) -> None:
        """Write `files` and the page, all or none, then print the release, as JSON or for people.

        A paid release is printed even if nothing could be written; the error follows it.
        """
        from ..errors import InvalidInput

        answer = answers(self.first.guarantee, epsilon=self.epsilon, delta=self.delta, certificate=json)
        answer["assumes"] += self.assumes
        page = {"report": (report, self.page().encode("utf-8"))} if report is not None else {}
        written = {**(files or {}), **page}
        failed = None
        try:
            write_all(dict(written.values()))
        except InvalidInput as error:
            failed, written = error, {}
        self._print(answer, written, json)
        if failed is not None:
            raise failed

    def _print(self, answer: dict[str, Any], written: Files, json: bool) -> None:
        if json:
            places = {word: str(path) for word, (path, _) in written.items()}
            emit(self.head | {"estimates": self._estimates()} | self.more | answer | places)
            return
        self._numbers()
        facts([*self.how, *self.printed, ("relation", str(self.first.guarantee.neighbors)), *findings(answer)])
        for word, (path, _) in written.items():
            say(f"{self.called if word == 'out' else word.capitalize()}: {path}")

    def _estimates(self) -> list[dict[str, Any]]:
        return [_entry(group, one, self.level) for group, whole in self.groups.items() for one in _each(whole)]

    def _numbers(self) -> None:
        from ..report.release import heads_of, lines_of, rows_of

        if list(self.groups) == [""] and isinstance(self.first.value, float) and not self.first.names:
            facts(lines_of(self.first, self.title, self.level))
            return
        rows = [[group or row[0], *row[1:]] for group, one in self.groups.items() for row in rows_of(one, self.level)]
        first, *others = heads_of(self.first, self.level)
        grid(self.title, [f"<{first}", *others], rows)

    def page(self) -> str:
        """The release as a page."""
        from ..report.release import page_of

        groups = {group: self._stated(one) for group, one in self.groups.items()}
        found = groups[""] if list(groups) == [""] else groups
        page = page_of(found, self.title, self.summary, level=self.level, facts=self.how)
        if self.picture is not None:
            draw, caption = self.picture
            page.add_figure(draw(), caption)
        for heads, rows, caption in self.tables:
            page.add_table(heads, rows, caption)
        if self.not_private is not None:
            page.add_text(self.not_private[1], self.not_private[0])
        return page.html()

    def _stated(self, one: "Release") -> "Release":
        """The release as JSON, with the assumptions of the command."""
        from dataclasses import replace

        from ..core.release import Release

        guarantee = replace(one.guarantee, assumes=(*one.guarantee.assumes, *self.assumes))
        errors, details = (one.noise_error, one.sampling_error), {"epsilon": self.epsilon, "delta": self.delta}
        return Release(
            one.value, *errors, guarantee, one.law, one.sampling_error_is, one.names, {**one.details, **details}
        )


def write_all(contents: Mapping[Path, bytes]) -> None:
    """All files or none."""
    from .. import atomic_files
    from ..errors import InvalidInput

    new = [path for path in contents if not os.path.lexists(path)]
    try:
        for path, data in contents.items():
            atomic_files.write_atomically(path, data)
    except OSError as error:
        for path in new:
            path.unlink(missing_ok=True)
        why = error.strerror or "no reason given"
        raise InvalidInput(f"cannot write {str(error.filename or 'a file')!r} ({why}); nothing was written") from None


def check_files(source: Path, written: Sequence[Path | None], *, overwrite: bool, kept: Path | None = None) -> None:
    """Check that the files can be written and are new, before anything is read; `kept` may exist."""
    from ..errors import InvalidInput

    named = [path for path in (*written, kept) if path is not None]
    places = [os.path.realpath(path) for path in (source, *named)]
    if len(set(places)) < len(places):
        raise InvalidInput(f"{str(source)!r} is the input; input and output files must all be different")
    for path in named:
        if os.path.lexists(path) and not overwrite and path != kept:
            raise InvalidInput(f"{str(path)!r} already exists; choose another name, or use --overwrite")
        _check_place(path)


def _check_place(path: Path) -> None:
    from .. import atomic_files
    from ..errors import InvalidInput

    try:
        is_good = path.parent.is_dir() and not path.is_dir()
        if is_good:
            atomic_files.check_draft(path)
    except OSError:
        is_good = False
    if not is_good:
        raise InvalidInput(
            f"cannot write {str(path)!r}; choose a file with a shorter name, or in a folder that exists and is writable"
        )


def check_page(path: Path | None) -> None:
    """Check the file name before anything is read."""
    from ..errors import InvalidInput

    if path is None:
        return
    if path.suffix.lower() not in (".html", ".htm"):
        raise InvalidInput(f"a report must be named .html, got {path.name!r} instead")
    _check_place(path)


def _each(release: "Release") -> Sequence["Release"]:
    return list(release) or [release]


def _entry(group: str, one: "Release", level: float) -> dict[str, Any]:
    if isinstance(one.value, Mapping):  # arrays by name: the numbers are in the file
        return {"name": None, "group": group or None, "shapes": {name: list(p.shape) for name, p in one.value.items()}}
    numbers = one.numbers(level)
    before = {  # the names of the previous version, kept for one more
        "estimate": numbers["value"],
        "standard_error_sampling": numbers["sampling_error"],
        "standard_error_noise": numbers["noise_error"],
        "sampling_error_from": numbers["sampling_error_is"],
        **({"interval_95": numbers["interval"]} if level == 0.95 else {}),
    }
    effect = {"design_effect": one.details["design_effect"]} if "design_effect" in one.details else {}
    return {"name": one.names[0] if one.names else None, "group": group or None} | numbers | effect | before
