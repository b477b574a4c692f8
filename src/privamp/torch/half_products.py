"""Matrix products of the inputs and derivatives of layers, added up in float32 or float64.

On CUDA products of bfloat16 numbers need no copies in float32: every product is exact there, and they are added up in
float32. What a layer computes in bfloat16 has such inputs and derivatives. Only the weight of a record has more digits:
it is multiplied into one side, and that side is rounded again, which `summing_error` pays for.
"""

from typing import Any

import torch

Tensor = Any
_HAS_WIDE_PRODUCTS = "dtype" in torch.ops.aten.bmm.overloads()  # from torch 2.8


def is_kept(values: Tensor) -> bool:
    """Whether the numbers stay in half precision: bfloat16 on CUDA."""
    return bool(values.dtype == torch.bfloat16 and values.device.type == "cuda" and _HAS_WIDE_PRODUCTS)


def multiplied(a: Tensor, b: Tensor) -> Tensor:
    """a b for matrices or batches of them, in float32 at least."""
    if a.dtype != torch.bfloat16:
        return a @ b
    if a.device.type != "cuda":
        return a.float() @ b.float()
    return (torch.mm if a.dim() == 2 else torch.bmm)(a, b, out_dtype=torch.float32)


def scaled(values: Tensor, weights: Tensor) -> Tensor:
    """(records, ...) times the weight of each, in the precision of the values."""
    by = weights.reshape(-1, *[1] * (values.dim() - 1))
    return torch.mul(values, by, out=torch.empty_like(values))


def unit_of_products(values: Tensor) -> float:
    """The relative rounding error of an addition: tensor cores cut off what does not fit."""
    if values.dtype == torch.float64:
        return 2.0**-53
    return 2.0**-22 if values.dtype == torch.bfloat16 else 2.0**-24


def summing_error(values: Tensor, places: int) -> float:
    """What rounding adds to a record's part of the weighted sum, as a share of sum_t |a_t||b_t|."""
    if values.dtype == torch.bfloat16:
        return float(places * torch.finfo(torch.float32).eps + torch.finfo(torch.bfloat16).eps / 2)
    return float(places * torch.finfo(values.dtype).eps)
