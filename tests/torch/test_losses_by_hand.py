"""One loss per record, however a criterion or a model adds them up; and what made-up records are, part by part."""

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from privamp.errors import InvalidInput  # noqa: E402
from privamp.torch import grid, layers, made_up, wider  # noqa: E402
from privamp.torch.learner import PrivateCriterion, PrivateLoss, _is_below  # noqa: E402
from privamp.torch.own_losses import OwnLosses, found_in, put_into, require_one_each  # noqa: E402
from privamp.torch.uses import Outer, Rows, Written  # noqa: E402

RECORDS, PLACES, CLASSES = 4, 3, 5


def own_losses(records):
    """In a first pass, where any number of rows is as it should be."""
    return OwnLosses(records, lambda at, rows: rows)


def tensors(seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(RECORDS, PLACES, CLASSES, generator=generator, dtype=torch.float64)
    return scores, torch.randint(0, CLASSES, (RECORDS, PLACES), generator=generator)


def criterion_of(criterion, records=RECORDS):
    return PrivateCriterion(criterion, SimpleNamespace(recorder=SimpleNamespace(expected=records), is_waiting=True))


# --- a model's own loss


@pytest.mark.parametrize("how", ["mean", "sum"])
@pytest.mark.parametrize("weight", [None, torch.tensor([1.0, 2.0, 0.5, 3.0, 0.25], dtype=torch.float64)])
def test_a_models_own_cross_entropy_is_one_per_record(how, weight):
    """That of each record's places alone; those with the label to ignore do not count."""
    scores, labels = tensors()
    labels[1, 2] = labels[3, 0] = -100
    with own_losses(RECORDS):
        found = functional.cross_entropy(scores.flatten(0, 1), labels.flatten(), weight=weight, reduction=how)
    alone = [functional.cross_entropy(s, y, weight=weight, reduction=how) for s, y in zip(scores, labels, strict=True)]
    torch.testing.assert_close(found, torch.stack(alone))


def test_a_record_with_a_label_that_is_no_class_has_the_loss_0():
    scores, labels = tensors()
    labels[0, 1], labels[2, 2] = CLASSES, -1
    labels[3] = torch.tensor([0, CLASSES - 1, -100])
    with own_losses(RECORDS):
        found = functional.cross_entropy(scores.flatten(0, 1), labels.flatten())
    assert found[[0, 2]].tolist() == [0.0, 0.0]
    for at in (1, 3):
        torch.testing.assert_close(found[at], functional.cross_entropy(scores[at], labels[at]))


def test_a_record_all_of_whose_labels_are_ignored_has_the_loss_0():
    scores, labels = tensors()
    labels[1] = -100
    with own_losses(RECORDS):
        found = functional.cross_entropy(scores.flatten(0, 1), labels.flatten())
    assert found[1] == 0.0


def test_probabilities_and_losses_of_numbers_are_averaged_by_record():
    scores, _ = tensors()
    shares = torch.softmax(tensors(1)[0], dim=2)
    with own_losses(RECORDS):
        soft = functional.cross_entropy(scores.flatten(0, 1), shares.flatten(0, 1))
        square = functional.mse_loss(scores, shares)
        added = functional.l1_loss(scores, shares, reduction="sum")
        whole = functional.mse_loss(scores, shares, reduction="none")
    each = [functional.cross_entropy(s, p) for s, p in zip(scores, shares, strict=True)]
    torch.testing.assert_close(soft, torch.stack(each))
    torch.testing.assert_close(square, (scores - shares).square().flatten(1).mean(dim=1))
    torch.testing.assert_close(added, (scores - shares).abs().flatten(1).sum(dim=1))
    assert whole.shape == scores.shape


def test_one_record_whose_loss_is_a_number():
    with own_losses(1):
        found = functional.mse_loss(torch.tensor(3.0), torch.tensor(1.0))
    assert found.tolist() == [4.0]


def test_rows_that_do_not_divide_into_records_are_refused():
    with own_losses(RECORDS), pytest.raises(InvalidInput, match="over 6 rows"):
        functional.mse_loss(torch.zeros(6), torch.ones(6))


def test_where_a_model_has_its_loss():
    one, rest = torch.zeros(3), torch.ones(3, 2)
    told = SimpleNamespace(loss=one, logits=rest)
    assert found_in({"loss": one}) is one
    assert found_in({"logits": rest}) is None
    assert found_in(told) is one
    assert found_in((one, rest)) is one
    assert found_in([one]) is one
    assert found_in(one) is one
    assert found_in(()) is None
    assert found_in((rest, one)) is None  # the first has two dimensions
    two = torch.ones(3)
    assert put_into({"loss": one, "a": 1}, two) == {"loss": two, "a": 1}
    assert put_into(told, two).loss is two
    assert put_into((one, rest), two) == (two, rest)
    assert put_into(one, two) is two
    require_one_each(one, 3)
    for wrong in (one, rest, None):
        with pytest.raises(InvalidInput, match="no loss per record"):
            require_one_each(wrong, 2)


# --- a criterion


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_flattened_batch_has_one_loss_per_record(reduction):
    scores, labels = tensors()
    labels[1, 2] = -100
    found = criterion_of(nn.CrossEntropyLoss(reduction=reduction)).losses(scores.flatten(0, 1), labels.flatten())
    alone = [functional.cross_entropy(s, y, reduction=reduction) for s, y in zip(scores, labels, strict=True)]
    torch.testing.assert_close(found, torch.stack(alone))


def test_classes_may_stand_last():
    scores, labels = tensors()
    found = criterion_of(nn.CrossEntropyLoss()).losses(scores, labels)
    alone = [functional.cross_entropy(s, y) for s, y in zip(scores, labels, strict=True)]
    torch.testing.assert_close(found, torch.stack(alone))


def test_numbers_of_places_are_averaged():
    scores, _ = tensors()
    other = tensors(2)[0]
    flat = criterion_of(nn.MSELoss()).losses(scores.flatten(0, 1), other.flatten(0, 1))
    torch.testing.assert_close(flat, (scores - other).square().flatten(1).mean(dim=1))
    added = criterion_of(nn.MSELoss(reduction="sum")).losses(scores, other)
    torch.testing.assert_close(added, (scores - other).square().flatten(1).sum(dim=1))


def test_a_criterion_that_gives_one_number_is_refused():
    scores, labels = tensors()

    def mean(output, target):
        return functional.cross_entropy(output, target)

    for output, target in ((scores.flatten(0, 1), labels.flatten()), (scores[:, 0], labels[:, 0])):
        with pytest.raises(InvalidInput, match="one loss per record"):
            criterion_of(mean).losses(output, target)
    for output in (torch.tensor(1.0), "text"):
        with pytest.raises(InvalidInput, match="as one tensor"):
            criterion_of(mean).losses(output, labels)


def test_records_whose_loss_fails_have_the_loss_0():
    """An own function, whose labels are not looked at beforehand."""
    scores, labels = tensors()
    bad = labels[:, 0].clone()
    bad[1], bad[3] = CLASSES, -1
    found = criterion_of(lambda o, t: functional.cross_entropy(o, t, reduction="none")).losses(scores[:, 0], bad)
    assert found[[1, 3]].tolist() == [0.0, 0.0]
    expected = functional.cross_entropy(scores[:, 0], labels[:, 0], reduction="none")
    torch.testing.assert_close(found[[0, 2]], expected[[0, 2]])
    bad[:] = CLASSES
    found = criterion_of(lambda o, t: functional.cross_entropy(o, t, reduction="none")).losses(scores[:, 0], bad)
    assert found.tolist() == [0.0] * RECORDS
    with pytest.raises(InvalidInput, match="numbers of these shapes"):
        criterion_of(lambda o, t: o @ o).losses(scores[:, 0], labels[:, 0])


def test_labels_are_below_the_number_of_classes():
    for dtype in (torch.int64, torch.int32, torch.uint8):
        labels = torch.tensor([0, 1, 4, 5, 200]).to(dtype)
        assert _is_below(labels, 5).tolist() == [True, True, True, False, False]
    assert _is_below(torch.tensor([-1, 0]), 5).tolist() == [False, True]
    assert _is_below(torch.tensor([-1, 0]), 0).tolist() == [False, False]


def test_a_criterion_says_what_it_ignores():
    assert criterion_of(nn.CrossEntropyLoss(ignore_index=7)).ignored(-100) == 7
    assert criterion_of(nn.MSELoss()).ignored(-100) == -100


def test_private_losses_are_scaled_and_added():
    run = SimpleNamespace()
    one = PrivateLoss(torch.tensor([1.0, 3.0]), run)
    other = PrivateLoss(torch.tensor([10.0, 20.0]), run)
    found = 2.0 * one - other / 4.0 + 1.0
    assert found.losses.tolist() == [0.5, 2.0]
    assert found._scales == (2.0, -0.25)
    assert (5.0 - one).losses.tolist() == [4.0, 2.0]
    assert float(one) == 2.0
    assert PrivateLoss(torch.zeros(0), run).item() == 0.0
    assert f"{one:.1f}" == "2.0"
    assert f"{one}" == "PrivateLoss(secret)"
    with pytest.raises(InvalidInput, match="other than 0"):
        one / 0.0
    with pytest.raises(InvalidInput, match="numbers only"):
        one + PrivateLoss(torch.zeros(3), run)


# --- layers


def gradients(parts, parameter):
    return sum(part.use.written(parameter.shape) for part in parts if part.parameter is parameter)


@pytest.mark.parametrize("shape", [(6, 4), (6, 3, 4)])
def test_a_linear_layer_that_is_stored_the_other_way(shape):
    """Its weight is (in, out): the gradient of record i is sum over places of x ⊗ dy."""
    x, back = torch.randn(shape, dtype=torch.float64), torch.randn(*shape[:-1], 2, dtype=torch.float64)
    layer = SimpleNamespace(weight=nn.Parameter(torch.zeros(4, 2)), bias=nn.Parameter(torch.zeros(2)))
    parts = layers._transposed_linear(layer, x, back)
    wide, deep = x.reshape(6, -1, 4), back.reshape(6, -1, 2)
    torch.testing.assert_close(gradients(parts, layer.weight), torch.einsum("rti,rto->rio", wide, deep))
    torch.testing.assert_close(gradients(parts, layer.bias), deep.sum(dim=1))
    assert {type(part.use) for part in parts} == {Outer, Written}


def test_padding_words_have_no_gradient():
    layer = nn.Embedding(5, 2, padding_idx=3)
    ids, back = torch.tensor([[1, 3, 1], [0, 4, 3]]), torch.arange(12.0).reshape(2, 3, 2)
    (part,) = layers._embedding(layer, ids, back)
    assert isinstance(part.use, Rows)
    found = part.use.written((5, 2))
    assert found[0, 1].tolist() == [0.0 + 4.0, 1.0 + 5.0]
    assert not found[:, 3].any()
    assert found[1, 0].tolist() == [6.0, 7.0]
    torch.testing.assert_close(part.use.as_outer(5).written((5, 2)), found)


# --- made-up records


BATCH = {"x": torch.zeros(4, 2), "more": [torch.ones(4, dtype=torch.int64), "name"]}


def test_parts_of_a_batch():
    assert made_up.length(BATCH) == 4
    assert made_up.length([torch.tensor(3.0), torch.zeros(2, 1)]) == 2  # a number has no records
    assert made_up.length("name") == made_up.length([]) == 0
    assert not made_up.only_tensors(BATCH)
    assert not made_up.only_tensors([torch.zeros(1), "name"])
    assert not made_up.only_tensors({"a": "name", "b": torch.zeros(1)})
    assert made_up.only_tensors({"a": [torch.zeros(1)], "b": torch.zeros(1)})
    assert made_up.is_one_row([torch.zeros(1, 2), {"a": torch.zeros(1)}])
    assert not made_up.is_one_row([torch.zeros(1, 2), torch.zeros(2)])
    assert not made_up.is_one_row("name")
    assert made_up.shapes(BATCH) == (("more", (("torch.int64",),)), ("x", (2, "torch.float32")))
    assert made_up.shapes("name") is None


def test_made_up_records_have_the_shapes_of_real_ones_and_other_values():
    found = made_up.like(BATCH, 7)
    assert found["x"].shape == (7, 2)
    assert found["x"].dtype == torch.float32
    assert bool(((found["x"] > 0) & (found["x"] < 1)).all())
    assert found["more"][0].shape == (7,)
    assert set(found["more"][0].tolist()) <= {0, 1}
    assert found["more"][1] == "name"
    assert torch.equal(made_up.like(BATCH, 7)["x"], found["x"])


def test_some_rows_and_batches_that_are_joined():
    batch = {"x": torch.arange(8.0).reshape(4, 2), "more": [torch.arange(4), "name"], "one": torch.tensor(5.0)}
    some = made_up.rows(batch, torch.tensor([3, 1]))
    assert some["x"].tolist() == [[6.0, 7.0], [2.0, 3.0]]
    assert some["more"][0].tolist() == [3, 1]
    assert some["one"] == 5.0
    assert made_up.rows(batch, slice(1, 2))["x"].tolist() == [[2.0, 3.0]]
    del batch["one"], some["one"]
    both = made_up.joined([batch, some])
    assert both["x"].shape == (6, 2)
    assert both["more"][0].tolist() == [0, 1, 2, 3, 3, 1]
    assert both["more"][1] == "name"


@pytest.mark.parametrize(
    "batch", [[torch.zeros(5, 2), torch.arange(5)], {"x": torch.zeros(5, 2), "labels": torch.arange(5)}]
)
def test_labels_of_all_but_the_first_two_records_are_ignored(batch):
    run = SimpleNamespace(criterion=criterion_of(nn.CrossEntropyLoss(ignore_index=9)))
    found = wider._with_ignored(run, batch)
    labels = found["labels"] if isinstance(batch, dict) else found[-1]
    assert labels.tolist() == [0, 1, 9, 9, 9]
    assert (batch["labels"] if isinstance(batch, dict) else batch[-1]).tolist() == [0, 1, 2, 3, 4]


def test_a_batch_without_labels_has_none_to_ignore():
    run = SimpleNamespace(criterion=criterion_of(nn.CrossEntropyLoss()))
    for batch in ({"x": torch.zeros(5)}, [torch.zeros(5)], torch.arange(5), [torch.arange(5), torch.zeros(5)]):
        assert wider._with_ignored(run, batch) is None
    assert wider._with_ignored(run, (torch.zeros(3), torch.arange(3, dtype=torch.int32)))[-1].tolist() == [0, 1, -100]


def test_values_on_both_sides_of_0_and_of_several_classes():
    spread = wider._spread(torch.zeros(1000))
    assert spread.min() < -10.0
    assert spread.max() > 10.0
    assert torch.equal(wider._spread(torch.arange(3)), torch.arange(3))
    assert set(wider._whole(torch.zeros(1000, dtype=torch.int64), 5).tolist()) == {0, 1, 2, 3, 4}
    assert torch.equal(wider._whole(torch.zeros(3), 5), torch.zeros(3))
    assert wider._has([torch.zeros(1), {"a": torch.arange(2)}], wider._is_whole)
    assert not wider._has([torch.zeros(1), torch.zeros(1, dtype=torch.bool)], wider._is_whole)


# --- noise on its grid


def test_one_pass_over_each_block_is_the_sum_and_the_noise(monkeypatch):
    """Parameters with and without a sum, across blocks, by a plain function in the place of the compiled one."""

    def added(coarse, fine, share, values, per_unit, largest, scale, out):
        noise = np.floor((coarse.astype(np.float64) * 256.0 + fine) * share)
        assert values.shape == out.shape
        out[:] = (noise + np.clip(np.rint(values * per_unit), -largest, largest)) * scale

    def blocks(stream, count):
        for start in range(0, count, 7):
            at = np.arange(start, min(start + 7, count))
            yield start, (3 * at - 20).astype(np.int32), (at % 5).astype(np.uint8)

    monkeypatch.setattr(grid, "compiled_sum", lambda: added)
    monkeypatch.setattr(grid, "normal_blocks", blocks)
    sums = [(4, None), (9, torch.arange(9.0)), (6, None)]
    found = grid._compiled(None, sums, torch.float64, 0.5, 0.25, 2.0)
    at = np.arange(19)
    values = np.concatenate([np.zeros(4), np.arange(9.0), np.zeros(6)])
    expected = (np.floor(((3 * at - 20) * 256.0 + at % 5) * 0.5) + np.rint(values * 4.0)) * 2.0
    assert found.tolist() == expected.tolist()
    assert grid._compiled(None, [(3, None)], torch.float32, 1.0, 1.0, 1.0).dtype == torch.float32
