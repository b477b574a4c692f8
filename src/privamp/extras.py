"""Optional libraries: which extra of privamp installs each, and the error when one is missing.

The core needs numpy, scipy, cryptography, typer and rich. A module that needs more imports it inside
`try … except ModuleNotFoundError as error: raise missing(error, "what needs it")`; a function that needs more later
asks `need(module, what)` before it computes anything.
"""

from importlib.util import find_spec

from .errors import MissingExtra

# module → (name a reader knows, extra)
_BROUGHT_BY = {
    "matplotlib": ("matplotlib", "plots"),
    "pyarrow": ("pyarrow", "tables"),
    "sklearn": ("scikit-learn", "kmeans"),
    "threadpoolctl": ("threadpoolctl", "kmeans"),
    "numba": ("numba", "fast"),
    "dp_accounting": ("dp-accounting", "pld"),
    "torch": ("PyTorch", "torch"),
    "opacus": ("Opacus", "opacus"),
    "opendp": ("OpenDP", "opendp"),
    "jax_privacy": ("JAX Privacy", "jax"),
    "attr": ("dp-accounting", "pld"),  # comes with it
    "pyspark": ("PySpark 4", "spark"),
    "pandas": ("pandas", "spark"),
    "keyring": ("keyring", "keyring"),
    "nicegui": ("NiceGUI", "app"),
    "fastapi": ("NiceGUI", "app"),  # comes with it, as does uvicorn
    "uvicorn": ("NiceGUI", "app"),
}


def is_installed(module: str) -> bool:
    """Whether a top-level module can be found; it is not imported."""
    try:
        return find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):  # blocked, or marked as absent in sys.modules
        return False


def need(module: str, what: str) -> None:
    """Raise `MissingExtra` if a library that `what` uses is not installed.

    >>> need("numpy", "arithmetic")
    """
    if not is_installed(module):
        raise _sentence(module, what)


def missing(error: ModuleNotFoundError, what: str) -> ImportError:
    """The error to raise for a failed import: `MissingExtra` for a library of an extra, else the error itself.

    >>> missing(ModuleNotFoundError(name="sklearn"), "private k-means")
    MissingExtra("private k-means needs scikit-learn; install it with: pip install 'privamp[kmeans]'")
    """
    return _sentence(error.name, what) if error.name in _BROUGHT_BY else error  # the library is installed but broken


def _sentence(module: str, what: str) -> MissingExtra:
    name, extra = _BROUGHT_BY.get(module, (module, None))
    install = f"'privamp[{extra}]'" if extra else name
    return MissingExtra(f"{what} needs {name}; install it with: pip install {install}")
