"""Every public name loads, and the stub for type checkers lists the same names."""

import ast
from pathlib import Path

import pytest

import privamp

STUB = Path(privamp.__file__).with_name("__init__.pyi")


@pytest.mark.parametrize("name", [n for n in privamp.__all__ if n != "__version__"])
def test_every_public_name_loads(name):
    assert getattr(privamp, name) is not None


def test_the_stub_lists_the_same_names():
    names = set()
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
    assert names == set(privamp.__all__) | set(privamp._EXTRAS)


@pytest.mark.parametrize("name", privamp._EXTRAS)
def test_an_extra_loads_or_names_what_to_install(name):
    try:
        assert getattr(privamp, name) is not None
    except ImportError as error:
        assert "pip install" in str(error)  # noqa: PT017


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Bernoulli'"):
        _ = privamp.Bernoulli
    assert "Poisson" in dir(privamp)
