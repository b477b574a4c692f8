"""What private sums refuse, in one sentence that shows no record."""

import math

import numpy as np
import pytest

from privamp import NormHistogram, Poisson
from privamp.errors import Infeasible, InvalidInput
from privamp.workloads.sums import PrivateMean, PrivateSum
from small_sums import X

BAD = [
    ({"radius": 0.0, "epsilon": 1.0}, "radius"),
    ({"radius": -1.0, "epsilon": 1.0}, "radius"),
    ({"radius": math.nan, "epsilon": 1.0}, "radius"),
    ({"epsilon": 0.0}, "epsilon"),
    ({"epsilon": -1.0}, "epsilon"),
    ({"epsilon": 1.0, "delta": 1e-6}, "delta must be 0"),
    ({"epsilon": 1.0, "delta": 1e-6, "noise": "norm"}, "delta must be 0"),
    ({"epsilon": 1.0, "noise": "gaussian"}, "delta"),
    ({"epsilon": 1.0, "noise": "cauchy"}, "noise"),
    ({"epsilon": 1.0, "arithmetic": "vague"}, "arithmetic"),
    ({"epsilon": 1.0, "noise": "norm", "arithmetic": "exact"}, "idealised"),
    ({"epsilon": 1.0, "error_share": 2.0}, "error_share"),
    ({"epsilon": 1.0, "population": 0}, "population"),
    ({"epsilon": 1.0, "neighbors": "add-remove"}, "neighbors"),
    ({}, "epsilon"),
    ({"epsilon": 1.0, "scale": 1.0}, "either"),
    ({"epsilon": 1.0, "sample_size": 10}, "sampler"),
    ({"epsilon": 1.0, "sampler": "uniform"}, "two of"),
    ({"epsilon": 1.0, "sampler": "uniform", "sample_size": 10}, "population"),
    ({"epsilon": 1.0, "sampler": "uniform", "sample_size": 10, "population": 5}, "sample_size"),
    ({"epsilon": 1.0, "sampler": "often"}, "sampler"),
    ({"epsilon": 1.0, "sampler": Poisson(0.0)}, "sampler"),
]


@pytest.mark.parametrize(("arguments", "what"), BAD)
@pytest.mark.parametrize("make", [PrivateSum, PrivateMean])
def test_bad_arguments(make, arguments, what, key):
    with pytest.raises(InvalidInput, match=what) as error:
        make(**{"radius": 3.0, **arguments}).release(X, key=key(26))
    assert str(error.value).count("\n") == 0


@pytest.mark.parametrize(
    "records",
    [
        [[31337.0, math.nan]],
        [[31337.0, math.inf]],
        [["31337", "x"]],
        [[31337.0], [1.0, 2.0]],
        31337.0,
        np.full((2, 2, 2), 31337.0),
        np.empty((3, 0)),
        [[31337 + 1j]],
        None,
    ],
)
def test_bad_records_are_not_shown(records, key):
    with pytest.raises(InvalidInput, match="X must") as error:
        PrivateSum(radius=1.0, epsilon=1.0).release(records, key=key(27))
    assert "31337" not in str(error.value)


def test_infeasible_targets(key):
    few = NormHistogram([0.1, 3.0], [299, 1])
    with pytest.raises(Infeasible, match="cannot be reached"):
        PrivateSum(radius=3.0, epsilon=1.0, sample_size=250, norms=few, sampler="privacy-constrained").release(
            X, key(1)
        )
    with pytest.raises(Infeasible, match="add noise"):
        PrivateSum(radius=3.0, epsilon=0.1, scale=1.0, sampler="privacy-constrained").release(X, key(28))
    with pytest.raises(Infeasible, match="add noise"):
        PrivateSum(radius=3.0, epsilon=0.1, scale=1.0, sampler="uniform").release(X, key(28))
