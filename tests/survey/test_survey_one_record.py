"""What one record can move in a survey: the released sums by their sensitivity, and nothing else at all."""

import warnings

import numpy as np
import pytest

from privamp import (
    ClusterSampling,
    ExactGaussian,
    ExactLaplace,
    InvalidInput,
    Poisson,
    PoissonPPS,
    Population,
    Proportional,
    Stratified,
    Systematic,
    WithoutReplacement,
)
from privamp.core.ledger import REGISTRY
from privamp.survey import estimate

ODD = [np.nan, np.inf, -np.inf, None, "lots", 10**400, -(10**30), 1.7976931348623157e308, 5e-324, -0.0, [1], b"x"]
PLAIN = [1.0, 2.5, 3.0, 7.0, 9.0, 0.5, 4.0, 8.0]
STRATUM = ["a", "b"] * 4
BOTH = {"bounds": (0.0, 10.0), "epsilon": 1.0}
EVERYBODY = {
    "poisson mean": (Poisson(1.0), BOTH),
    "poisson mean, public size": (Poisson(1.0), BOTH | {"population": 9}),
    "poisson total": (Poisson(1.0), BOTH | {"statistic": "total"}),
    "poisson total, gaussian": (Poisson(1.0), BOTH | {"statistic": "total", "delta": 1e-6, "noise": "gaussian"}),
    "poisson totals by group": (
        Poisson(1.0),
        BOTH | {"statistic": "total", "is_grouped": True, "groups": ["a", "b", "z"]},
    ),
    "poisson means by group": (Poisson(1.0), BOTH | {"is_grouped": True, "groups": {"a": 4, "b": 5}}),
    "simple random": (WithoutReplacement(8, 8), BOTH),
    "simple random by group": (WithoutReplacement(8, 8), BOTH | {"is_grouped": True}),
    "proportional": (Proportional(0.5), BOTH),
    "systematic total": (Systematic(2), BOTH | {"statistic": "total"}),
    "coins": (PoissonPPS(0.9, 0.5), BOTH | {"probability": [0.6] * 8}),
    "clusters": (ClusterSampling(2, 4, 5), BOTH | {"cluster": [0, 1, 2, 3] * 2}),
    "strata": (
        Stratified({"a": WithoutReplacement(3, 4), "b": WithoutReplacement(4, 4)}),
        BOTH | {"stratum": STRATUM},
    ),
}


@pytest.fixture
def clean(monkeypatch):
    """clean: what goes into the noise, in units of the grid, in order."""
    seen = []
    for kind in (ExactLaplace, ExactGaussian):
        real = kind.release

        def release(self, value, stream, real=real):
            seen.append(np.asarray(value).tolist())
            return real(self, value, stream)

        monkeypatch.setattr(kind, "release", release)
    return seen


def ask(design, values, key, by=STRATUM, is_grouped=False, **options):
    """An estimate from a sample that has answered nothing yet, with warnings as errors."""
    REGISTRY.clear()
    options |= {"by": by[: len(values)]} if is_grouped else {}
    columns = {
        "probability": np.asarray(options.get("probability", np.zeros(len(values)))),
        "cluster": np.asarray(options.get("cluster", np.zeros(len(values), int))),
        "stratum": np.asarray(STRATUM[: len(values)]),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return estimate(design.draw(Population(len(values), **columns), key), values, **options)


@pytest.mark.parametrize("name", EVERYBODY)
def test_no_value_is_refused_and_each_counts_as_a_public_number(name, clean, key):
    """What an odd entry counts as: the end of the bounds that it lies beyond, or the middle."""
    design, options = EVERYBODY[name]
    means = {10**400: 10.0, np.inf: 10.0, -np.inf: 0.0, -(10**30): 0.0, 1.7976931348623157e308: 10.0}
    for i, odd in enumerate(ODD):
        found = ask(design, [*PLAIN[:3], odd, *PLAIN[4:]], key(2 * i), **options)
        counts_as = (0.0 if odd in (5e-324, -0.0) else means.get(odd, 5.0)) if not isinstance(odd, list) else 5.0
        plain = ask(design, [*PLAIN[:3], counts_as, *PLAIN[4:]], key(2 * i), **options)
        half = len(clean) // 2
        assert clean[:half] == clean[half:]
        assert found == plain
        clean.clear()


def test_groups_of_a_poisson_sample_are_declared(key):
    """Which groups occur, and their exact sizes, left the door under an add/remove certificate."""
    ones = np.ones(8)
    with pytest.raises(InvalidInput, match="needs groups="):
        estimate(Poisson(1.0).draw(8, key()), ones, by=STRATUM, population=8, **BOTH)
    asked = EVERYBODY["poisson totals by group"][1]
    seen = [
        set(ask(Poisson(1.0), PLAIN, key(i), by, **asked)) for i, by in enumerate((STRATUM, ["a"] * 8, ["new"] * 8))
    ]
    assert seen == [{"a", "b", "z"}] * 3
    odd = [None, [1], np.nan, 1, "a", b"a", ("a",), 1.5]  # labels may be anything; those not declared count in no group
    assert set(ask(Poisson(1.0), PLAIN, key(5), odd, **asked)) == {"a", "b", "z"}


@pytest.mark.parametrize("statistic", ["mean", "total"])
def test_one_record_more_moves_group_estimates_by_noise_only(clean, key, statistic):
    """At rate 1 a record adds its centred value to its group, and nothing else of what is released moves."""
    options = BOTH | {"statistic": statistic, "sd": "range", "groups": {"a": 40, "b": 50}}
    found = []
    for i, size in enumerate((7, 8)):
        sample = Poisson(1.0).draw(size, key(i))
        found.append(estimate(sample, PLAIN[:size], by=STRATUM[:size], **options))
    (mechanism,) = sample.ledger.entries
    moved = np.abs(np.subtract(*clean))
    assert np.count_nonzero(moved) == 1
    assert np.sum(moved) * mechanism.grid <= mechanism.sensitivity
    for name in ("a", "b"):
        assert found[0][name].standard_error == found[1][name].standard_error


def test_sizes_of_groups_by_strata(key):
    design = Stratified({"a": Poisson(0.9), "b": Poisson(0.5)})
    labels = ["x", "x", "y", "y"] * 2
    sizes = {"x": {"a": 2, "b": 2}, "y": {"a": 2, "b": 2}}

    def asked(i, groups, **more):
        return estimate(
            design.draw(Population(8, stratum=STRATUM), key(i)), PLAIN, by=labels, groups=groups, stratum=STRATUM,
            **BOTH, **more,
        )  # fmt: skip

    assert set(asked(1, sizes, sd="range")) == {"x", "y"}
    assert set(asked(2, ["y"], statistic="total")) == {"y"}
    for i, (groups, words) in enumerate(
        [({"x": 4, "y": 4}, "name every stratum"), (["x"], "public sizes"), (["x", "x"], "each once"), ([], "at least")]
    ):
        with pytest.raises(InvalidInput, match=words):
            asked(10 + i, groups)


def test_an_empty_population_is_answered_like_any_other(key):
    for i, options in enumerate(
        ({}, {"population": 9}, {"statistic": "total"}, {"by": [], "groups": {"a": 3}}, {"statistic": "total", "by": [],
         "groups": ["a"]})
    ):  # fmt: skip
        estimate(Poisson(0.5).draw(0, key(i)), [], **BOTH, **options)
    for i, design in enumerate((Proportional(0.5), Systematic(3))):
        estimate(design.draw(0, key(20 + i)), [], **BOTH)
    estimate(PoissonPPS(0.9, 0.5).draw(Population(0, probability=np.zeros(0)), key(30)), [], probability=[], **BOTH)
    nobody = Population(0, cluster=np.zeros(0, int))
    estimate(ClusterSampling(2, 4, 5).draw(nobody, key(31)), [], cluster=np.zeros(0, int), **BOTH)


def test_too_few_values_are_refused_whoever_was_drawn(key):
    """The refusal depended on whether a record at the end was drawn."""
    for i in range(20):
        for design in (Poisson(0.01), Proportional(0.1), Systematic(9)):
            with pytest.raises(InvalidInput, match="one number per record"):
                estimate(design.draw(8, key(i)), PLAIN[:7], **BOTH)


def test_no_message_shows_a_stratum_of_a_record(key):
    design = EVERYBODY["strata"][0]
    sample = design.draw(Population(8, stratum=STRATUM), key())
    with pytest.raises(InvalidInput) as caught:
        estimate(sample, PLAIN, stratum=["a", "secret town"] * 4, **BOTH)
    assert "secret" not in str(caught.value)
