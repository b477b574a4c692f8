"""What each theorem says about itself, written out: which bounds are exact, which settle a question, which search.

A theorem that is called tight by mistake would show an upper bound as the truth. So who declares one adds it here.
"""

import importlib
import pkgutil

import pytest

from privamp import designs
from privamp.core.design import Design

COINS = ("Poisson", "Poisson by class", "Poisson with public probabilities")
TIGHT = {
    *(f"{coins} amplification" for coins in COINS),
    *(f"{coins}, one record swapped, pure" for coins in COINS),
    *(f"{coins}, one record swapped, Gaussian pair" for coins in COINS),
    "One cluster, one record more",
    "One cluster, one record replaced inside its cluster",
    "One cluster, one record more, Gaussian",
    "One cluster, one record replaced inside its cluster, Gaussian",
    "Clusters, one record more",
    "Clusters, one record replaced inside its cluster",
    "Clusters, one record more, Gaussian",
    "Clusters, one record replaced inside its cluster, Gaussian",
    "Clusters by public size, then a fixed take, one record replaced inside its cluster",
    "Conditional Poisson",
    "Conditional Poisson, one record more",
    "uniform weights, at the radius",
    "Fixed share, any number of records",
    "Fixed share, one replaced",
    "Fixed share, bounded number of records",
    "Fixed share, bounded, one replaced",
    "Random size, chain program",
    "Systematic, secret order",
    "Systematic, secret order, bounded",
    "Systematic, slots",
    "Systematic, slots, one replaced",
    "Truncated Poisson, chain program",
    "With replacement, draw by draw",
    "With replacement, one record more, draw by draw",
    "With replacement, one record more, Gaussian pair",
    "Simple random sampling",
    "Simple random sampling, one record more",
    "Simple random sampling, a person more, pure",
}
SETTLE = {  # exact for everything they apply to
    *(f"{coins}, all of a person's records, Gaussian pair" for coins in COINS),
    *(f"{coins}, all of a person's records swapped, Gaussian mixtures" for coins in COINS),
    "With replacement, a person more, Gaussian pair",
    "Simple random sampling, a person more, Gaussian pair",
}
PEOPLE = {
    *SETTLE,
    "With replacement, all of a person's records, Gaussian copies against copies",
    "Simple random sampling, all of a person's records, Gaussian copies against copies",
    "Simple random sampling, a person more, pure",
}
GROUPS = {  # say what a person with several records loses by themselves
    *(f"{coins} amplification" for coins in COINS),
    "Multi-stage sampling, Theorem A",
    "Multi-stage sampling, by numbers of copies",
    "With replacement",
    "With replacement, draw by draw",
    "With replacement, one record more",
    "With replacement, one record more, draw by draw",
    "Simple random sampling",
    "Simple random sampling, one record more",
}
PARTS = {"Stratified, one record", "Stratified, replaced in its stratum", "Stratified, replaced anywhere"}
SEARCHES = {
    "Clusters, members by coins, one record more, transport",
    "Clusters, members by coins, one record replaced inside its cluster, transport",
    "Random size, transport",
}
SEARCHES_IN_ONE_OF_TWO_FORMS = {
    "Clusters, members by coins, one record more, sizes along a chain",
    "Clusters, members by coins, one record replaced inside its cluster, sizes along a chain",
    "Clusters, members by coins, one record replaced, sizes along a chain",
    "Poisson proportional to size, sizes along a chain",
    "Poisson proportional to size, one record replaced, sizes along a chain",
}


@pytest.fixture(scope="module")
def theorems():
    for module in pkgutil.iter_modules(designs.__path__):
        importlib.import_module(f"privamp.designs.{module.name}")
    found, classes = [], [Design]
    while classes:
        here = classes.pop()
        classes += here.__subclasses__()
        found += getattr(here, "theorems", ()) if here.__module__.startswith("privamp.designs.") else ()
    return found


@pytest.mark.parametrize(
    ("flag", "names"),
    [("tight", TIGHT | SETTLE), ("settles", SETTLE), ("people", PEOPLE), ("groups", GROUPS), ("of_parts", PARTS)],
)
def test_the_theorems_with_a_flag_are_these(theorems, flag, names):
    assert {one.name for one in theorems if getattr(one, flag)} == names
    assert not {one.name for one in theorems if not getattr(one, flag)} & names


def test_the_theorems_that_search_are_these(theorems):
    searching = {one.name for one in theorems if one.searches}
    assert searching == SEARCHES | SEARCHES_IN_ONE_OF_TWO_FORMS
    others = {one.name for one in theorems if not one.searches}
    assert searching & others == SEARCHES_IN_ONE_OF_TWO_FORMS


def test_no_plan_of_transport_is_called_exact(theorems):
    assert not [one.name for one in theorems if one.tight and "transport.md" in one.cite]


def test_a_theorem_inside_a_stratum_or_a_cluster_says_so_in_its_name(theorems):
    for one in theorems:
        words = {"within cluster": "cluster", "within stratum": "stratum", "anywhere": ""}[one.scope]
        inside = ("inside its cluster", "slots, one replaced", "Shared rate, one replaced", "in its stratum")
        assert any(part in one.name for part in inside) == bool(words), one.name
        assert one.gives == ("replace-one" if words else one.gives)
