"""Compare what a paper prints with our results, to the printed digits, with known errata marked."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal

AGREES, INSIDE, ERRATUM = "agrees", "agrees with the paper's own numbers only", "erratum with a test"
APART, DIFFERS, OWN = "not comparable", "differs", "ours"
KINDS = (AGREES, INSIDE, ERRATUM, APART, DIFFERS, OWN)
NOT_PRINTED = ("-", "(ours)")  # shown instead of a printed value for our own checks


def agrees(value: float, printed: str) -> bool:
    """Whether `value` rounds to the printed digits; a printed plain 0 means exactly zero.

    >>> agrees(0.0827572, "0.083"), agrees(0.0827572, "0.052"), agrees(1e-9, "0")
    (True, False, False)
    """
    target = Decimal(printed)
    if target == 0:
        return value == 0.0
    half_unit = Decimal(5).scaleb(int(target.as_tuple().exponent) - 1)
    return abs(Decimal(value) - target) <= half_unit


@dataclass(frozen=True, slots=True)
class Check:
    """One printed statement and our result.

    `erratum` says in one line why the printed statement is wrong; `apart` says why the two cannot be compared (`agrees`
    is then ignored); `better` says by how much a sound method improves on the claim. `inside` marks a statement that is
    compared with other numbers of the same paper. `differs` gives a possible reason for a known difference, which is
    still counted and listed as one.
    """

    what: str
    printed: str
    ours: str
    agrees: bool
    erratum: str = ""
    apart: str = ""
    better: str = ""
    inside: bool = False
    differs: str = ""

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        if self.apart:
            return APART
        if self.is_known_to_differ or not self.as_expected:
            return DIFFERS
        if self.erratum:
            return ERRATUM
        if self.printed in NOT_PRINTED:
            return OWN
        return INSIDE if self.inside else AGREES

    @property
    def as_expected(self) -> bool:
        """Whether it agrees, or disagrees where an erratum, a known difference or a reason not to compare is given."""
        return bool(self.apart) or self.is_known_to_differ or self.agrees == (self.erratum == "")

    @property
    def is_known_to_differ(self) -> bool:
        """Whether it differs and a possible reason is given."""
        return bool(self.differs) and not self.agrees and not self.apart

    @property
    def verdict(self) -> str:
        """`ok`, the erratum, or a word in capitals if the comparison had another result."""
        if self.apart:
            return f"NOT COMPARABLE: {self.apart}"
        if self.is_known_to_differ:
            return f"DIFFERS: {self.differs}"
        if self.as_expected:
            said = f"ERRATUM: {self.erratum}" if self.erratum else "ok"
            return f"{said}; ours is better: {self.better}" if self.better else said
        return f"AGREES, though listed as an erratum: {self.erratum}" if self.erratum else "DIFFERS"

    @property
    def row(self) -> tuple[str, str, str, str]:
        """A row of a table with the columns `HEADER`."""
        return self.what, self.printed, self.ours, self.verdict


HEADER = ("what", "printed", "ours", "verdict")


def said(what: str, holds: bool, ours: str, erratum: str = "", better: str = "", differs: str = "") -> Check:
    """A check of a sentence in the paper, which holds or does not."""
    return Check(what, "yes", ours, holds, erratum, better=better, differs=differs)


def inside(checks: Iterable[Check]) -> list[Check]:
    """The same checks, marked as compared with the paper's own numbers."""
    return [replace(check, inside=True) for check in checks]


def apart(what: str, printed: str, why: str, ours: str = "not computed") -> Check:
    """A printed number that cannot be compared, with the reason."""
    return Check(what, printed, ours, False, apart=why)


def as_expected(checks: Iterable[Check]) -> bool:
    """Whether every comparison had the expected result."""
    return all(check.as_expected for check in checks)


def counted(checks: Iterable[Check]) -> str:
    """One line: how many agree, how many are known errata, how many are unexpected.

    >>> counted([Check("a", "1", "1", True), Check("b", "1", "2", False, "a misprint")])
    '1 of 2 agree with the paper, 1 known erratum, 0 unexpected'
    """
    checks = list(checks)
    skipped = sum(bool(c.apart) for c in checks)
    agreeing = sum(c.agrees and not c.apart for c in checks)
    differing = sum(c.is_known_to_differ for c in checks)
    errata = sum(c.as_expected and not c.agrees and not c.apart for c in checks) - differing
    surprises = sum(not c.as_expected for c in checks)
    known = f"{errata} known {'erratum' if errata == 1 else 'errata'}"
    left_out = f", {skipped} not comparable" if skipped else ""
    left_out += f", {differing} known to differ" if differing else ""
    return f"{agreeing} of {len(checks)} agree with the paper, {known}{left_out}, {surprises} unexpected"
