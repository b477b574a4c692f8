"""What a paper prints beside what is true: checks to the printed digits, with known errata marked."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal


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
    """One printed statement beside ours. `erratum` says in one line why the print is known to be wrong."""

    what: str
    printed: str
    ours: str
    agrees: bool
    erratum: str = ""

    @property
    def as_expected(self) -> bool:
        """Right where nothing is known against it, wrong where an erratum stands."""
        return self.agrees == (self.erratum == "")

    @property
    def verdict(self) -> str:
        """`ok`, the erratum, or a loud word when the comparison came out otherwise."""
        if self.as_expected:
            return f"ERRATUM: {self.erratum}" if self.erratum else "ok"
        return f"AGREES, though listed as an erratum: {self.erratum}" if self.erratum else "DIFFERS"

    @property
    def row(self) -> tuple[str, str, str, str]:
        """For a table under `HEADER`."""
        return self.what, self.printed, self.ours, self.verdict


HEADER = ("what", "printed", "ours", "verdict")


def as_expected(checks: Iterable[Check]) -> bool:
    """Whether every comparison came out as it should."""
    return all(check.as_expected for check in checks)


def counted(checks: Iterable[Check]) -> str:
    """One line: how many agree, how many are known errata, how many surprise.

    >>> counted([Check("a", "1", "1", True), Check("b", "1", "2", False, "a typing slip")])
    '1 of 2 agree with the print, 1 known erratum, 0 unexpected'
    """
    checks = list(checks)
    agreeing = sum(c.agrees for c in checks)
    errata = sum(c.as_expected and not c.agrees for c in checks)
    surprises = sum(not c.as_expected for c in checks)
    known = f"{errata} known {'erratum' if errata == 1 else 'errata'}"
    return f"{agreeing} of {len(checks)} agree with the print, {known}, {surprises} unexpected"
