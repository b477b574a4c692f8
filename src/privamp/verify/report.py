"""What a suite of checks found."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tally:
    """One kind of check: numbers compared, cases that no other kind has used, a sentence per violation."""

    kind: str
    comparisons: int
    cases: int
    violations: tuple[str, ...] = ()

    def __str__(self) -> str:
        verdict = "ok" if not self.violations else f"{len(self.violations)} VIOLATIONS"
        where = f"{self.cases} cases" if self.cases else "cases already counted"
        return f"{self.kind}: {self.comparisons} comparisons on {where}, {verdict}"


@dataclass(frozen=True, slots=True)
class Report:
    """The results of `check_design` for one design."""

    design: str
    tallies: tuple[Tally, ...]
    released: int | None = None  # cases in which both runs of a job reached a release (`check_release`)

    @property
    def comparisons(self) -> int:
        """Numbers compared in all; a case may be used for several."""
        return sum(tally.comparisons for tally in self.tallies)

    @property
    def cases(self) -> int:
        """Different cases (design, population, relations, mechanism, epsilon) behind the comparisons."""
        return sum(tally.cases for tally in self.tallies)

    @property
    def violations(self) -> tuple[str, ...]:
        """One sentence each; empty when the design passed."""
        return tuple(v for tally in self.tallies for v in tally.violations)

    @property
    def ok(self) -> bool:
        """Whether nothing was violated."""
        return not self.violations

    def __str__(self) -> str:
        shown = [f"  - {v}" for v in self.violations[:20]]
        more = [f"  … and {len(self.violations) - 20} more"] if len(self.violations) > 20 else []
        verdict = "passed" if self.ok else "FAILED"
        head = f"{self.design}: {verdict}, {self.comparisons} comparisons on {self.cases} different cases"
        if self.released is not None:
            head += f", {self.released} of them with a release"
        return "\n".join([head, *(f"  {tally}" for tally in self.tallies), *shown, *more])
