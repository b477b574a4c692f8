"""Check once, on made-up records and before a real one is drawn, that the model keeps records separate.

    alone       a record's loss alone equals its loss in a batch, and does not change with the others
    rows        the derivative of record r's loss with respect to every layer's output is exactly 0 outside row r
    gradients   norms and weighted sums are those of autograd, for every trainable parameter

A broadcasting loss fails the first, a time-first model the second, a layer whose parameters are used elsewhere the
third. A passed check is evidence, not proof: that records stay apart remains an assumption of the guarantee.
"""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from ..errors import InvalidInput
from . import made_up, measuring
from .backward_pass import above
from .precision import is_autocast
from .seeding import reading, seed_of

if TYPE_CHECKING:
    from .run import Run

Tensor = Any
_TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-3}  # relative; half precision: _HALF
_HALF = 5e-2
_ROUNDING = 1e-3  # share of the tolerance, for a record's whole gradient
_OWN_LOSS = (
    "; with criterion=None the model takes the labels and returns its loss: give a criterion if it does not, or "
    "records that it accepts as example="
)
_WAY_OUT = "; if the model does not accept these made-up records, give some that it accepts as example="


def check(run: "Run", batch: Any) -> None:
    """Raise unless the model and the criterion of a run keep the records of this made-up batch apart."""
    count = made_up.length(batch)
    if count < 3:
        raise InvalidInput(f"example must hold at least 3 made-up records, got {count} instead")
    try:
        check_rows(run, batch, count)
    except OtherGradients:
        if "" in run.recorder.apart:
            raise
        _again_apart(run, batch, count)
    _require_without_others(run, batch, count)
    with steady(run, batch, count) as is_steady:
        if is_steady:
            together = losses_of(run, batch, count)
            with torch.no_grad():
                plain = losses_of(run, batch, count)
            for r in range(count):
                require_same(run, together[r], plain[r], "differs when gradients are recorded")
            for r in range(count):
                alone = losses_of(run, made_up.rows(batch, slice(r, r + 1)), 1)
                require_same(run, together[r], alone[0], "differs between a batch and the record alone")


def _require_without_others(run: "Run", batch: Any, count: int) -> None:
    """Neither the other records of a batch nor those of the batch before may change a loss."""
    others = made_up.rows(batch, torch.tensor([0] + [1] * (count - 1)))
    found = [losses_of(run, records, count) for records in (batch, others, batch)]
    require_same(run, found[0][0], found[1][0], "changes with the other records")
    limit = _again(tolerance_of(run, found[0])) * (found[0].abs() + found[2].abs() + 1e-3)
    if bool(((found[0] - found[2]).abs() > limit).any()):
        raise InvalidInput(
            "records are mixed: the loss of a record differs when other records were computed before it, so the model "
            "or the criterion keeps something of them, or draws from a generator of its own; keep nothing in "
            "attributes, and draw by torch's generator"
        )


def _again(tolerance: float) -> float:
    """The tolerance for a loss computed twice: sums on a GPU may be added up in another order."""
    return 1e-3 * tolerance if tolerance < _HALF else 0.2 * tolerance


class OtherGradients(InvalidInput):
    """The recorded gradients differ from those of autograd."""


def _again_apart(run: "Run", batch: Any, count: int) -> None:
    """If rules do not cover every use of a parameter, compute the whole model record by record, or reject it."""
    try:
        run.measure_apart(frozenset({""}))
        measuring.settle(run, batch)
        check_rows(run, batch, count)
    except InvalidInput as error:
        if isinstance(error, OtherGradients):
            raise
        raise OtherGradients(
            "some parameter is used in a way that its layer's rule does not cover, and the model cannot be computed "
            f"record by record: {error}"
        ) from None


def check_rows(run: "Run", batch: Any, count: int) -> None:
    """Check the derivatives with respect to layers' outputs, and compare gradients with autograd."""
    losses = losses_of(run, batch, count, keep=True)
    if not bool(torch.isfinite(losses).all()):
        raise InvalidInput(
            "the losses of made-up records must be finite numbers; give suitable records as example=" + _WAY_OUT
        )
    names, edges = run.recorder.edges()
    _, leaves = above(losses, edges)
    for name, parameter in run.named_parameters():
        if id(parameter) in leaves:
            raise OtherGradients(
                f"parameter {name!r} gets a different gradient than by autograd, because it is used outside of its "
                "layer, too (weight_norm, a weight used by others, a penalty in the criterion); rebuild the layer, "
                "and give a term of the parameters alone as penalty= to make_private"
            )
    gradients = [_of_record(losses, r, names, edges, run.parameters) for r in range(count)]
    weights = torch.linspace(0.5, 1.0, count, dtype=torch.float64, device=losses.device)
    recorded = run.recorder.measure(losses)
    found = {id(parameter): gradient for parameter, gradient in recorded.weighted(weights)}
    tolerance = tolerance_of(run, losses)
    whole = sum(float(torch.stack([g.norm() for g in one]).norm()) for one in gradients)
    rounding = _ROUNDING * tolerance * whole  # a bias cancelled by softmax has a gradient of rounding errors only
    for at, (name, parameter) in enumerate(run.named_parameters()):
        truth = sum(float(w) * g[at] for w, g in zip(weights, gradients, strict=True))
        sizes = sum(float(g[at].norm()) for g in gradients)
        ours = found.get(id(parameter))
        if ours is None or float((ours.double() - truth).norm()) > tolerance * sizes + rounding + 1e-30:
            raise OtherGradients(
                f"parameter {name!r} gets a different gradient than by autograd: its layer uses it in a way that "
                "is not known (weight_norm, a patched forward, a weight used by other layers), or it has no part in "
                "the loss; freeze it or rebuild the layer"
            )
    truths = torch.stack([torch.cat([g.flatten() for g in one]).norm() for one in gradients])
    norms = torch.nan_to_num(recorded.norms.to(truths.device))
    if bool((norms < truths * (1 - tolerance) - 1e-30).any()):
        raise OtherGradients("the norms of gradients are smaller than by autograd; rebuild the model from known layers")


def _of_record(losses: Tensor, r: int, names: list[str], edges: list[Any], parameters: list[Any]) -> list[Tensor]:
    """The gradient of one record's loss for every parameter; checks that the rows of others have none."""
    count, loss = len(losses), losses[r]
    every = torch.autograd.grad(loss, [*edges, *parameters], retain_graph=True, allow_unused=True)
    for name, back in zip(names, every[: len(edges)], strict=True):
        rows = None if back is None else back.reshape(count, -1)
        if rows is not None and bool(torch.cat([rows[:r], rows[r + 1 :]]).ne(0).any()):
            raise InvalidInput(
                f"records are mixed: the loss of one record depends on the row of another in the output of layer "
                f"{name!r}; keep records in the first dimension (batch first) and apart in the model and the loss"
            )
    found = every[len(edges) :]
    return [torch.zeros_like(p).double() if g is None else g.double() for p, g in zip(parameters, found, strict=True)]


def losses_of(run: "Run", batch: Any, count: int, *, keep: bool = False) -> Tensor:
    """Losses of made-up records, so an error message may show all details."""
    run.recorder.listen(count)
    try:
        with reading() as seed:  # what draws by itself draws the same for the same seeds
            seed(seed_of(run.seed_key()))
            losses = run.compute(run.module, None if run.has_own_loss else run.criterion.unguarded, batch)
    except InvalidInput:
        raise
    except Exception as error:
        raise InvalidInput(
            f"the model or the criterion fails on made-up records of the data's shape ({type(error).__name__}: "
            f"{str(error).splitlines()[0] if str(error) else 'no message'})"
            + (_OWN_LOSS if run.has_own_loss else _WAY_OUT)
        ) from error
    finally:
        if not keep:
            run.recorder.forget()
    if not isinstance(losses, torch.Tensor) or losses.shape != (count,):
        raise InvalidInput("there must be one loss per record; for a custom loop see compute= of make_private")
    return losses if keep else losses.detach()


def require_same(run: "Run", one: Tensor, other: Tensor, how: str) -> None:
    """Raise unless two losses of a record are one number."""
    a, b = float(one), float(other)
    if not abs(a - b) <= tolerance_of(run, one) * (abs(a) + abs(b) + 1e-3):
        raise InvalidInput(
            f"records are mixed: the loss of a record {how}; check the shapes of output and target (does the loss "
            "broadcast?), and keep records apart in the model and the loss"
        )


def tolerance_of(run: "Run", losses: Tensor) -> float:
    """The relative tolerance between two computations of one number."""
    kinds = {p.dtype for p in run.parameters} | {losses.dtype}
    if run.recorder.is_half or is_autocast(losses.device.type):
        return _HALF
    return max(_TOLERANCE.get(kind, _HALF) for kind in kinds)


@contextlib.contextmanager
def steady(run: "Run", batch: Any, count: int) -> Iterator[bool]:
    """Whether losses are deterministic; a model with dropout is checked in evaluation mode."""
    if _repeats(run, batch, count):
        yield True
        return
    modes = [(layer, layer.training) for layer in run.module.modules()]
    try:
        run.module.eval()
        yield _repeats(run, batch, count)
    finally:
        for layer, mode in modes:
            layer.training = mode


def _repeats(run: "Run", batch: Any, count: int) -> bool:
    one = losses_of(run, batch, count)
    for number in range(1, 5):  # dropout may once hit only units without effect
        with run.placed("made up", number):
            if not torch.equal(one, losses_of(run, batch, count)):
                return False
    return True
