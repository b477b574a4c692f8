"""Run every entry and write one page: paper, table or figure, printed value, our value, verdict, seconds, erratum.

The counts at the top put every printed statement into one of five groups: it agrees with our result; it agrees with
other numbers of the same paper, the only ones it can be compared with; it is wrong, as a test in `tests/errata/` shows;
it cannot be compared, with the reason; or it differs.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..atomic_files import write_atomically
from ..errors import InvalidInput, PrivampError
from ..report.html import Link, Report
from .files import columns, csv_of
from .printed import AGREES, APART, DIFFERS, ERRATUM, INSIDE, KINDS, OWN, Check, apart
from .registry import Entry, Outcome

SHORT = ("agree", "own numbers", "errata", "not comparable", "differ", "ours")  # column headings for `KINDS`
WHAT_DIFFERS = "Statements that differ. The verdict gives a possible reason, where one is known."
Progress = Callable[[int, int], None]
HEADER = ("entry", "what", "printed", "ours", "verdict", "kind", "seconds")


@dataclass(frozen=True, slots=True)
class Result:
    """One entry, its checks, and the time it took on this machine."""

    entry: Entry
    checks: tuple[Check, ...]
    seconds: float
    ok: bool

    @property
    def kinds(self) -> Counter[str]:
        """The number of checks of each kind."""
        return Counter(check.kind for check in self.checks)


def run_all(
    entries: Iterable[Entry], out_dir: Path, full: bool = False, progress: Progress | None = None
) -> list[Result]:
    """Run every entry in turn; one whose data or extra is missing counts as not comparable, with the reason."""
    several = list(entries)
    found = []
    for done, entry in enumerate(several):
        if progress:
            progress(done, len(several))
        found.append(_result(entry, out_dir, full))
    return found


def _result(entry: Entry, out_dir: Path, full: bool) -> Result:
    started = time.perf_counter()
    try:
        outcome = entry.reproduce(out_dir, full)
    except (PrivampError, ImportError) as error:
        outcome = Outcome("", (), True, (apart(entry.title, "all of it", f"not run: {error}"),))
    except ArithmeticError as error:  # a failed root search is a failure of privamp
        outcome = Outcome("", (), False, (Check(entry.title, "all of it", f"stopped: {error}", False),))
    seconds = time.perf_counter() - started
    return Result(entry, outcome.checks, seconds, outcome.ok)


def totals(results: Iterable[Result]) -> dict[str, int]:
    """The total number of checks of each kind."""
    together: Counter[str] = Counter()
    for result in results:
        together += result.kinds
    return {kind: together[kind] for kind in KINDS}


def in_a_sentence(results: Sequence[Result]) -> str:
    """The counts."""
    found = totals(results)
    printed = sum(found.values()) - found[OWN]
    known = sum(check.is_known_to_differ for result in results for check in result.checks)
    return (
        f"{printed} printed statements: {found[AGREES]} agree with our results, {found[INSIDE]} agree with the "
        f"paper's own numbers only, {found[ERRATUM]} are errata with a test, {found[APART]} cannot be compared, "
        f"{found[DIFFERS]} differ ({found[DIFFERS] - known} of them without a known reason). "
        f"{found[OWN]} further checks are privamp's own."
    )


def write_report(results: Sequence[Result], out_dir: Path) -> tuple[Path, Path]:
    """Write `index.html` and `reproduction.csv` into the folder."""
    page = Report("Published tables and figures, recomputed", in_a_sentence(results))
    page.add_table(
        ("paper", "entry", *SHORT, "seconds", "erratum"),
        _overview(results, out_dir),
        "Statements of each kind, by table or figure (own numbers: agrees with the paper's own numbers only).",
    )
    _unexplained(page, results)
    _better(page, results)
    for paper in dict.fromkeys(result.entry.paper for result in results):
        page.add_text("", paper)
        for result in (r for r in results if r.entry.paper == paper):
            rows = [(*check.row, check.kind) for check in result.checks]
            marked = [i for i, check in enumerate(result.checks) if check.kind == DIFFERS]
            caption = f"{result.entry.title} ({result.entry.name}, {result.seconds:.1f} s)"
            page.add_table(("what", "printed", "ours", "verdict", "kind"), rows, caption, marked)
    cells = [(r.entry.name, *c.row, c.kind, f"{r.seconds:.1f}") for r in results for c in r.checks]
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        table = write_atomically(out_dir / "reproduction.csv", csv_of(HEADER, cells))
        return page.write(out_dir / "index.html"), table
    except OSError as error:
        raise InvalidInput(f"cannot write into {str(out_dir)!r} ({error.strerror}); choose another folder") from None


def _overview(results: Sequence[Result], out_dir: Path) -> list[tuple[object, ...]]:
    return [
        (r.entry.paper.rpartition("(")[2].rstrip(")"), Link(r.entry.title, f"{r.entry.name}.html"),
         *(str(r.kinds[kind]) for kind in KINDS), f"{r.seconds:.1f}", _erratum(r.entry, out_dir))
        for r in results
    ]  # fmt: skip


def _erratum(entry: Entry, out_dir: Path) -> object:
    """A link into docs/errata.md if the working directory has that file, otherwise its name."""
    if not entry.errata:
        return "none"
    page = Path("docs", "errata.md")
    if page.is_file():
        where = os.path.relpath(page.resolve(), out_dir.resolve()).replace(os.sep, "/")
        return Link(entry.errata, f"{where}#{entry.errata}")
    return f"docs/errata.md#{entry.errata}"


def _unexplained(page: Report, results: Sequence[Result]) -> None:
    rows = [(r.entry.name, *c.row) for r in results for c in r.checks if c.kind == DIFFERS]
    if rows:
        page.add_table(
            ("entry", "what", "printed", "ours", "verdict"),
            rows,
            WHAT_DIFFERS,
        )
    else:
        page.add_text("No printed statement differs from our results.")


def _better(page: Report, results: Sequence[Result]) -> None:
    rows = [(r.entry.name, c.what, c.better) for r in results for c in r.checks if c.better]
    if rows:
        page.add_table(("entry", "what", "ours"), rows, "Where a sound method is better than the paper's claim.")


def as_text(results: Sequence[Result]) -> str:
    """One line per entry, then the counts."""
    rows = [(r.entry.name, *(str(r.kinds[kind]) for kind in KINDS), f"{r.seconds:.1f}") for r in results]
    return f"{columns(('entry', *SHORT, 'seconds'), rows)}\n\n{in_a_sentence(results)}"
