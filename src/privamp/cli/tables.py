"""Reading records from CSV, Parquet and NumPy files. No message shows an entry of the file."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .survey.options import listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

ENDINGS = (".csv", ".csv.gz", ".parquet", ".npz")
_MISSING = ("", "na", "n/a", "nan", "null", "none")


def read(path: Path, named: Sequence[tuple[str, str]] = (), *, whole: bool = False) -> Any:
    """The columns named by (option, column) pairs, or all of them, as a pyarrow table; CSV columns are text."""
    import pyarrow as pa

    from ..errors import InvalidInput

    check_file(path)
    read = _read_parquet if path.name.lower().endswith(".parquet") else _read_csv
    try:
        return read(path, named, whole)
    except PermissionError:
        raise InvalidInput(f"{str(path)!r} cannot be read by this user; change its permissions") from None
    except (OSError, UnicodeError, pa.lib.ArrowException):  # their messages may show entries
        kind = "Parquet" if read is _read_parquet else "UTF-8 CSV with a header"
        raise InvalidInput(f"{str(path)!r} cannot be read as {kind}; check the file") from None


def check_file(path: Path) -> None:
    """Raise InvalidInput unless the path is an existing file."""
    from ..errors import InvalidInput

    if not path.is_file():
        raise InvalidInput(f"there is no file {str(path)!r}; check the name and the folder")


def arrays(path: Path, names: Sequence[str] | None = None) -> "dict[str, NDArray[Any]]":
    """Arrays of numbers in an .npz file (all of them by default); no code in the file is run."""
    import numpy as np

    from ..errors import InvalidInput

    check_file(path)
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            missing = [name for name in names or () if name not in file.files]
            if missing:
                raise InvalidInput(f"{path.name!r} has no array {missing[0]!r}; it has {listed(file.files)}")
            found = {name: np.asarray(file[name]) for name in names or file.files}
    except InvalidInput:
        raise
    except Exception:  # a broken archive fails in many ways, and the messages may show entries
        raise InvalidInput(f"{str(path)!r} cannot be read as .npz arrays of numbers; check the file") from None
    if any(array.dtype.kind not in "biuf" for array in found.values()):
        raise InvalidInput(f"{str(path)!r} cannot be read as .npz arrays of numbers; check the file")
    return found


def table_of_arrays(path: Path, names: Sequence[str] | None) -> "tuple[list[str], NDArray[Any]]":
    """Names of columns and one row per record, from a two-dimensional array, or arrays that are one column each."""
    import numpy as np

    from ..errors import InvalidInput

    found = arrays(path, names)
    flat = {name: array for name, array in found.items() if array.ndim == 1}
    deep = {name: array for name, array in found.items() if array.ndim == 2}
    if len(deep) == 1 and (names is None or not flat):
        name, table = next(iter(deep.items()))
        return [f"{name}{at}" for at in range(table.shape[1])], table
    if flat and len(flat) == len(found) and len({array.size for array in flat.values()}) == 1:
        return list(flat), np.stack(list(flat.values()), axis=1)
    raise InvalidInput(
        f"{path.name!r} must hold one table, or columns of one length; it has {listed(found)}: choose some with "
        "--columns"
    )


def table_of_columns(path: Path, names: Sequence[str] | None) -> "tuple[list[str], NDArray[Any]]":
    """The same from CSV or Parquet; nan if an entry is missing or not a number. No entry is rejected."""
    import numpy as np

    from ..errors import InvalidInput

    table = read(path, [("columns", name) for name in names or ()], whole=names is None)
    chosen = list(names or table.column_names)
    if len(set(chosen)) < len(chosen):
        raise InvalidInput(f"{path.name!r} has several columns of one name; choose columns with --columns")
    rows = np.empty((table.num_rows, len(chosen)))
    for at, name in enumerate(chosen):
        try:
            rows[:, at] = _entries(table[name], name)
        except InvalidInput as error:
            way_out = "; choose columns with --columns" if names is None else ""
            raise InvalidInput(f"{error}{way_out}") from None
    return chosen, rows


def _entries(column: Any, name: str) -> "NDArray[Any]":
    """Entries as numbers, each by itself; only the type of a column, which is public, can be rejected."""
    import pyarrow as pa
    from pyarrow import compute

    from ..errors import InvalidInput
    from ..kmeans.tables import column_of

    try:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = compute.utf8_trim_whitespace(column)
            try:
                return compute.cast(column, pa.float64()).to_numpy()  # type: ignore[no-any-return]
            except pa.lib.ArrowException:  # the same numbers, one by one
                return column_of(column.to_pylist())
        return compute.cast(column, pa.float64(), safe=False).to_numpy()  # type: ignore[no-any-return]
    except pa.lib.ArrowException:
        raise InvalidInput(f"column {name!r} must hold numbers, not {column.type}") from None


def words(column: Any, name: str) -> "NDArray[Any]":
    """Entries as text, without spaces around them; '' where there is none."""
    import pyarrow as pa
    from pyarrow import compute

    from ..errors import InvalidInput
    from ..numerics.entries import texts_of

    try:
        text = compute.utf8_trim_whitespace(compute.cast(column, pa.string())).fill_null("")
    except pa.lib.ArrowException:
        raise InvalidInput(f"column {name!r} must hold words or numbers, not {column.type}") from None
    return texts_of(text.to_pylist())


def numbers(column: Any, name: str) -> "tuple[NDArray[Any], NDArray[Any]]":
    """The entries as numbers, nan where one is missing or not a number, and a mask of those.

    No entry is rejected, and each result depends on that entry alone; the type of a Parquet column is public.
    """
    import numpy as np
    import pyarrow as pa
    from pyarrow import compute

    from ..errors import InvalidInput
    from ..numerics.entries import column_of

    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = ("" if text is None else text.strip() for text in column.to_pylist())
        values = column_of([None if text.lower() in _MISSING else text for text in texts])
        return values, np.isnan(values)
    try:
        is_whole = pa.types.is_integer(column.type)  # beyond 2^53 they are rounded, not refused
        values = compute.cast(column, pa.float64(), safe=not is_whole).to_numpy().astype(np.float64)
    except pa.lib.ArrowException:
        raise InvalidInput(f"column {name!r} must hold numbers, not {column.type}") from None
    return values, np.isnan(values)


def _read_parquet(path: Path, named: Sequence[tuple[str, str]], whole: bool) -> Any:
    from pyarrow import parquet

    with path.open("rb") as file:
        source = parquet.ParquetFile(file)
        names = source.schema_arrow.names
        return source.read(columns=None if whole else _checked(path, names, named))


def _read_csv(path: Path, named: Sequence[tuple[str, str]], whole: bool) -> Any:
    """Every cell by itself: no row or cell is rejected, whatever it contains (tables/csv_text.py)."""
    import pyarrow as pa

    from ..tables.csv_text import TEXT, CsvText

    file = CsvText.of(path)
    names = list(file.names)
    chosen = _checked(path, names, named) or names[:1]
    wanted = names if whole else chosen
    schema = pa.schema([pa.field(name, TEXT) for name in wanted])
    return pa.Table.from_batches(list(file.to_batches(wanted, 1 << 20)), schema=schema)


def _checked(path: Path, names: list[str], named: Sequence[tuple[str, str]]) -> list[str]:
    from ..errors import InvalidInput

    for option, column in named:
        if column not in names:
            raise InvalidInput(f"{path.name!r} has no column {column!r} (--{option}); it has {listed(names)}")
        if names.count(column) > 1:
            raise InvalidInput(
                f"{path.name!r} has {names.count(column)} columns named {column!r} (--{option}); keep one"
            )
    return list(dict.fromkeys(column for _, column in named))
