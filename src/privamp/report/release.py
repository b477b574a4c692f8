"""A release for people: lines for a terminal, a page, a piece of a notebook, a picture."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.release import Release
from ..errors import InvalidInput
from ..numerics.printing import shown_down, shown_up
from . import interval_lines
from .centres import picture_of_centres
from .html import Report
from .pictures import COLORS, new_figure, tidy
from .shown import guarantee_fragment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ERRORS = "Errors are standard errors; they do not include the bias of clipping."
_MOST = 50  # rows that are shown
_WIDE = 8  # columns of a matrix that are shown


def heads_of(release: Release, level: float = 0.95) -> list[str]:
    """What the cells of `rows_of` are."""
    if isinstance(release.value, Mapping):
        return ["what", "shape"]
    if np.ndim(release.value) == 2:
        shown = range(min(np.shape(release.value)[1], _WIDE))
        columns = release.details.get("columns") or [f"column {at + 1}" for at in shown]
        return ["what", *(["noisy count"] if "counts" in release.details else []), *columns[: len(shown)]]
    ends = [f"{100 * level:g}% from", "to"]
    return ["what", "estimate", "± all", "± sampling", "± noise", *ends]


def rows_of(release: Release, level: float = 0.95) -> list[list[str]]:
    """One row per coordinate: its name, value, standard errors (all, sampling, noise), and the ends of its interval."""
    if isinstance(release.value, Mapping):  # arrays by name, such as those of a model
        shapes = {name: " × ".join(map(str, np.shape(part))) or "1" for name, part in release.value.items()}
        return [[name, shape] for name, shape in shapes.items()][:_MOST]
    value = np.asarray(release.value)
    if value.ndim == 2:
        names = release.names or [str(at + 1) for at in range(len(value))]
        counts = [[f"{count:,.0f}"] for count in release.details["counts"]] if "counts" in release.details else []
        rows = zip(names, counts or [[]] * len(value), value, strict=True)
        return [[name, *count, *map(number, row[:_WIDE])] for name, count, row in rows][:_MOST]
    numbers = release.numbers(level)
    low, high = numbers["interval"] or (None, None)
    errors = [numbers[name] for name in ("standard_error", "sampling_error", "noise_error")]
    size = max(value.size, 1)
    columns = [_column(part, size) for part in (numbers["value"], *errors, low, high)]
    names = release.names or (("value",) if size == 1 else tuple(f"{at + 1}" for at in range(size)))
    write = (number, number, number, number, _down, _up)  # intervals are rounded outward
    cells = [
        [w(x, d) for w, x, d in zip(write, row, _digits(row[0], row[1] or row[3]), strict=True)]
        for row in zip(*columns, strict=True)
    ]
    return [[name, *row] for name, row in zip(names, cells[:_MOST], strict=False)]


def lines_of(release: Release, what: str, level: float = 0.95) -> list[tuple[str, str]]:
    """A single number as lines of text: value, errors, interval."""
    _, value, error, sampling, noise, low, high = rows_of(release, level)[0]
    return [
        (what, value),
        ("standard error", error),
        ("", f"{sampling} from sampling, {noise} from noise"),
        (f"{100 * level:g}% interval", f"{low} to {high}"),
    ]


def _digits(value: Any, error: Any) -> tuple[int, ...]:
    """Significant digits to show: enough for the error beside the value, at least six."""
    wide = 6
    if value and error and math.isfinite(value) and math.isfinite(error):
        wide = min(max(math.floor(math.log10(abs(value))) - math.floor(math.log10(error)) + 2, 6), 15)
    return (wide, 4, 4, 4, wide, wide)


def number(value: Any, digits: int = 4) -> str:
    """A number for people; a dash where it is not known."""
    return "—" if value is None else f"{float(value):.{digits}g}"


def _down(value: Any, digits: int) -> str:
    return "—" if value is None else shown_down(value, digits)


def _up(value: Any, digits: int) -> str:
    return "—" if value is None else shown_up(value, digits)


def page_of(
    releases: Release | Mapping[str, Release],
    title: str,
    summary: str = "",
    *,
    level: float = 0.95,
    facts: Iterable[Sequence[str]] = (),
) -> Report:
    """A page with one table of numbers (one row per group, where there are groups), the facts and the guarantee."""
    groups = {"": releases} if isinstance(releases, Release) else dict(releases)
    first = next(iter(groups.values()))
    page = Report(title, summary or "A private release with its errors and its guarantee.")
    rows = [[group or row[0], *row[1:]] for group, one in groups.items() for row in rows_of(one, level)]
    is_many = isinstance(first.value, Mapping) or np.ndim(first.value) == 2
    page.add_table(heads_of(first, level), rows, _shown(first) if is_many else _ERRORS)
    is_told = is_many or any(what == "sampling error" for what, *_ in facts)
    known = [*([] if is_told else [["sampling error", first.sampling_error_is]]), *facts]
    page.add_table(["what", "how"], known, "How it was made.")
    epsilon = first.details.get("epsilon") if not first.details.get("delta") else None
    page.add_guarantee(first.guarantee, epsilon=epsilon, delta=first.details.get("delta") or None)
    return page


def _tables(
    releases: Release | Mapping[str, Release], title: str, summary: str, level: float, facts: Iterable[Sequence[str]]
) -> Report:
    groups = {"": releases} if isinstance(releases, Release) else dict(releases)
    first = next(iter(groups.values()))
    page = Report(title, summary)
    rows = [[group or row[0], *row[1:]] for group, one in groups.items() for row in rows_of(one, level)]
    is_many = isinstance(first.value, Mapping) or np.ndim(first.value) == 2
    page.add_table(heads_of(first, level), rows, _shown(first) if is_many else _ERRORS)
    known = [*([] if is_many else [["sampling error", first.sampling_error_is]]), *facts]
    page.add_table(["what", "how"], known, "How it was made.")
    return page


def _shown(release: Release) -> str:
    """The caption: how much of the table is shown."""
    if isinstance(release.value, Mapping):
        return "What was released."
    columns = np.shape(release.value)[1]
    return "What was released" + (f", first {_WIDE} of {columns} columns." if columns > _WIDE else ".")


def fragment_of(release: Release) -> str:
    """A picture, the tables and the guarantee with its curve, without the page around them."""
    return _drawn(release) + _tables(release, "Release", "", 0.95, ()).body() + guarantee_fragment(release.guarantee)


def _drawn(release: Release, level: float = 0.95) -> str:
    """The intervals of numbers, where they are known."""
    if isinstance(release.value, Mapping) or np.ndim(release.value) > 1:
        return ""
    if release.numbers(level)["interval"] is None:
        return ""
    low, high = (np.atleast_1d(np.asarray(end, dtype=np.float64)) for end in release.interval(level))
    value = np.atleast_1d(np.asarray(release.value, dtype=np.float64))
    names = release.names or tuple(str(at + 1) if value.size > 1 else "" for at in range(value.size))
    return interval_lines.lines_of(names, value, low, high, f"released values with their {100 * level:g}% intervals")


def picture_of(release: Release, level: float = 0.95) -> "Figure":
    """The value of every coordinate with its interval, or with the noise alone if nothing more is known."""
    if isinstance(release.value, Mapping):
        raise InvalidInput("only numbers can be plotted, got arrays by name instead")
    value = np.atleast_1d(np.asarray(release.value, dtype=np.float64))
    if value.ndim == 2 and "counts" in release.details:
        return picture_of_centres(release)
    if value.ndim != 1:
        raise InvalidInput(f"only a number or a list of numbers can be plotted, got {value.ndim} dimensions instead")
    numbers = release.numbers(level)
    noise = np.broadcast_to(np.asarray(release.noise_error, dtype=np.float64), value.shape)
    low, high = (
        (value - noise, value + noise) if numbers["interval"] is None else map(np.atleast_1d, release.interval(level))
    )
    figure = new_figure(6.4, min(1.8 + 0.4 * value.size, 14.0))
    axes = figure.subplots()
    at = np.arange(value.size)[::-1]
    axes.hlines(at, low, high, color=COLORS[0], lw=2)
    axes.plot(value, at, "o", color=COLORS[1])
    axes.set_yticks(at, labels=release.names or [str(i + 1) if value.size > 1 else "" for i in range(value.size)])
    axes.set_ylim(-0.7, value.size - 0.3)
    is_known = numbers["interval"] is not None
    tidy(axes, "Released value", f"{100 * level:g}% interval" if is_known else "± noise; sampling error not known")
    return figure  # type: ignore[no-any-return]


def _column(part: Any, size: int) -> list[Any]:
    return [part] * size if not isinstance(part, list) else part if len(part) == size else part * size
