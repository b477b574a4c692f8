"""Files at an address such as s3://bucket/people/, by the file systems of fsspec."""

from glob import has_magic
from pathlib import PurePosixPath
from typing import Any

from ..errors import InvalidInput
from ..extras import missing
from . import folders
from .lakes import check_plain, check_plain_inside

try:
    import pyarrow as pa
    from pyarrow import dataset
except ModuleNotFoundError as error:
    raise missing(error, "reading files and frames") from None

_WAY_OUT = "write it to plain files first"


def is_address(path: Any) -> bool:
    """Whether it names another place than a file of this machine."""
    return isinstance(path, str) and "://" in path and not path.lower().startswith("file:")


def fragments_at(address: str, as_text: bool) -> list[tuple[str, pa.Schema, Any]]:
    """(address, schema with partition columns, fragment) of every file there, or of all that match a pattern."""
    system, place = _opened(address)
    return [each for one in _matching(system, place, address) for each in _fragments(system, one, address, as_text)]


def _matching(system: Any, place: str, address: str) -> list[str]:
    """The place itself, or all that match it as a pattern."""
    try:
        if not has_magic(place) or system.exists(place):
            return [place]
        found = sorted(map(str, system.glob(place)))
    except Exception as error:
        raise _unreadable(address, error) from None
    if not found:
        raise InvalidInput(f"no file matches {address!r}; check the pattern")
    return found


def _fragments(system: Any, place: str, address: str, as_text: bool) -> list[tuple[str, pa.Schema, Any]]:
    root = PurePosixPath(place)
    above = [str(each) for each in (root, *root.parents)[:8]]
    try:
        check_plain(above, lambda folder, pattern: bool(system.glob(f"{folder}/{pattern}")), _WAY_OUT)
        inside = [root] if system.isfile(place) else [PurePosixPath(found) for found in sorted(system.find(place))]
        check_plain_inside([file.relative_to(root) for file in inside], address, _WAY_OUT)
    except InvalidInput:
        raise
    except Exception as error:  # every file system has its own
        raise _unreadable(address, error) from None
    files = [file for file in inside if file == root or folders.is_shown(file, root)]
    if not files:
        raise InvalidInput(f"there is no file at {address!r}; check the address")
    kind = folders.kind_of(files, root)
    if kind == "csv" and as_text:
        raise InvalidInput(
            f"{address!r} is CSV, which a table reads on this machine alone; copy it here, or use Parquet"
        )
    try:
        found = dataset.dataset(
            [str(file) for file in files] if len(files) > 1 else str(files[0]),
            filesystem=system,
            format=kind,
            partitioning=folders.partitions(files, root, as_text),
            partition_base_dir=str(root),
        )
        keys = folders.keys_of(files, root, found.schema)
        return [
            (system.unstrip_protocol(each.path), folders.whole_schema(each.physical_schema, keys), each)
            for each in found.get_fragments()
        ]
    except Exception as error:
        raise _unreadable(address, error) from None


def _opened(address: str) -> tuple[Any, str]:
    """The file system and the path in it."""
    scheme = address.partition("://")[0]
    try:
        from fsspec.core import url_to_fs
    except ModuleNotFoundError:
        raise InvalidInput(
            f"{address!r} is not on this machine, and reading it needs fsspec; run pip install fsspec, or copy it here"
        ) from None
    try:
        system, place = url_to_fs(address)
    except ImportError:
        raise InvalidInput(
            f"fsspec needs another package to read {scheme}:// addresses; install it, or copy the data here"
        ) from None
    except Exception:
        raise InvalidInput(
            f"{address!r} is not an address that fsspec can read; check it, or copy the data here"
        ) from None
    if "file" in (system.protocol if isinstance(system.protocol, tuple) else (system.protocol,)):
        raise InvalidInput(f"{address!r} is a file of this machine; give its path alone")
    return system, str(place)


def _unreadable(address: str, error: Exception) -> InvalidInput:
    """One sentence; the error's own words may hold more than an address."""
    if isinstance(error, FileNotFoundError):
        return InvalidInput(f"there is no file at {address!r}; check the address")
    return InvalidInput(f"{address!r} cannot be read ({type(error).__name__}); check the address and the access to it")
