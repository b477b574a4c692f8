"""Coins in proportion to size under noise on a line: the others as a Poisson number of draws (core/size_paths.py).

q_i = m r_i / (sum of r), all of them below Q < 1. A coin of chance q_i succeeds when a Poisson number of mean
-log(1 - q_i) is not 0, so the others are a Poisson number of independent draws. A record of chance q lowers record i's
mean by at most q q_i/(m(1 - Q)). Lowering all of them by just that is worst: thinning every record's draws and adding
new ones leads from there to any smaller change. Then the draws come from one law with and without the record, they are
nested, and sizes are followed along a chain.

Theorem. With q the record's largest chance, both divergences are at most those between

    the record with chance q and Poisson(m - q/(1 - Q)) draws,    and    Poisson(m) draws.

One replaced: the other side has a record with chance q, too, and the larger direction counts. Any smaller m is a bound
as well. Proof: docs/transport.md, Thm 10.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.profile import Profile
from ..core.size_paths import Ladder, bounded
from ..core.theorem import Theorem
from ..errors import NoTheorem
from ..numerics.count_laws import poisson_chance
from .kept_sizes import has_a_grid, trimmed

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
_PAGE = "docs/transport.md, Thm 10"
_MOST = 64.0  # draws that hide the others; with more, one is hardly seen better
_BEYOND = 1e-40  # more than the chance of sizes beyond the last one


def of_draws(mean: float, less: float, own: float, kind: str) -> Ladder:
    """The record with chance `own` beside Poisson(mean - less) draws, against Poisson(mean), alone or with another."""
    sizes = np.arange(int(mean + 16.0 * np.sqrt(mean)) + 81)
    here, there = poisson_chance(sizes, mean - less)[None, :], poisson_chance(sizes, mean)[None, :]
    other = own if kind == RO.kind else 0.0
    found = trimmed(Ladder(own * here, (1.0 - own) * here, other * there, (1.0 - other) * there))
    return replace(found, left=found.left + 2.0 * _BEYOND)


def proportional(mean: float, own: float, largest: float, kind: str, mechanism: Mechanism) -> Profile:
    """The bound for one record of chance `own` at most, the others' being `largest` at most."""
    mean, less = min(mean, _MOST), own / (1.0 - largest) * (1.0 + 1e-12) if largest < 1.0 else math.inf
    if less >= mean:
        raise NoTheorem("sizes are followed where no record is kept for certain, and one is a small part of the sample")
    found = bounded(of_draws(mean, less, own, kind), mechanism)
    return found.symmetrised() if kind == RO.kind else found


def _bound(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    largest = design.largest_probability(max(design.at_least - 1, 0))
    own = largest if neighbors.kind == RO.kind else design.largest_probability(design.at_least)
    return proportional(design.size, own, largest, neighbors.kind, mechanism)


def _is_other(mechanism: Mechanism) -> bool:
    return has_a_grid(mechanism) and not mechanism.is_gaussian


def _is_gaussian(mechanism: Mechanism) -> bool:
    return has_a_grid(mechanism) and mechanism.is_gaussian


def _theorems(applies: Callable[[Mechanism], bool], *, searches: bool) -> tuple[Theorem, ...]:
    names = {AR.kind: "Poisson proportional to size", RO.kind: "Poisson proportional to size, one record replaced"}
    return tuple(
        Theorem(f"{name}, sizes along a chain", _PAGE, AR.kind, kind, False, _bound, applies, searches=searches)
        for kind, name in names.items()
    )


THEOREMS = (*_theorems(_is_gaussian, searches=False), *_theorems(_is_other, searches=True))
