"""One-sentence errors when another library does not behave as tested."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

from ..errors import InvalidInput, PrivampError
from ..extras import missing

TESTED = {"dp-accounting": "0.6", "opacus": "1.6", "torch": "2.13", "opendp": "0.16", "jax-privacy": "2.0"}


@contextmanager
def answered(library: str, doing: str) -> Iterator[None]:
    """Turn an error of `library` while `doing` something into one sentence. The library's own message is left out,
    because it may quote a record.
    """
    try:
        yield
    except PrivampError:
        raise
    except Exception as error:
        raise _sentence(library, doing, error) from None


@contextmanager
def imported(library: str, what: str) -> Iterator[None]:
    """The same for imports of `library` by `what`; where it is not installed the sentence names its extra."""
    try:
        yield
    except PrivampError:
        raise
    except ModuleNotFoundError as error:
        told = missing(error, what)
        raise (_sentence(library, f"being imported by {what}", error) if told is error else told) from None
    except Exception as error:
        raise _sentence(library, f"being imported by {what}", error) from None


def _sentence(library: str, doing: str, error: Exception) -> InvalidInput:
    return InvalidInput(
        f"{library} {_installed(library)} failed while {doing} ({type(error).__name__}); this adapter is tested "
        f"with {library} {TESTED[library]}: install that, or check its arguments"
    )


def _installed(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "(of an unknown version)"
