"""The arithmetic of gradient sums: float32 or float64, never half precision, TF32 or autocast.

The model may run in any precision. What enters and leaves its layers is widened before norms and sums are computed: in
bfloat16 the sum of 10,000 clipped gradients moves by several clips when one record leaves.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

Tensor = Any
HALF = (torch.float16, torch.bfloat16)
_TOGETHER = 128  # numbers
_CACHED, _HELD = 2**18, 2**25  # doubles at a time
_MANY = 2**22  # numbers


def sum_dtype(dtype: Any) -> Any:
    """The type in which gradients of such parameters are added up."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def is_autocast(kind: str) -> bool:
    """Whether operations on devices of this kind may run in half precision."""
    try:
        return bool(torch.is_autocast_enabled(kind))
    except TypeError:  # before torch 2.4
        return bool(torch.is_autocast_enabled() if kind == "cuda" else torch.is_autocast_cpu_enabled())


def as_cast(values: Tensor) -> Tensor:
    """What goes into a linear map, in the precision that autocast gives it: so it is kept once, and that is short."""
    kind = values.device.type
    if values.dtype != torch.float32 or not is_autocast(kind):
        return values
    return values.to(torch.get_autocast_dtype(kind) if hasattr(torch, "get_autocast_dtype") else _older_dtype(kind))


def _older_dtype(kind: str) -> Any:
    return torch.get_autocast_gpu_dtype() if kind == "cuda" else torch.get_autocast_cpu_dtype()


def widened(values: Tensor) -> Tensor:
    """Half precision as float32; everything else as it is."""
    return values.float() if values.dtype in HALF else values


def shortened(weights: Tensor, dtype: Any) -> Tensor:
    """Weights (at least 0) in this precision, rounded down; what would lose its digits becomes 0."""
    about = torch.finfo(dtype)
    down = weights.double() * (1.0 - 4.0 * about.eps)
    return torch.where(down >= about.tiny, down, 0.0).to(dtype)


@contextlib.contextmanager
def full_precision(kind: str) -> Iterator[None]:
    """On devices of this kind, matrix products and convolutions as their dtype says: no TF32, bfloat16 or autocast."""
    with torch.autocast(kind, enabled=False), contextlib.ExitStack() as stack:
        for backend in _backends(kind):
            stack.callback(setattr, backend, "fp32_precision", backend.fp32_precision)
            backend.fp32_precision = "ieee"
        if not _HAS_SETTINGS:
            stack.enter_context(_older_settings(kind))
        yield


_HAS_SETTINGS = hasattr(torch.backends.cuda.matmul, "fp32_precision")  # from torch 2.9


def _backends(kind: str) -> list[Any]:
    if not _HAS_SETTINGS:
        return []
    rooms = torch.backends
    return [rooms.cuda.matmul, rooms.cudnn.conv] if kind == "cuda" else [rooms.mkldnn.matmul, rooms.mkldnn.conv]


@contextlib.contextmanager
def _older_settings(kind: str) -> Iterator[None]:
    before, now = torch.get_float32_matmul_precision(), torch.backends.cudnn
    torch.set_float32_matmul_precision("highest")
    try:
        with (
            now.flags(enabled=now.enabled, benchmark=now.benchmark, deterministic=now.deterministic, allow_tf32=False)
            if kind == "cuda"
            else contextlib.nullcontext()
        ):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def norms_of(values: Tensor) -> Tensor:
    """Euclidean norms of the rows of (records, ...), in double precision; squares neither vanish nor overflow."""
    flat = values.reshape(values.shape[0], -1) if values.shape[0] else values.reshape(0, 1)
    if flat.dtype in (torch.float32, torch.bfloat16):  # whose squares are numbers in double precision
        return _norms_of_floats(flat)
    scaled, exponents = scaled_rows(flat)
    return torch.ldexp(torch.linalg.vector_norm(scaled, dim=1), exponents)


def _norms_of_floats(flat: Tensor) -> Tensor:
    """Some rows at a time, as doubles: on a CPU they stay in cache, elsewhere they take little memory."""
    rows = max(1, (_CACHED if flat.device.type == "cpu" else _HELD) // max(flat.shape[1], 1))
    if flat.shape[0] <= rows:
        return torch.linalg.vector_norm(flat, dim=1, dtype=torch.float64)
    found = torch.empty(flat.shape[0], dtype=torch.float64, device=flat.device)
    wide = torch.empty(rows, flat.shape[1], dtype=torch.float64, device=flat.device)
    for start in range(0, flat.shape[0], rows):
        some = flat[start : start + rows]
        torch.linalg.vector_norm(wide[: len(some)].copy_(some), dim=1, out=found[start : start + rows])
    return found


def upper_norms(values: Tensor) -> Tensor:
    """Never less than `norms_of`, and more by a share of 1e-5 and 1e-15 at most: without copies in double precision.

    Squares of 128 numbers are added up in float32. Too large ones give infinity.
    """
    flat = values.reshape(values.shape[0], -1) if values.shape[0] else values.reshape(0, 1)
    if flat.dtype != torch.float32 or flat.shape[1] % _TOGETHER:
        return norms_of(flat)
    some = torch.linalg.vector_norm(flat.unflatten(1, (-1, _TOGETHER)), dim=2).double()
    vanished = flat.shape[1] ** 0.5 * 2.0**-62
    return torch.linalg.vector_norm(some, dim=1) * (1.0 + (_TOGETHER + 8) * 2.0**-24) + vanished


def written_norms(values: Tensor) -> Tensor:
    """`norms_of`, or where many numbers lie on a GPU, `upper_norms`: copies in double precision take longer there."""
    is_large = values.device.type != "cpu" and values.numel() > _MANY
    return upper_norms(values) if is_large else norms_of(values)


def scaled_rows(values: Tensor) -> tuple[Tensor, Tensor]:
    """(records, ...) in double precision, each divided by a power of two near its largest entry; the exponents.

    What was float32 stays as it is: the products of four such numbers neither vanish nor overflow in double precision.
    """
    wide = values.double()
    if values.dtype == torch.float32:
        return wide, torch.zeros(wide.shape[0], dtype=torch.int32, device=wide.device)
    flat = wide.reshape(wide.shape[0], -1) if wide.shape[0] else wide.reshape(0, 1)
    largest = flat.abs().amax(dim=1)
    exponents = torch.where(torch.isfinite(largest), torch.frexp(largest).exponent, 0).clamp(-1000, 1000)
    shape = (-1, *[1] * (wide.dim() - 1))
    return wide * torch.ldexp(torch.ones_like(largest), -exponents).reshape(shape), exponents
