"""One result for every job: value, errors, interval, guarantee; it pickles, copies, shows and draws itself."""

import copy
import json
import math
import pickle

import numpy as np
import pytest

from privamp import (
    Guarantee,
    InvalidInput,
    Laplace,
    Poisson,
    PrivateKMeans,
    PrivateMean,
    PrivateSum,
    Release,
    amplify,
    bootstrap,
    survey,
)
from privamp.numerics.half_width import half_width

X = np.arange(400.0) % 10
KNOWN = amplify(Laplace(2.0), Poisson(0.5))


def kmeans():
    rows = np.stack([X, X[::-1]], axis=1) / 10.0
    return PrivateKMeans(2, epsilon=2.0, radius=2.0, n_iter=2).fit(rows).result_


JOBS = {
    "sum": lambda: PrivateSum(bounds=10.0, epsilon=1.0).release(X),
    "sum of two columns": lambda: PrivateSum(bounds=10.0, epsilon=1.0).release(np.stack([X, X], axis=1)),
    "norm noise": lambda: PrivateSum(bounds=10.0, epsilon=1.0, noise="norm").release(np.stack([X, X], axis=1)),
    "mean": lambda: PrivateMean(bounds=10.0, epsilon=1.0, sampler=Poisson(0.5)).release(X),
    "survey": lambda: survey.estimate(Poisson(0.5).draw(400), X, bounds=(0, 10), epsilon=1.0),
    "bootstrap": lambda: bootstrap.run(X, bounds=(0, 10)),
    "bootstrap, own function": lambda: bootstrap.run(X, lambda rows: float(rows.mean()), bounds=(0, 10)),
    "regression": lambda: bootstrap.run((X[:, None], 2 * X), "regression", bounds=[(0, 10), (0, 20)]),
    "k-means": kmeans,
}


@pytest.mark.parametrize("job", JOBS)
def test_every_job_gives_one_result(job):
    found = JOBS[job]()
    assert isinstance(found, Release)
    again = pickle.loads(pickle.dumps(found))
    assert again == found == copy.deepcopy(found)
    assert type(again) is type(found)
    assert again.guarantee == found.guarantee == copy.deepcopy(found).guarantee
    data = json.loads(json.dumps(found.to_json()))
    assert {"schema", "value", "noise_error", "sampling_error", "interval", "guarantee"} <= data.keys()
    back = Guarantee.from_json(data["guarantee"])
    assert back.claims == found.guarantee.claims
    assert found.guarantee.claims
    assert "guarantee" in found._repr_html_().lower()
    if data["interval"] is None:
        with pytest.raises(InvalidInput, match="sampling error"):
            found.interval(0.9)
        return
    (low, high), (lower, higher) = found.interval(0.5), found.interval(0.95)
    for smaller, larger in ((lower, low), (low, found.value), (found.value, high), (high, higher)):
        assert np.all(smaller <= larger)
    assert np.array_equal(again.interval(0.9), found.interval(0.9))
    assert len(found.plot().axes) == 1
    assert found._repr_html_().startswith("<svg role=")


def test_centres_have_names_counts_and_a_picture():
    found = JOBS["k-means"]()
    assert found.names == ("centre 1", "centre 2")
    assert [list(one.value) for one in found] == found.value.tolist()
    assert found["centre 2"].noise_error.tolist() == [found.noise_error[1, 0]] * 2
    for part in ("centre 1", "noisy count", "column 2"):
        assert part in found._repr_html_()
    assert found.plot().axes
    assert [what for what, _, _ in found.spent][-1].endswith("noisy steps on one sample")


def test_old_names_work_for_one_version_and_say_so():
    found = JOBS["survey"]()
    for old, new in {"privacy": "guarantee", "standard_error_noise": "noise_error", "noise": "law"}.items():
        with pytest.warns(DeprecationWarning, match=f"is now '{new}'"):
            assert getattr(found, old) == getattr(found, new)
    with pytest.warns(DeprecationWarning, match="is now"):
        assert found.relation == found.guarantee.neighbors
    whole = JOBS["bootstrap"]()
    with pytest.warns(DeprecationWarning, match="is now"):
        low, high = whole.interval
    assert (low, high) == whole.interval() == whole.interval(0.95)
    with pytest.warns(DeprecationWarning, match="is now"):
        assert whole.estimate == whole.value
    with pytest.warns(DeprecationWarning, match="is now"):
        assert survey.Estimate is Release
    with pytest.raises(AttributeError, match="no 'nonsense'"):
        found.nonsense  # noqa: B018


def test_a_release_cannot_be_changed():
    with pytest.raises(AttributeError, match="cannot be changed"):
        Release(1.0, 0.1, 0.0, KNOWN).value = 2.0


def test_coordinates_have_names():
    found = Release(np.array([1.0, 2.0]), 0.1, np.array([0.0, 0.3]), KNOWN, names=("a", "b"))
    assert found["b"].value == 2.0
    assert found["b"].standard_error == pytest.approx(math.hypot(0.1, 0.3))
    assert [one.names for one in found] == [("a",), ("b",)]
    with pytest.raises(InvalidInput, match="'a', 'b'"):
        found["c"]


@pytest.mark.parametrize("dimension", [2, 20])
@pytest.mark.parametrize("level", [0.3, 0.6, 0.8, 0.95])
def test_the_interval_of_norm_noise_covers(dimension, level):
    """A coordinate of the sphere times a gamma length, and a normal error beside it: covered at least that often."""
    random = np.random.default_rng(7)
    directions = random.standard_normal((200_000, dimension))
    length = random.gamma(dimension, 1.0, 200_000)
    noise = directions[:, 0] / np.linalg.norm(directions, axis=1) * length
    for sampling in (0.0, 0.5 * noise.std()):
        total = noise + sampling * random.standard_normal(noise.size)
        assert np.mean(np.abs(total) <= half_width(sampling, float(noise.std()), "norm", level)) >= level


def test_what_certified_a_release_is_let_go():
    """A sample is secret: once the guarantee is read, nothing of the release holds it."""
    found = JOBS["survey"]()
    assert found.guarantee.epsilon() <= 1.0
    assert isinstance(found.__dict__["_certify"], Guarantee)
