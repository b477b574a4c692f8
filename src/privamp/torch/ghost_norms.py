"""Norms of gradients sum_t b_t a_t^T that are never formed, from products of positions, and never too small.

    |sum_t b_t a_t^T|^2 = sum_st (a_s . a_t)(b_s . b_t)          (Goodfellow 2015; Li et al. 2022)

Both kinds of products are matrix products in the precision of the layer, at least float32; their products are added up
in double precision. With n = columns + rows + 16 and u = 2^-24, a product of the two is wrong by at most
gamma |a_s||a_t||b_s||b_t|, gamma = n u / (1 - n u), in whatever order sums are taken, and by what vanishes below
2^-126. So the square is wrong by at most gamma S^2, S = sum_t |a_t||b_t|, and this is added. S bounds the norm itself:
it counts where it is smaller, and where products are too large for float32. What rounding may add to the gradient in
the weighted sum is added, too. Layers in double precision are scaled so that nothing vanishes.
"""

from collections.abc import Callable
from typing import Any

import torch

from .half_products import multiplied, summing_error, unit_of_products
from .patches import joined
from .precision import scaled_rows, upper_norms

Tensor = Any
_UNIT = 2.0**-53  # rounding of double precision
_VANISHES = 2.0**-125  # at most so much of a product is lost below the smallest numbers of float32
_PIECE = 2**18  # numbers of gradients that are written out for their norms alone
_PRODUCTS = {"cpu": 2**17}  # products of positions at a time: on a CPU they stay in cache
_MANY = 2**25
_TILE, _FEW = 64, 8
_LONG = 2**16  # columns and rows: the bound of sums of more products in float32 would be too far off


def squares_of(a: Tensor, b: Tensor) -> Tensor:
    """Norms^2 of sum_t b_t a_t^T, (records,) doubles, the way that is faster for these shapes.

    `a` is (records, positions, columns), `b` (records, positions, rows). Products of positions take
    positions^2 (columns + rows) multiplications, the gradient positions x columns x rows.
    """
    places, d, p = a.shape[1], a.shape[2], b.shape[2]
    is_wide = a.dtype == torch.float64 or d + p > _LONG
    if a.device.type == "cpu" and 4 * d * p <= (8 if is_wide else 5) * places * (d + p):  # larger products are faster
        return _in_pieces(a, b)
    if is_wide:
        wide, up = scaled_rows(a)
        return _of_doubles(torch.bmm(wide, wide.transpose(1, 2)), up, b, d)
    return _some_at_a_time(lambda i: _of_products(_products(a[i]), b[i], d), b)


def same_rows_squares(ids: Tensor, b: Tensor) -> Tensor:
    """Norms^2 of gradients in which b_t (records, positions, columns) is added to row id_t: a_t is one-hot."""
    if b.dtype == torch.float64:
        return _of_doubles(_same(ids, ids, b.dtype), 0, b)
    return _some_at_a_time(lambda i: _of_products(lambda s, t: _same(ids[i, s], ids[i, t], torch.float32), b[i], 1), b)


def _same(some: Tensor, others: Tensor, dtype: Any) -> Tensor:
    """Products of one-hot rows."""
    return (some.unsqueeze(2) == others.unsqueeze(1)).to(dtype)


def _in_pieces(a: Tensor, b: Tensor) -> Tensor:
    """The gradients of some records at a time, with the largest error of the products added to the norm."""
    (n, places, d), p = a.shape, b.shape[2]
    some = max(1, _PIECE // (d * p))
    made = a.new_empty(min(some, n), p, d)  # used again: its pages take longer than the products
    bound, found = upper_norms(a) * upper_norms(b), []
    for i in range(0, n, some):
        rows = made[: min(some, n - i)]
        found.append(upper_norms(torch.bmm(b[i : i + some].transpose(1, 2), a[i : i + some], out=rows)))
    norms = torch.cat(found) if found else bound
    error = bound * (places * unit_of_products(a) + summing_error(a, places))
    return (torch.where(norms < bound, norms, bound) + error).square()


def _some_at_a_time(squares: Callable[[slice], Tensor], b: Tensor) -> Tensor:
    size = max(1, _PRODUCTS.get(b.device.type, _MANY) // b.shape[1] ** 2)
    found = [squares(slice(i, i + size)) for i in range(0, b.shape[0], size)]
    return torch.cat(found) if found else b.new_zeros(0, dtype=torch.float64)


Products = Callable[[slice, slice], Tensor]
"""(some positions, others) -> products of the vectors at these positions, (records, some, others), in float32."""


def _products(a: Tensor) -> Products:
    return lambda some, others: multiplied(a[:, some], a[:, others].transpose(1, 2))


def _of_products(first: Products, b: Tensor, terms: int) -> Tensor:
    """From products of the a_t, sums of so many terms, in float32."""
    places, p, second = b.shape[1], b.shape[2], _products(b)
    long, wide, squares = [], [], b.new_zeros(b.shape[0], dtype=torch.float64)
    for some, others in _blocks(places):
        one, two = first(some, others), second(some, others)
        if some == others:
            long.append(_lengths(one, terms))
            wide.append(_lengths(two, p))
        times = 1.0 if some == others else 2.0
        squares += one.mul_(two).sum(dim=(1, 2), dtype=torch.float64) * times
    rounding = (terms + p + 16) * unit_of_products(b)
    gamma = rounding / (1.0 - rounding)
    a_sizes, b_sizes = joined(long, 1), joined(wide, 1)
    bound = (a_sizes * b_sizes).sum(dim=1) * (1.0 + 2.0 * gamma)  # S
    vanished = terms * b_sizes.sum(dim=1).square() + p * a_sizes.sum(dim=1).square() + places**2
    error = (gamma + places**2 * 2.0 * _UNIT) * bound.square() + (1.0 + 2.0 * gamma) * _VANISHES * vanished
    norms = (squares.clamp(min=0.0) + error).sqrt()
    norms = torch.where(norms < bound, norms, bound)  # the bound also where the products are no numbers
    return (norms + summing_error(b, places) * bound).square()


def _lengths(products: Tensor, terms: int) -> Tensor:
    """|a_t|, but for a factor of at most 1 + gamma."""
    return (products.diagonal(dim1=1, dim2=2).double() + terms * _VANISHES).sqrt()


def _blocks(places: int) -> list[tuple[slice, slice]]:
    """Pairs of blocks of positions, one of each two that are alike.

    A few positions more than a multiple of 64, such as a class token, make products of all several times as slow.
    """
    more = places % _TILE
    if not 0 < more <= _FEW or places < _TILE:
        return [(slice(0, places),) * 2]
    main, rest = slice(0, places - more), slice(places - more, places)
    return [(main, main), (main, rest), (rest, rest)]


def _of_doubles(one: Tensor, up: Any, b: Tensor, terms: int = 1) -> Tensor:
    """The same in double precision, for a_t divided by 2^up."""
    unit = summing_error(b, b.shape[1])
    b, further = scaled_rows(b)
    two = torch.bmm(b, b.transpose(1, 2))
    sizes = (one.diagonal(dim1=1, dim2=2) * two.diagonal(dim1=1, dim2=2)).sqrt()  # |a_t||b_t|
    places = sizes.shape[1]
    error = (terms + b.shape[2] + places * places + 16) * _UNIT * sizes.sum(dim=1).square()
    squares = (one * two).sum(dim=(1, 2)).clamp(min=0.0) + error
    return torch.ldexp(squares.sqrt() + unit * sizes.sum(dim=1), up + further).square()
