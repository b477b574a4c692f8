"""One release, or one per group, as text, as JSON or as a page: the same object read three ways."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .amplify import answers, findings
from .console import emit, facts, grid, say

if TYPE_CHECKING:
    from ..core.release import Release

Groups = Mapping[str, "Release"]


@dataclass(slots=True)
class Told:
    """What a command released, under which heading, and what else is to be said about it."""

    groups: Groups  # "" names the only one
    title: str
    head: dict[str, Any]  # for machines: what was asked
    how: list[tuple[str, str]] = field(default_factory=list)  # for people: how it was made
    epsilon: float | None = None
    delta: float | None = None
    assumes: list[str] = field(default_factory=list)  # of reading the file
    level: float = 0.95
    more: dict[str, Any] = field(default_factory=dict)  # for machines: how it was made

    @property
    def first(self) -> "Release":
        """The only release, or the first of the groups: all share one guarantee."""
        return next(iter(self.groups.values()))

    def tell(self, *, json: bool, report: Path | None = None) -> None:
        """Print it, as JSON or for people, and write the page if one is asked for."""
        answer = answers(self.first.guarantee, epsilon=self.epsilon, delta=self.delta)
        answer["assumes"] += self.assumes
        if report is not None:
            self._page(report)
        if json:
            written = {"report": str(report)} if report else {}
            emit(self.head | {"estimates": self._estimates()} | self.more | answer | written)
            return
        self._numbers()
        facts([*self.how, ("relation", str(self.first.guarantee.neighbors)), *findings(answer)])
        if report is not None:
            say(f"Report: {report}")

    def _estimates(self) -> list[dict[str, Any]]:
        return [_entry(group, one, self.level) for group, whole in self.groups.items() for one in _each(whole)]

    def _numbers(self) -> None:
        from ..report.release import heads_of, lines_of, rows_of

        if list(self.groups) == [""] and not self.first.names:
            facts(lines_of(self.first, self.title, self.level))
            return
        rows = [[group or row[0], *row[1:]] for group, one in self.groups.items() for row in rows_of(one, self.level)]
        first, *others = heads_of(self.first, self.level)
        grid(self.title, [f"<{first}", *others], rows)

    def _page(self, path: Path) -> None:
        from ..core.release import Release
        from ..report.release import page_of

        def stated(one: "Release") -> "Release":
            from dataclasses import replace

            guarantee = replace(one.guarantee, assumes=(*one.guarantee.assumes, *self.assumes))
            asked = {"epsilon": self.epsilon, "delta": self.delta}
            law, details = one.law, {**one.details, **asked}
            return Release(
                one.value,
                one.noise_error,
                one.sampling_error,
                guarantee,
                law,
                one.sampling_error_is,
                one.names,
                details,
            )

        groups = {group: stated(one) for group, one in self.groups.items()}
        found = groups[""] if list(groups) == [""] else groups
        page_of(found, self.title, level=self.level, facts=self.how).write(path)


def check_page(path: Path | None) -> None:
    """A name that can be written, before anything is read."""
    import os

    from ..errors import InvalidInput

    if path is None:
        return
    if path.suffix.lower() not in (".html", ".htm"):
        raise InvalidInput(f"a report must be named .html, got {path.name!r} instead")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK) or path.is_dir():
        raise InvalidInput(f"cannot write {str(path)!r}; choose a file in a folder that exists and is writable")


def _each(release: "Release") -> Sequence["Release"]:
    return list(release) or [release]


def _entry(group: str, one: "Release", level: float) -> dict[str, Any]:
    numbers = one.numbers(level)
    before = {  # the names of the version before, kept for one more
        "estimate": numbers["value"],
        "standard_error_sampling": numbers["sampling_error"],
        "standard_error_noise": numbers["noise_error"],
        "sampling_error_from": numbers["sampling_error_is"],
        **({"interval_95": numbers["interval"]} if level == 0.95 else {}),
    }
    return {"name": one.names[0] if one.names else None, "group": group or None} | numbers | before
