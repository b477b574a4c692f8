"""Noise in floats is certified in idealised real arithmetic, and says so wherever its guarantee is shown."""

import json

import pytest
from typer.testing import CliRunner

from privamp import (
    DiscreteGaussian,
    DiscreteLaplace,
    ExactGaussian,
    ExactLaplace,
    Gaussian,
    GeometricCount,
    Joint,
    Laplace,
    NormNoise,
    Poisson,
    amplify,
    compose,
)
from privamp.cli.application import app
from privamp.report.html import Report

WORDS = "idealised real arithmetic"
FLOATS = [Laplace(1.0), Gaussian(1.0), NormNoise(1.0, 3), Joint([Laplace(1.0), DiscreteLaplace(1.0)])]
EXACT = [DiscreteLaplace(1.0), DiscreteGaussian(1.0), GeometricCount(1.0), ExactLaplace(1.0), ExactGaussian(1.0)]


@pytest.mark.parametrize(("mechanism", "said"), [*((m, True) for m in FLOATS), *((m, False) for m in EXACT)])
def test_guarantee_json_composition_and_ledger(mechanism, said):
    guarantee = amplify(mechanism, Poisson(0.1))
    assert (WORDS in guarantee.assumes) == said
    assert (WORDS in json.dumps(guarantee.to_json(epsilon=1.0))) == said
    assert (WORDS in compose(guarantee, 2).assumes) == said
    sample = Poisson(0.1).draw(50).declare([mechanism])
    assert (WORDS in sample.guarantee().assumes) == said


@pytest.mark.parametrize(("mechanism", "said"), [(FLOATS[1], True), (FLOATS[2], True), (EXACT[3], False)])
def test_report(mechanism, said):
    report = Report("A release", "What it costs.")
    report.add_guarantee(amplify(mechanism, Poisson(0.1)), delta=1e-6)
    assert (WORDS in report.html()) == said


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("laplace:scale=1", True),
        ("norm:scale=1,dimension=5", True),
        ("gaussian:sigma=2", True),
        ("discrete-laplace:scale=1", False),
        ("discrete-gaussian:sigma=2", False),
        ("exact-laplace:scale=1", False),
        ("exact-gaussian:sigma=2,sensitivity=0.5", False),
    ],
)
@pytest.mark.parametrize("as_json", [True, False])
def test_command_line(spec, said, as_json):
    arguments = ["amplify", "--design", "poisson:rate=0.1", "--mechanism", spec, "--delta", "1e-6"]
    result = CliRunner().invoke(app, arguments + ["--json"] * as_json)
    assert result.exit_code == 0
    assert (WORDS in " ".join(result.stdout.split())) == said
