"""Reading a population from CSV or Parquet. No message shows an entry of the file."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .survey_options import EVERYBODY, listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..core.population import Population

_MISSING = ("", "na", "n/a", "nan", "null", "none")
_UNEVEN = re.compile(r"Expected \d+ columns, got \d+")


@dataclass(frozen=True)
class Records:
    """The records of a file: a pyarrow table whose CSV columns are text, and the columns that play a part."""

    name: str
    table: Any
    roles: dict[str, str]  # option → column
    is_text: bool  # from CSV, whose columns have no types

    @property
    def size(self) -> int:
        """How many records."""
        return int(self.table.num_rows)

    def text(self, role: str) -> "NDArray[Any]":
        """A named column as words."""
        return _words(self.table[self.roles[role]], self.roles[role])

    def numbers(self, role: str) -> "NDArray[Any]":
        """A named column as numbers."""
        return _numbers(self.table[self.roles[role]], self.roles[role])[0]

    def strata(self) -> "NDArray[Any]":
        """Everybody's stratum; one name for all without a column."""
        import numpy as np

        return self.text("strata") if "strata" in self.roles else np.full(self.size, EVERYBODY)

    def rows(self, positions: "NDArray[Any]", *, with_types: bool) -> Any:
        """Some records with all their columns. Types are guessed from everybody, so that they do not tell who it is."""
        from .survey_files import typed

        table = self.table
        if with_types and self.is_text:
            for at, name in enumerate(table.column_names):
                if name != self.roles.get("id"):
                    table = table.set_column(at, name, typed(table.column(at)))
        return table.take(positions)

    def population(self) -> "Population":
        """What a design draws from; the label is the file's name."""
        import numpy as np

        from ..core.population import Population

        columns = {"stratum": self.strata()} if "strata" in self.roles else {}
        if "cluster" in self.roles:
            columns["cluster"] = np.unique(self.text("cluster"), return_inverse=True)[1].astype(np.int64)
        if "probability" in self.roles:
            columns["probability"] = self.numbers("probability")
        return Population(self.text("id") if "id" in self.roles else self.size, self.name, **columns)


def read_records(path: Path, *, drop_missing: bool = False, whole: bool = False, **roles: str | None) -> Records:
    """The columns named by `roles` (all columns when `whole`), checked: they exist and every record has an entry."""
    import numpy as np

    from ..errors import InvalidInput

    named = {role: column for role, column in roles.items() if column is not None}
    table = _read(path, named, whole)
    if table.num_rows == 0:
        raise InvalidInput(f"{str(path)!r} has no records, only a header; give a population of at least one record")
    empty = {column: _is_missing(table[column], column, role) for role, column in named.items()}
    if drop_missing and empty:
        table = table.filter(~np.logical_or.reduce(list(empty.values())))
        if table.num_rows == 0:
            raise InvalidInput(f"every record of {str(path)!r} misses an entry in {listed(named.values())}")
    else:
        for column, gaps in empty.items():
            if gaps.any():
                raise InvalidInput(
                    f"column {column!r} is empty for {int(gaps.sum())} of {gaps.size} records; fill them, or leave "
                    "those records out with --drop-missing"
                )
    return Records(path.name, table, named, not path.name.lower().endswith(".parquet"))


def _read(path: Path, named: dict[str, str], whole: bool) -> Any:
    import pyarrow as pa

    from ..errors import InvalidInput

    if not path.name.lower().endswith((".csv", ".csv.gz", ".parquet")):
        raise InvalidInput(f"a population must be named .csv, .csv.gz or .parquet, got {path.name!r} instead")
    if not path.is_file():
        raise InvalidInput(f"there is no file {str(path)!r}; check the name and the folder")
    read = _read_parquet if path.name.lower().endswith(".parquet") else _read_csv
    try:
        return read(path, named, whole)
    except PermissionError:
        raise InvalidInput(f"{str(path)!r} may not be read by this user; change its permissions") from None
    except (OSError, UnicodeError, pa.lib.ArrowException) as error:  # their messages may show entries
        uneven = _UNEVEN.search(str(error))
        why = f" ({uneven[0].lower()} in a row)" if uneven else ""
        kind = "Parquet" if read is _read_parquet else "UTF-8 CSV with a header"
        raise InvalidInput(f"{str(path)!r} cannot be read as {kind}{why}; check what it really is") from None


def _read_parquet(path: Path, named: dict[str, str], whole: bool) -> Any:
    from pyarrow import parquet

    with path.open("rb") as file:
        source = parquet.ParquetFile(file)
        names = source.schema_arrow.names
        return source.read(columns=None if whole else _checked(path, names, named))


def _read_csv(path: Path, named: dict[str, str], whole: bool) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    with csv.open_csv(path) as opened:
        names = opened.schema.names
    wanted = _checked(path, names, named)
    text = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), include_columns=[] if whole else wanted or names[:1]
    )
    return csv.read_csv(path, convert_options=text)


def _checked(path: Path, names: list[str], named: dict[str, str]) -> list[str]:
    from ..errors import InvalidInput

    for role, column in named.items():
        if column not in names:
            raise InvalidInput(f"{path.name!r} has no column {column!r} (--{role}); it has {listed(names)}")
        if names.count(column) > 1:
            raise InvalidInput(f"{path.name!r} has {names.count(column)} columns named {column!r} (--{role}); keep one")
    return list(dict.fromkeys(named.values()))


def _words(column: Any, name: str) -> "NDArray[Any]":
    """Entries as text, without spaces around them; '' where there is none."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import compute

    from ..errors import InvalidInput

    try:
        text = compute.utf8_trim_whitespace(compute.cast(column, pa.string())).fill_null("")
    except pa.lib.ArrowException:
        raise InvalidInput(f"column {name!r} must hold words or numbers, not {column.type}") from None
    return np.asarray(text.to_pylist(), dtype=np.str_)


def _numbers(column: Any, name: str) -> "tuple[NDArray[Any], NDArray[Any]]":
    """The entries as numbers, nan where there is none, and where that is."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import compute

    from ..errors import InvalidInput

    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        trimmed = compute.utf8_trim_whitespace(column)
        blank = compute.is_in(compute.utf8_lower(trimmed), value_set=pa.array(_MISSING))
        column = compute.if_else(blank, None, trimmed)
    try:
        values = compute.cast(column, pa.float64()).to_numpy().astype(np.float64)
    except pa.lib.ArrowException:
        raise InvalidInput(f"column {name!r} must hold numbers, but some of its entries are something else") from None
    if np.any(np.isinf(values)):
        raise InvalidInput(f"column {name!r} must hold finite numbers, but {int(np.isinf(values).sum())} are infinite")
    return values, np.isnan(values)


def _is_missing(column: Any, name: str, role: str) -> "NDArray[Any]":
    import numpy as np

    return _numbers(column, name)[1] if role in ("value", "probability") else np.asarray(_words(column, name) == "")
