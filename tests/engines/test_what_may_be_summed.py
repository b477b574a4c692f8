"""Weights hide what the importance rule looked at and nothing else: other sums are refused."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from privamp import (
    ExactGaussian,
    ExactLaplace,
    ImportanceSampling,
    InvalidInput,
    LinearProfile,
    Poisson,
    Stratified,
    privacy_constrained,
)
from privamp.engines import local
from privamp.testing import seeded_key

NOISE = ExactLaplace(scale=20.0, sensitivity=4.0)
RULE = privacy_constrained(LinearProfile.of(NOISE), epsilon=1.0, radius=4.0)
LONGER = (
    "what a record adds to a release, before its weight, is no longer than the record that the rule looked at, "
    "clipped to the rule's radius"
)
DESIGN = ImportanceSampling(RULE, "a+b")


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=500) * 0.7 for name in ("a", "b", "income")}
    parquet.write_table(pa.table({"person": np.arange(500), **columns}), tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


def test_another_column_would_void_the_guarantee():
    """A record of norm 0.01 in what the rule sees gets a weight that lets 4 in another column show far beyond 1."""
    (weight,) = RULE.weights(np.array([[0.01, 0.0]]))
    (chance,) = RULE.probabilities(np.array([[0.01, 0.0]]))
    assert np.log1p(chance * np.expm1(weight * 0.01 / NOISE.scale)) <= 1.0
    assert np.log(chance) + weight * 4.0 / NOISE.scale > 1000.0


def test_only_what_the_rule_looked_at_is_summed(people, tmp_path):
    sample = local.draw(people, DESIGN, key=seeded_key(70), id="person", clip=True)
    sample.release_sum(NOISE, ["a"])  # part of it is no longer than all of it
    for columns in ("income", ["a", "income"], ["a", "a"]):
        with pytest.raises(InvalidInput, match=r"'a', 'b'.* each once"):
            sample.release_sum(NOISE, columns)
    with pytest.raises(InvalidInput, match="clip them at least as much, got 8 in the 1-norm"):
        sample.release_sum(ExactLaplace(scale=20.0, sensitivity=8.0), ["a", "b"])
    with pytest.raises(InvalidInput, match="in the 2-norm"):
        sample.release_sum(ExactGaussian(sigma=20.0, sensitivity=4.0), ["a", "b"])
    assert len(sample.ledger.entries) == 1


def test_a_stored_sample_remembers_what_was_looked_at(people, tmp_path):
    design = ImportanceSampling(RULE)
    options = {"key": seeded_key(71), "id": "person", "clip": True, "reads": {"x": ["a", "b"]}}
    local.write(people, design, tmp_path / "sample.parquet", **options)
    again = local.open_sample(tmp_path / "sample.parquet", design, key=seeded_key(71))
    again.release_sum(NOISE, ["a", "b"])
    with pytest.raises(InvalidInput, match="certified only for sums of the columns"):
        again.release_sum(NOISE, "income")


def test_designs_without_weights_sum_anything(people):
    local.draw(people, Poisson(0.5), key=seeded_key(72), id="person").release_sum(NOISE, "income")


def test_every_stratum_has_its_own_rule(people):
    design = Stratified({0: DESIGN, 1: ImportanceSampling(RULE, "b")})
    table = parquet.read_table(people)
    table = table.append_column("stratum", pa.array(np.arange(500) % 2))
    sample = local.draw(table, design, key=seeded_key(74), id="person")
    sample.release_sum(NOISE, "b")
    with pytest.raises(InvalidInput, match=r"reads \('b'\)"):
        sample.release_sum(NOISE, "a")
    assert LONGER in sample.guarantee().assumes
