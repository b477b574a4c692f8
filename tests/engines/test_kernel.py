"""One kernel: the sample of `Design.draw`, whatever the batches, their order and the machine."""

import pickle

import numpy as np
import pyarrow as pa
import pytest

from privamp import (
    ClusterSampling,
    ConditionalPoisson,
    Gaussian,
    GaussianProfile,
    ImportanceSampling,
    Laplace,
    LinearProfile,
    MultiStage,
    Named,
    NormNoise,
    Poisson,
    PoissonPPS,
    Population,
    Proportional,
    Stratified,
    Systematic,
    WithoutReplacement,
    WithReplacement,
    privacy_constrained,
)
from privamp.core.influence import clipped
from privamp.engines.kernel import COUNT, WEIGHT, Kernel
from privamp.errors import InvalidInput
from privamp.testing import seeded_key

N = 1500
KEY = seeded_key(3)
RNG = np.random.default_rng(0)
IDS = RNG.permutation(10 * N)[:N].astype(np.uint64)
X = clipped(RNG.normal(size=(N, 2)), 3.9)
FACTS = {
    "stratum": np.where(IDS % 2 == 0, "a", "b"),
    "cluster": (IDS % 50).astype(np.int64),
    "probability": RNG.uniform(0, 0.5, N),
    "odds": RNG.uniform(1, 3, N),
    "size": RNG.uniform(1, 3, N),
}
EVEN = int(np.sum(FACTS["stratum"] == "a"))
RULES = {
    "l2": privacy_constrained(LinearProfile.of(NormNoise(10.0, 2)), 1.0, radius=4.0),
    "l1": privacy_constrained(LinearProfile.of(Laplace(10.0)), 1.0, radius=6.0),
    "gaussian": privacy_constrained(GaussianProfile.of(Gaussian(20.0)), 1.0, 1e-5, radius=4.0),
    "any function": privacy_constrained(
        LinearProfile(Named("first column", "1", lambda x: 0.02 + 0.01 * np.abs(x[:, 0]))), 1.0
    ),
}
STREAMING = [
    Poisson(0.1),
    PoissonPPS(0.5),
    Stratified({"a": Poisson(0.1), "b": Poisson(0.5)}),
    *(ImportanceSampling(rule, "u+v") for rule in RULES.values()),
]
TWO_PASSES = [
    WithoutReplacement(100, N),
    WithReplacement(300, N),
    MultiStage((("wor", 200), ("wr", 300)), N),
    ConditionalPoisson(90, N, 1.0, 3.0),
    ClusterSampling(5, 50, 60),
    Systematic(7),
    Systematic(4, "slots", N),
    Proportional(0.1),
    Stratified({"a": WithoutReplacement(20, EVEN), "b": Poisson(0.5)}),
]
DESIGNS = [*STREAMING, *TWO_PASSES]


def name(design):
    return type(design).__name__


def table(ids) -> pa.Table:
    return pa.table({"id": ids, "u": X[:, 0], "v": X[:, 1], **FACTS})


def in_memory(design, ids, key=KEY):
    known = {"u+v": X, **FACTS}
    columns = {column: known[column] for column in design.reads}
    drawn = design.draw(Population(ids, "people", **columns), key, round=2).reveal_secret()
    return set(zip(ids[drawn.positions].tolist(), drawn.counts.tolist(), drawn.weights.tolist(), strict=True))


def rows(*batches):
    found = pa.Table.from_batches(batches)
    return set(zip(*(found[column].to_pylist() for column in ("id", COUNT, WEIGHT)), strict=True))


def shuffled(ids, size):
    order = np.random.default_rng(size).permutation(N)
    return table(ids).take(pa.array(order)).combine_chunks().to_batches(max_chunksize=size)


@pytest.mark.parametrize("ids", [IDS, IDS.astype(str)], ids=["whole", "text"])
@pytest.mark.parametrize("design", DESIGNS, ids=name)
def test_any_order_and_any_batches_give_the_sample_drawn_in_memory(design, ids):
    if getattr(design, "order", None) == "slots" and ids is not IDS:
        pytest.skip("slots are made of whole numbers")
    expected = in_memory(design, ids)
    kernel = Kernel.of(design, KEY, id="id", label="people", round=2)
    assert kernel.streams == (design in STREAMING)
    for size in (97, N):
        batches = shuffled(ids, size)
        parts = [pickle.loads(pickle.dumps(kernel.partial(batch))) for batch in batches]
        chosen = kernel.finish(kernel.folded(reversed(parts), width=3))
        found = [kernel.chosen(batch, chosen) for batch in batches]
        assert rows(*found) == expected
        chosen.check(sum(batch.num_rows for batch in found))
        if kernel.streams:
            assert rows(*(kernel.kept(batch) for batch in batches)) == expected
    assert expected


@pytest.mark.parametrize("design", DESIGNS, ids=name)
def test_rows_may_go_by_their_place(design):
    expected = in_memory(design, IDS)
    kernel = Kernel.of(design, KEY, id="id", label="people", round=2)
    starts, batches = range(0, N, 130), table(IDS).combine_chunks().to_batches(max_chunksize=130)
    parts = [kernel.partial(batch, start) for start, batch in zip(starts, batches, strict=True)]
    chosen = kernel.finish(kernel.folded(parts))
    found = [kernel.chosen(batch, chosen, start) for start, batch in zip(starts, batches, strict=True)]
    assert rows(*found) == expected


def test_places_as_ids_do_not_survive_a_new_order():
    """The control: without an id column another order is another sample, so the test above has teeth."""
    kernel = Kernel.of(Poisson(0.1), KEY, label="people", round=2)
    straight, mixed = table(IDS).combine_chunks().to_batches()[0], shuffled(IDS, N)[0]
    assert rows(kernel.kept(straight)) != rows(kernel.kept(mixed))
    assert rows(kernel.kept(straight)) == {(int(IDS[k]), 1, 1.0) for k in Poisson(0.1).draw(
        Population(N, "people"), KEY, round=2).reveal_secret().positions}  # fmt: skip


def test_workers_get_the_kernel_on_purpose_only():
    kernel = Kernel.of(STREAMING[3], KEY, id="id", label="people", round=2)
    with pytest.raises(InvalidInput, match="secret"):
        pickle.dumps(kernel)
    again = Kernel.from_secret_bytes(kernel.secret_bytes())
    batch = shuffled(IDS, N)[0]
    assert again.kept(batch).equals(kernel.kept(batch))
    assert again.subkey.is_test
    assert "subkey" not in repr(kernel)


@pytest.mark.parametrize("rule", [RULES["l2"], RULES["l1"], RULES["gaussian"]], ids=["l2", "l1", "gaussian"])
def test_norms_stand_for_records(rule):
    """The engine hands the design norms instead of rows; the rows themselves decide the same."""
    design = ImportanceSampling(rule, "u+v")
    kernel = Kernel.of(design, KEY, id="id")
    far = clipped(RNG.normal(size=(N, 2)) * 100, 3.999)
    batch = pa.record_batch({"id": IDS, "u": far[:, 0], "v": far[:, 1]})
    positions, weights, _ = design.partial(Population(IDS, **{"u+v": far}).batch(), kernel.subkey)
    kept = kernel.kept(batch)
    assert kept["id"].to_pylist() == IDS[positions].tolist()
    assert kept[WEIGHT].to_pylist() == weights.tolist()


def test_records_outside_the_ball_decide_as_if_clipped():
    """They used to be refused, which told that they were there."""
    design = ImportanceSampling(RULES["l2"], "u+v")
    batch = pa.record_batch({"id": IDS, "u": 5 * X[:, 0], "v": 5 * X[:, 1]})
    kept = Kernel.of(design, KEY, id="id").kept(batch)
    assert kept == Kernel.of(design, KEY, id="id", clip=True).kept(batch)
    least = RULES["l2"].weights_of_norms([4.0])[0]
    assert min(kept[WEIGHT].to_pylist()) >= least
    far = np.hypot(*(kept[column].to_numpy() for column in "uv")) >= 4
    assert set(np.array(kept[WEIGHT])[far]) == {least}
    odd = pa.record_batch({"id": IDS, "u": np.full(N, np.nan), "v": np.full(N, np.inf)})  # counts as (0, largest)
    assert set(Kernel.of(design, KEY, id="id", clip=True).kept(odd)[WEIGHT].to_pylist()) == {least}
    with pytest.raises(InvalidInput, match="clip=True is only for importance"):
        Kernel.of(Poisson(0.1), KEY, clip=True)


def test_columns_may_have_other_names():
    design, renamed = TWO_PASSES[4], shuffled(IDS, N)[0].rename_columns(["id", "u", "v", "s", "group", "p", "o", "z"])
    kernel = Kernel.of(design, KEY, id="id", label="people", round=2, reads={"cluster": "group"})
    assert kernel.uses == ("id", "group")
    assert rows(kernel.chosen(renamed, kernel.finish(kernel.partial(renamed)))) == in_memory(design, IDS)
    with pytest.raises(InvalidInput, match="reads cluster, not 'group'"):
        Kernel.of(design, KEY, reads={"group": "cluster"})


@pytest.mark.parametrize(
    ("column", "part"),
    [
        (pa.array([1, None, 3, None]), "has missing ids"),
        (pa.array(["a", None, "c", "d"]), "has missing ids"),
        (pa.array([1, -2, 3, 4]), "has negative ids"),
        (pa.array([1.0, 2.0, 3.0, 4.0]), "whole numbers or text"),
    ],
)
def test_bad_ids_are_counted_never_shown(column, part):
    batch = pa.record_batch({"id": column})
    kernel = Kernel.of(Poisson(0.5), KEY, id="id")

    def both():
        kernel.schema(batch.schema)
        kernel.kept(batch)

    with pytest.raises(InvalidInput, match=part):
        both()


def test_the_source_must_have_what_is_needed():
    kernel = Kernel.of(Poisson(0.5), KEY, id="id")
    with pytest.raises(InvalidInput, match="no column 'id'; it has 'x'"):
        kernel.schema(pa.schema([("x", pa.int64())]))
    with pytest.raises(InvalidInput, match="'privamp_weight' already"):
        kernel.schema(pa.schema([("id", pa.int64()), (WEIGHT, pa.float64())]))
    with pytest.raises(InvalidInput, match="use two passes"):
        Kernel.of(WithoutReplacement(1, 2), KEY).kept(pa.record_batch({"id": [1, 2]}))


@pytest.mark.parametrize("labels", [["a", None, "z", "b"], [1, None, 7, 2**53 + 1]])
def test_records_in_no_stratum_of_the_design_are_never_drawn(labels):
    """They were refused here and never drawn on Spark; a missing whole number made doubles of all labels."""
    design = Stratified({labels[0]: Poisson(1.0), labels[3]: Poisson(1.0)})
    batch = pa.record_batch({"id": [1, 2, 3, 4], "stratum": labels})
    assert Kernel.of(design, KEY, id="id").kept(batch).column("id").to_pylist() == [1, 4]


@pytest.mark.parametrize(
    ("design", "labels"),
    [
        (ClusterSampling(2, 2, 3), [0, None, 7, 1]),
        (ClusterSampling(2, 2, 3, labels=("a", "b")), ["a", None, "z", "b"]),
        (ClusterSampling(2, 2, 3, labels=("1", "2")), [1, None, 7, 2]),
    ],
)
def test_records_in_no_cluster_of_the_design_are_never_drawn(design, labels):
    """They were refused here and never drawn on Spark."""
    batch = pa.record_batch({"id": [1, 2, 3, 4], "cluster": labels})
    kernel = Kernel.of(design, KEY, id="id")
    drawn = kernel.finish(kernel.merge([kernel.partial(batch)]))
    assert kernel.chosen(batch, drawn).column("id").to_pylist() == [1, 4]


def test_a_column_of_text_for_numbered_clusters_is_refused_by_its_type():
    kernel = Kernel.of(ClusterSampling(1, 2, 3), KEY, id="id")
    with pytest.raises(InvalidInput, match="must hold whole numbers"):
        kernel.partial(pa.record_batch({"id": [1], "cluster": ["a"]}))


def test_a_missing_number_is_cut_to_the_declared_range():
    kernel, ids = Kernel.of(PoissonPPS(0.5, 0.25), KEY, id="id"), list(range(200))
    missing, low = ([0.4] * 100 + [value] * 100 for value in (None, 0.25))
    kept = [kernel.kept(pa.record_batch({"id": ids, "probability": column})).column("id") for column in (missing, low)]
    assert kept[0].equals(kept[1])


def test_a_second_pass_that_misses_rows_is_noticed():
    kernel = Kernel.of(WithoutReplacement(10, N), KEY, id="id")
    batch = shuffled(IDS, N)[0]
    chosen = kernel.finish(kernel.partial(batch))
    found = kernel.chosen(batch.slice(0, N // 2), chosen)
    with pytest.raises(InvalidInput, match="did not find the rows"):
        chosen.check(found.num_rows)
    assert "tickets" not in repr(chosen)


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_text_ids_of_every_arrow_type_are_the_same_ids(kind):
    kernel = Kernel.of(Poisson(0.3), KEY, id="id")
    texts = pa.array([f"p{k}" for k in range(200)])
    other = texts.dictionary_encode() if pa.types.is_dictionary(kind) else texts.cast(kind)
    kernel.schema(pa.schema([("id", other.type)]))
    kept = kernel.kept(pa.record_batch({"id": other}))
    assert kept["id"].to_pylist() == kernel.kept(pa.record_batch({"id": texts}))["id"].to_pylist()
    assert 0 < kept.num_rows < 200


def test_without_a_radius_records_are_clipped_to_where_they_need_no_sampling():
    design = ImportanceSampling(privacy_constrained(LinearProfile.of(Laplace(10.0)), 1.0), "u")
    batch = pa.record_batch({"id": range(20), "u": [11.0] * 20})
    assert Kernel.of(design, KEY, id="id").kept(batch)[WEIGHT].to_pylist() == [1.0] * 20
    with pytest.raises(InvalidInput, match="were clipped to 10 in the 1-norm"):
        Kernel.of(design, KEY, id="id").check_sum(["u"], 11.0, 1.0)


def test_a_function_of_ones_own_cannot_be_sent_unnoticed():
    kernel = Kernel.of(ImportanceSampling(RULES["any function"], "u"), KEY)
    with pytest.raises(InvalidInput, match="cannot be sent to workers"):
        kernel.secret_bytes()
