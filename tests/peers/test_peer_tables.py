"""The tables of docs/peers.md are those that `benchmarks/peer_tables.py` prints, and their cells are tried out."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from privamp import (
    BallsInBins,
    CyclicPoisson,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Neighbors,
    Poisson,
    PureDP,
    TruncatedPoisson,
    WithoutReplacement,
    WithReplacement,
    amplify,
)

ROOT = Path(__file__).parents[2]
AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
CERTIFIED = {  # a claim for each row that a claim can show; draws, rules and people have test files of their own
    "Poisson": (Gaussian(1.0), Poisson(0.1), AR),
    "Poisson under replace-one": (Gaussian(1.0), Poisson(0.1), RO),
    "Poisson, truncated": (Gaussian(1.0), TruncatedPoisson(0.1, 5, 20, 21), AR),
    "without replacement": (Gaussian(1.0), WithoutReplacement(2, 20), RO),
    "with replacement": (Gaussian(1.0), WithReplacement(2, 20), RO),
    "balls in bins": (Gaussian(1.0), BallsInBins(5), AR),
    "cyclic Poisson": (Gaussian(1.0), CyclicPoisson(0.1, 2, 4), AR),
    "any pure or (ε, δ) mechanism on a sample": (PureDP(1.0), Poisson(0.1), AR),
}


def cells():
    with (ROOT / "tests" / "peers" / "capabilities.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def test_the_page_has_what_the_command_prints():
    made = subprocess.run(
        [sys.executable, "benchmarks/peer_tables.py"], cwd=ROOT, capture_output=True, encoding="utf-8", check=True
    )
    page = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    tables = made.stdout.strip().split("\n\n")
    assert len(tables) == 2
    for table in tables:
        assert table in page
    assert tables[0].replace("●", "○", 1) not in page


@pytest.mark.parametrize("row", CERTIFIED)
def test_privamp_certifies_what_its_column_says(row):
    assert cells()[row]["privamp"] == "●"
    found = amplify(*CERTIFIED[row])
    assert 0.0 < found.delta(0.1) < 1.0
    assert found.lower is None or found.lower.delta(0.1) <= found.delta(0.1)


@pytest.mark.parametrize("mechanism", [Laplace(1.0), DiscreteLaplace(1.0)])
def test_other_noise_on_samples(mechanism):
    assert amplify(mechanism, Poisson(0.1), AR).epsilon(0.0) < amplify(mechanism, Poisson(1.0), AR).epsilon(0.0)


def test_dp_accounting_supports_what_its_column_says():
    dp = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    gaussian, relation, column = dp.GaussianDpEvent(1.0), dp.NeighboringRelation, "dp-accounting 0.6"
    added, replaced = relation.ADD_OR_REMOVE_ONE, relation.REPLACE_ONE
    events = {
        "Poisson": (dp.PoissonSampledDpEvent(0.1, gaussian), added, {"pld", "rdp"}),
        "Poisson under replace-one": (dp.PoissonSampledDpEvent(0.1, gaussian), replaced, {"pld"}),
        "Poisson, truncated": (dp.TruncatedSubsampledGaussianDpEvent(20, 0.1, 5, 1.0), added, {"pld"}),
        "without replacement": (dp.SampledWithoutReplacementDpEvent(20, 2, gaussian), replaced, {"rdp"}),
        "with replacement": (dp.SampledWithReplacementDpEvent(20, 2, gaussian), replaced, set()),
    }
    for row, (event, kind, those) in events.items():
        accountants = {"pld": PLDAccountant(kind), "rdp": RdpAccountant(neighboring_relation=kind)}
        assert {name for name, accountant in accountants.items() if accountant.supports(event)} == those, row
        assert bool(cells()[row][column])
