"""What private sums refuse, in one sentence that shows no record."""

import math
import warnings

import numpy as np
import pytest

from privamp import Influence, LinearProfile, NormHistogram, Poisson, sums, uniform
from privamp.core.tape import Tape, taping
from privamp.errors import Infeasible, InvalidInput
from privamp.sums import PrivateMean, PrivateSum
from privamp.testing import seeded_stream
from small_sums import X

RULE = uniform(LinearProfile(Influence("pure", 0.0, 0.01, p=1.0)), rate=0.5, radius=6.0)

BAD = [
    ({"bounds": 0.0, "epsilon": 1.0}, "bounds"),
    ({"bounds": -1.0, "epsilon": 1.0}, "bounds"),
    ({"bounds": math.nan, "epsilon": 1.0}, "bounds"),
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
        make(**{"bounds": 3.0, **arguments}).release(X, key=key(26))
    assert str(error.value).count("\n") == 0


@pytest.mark.parametrize(
    "records",
    [[[31337.0], [1.0, 2.0]], 31337.0, np.full((2, 2, 2), 31337.0), np.empty((3, 0)), None, np.array(["31337"])],
)
def test_wrong_shapes_and_types_of_arrays_are_refused_unseen(records, key):
    with pytest.raises(InvalidInput, match="must") as error:
        PrivateSum(bounds=1.0, epsilon=1.0).release(records, key=key(27))
    assert "31337" not in str(error.value)


LARGEST = np.finfo(np.float64).max


@pytest.mark.parametrize("make", [PrivateSum, PrivateMean])
@pytest.mark.parametrize("noise", ["laplace", "gaussian", "norm"])
@pytest.mark.parametrize(
    ("odd", "plain"),
    [
        ([math.nan, 0.25], [0.0, 0.25]),
        ([math.inf, -0.25], [0.5, 0.0]),
        ([10**30, None], [0.5, 0.0]),
        ([-(10**400), "secret"], [-0.5, 0.0]),
        ([1j, [3.0]], [0.0, 0.0]),
        ([LARGEST, 0.0], [0.5, 0.0]),  # was refused as "not finite" at a radius of .5
        ([5e-324, -0.0], [0.0, 0.0]),
    ],
)
def test_every_record_has_an_answer_by_a_public_rule(make, noise, odd, plain, key):
    """Values used to be refused, which told that they were there."""
    job = make(bounds=0.5, epsilon=1.0, noise=noise, delta=1e-6 if noise == "gaussian" else 0.0)
    rest = [[0.1, 0.2]] * 5
    totals = []
    for number, row in enumerate((odd, plain)):
        with taping(Tape(seeded_stream(1))) as tape:
            assert np.shape(job.release([*rest, row], key=key(29 + number)).value) == (2,)
        totals.append(np.asarray(tape.taken[0].value) * getattr(tape.taken[0].mechanism.noise, "grid", 1.0))
    assert np.allclose(*totals, atol=1e-6)


def test_no_records_masked_records_and_booleans(key):
    job = PrivateSum(bounds=1.0, epsilon=1.0)
    assert np.shape(job.release(np.empty((0, 2)), key=key(40)).value) == (2,)
    masked = np.ma.MaskedArray(np.full(50, 1.0), mask=np.arange(50) < 25)
    assert abs(job.release(masked, key=key(41)).value - 25) < 20
    assert abs(job.release(np.ones(50, bool), key=key(42)).value - 50) < 20


def test_infeasible_targets(key):
    few = NormHistogram([0.1, 3.0], [299, 1])
    with pytest.raises(Infeasible, match="cannot be reached"):
        PrivateSum(bounds=3.0, epsilon=1.0, sample_size=250, norms=few, sampler="privacy-constrained").release(
            X, key(1)
        )
    with pytest.raises(Infeasible, match="add noise"):
        PrivateSum(bounds=3.0, epsilon=0.1, scale=1.0, sampler="privacy-constrained").release(X, key(28))
    with pytest.raises(Infeasible, match="add noise"):
        PrivateSum(bounds=3.0, epsilon=0.1, scale=1.0, sampler="uniform").release(X, key(28))


def test_the_old_name_of_a_release_still_works_and_no_other_does():
    with pytest.warns(DeprecationWarning, match="Release"):
        assert sums.Estimated is sums.Release
    with pytest.raises(AttributeError, match="Guessed"):
        sums.Guessed  # noqa: B018


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (
            {"noise": "gaussian", "delta": 1.0, "scale": 1.0},
            "delta must be strictly between 0 and 1 for gaussian noise",
        ),
        (
            {"noise": "gaussian", "delta": 0.0, "scale": 1.0},
            "delta must be strictly between 0 and 1 for gaussian noise",
        ),
        ({"noise": "gaussian", "delta": 1.1, "scale": 1.0}, "delta must be a number from 0 to 1"),
        ({"delta": -0.1, "scale": 1.0}, "delta must be a number from 0 to 1"),
        ({"delta": 0.5, "scale": 1.0}, "delta must be 0 for laplace noise, got 0.5 instead"),
        ({"p": 0.9, "scale": 1.0}, "p must be a number from 1 to"),
        ({"scale": 0.0}, "scale must be a finite number above 0"),
        ({"epsilon": math.inf}, "epsilon must be a finite number above 0"),
        ({"scale": 1.0, "sample_size": 0.0}, "sample_size must be a finite number above 0"),
        ({"scale": 1.0, "population": 1.5}, "population must be a whole number of at least 1"),
        ({"scale": 1.0, "error_share": -0.1}, "error_share must be a number from 0 to 1"),
        ({"scale": 1.0, "norms": [1.0]}, "norms must be a NormHistogram, got list instead"),
        ({"scale": 1.0, "neighbors": "add"}, "neighbors"),
    ],
)
def test_refusals_name_the_argument_and_the_rule(given, match):
    with pytest.raises(InvalidInput, match=match):
        PrivateSum(bounds=1.0, **given)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"sampler": RULE, "epsilon": 1.0}, "a rule needs scale=, the noise it was made for, and no epsilon="),
        ({"sampler": RULE, "epsilon": 1.0, "scale": 1.0}, "a rule needs scale="),
        ({"sampler": Poisson(0.5), "epsilon": 1.0, "sample_size": 3}, "sample_size needs sampler='uniform'"),
        ({"sampler": "uniform", "epsilon": 1.0, "scale": 1.0, "sample_size": 5}, "exactly two of"),
        ({"sampler": "privacy-constrained", "sample_size": 5}, "exactly two of"),
        ({"sampler": "uniform", "epsilon": 1.0, "sample_size": 5}, "give sample_size= and population="),
        (
            {"sampler": "uniform", "epsilon": 1.0, "sample_size": 5.1, "population": 5},
            "at most the population, got 5.1",
        ),
        (
            {"sampler": "privacy-constrained", "epsilon": 1.0, "sample_size": 6, "population": 5},
            "at most the population",
        ),
        ({"epsilon": 1.0, "scale": 1.0}, "give either epsilon"),
        ({}, "give either epsilon"),
    ],
)
def test_refusals_of_a_plan_name_what_is_needed(given, match):
    with pytest.raises(InvalidInput, match=match):
        PrivateSum(bounds=1.0, **given).task(1)


def test_the_old_name_warns_about_the_line_that_used_it():
    for make in (PrivateSum, PrivateMean):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            made = make(radius=2.0, epsilon=1.0)
        assert [one.filename for one in told] == [__file__]
        assert made.bounds == 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert PrivateSum(bounds=3.0, radius=2.0, epsilon=1.0).bounds == 3.0
