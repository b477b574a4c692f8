"""Norms from products of positions are never below the truth, and what a backward pass no longer needs is let go."""

import math
import weakref

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (make test-torch)")

from torch import nn  # noqa: E402

from privamp.torch import precision  # noqa: E402
from privamp.torch.backward_pass import go_back, lowest  # noqa: E402
from privamp.torch.ghost import GradientRecorder  # noqa: E402
from privamp.torch.ghost_norms import same_rows_squares, squares_of  # noqa: E402
from privamp.torch.precision import norms_of, upper_norms  # noqa: E402
from privamp.torch.uses import Outer, measured  # noqa: E402

torch.set_num_threads(1)
edge_of = torch.autograd.graph.get_gradient_edge


def truth(a, b):
    return (b.double().transpose(1, 2) @ a.double()).flatten(1).norm(dim=1)


def positions(places, columns, seed=1):
    return torch.randn(6, places, columns, generator=torch.Generator().manual_seed(seed))


SHAPES = [(7, 100, 90), (65, 300, 300), (64, 300, 400), (50, 64, 64), (130, 200, 300), (3, 70_000, 8)]


@pytest.mark.parametrize(("places", "columns", "rows"), SHAPES)
def test_norms_are_close_to_the_truth_and_not_below(places, columns, rows):
    a, b = positions(places, columns), positions(places, rows, 2)
    found, exact = squares_of(a, b).sqrt(), truth(a, b)
    assert torch.all(found >= exact)
    assert torch.all(found <= exact * 1.01)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_norms_of_positions_that_cancel_are_not_below(kind):
    """The planted mistake is the same sum without its error: it is below the truth, or not a number."""
    a, b = positions(64, 400) * 30, positions(64, 300, 2)
    b[:, 1::2] = -b[:, ::2]
    a[:, 1::2] = a[:, ::2] * (1 + 1e-6 if kind == torch.float32 else 1 + 2**-8)
    a, b = a.to(kind), b.to(kind)
    exact = truth(a, b)
    bare = ((a.float() @ a.float().transpose(1, 2)) * (b.float() @ b.float().transpose(1, 2))).sum(dim=(1, 2)).sqrt()
    assert torch.all(squares_of(a, b).sqrt() >= exact)
    if kind == torch.float32:
        assert not torch.all(bare >= exact)


@pytest.mark.parametrize(("left", "right"), [(1e-25, 1e20), (1e-30, 1e-30), (1e22, 1e-30), (1e30, 1e30)])
def test_numbers_out_of_range_have_no_norm_that_is_too_small(left, right):
    a, b = positions(65, 300) * left, positions(65, 300, 2) * right
    assert torch.all(squares_of(a, b).sqrt() >= truth(a, b))
    small = squares_of(a[:, :, :64].contiguous(), b[:, :, :64].contiguous()).sqrt()
    assert torch.all(small >= truth(a[:, :, :64], b[:, :, :64]))


def test_norms_of_tables_are_not_below():
    ids = torch.randint(0, 9, (6, 65), generator=torch.Generator().manual_seed(3))
    b = positions(65, 40)
    exact = truth(nn.functional.one_hot(ids, 9), b)
    found = same_rows_squares(ids, b).sqrt()
    assert torch.all(found >= exact)
    assert torch.all(found <= exact * (1 + 1e-3))


def test_short_norms_are_never_below_the_long_ones():
    rows = torch.randn(60, 1280, generator=torch.Generator().manual_seed(1)) * torch.logspace(-30, 30, 60)[:, None]
    found, exact = upper_norms(rows), norms_of(rows)
    assert torch.all(found >= exact)
    assert torch.all((found <= exact * (1 + 1e-5) + 1e-15) | found.isinf())
    assert not found[:45].isinf().any()


def test_weighted_sums_in_halves_keep_to_the_norms():
    """bfloat16 as on CUDA: what rounding the weighted side adds to a record's part is in its norm."""
    a, b = positions(64, 300).bfloat16(), positions(64, 400, 2).bfloat16()
    found = measured([Outer(b, a)], (400, 300))
    for r in range(6):
        weights = torch.zeros(6)
        weights[r] = 1.0 / found.squares[r].sqrt()
        assert float(found.summed(weights).double().norm()) <= 1.0
    assert torch.all(found.squares.sqrt() <= truth(a, b) * (1 + 2**-4))


class Residual(nn.Module):
    """A norm and a layer around which there is a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.start, self.norm, self.layer = nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x):
        x = self.start(x)
        return x + self.layer(self.norm(x))


def test_only_the_lowest_outputs_are_kept_by_the_backward_pass():
    model = Residual()
    x = torch.randn(4, 5, 6)
    start = model.start(x)
    norm = model.norm(start)
    layer = model.layer(norm)
    edges = [edge_of(start), edge_of(norm), edge_of(layer)]
    assert lowest(edges) == [0]
    expected = torch.autograd.grad((start + layer).square().sum(), edges, retain_graph=True)
    found, order = {}, []
    go_back((start + layer).square().sum(), edges, lambda at, back: (found.update({at: back}), order.append(at)))
    assert order == [2, 1, 0]
    assert all(torch.equal(found[at], expected[at]) for at in range(3))
    assert all(p.grad is None for p in model.parameters())


def test_two_outputs_of_one_node_and_outputs_without_a_loss():
    x = torch.randn(3, 4, requires_grad=True)
    one, two = (x * 2).unbind(0)[:2]
    unused = (x * 3).sum(dim=1)
    edges = [edge_of(one), edge_of(two), edge_of(unused)]
    found = {}
    go_back((one * two).sum(), edges, lambda at, back: found.update({at: back}))
    assert torch.equal(found[0], two)
    assert torch.equal(found[1], one)
    assert found[2] is None


def test_derivatives_that_no_sum_needs_are_let_go_during_the_pass():
    """When the first layer is reached, the derivative of the norm's output is gone."""
    model, seen = Residual(), []
    recorder = GradientRecorder(model)
    recorder.listen(4)
    losses = model(torch.randn(4, 5, 6)).square().sum(dim=(1, 2))
    alive = []
    for call in recorder._calls:
        parts = call.parts

        def watched(a, back, parts=parts, name=call.name):
            alive.append((name, [ref() is not None for ref in seen]))
            if name == "norm":
                seen.append(weakref.ref(back))
            return parts(a, back)

        call.parts = watched
    recorded = recorder.measure(losses)
    assert [name for name, _ in alive] == ["layer", "norm", "start"]
    assert alive[-1][1] == [False]
    assert all(math.isfinite(norm) for norm in recorded.norms.tolist())


def test_what_autocast_computes_in_halves_is_kept_so_on_cuda(monkeypatch):
    """On a CPU it is widened. Kept in bfloat16, norms are larger by what rounding may add, and sums are so rounded."""
    torch.manual_seed(1)
    model, x = nn.Sequential(nn.Linear(64, 300), nn.GELU(), nn.Linear(300, 300)), torch.randn(6, 70, 64)
    recorder = GradientRecorder(model)

    def recorded():
        recorder.listen(6)
        with torch.autocast("cpu", torch.bfloat16):
            found = recorder.measure(model(x).float().square().mean(dim=(1, 2)))
        weights = 1.0 / found.norms
        return found.norms, torch.cat(
            [g.flatten() for _, g in sorted(found.weighted(weights), key=lambda p: p[1].shape)]
        )

    norms, sums = recorded()
    monkeypatch.setattr("privamp.torch.ghost.is_kept", lambda values: values.dtype == torch.bfloat16)
    kept_norms, kept_sums = recorded()
    assert torch.all(kept_norms >= norms)
    assert torch.all(kept_norms <= norms * 1.05)
    assert 0 < float((kept_sums - sums).norm()) <= 0.02 * float(sums.norm())


def test_many_numbers_on_a_gpu_are_not_copied_in_double_precision(monkeypatch):
    class OnGPU:
        device = torch.device("cuda")

        def __init__(self, count):
            self.numel = lambda: count

    monkeypatch.setattr(precision, "upper_norms", lambda values: "upper")
    monkeypatch.setattr(precision, "norms_of", lambda values: "double")
    assert [precision.written_norms(OnGPU(count)) for count in (2**22, 2**22 + 1)] == ["double", "upper"]
    assert precision.written_norms(torch.empty(2**22 + 1)) == "double"
