"""Public facts about strata as a small table of text: one line for each stratum, no records.

    stratum,population,low,high,sd,cost
    E,180,0,1600,198,20

`sd` and `cost` (of one interview) may be left out. The table is part of a view's state, and so of its URL.
"""

import csv
import io
import math
import re
from dataclasses import dataclass

from ..errors import InvalidInput
from ..survey.allocation import Stratum

MOST_BYTES, MOST_STRATA, MOST_RECORDS = 4000, 50, 1_000_000
_NEEDED, _MORE = ("stratum", "population", "low", "high"), ("sd", "cost")
_NAME = re.compile(r"[^\W_][\w .-]{0,39}")

# From privamp.datasets, whose records are made up: so their standard deviations may be known.
SCHOOLS = "stratum,population,low,high,sd,cost\nE,180,0,1600,198,20\nM,60,0,4200,333,30\nH,60,0,4200,558,40\n"
PEOPLE = "stratum,population,low,high,sd,cost\nnorth,1663,0,320000,18300,15\nsouth,3337,0,320000,23600,10\n"
EXAMPLES = {"schools": SCHOOLS, "people": PEOPLE}


@dataclass(frozen=True, slots=True)
class Line:
    """One stratum: what `survey.allocate` needs, its bounds, and the cost of an interview."""

    name: str
    population: int
    low: float
    high: float
    sd: float | None
    cost: float

    @property
    def stratum(self) -> Stratum:
        """For `survey.allocate`."""
        return Stratum(self.name, self.population, self.high - self.low, self.sd)


def checked(text: str) -> str:
    """The table in its usual form; raises `InvalidInput` if it is wrong."""
    lines = read(text)
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow((*_NEEDED, *_MORE))
    for each in lines:
        sd = "" if each.sd is None else f"{each.sd!r}".removesuffix(".0")
        numbers = [f"{value!r}".removesuffix(".0") for value in (each.low, each.high)]
        rows.writerow((each.name, each.population, *numbers, sd, f"{each.cost!r}".removesuffix(".0")))
    return written.getvalue()


def decoded(content: bytes) -> str:
    """The text of an uploaded file."""
    if len(content) > MOST_BYTES:
        raise InvalidInput(f"a table of strata may have at most {MOST_BYTES:,} bytes; upload strata, not records")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput("the file is not UTF-8 text; save the table of strata as CSV") from None


def read(text: str) -> tuple[Line, ...]:
    """The strata of a table. Errors name the line and the column, never the value of a cell."""
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise InvalidInput(f"a table of strata may have at most {MOST_BYTES:,} bytes; give strata, not records")
    try:
        rows = [row for row in csv.reader(io.StringIO(text.strip()), strict=True) if row]
    except csv.Error:
        raise InvalidInput(
            "the table of strata is not valid CSV; separate columns by commas and close all quotes"
        ) from None
    heads = [cell.strip().lower() for cell in rows[0]] if rows else []
    if sorted(set(heads)) != sorted(heads) or not set(_NEEDED) <= set(heads) <= {*_NEEDED, *_MORE}:
        raise InvalidInput(
            f"the table of strata must start with a header line: {', '.join(_NEEDED)} and, if known, {', '.join(_MORE)}"
        )
    if not 1 <= len(rows) - 1 <= MOST_STRATA:
        raise InvalidInput(f"the table must have 1 to {MOST_STRATA} strata, got {len(rows) - 1} instead")
    found = tuple(_line(number, heads, row) for number, row in enumerate(rows[1:], 2))
    if len({each.name for each in found}) < len(found):
        raise InvalidInput("every stratum must have its own name, got one twice")
    if sum(each.population for each in found) > MOST_RECORDS:
        raise InvalidInput(f"the strata may have at most {MOST_RECORDS:,} records together here")
    return found


def _line(number: int, heads: list[str], row: list[str]) -> Line:
    if len(row) != len(heads):
        raise InvalidInput(f"line {number} of the table must have {len(heads)} cells, got {len(row)} instead")
    cells = dict(zip(heads, (cell.strip() for cell in row), strict=True))
    if not _NAME.fullmatch(cells["stratum"]):
        raise InvalidInput(f"line {number}: a stratum's name must be 1 to 40 letters, digits, spaces, dots or dashes")
    numbers = {name: _number(number, name, cells[name]) for name in heads if name != "stratum" and cells[name]}
    for name in _NEEDED[1:]:
        if name not in numbers:
            raise InvalidInput(f"line {number}: {name} is missing")
    population, low, high = (numbers[name] for name in _NEEDED[1:])
    if population != int(population) or not 1 <= population <= MOST_RECORDS:
        raise InvalidInput(f"line {number}: population must be a whole number from 1 to {MOST_RECORDS:,}")
    if not low < high:
        raise InvalidInput(f"line {number}: low must be below high")
    sd, cost = numbers.get("sd"), numbers.get("cost", 1.0)
    if min(cost, 0.0 if sd is None else sd) < 0:
        raise InvalidInput(f"line {number}: sd and cost must be at least 0")
    made = Line(cells["stratum"], int(population), low, high, sd, cost)
    try:
        _ = made.stratum
    except InvalidInput as refused:
        raise InvalidInput(f"line {number}: {refused}") from None
    return made


def _number(number: int, name: str, cell: str) -> float:
    try:
        value = float(cell) if len(cell) <= 30 else math.nan
    except ValueError:
        value = math.nan
    if not abs(value) <= 1e12:
        raise InvalidInput(f"line {number}: {name} must be a number of at most 1e12 in size")
    return value
