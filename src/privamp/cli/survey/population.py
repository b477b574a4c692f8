"""Reading a population from CSV or Parquet. No message shows an entry of the file."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..tables import numbers, read, words
from .options import EVERYBODY, listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...core.design import Design
    from ...core.population import Population

_NAMES = (".csv", ".csv.gz", ".parquet")
_PUBLIC = ("strata", "by", "cluster", "id", "probability")
READABLE = "that the file can be read is public: CSV whose quotation marks are closed, or Parquet"
DROPPED = "which records have an entry in the columns named here is public"


@dataclass(frozen=True)
class Records:
    """The records of a file: a pyarrow table (CSV columns are text) and the columns that are used."""

    name: str
    table: Any
    roles: dict[str, str]  # option → column
    is_text: bool  # from CSV, whose columns have no types
    clusters: tuple[str, ...] | None = None  # their public names, in the order of the design

    @property
    def size(self) -> int:
        """How many records."""
        return int(self.table.num_rows)

    def text(self, role: str) -> "NDArray[Any]":
        """A named column as words."""
        return words(self.table[self.roles[role]], self.roles[role])

    def numbers(self, role: str) -> "NDArray[Any]":
        """A named column as numbers."""
        return numbers(self.table[self.roles[role]], self.roles[role])[0]

    def strata(self) -> "NDArray[Any]":
        """Each record's stratum; one name for all without a column."""
        import numpy as np

        return self.text("strata") if "strata" in self.roles else np.full(self.size, EVERYBODY)

    def rows(self, positions: "NDArray[Any]", *, with_types: bool) -> Any:
        """Some records with all their columns. Types are guessed from all records, so that they reveal nothing about
        the chosen ones."""
        from .files import typed

        table = self.table
        if with_types and self.is_text:
            for at, name in enumerate(table.column_names):
                if name != self.roles.get("id"):
                    table = table.set_column(at, name, typed(table.column(at)))
        return table.take(positions)

    def population(self, design: "Design", label: str | None = None) -> "Population":
        """The population to draw from. The label matters if the key is stored; it is never a file name."""
        from ...core.population import Population

        columns = {"stratum": self.strata()} if "strata" in self.roles else {}
        if "cluster" in self.roles:
            columns["cluster"] = self._clusters(design)
        if "probability" in self.roles:
            columns["probability"] = self.numbers("probability")
        return Population(self.ids() if "id" in self.roles else self.size, label, **columns)

    def _clusters(self, design: "Design") -> "NDArray[Any]":
        """Each record's cluster number, from public facts alone: it must not depend on other records.

        Where the design treats clusters alike their numbers do not matter. Otherwise they are named in the order of the
        design, or the column holds their numbers.
        """
        import numpy as np

        from ...core.reads import Labels
        from ...designs.strata import places
        from ...errors import InvalidInput

        read, column, found = design.reads.get("cluster"), self.roles["cluster"], self.text("cluster")
        declared = len(read.names) if isinstance(read, Labels) and read.names is not None else None
        names = self.clusters
        if names is not None and declared not in (None, len(names)):
            raise InvalidInput(
                f"--cluster {column}=… must name the design's {declared} clusters, got {len(names)} names instead"
            )
        if names is None and isinstance(read, Labels) and not read.are_alike and declared is not None:
            names = tuple(map(str, range(declared)))
        if names is None:
            return np.unique(found, return_inverse=True)[1].astype(np.int64)
        numbers = places(found, names).astype(np.int64)
        if np.any(numbers == len(names)):
            told = "names given"
            if not self.clusters:
                told = f"numbers from 0 on of this design; name them in its order: --cluster {column}=first,second,…"
            raise InvalidInput(f"the public column {column!r} has a cluster that is not among the {len(names)} {told}")
        return numbers

    def ids(self) -> "NDArray[Any]":
        """The ids, parsed as everywhere else, so that the same people are drawn."""
        import numpy as np

        from ...tables.csv_ids import ids_of_text
        from ...tables.id_columns import ids_of

        column, name = self.table[self.roles["id"]], self.roles["id"]
        return np.asarray(ids_of_text(column, name) if self.is_text else ids_of(column.combine_chunks(), name))


def read_records(
    path: Path, *, drop_missing: bool = False, whole: bool = False, may_be_empty: bool = False, **roles: str | None
) -> Records:
    """The columns named by `roles` (all columns when `whole`), checked: they exist, and public ones have no gaps.

    Values (the roles value, column, on ...) are private, and so are groups of a declared list (the role group): missing
    ones are not rejected.
    """
    import numpy as np

    from ...errors import InvalidInput
    from ...tables.id_columns import check_id_type

    named = {role: column for role, column in roles.items() if column is not None}
    clusters = None
    if "=" in named.get("cluster", ""):
        named["cluster"], _, after = named["cluster"].partition("=")
        clusters = tuple(after.split(","))
        if len(set(clusters)) < len(clusters) or "" in clusters:
            raise InvalidInput("--cluster COLUMN=NAMES must name every cluster once, separated by commas")
    if not path.name.lower().endswith(_NAMES):
        raise InvalidInput(f"a population must be named .csv, .csv.gz or .parquet, got {path.name!r} instead")
    table = read(path, list(named.items()), whole=whole)
    if "id" in named:
        check_id_type(table.schema.field(named["id"]))
    if table.num_rows == 0 and not may_be_empty:
        raise InvalidInput(f"{str(path)!r} has only a header; give a file with at least one record")
    empty = {column: _is_missing(table[column], column, role) for role, column in named.items()}
    if drop_missing and empty:
        table = table.filter(~np.logical_or.reduce(list(empty.values())))
        if table.num_rows == 0 and not may_be_empty:
            raise InvalidInput(f"every record of {str(path)!r} has an empty entry in {listed(named.values())}")
    else:
        for role, column in named.items():
            if role in _PUBLIC and empty[column].any():
                raise InvalidInput(
                    f"the public column {column!r} is empty for some records; fill them, or leave those records out "
                    "with --drop-missing"
                )
    return Records(path.name, table, named, not path.name.lower().endswith(".parquet"), clusters)


def _is_missing(column: Any, name: str, role: str) -> "NDArray[Any]":
    import numpy as np

    is_text = role == "group" or (role in _PUBLIC and role != "probability")
    return np.asarray(words(column, name) == "") if is_text else numbers(column, name)[1]
