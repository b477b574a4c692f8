"""The files of a folder: their kind, and the columns that folders such as region=north name."""

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

from ..errors import InvalidInput
from ..extras import missing
from .csv_text import TEXT

try:
    import pyarrow as pa
    from pyarrow import dataset
except ModuleNotFoundError as error:
    raise missing(error, "reading files and frames") from None

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".feather": "feather", ".arrow": "feather"}


def is_shown(file: PurePath, root: PurePath) -> bool:
    """Whether no name below the folder starts with a dot or an underscore; such files are ignored."""
    return all(part[0] not in "._" for part in file.relative_to(root).parts)


def kind_of(files: Sequence[PurePath], root: PurePath) -> str:
    """Arrow's word for the kind of all these files."""
    kinds = {_FORMATS.get(file.suffix.lower()) for file in files}
    if len(kinds) != 1 or None in kinds:
        is_file = list(files) == [root]
        what = f"{str(root)!r} must be" if is_file else f"the folder {str(root)!r} must hold files of one kind"
        raise InvalidInput(f"{what}: .parquet, .csv or .feather")
    return str(kinds.pop())


def folders_of(file: PurePath, root: PurePath) -> dict[str, str | None]:
    """The columns that the folders of a file name, as name=value."""
    parts = [] if file == root else [part.partition("=") for part in file.relative_to(root).parts[:-1]]
    return {name: None if value == _NO_VALUE else unquote(value) for name, equals, value in parts if equals}


def partitions(files: Sequence[PurePath], root: PurePath, as_text: bool) -> Any:
    """How folders name columns: as numbers if all of them look like numbers, or always as text."""
    if list(files) == [root]:
        return None
    if not as_text:
        return "hive"
    names = dict.fromkeys(name for file in files for name in folders_of(file, root))
    return dataset.partitioning(pa.schema([pa.field(name, TEXT) for name in names]), flavor="hive")


def keys_of(files: Iterable[PurePath], root: PurePath, schema: pa.Schema) -> list[pa.Field]:
    """The fields that folders name: Arrow's own list of partition columns may hold those of the files too."""
    named = {name for file in files for name in folders_of(file, root)}
    return [field for field in schema if field.name in named]


def whole_schema(own: pa.Schema, keys: Iterable[pa.Field]) -> pa.Schema:
    """The columns of a file and those that its folders name."""
    for key in keys:
        if key.name not in own.names:
            own = own.append(key)
    return own.remove_metadata()
