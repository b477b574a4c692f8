"""Designs that are known by the number of records drawn: chances by size, bounds and attacks (core/size_paths.py).

Random size: m of n with chance t(m); the record is one of them with chance m/n, and the others are m - 1 or m.
Truncated Poisson: K heads among the others; the record stays with chance p if K < B and p B/(K+1) if K >= B, and with
it min(K, B - 1) others, without it min(K, B). Every number of records of a public range is a pair of its own.
Theorem: docs/transport.md, Thm 9.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.profile import Profile
from ..core.size_paths import Ladder, bounded, is_on_a_line, paths
from ..core.theorem import Theorem
from ..errors import NoTheorem
from ..numerics.count_laws import binomial_chance
from ..numerics.log_domain import FloatArray
from ..numerics.roots import NumericalFailure
from ..numerics.size_chain import LARGEST_STEP, ChainValue, largest_of
from .pure_only import is_black_box, lower_profile, pure_epsilon, upper_profile

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
PAGE = "docs/transport.md, Thm 9"
_RARE = 1e-40  # sizes that are rarer at both ends are left out, and count as seen
_LEAST = 1e-290  # of a chance that is followed exactly; below, floats lose digits
_SHARES = (0.99, 0.6, 0.1)  # of the largest loss of noise that has one: there attacks are made
_MOST_SIZES, _MOST_PAIRS, _MOST_CHANCES = 1000, 512, 10_000_000
_WIDEST = 64.0  # noise over one record's step, up to which sizes are followed: the grid grows with it


def of_sizes(chances: FloatArray) -> Ladder:
    """One record of n replaced, m drawn with chance `chances[m]`."""
    n, t = chances.size - 1, chances / np.sum(chances)
    m = np.arange(n + 1.0)
    inside, outside = np.append(t[1:] * m[1:] / n, 0.0), t * (n - m) / n
    inside, outside = inside[None, :], outside[None, :]
    return Ladder(inside, outside, inside, outside)


def of_heads(rate: float, most: int, others: Sequence[int], kind: str) -> Ladder:
    """One record more than each of these numbers of others, or one beside them replaced."""
    if len(others) * max(others[-1], most) > _MOST_CHANCES:
        raise NoTheorem("so many records, or numbers of records, are not followed size by size")
    rows = [_kept(rate, most, n) for n in others]
    inside, outside, without = (np.stack(part) for part in zip(*rows, strict=True))
    if kind == RO.kind:
        return Ladder(inside, outside, inside, outside)
    return Ladder(inside, outside, np.zeros(inside.shape), without)


def of_coins(others: int, after: float, before: float, own: float) -> Ladder:
    """One record more, kept with chance `own`, that changes the chance of each of the others."""
    if others > _MOST_CHANCES:
        raise NoTheorem("so many records are not followed size by size")
    sizes = np.arange(others + 1)
    here, without = binomial_chance(sizes, others, after)[None, :], binomial_chance(sizes, others, before)[None, :]
    return Ladder(own * here, (1.0 - own) * here, np.zeros(here.shape), without)


def _kept(rate: float, most: int, others: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Chances of so many others with the record, of so many without it, and of so many where it does not exist."""
    heads = np.arange(others + 1)
    chance = binomial_chance(heads, others, rate)
    stays = rate * np.where(heads < most, 1.0, most / (heads + 1.0))
    kept = np.minimum(heads, most)
    inside, outside, without = (np.zeros(most + 1) for _ in range(3))
    np.add.at(inside, np.minimum(heads, most - 1), chance * stays)
    np.add.at(outside, kept, chance * (1.0 - stays))
    np.add.at(without, kept, chance)
    return inside, outside, without


def _held(one: Ladder) -> slice:
    """All sizes but those at both ends that hardly occur."""
    live = np.flatnonzero(np.max(_largest(one), axis=0) > _RARE)
    held = slice(int(live[0]), int(live[-1]) + 1)
    if held.stop - held.start > _MOST_SIZES:
        raise NoTheorem(f"sizes are followed one by one up to {_MOST_SIZES} of them")
    return held


def _largest(one: Ladder) -> FloatArray:
    chances: FloatArray = np.maximum.reduce([one.p_in, one.p_out, one.q_in, one.q_out])
    return chances


def trimmed(one: Ladder) -> Ladder:
    """Without rare sizes, whose chance counts as seen: for bounds on noise that sums chances up."""
    held = _held(one)
    return _cut(one, lambda part: part[:, held], 2.0 * _RARE * (one.p_in.shape[1] - (held.stop - held.start)))


def _folded(one: Ladder) -> Ladder:
    """Rare sizes taken to the nearest held one: a query may treat them alike, so attacks on it are attacks."""
    held = _held(one)

    def joined(part: FloatArray) -> FloatArray:
        inner = part[:, held].copy()
        inner[:, 0] += np.sum(part[:, : held.start], axis=1)
        inner[:, -1] += np.sum(part[:, held.stop :], axis=1)
        return inner

    return _cut(one, joined, 0.0)


def _cut(one: Ladder, cut: Callable[[FloatArray], FloatArray], left: float) -> Ladder:
    inside, outside = cut(one.p_in), cut(one.p_out)
    if one.q_in is one.p_in:
        return Ladder(inside, outside, inside, outside, left)
    return Ladder(inside, outside, cut(one.q_in), cut(one.q_out), left)


def ladder_of(design: Any, kind: str) -> Ladder:
    """The chances of a design under a relation, or NoTheorem where its numbers of records are too many."""
    if not hasattr(design, "most"):
        return of_sizes(design.chances)
    return of_heads(design.rate, design.most, _others(design, kind), kind)


def _others(design: Any, kind: str) -> range:
    """The numbers of other records that the public range allows."""
    less = 1 if kind == RO.kind else 0
    if design.at_most is None or design.at_most - design.at_least > _MOST_PAIRS:
        raise NoTheorem(f"ranges of at most {_MOST_PAIRS} numbers of records are followed one by one")
    others = range(max(design.at_least - less, 0), design.at_most)
    if not others:
        raise NoTheorem("a record more or less changes a number of records that is public; declare a range of it")
    return others


def _whole(design: Any, kind: str) -> Ladder:
    """With every size. A pure mechanism may weigh a size by e^(epsilon s), so that none is rare enough to leave out."""
    one, others = ladder_of(design, kind), _others(design, kind)
    can_be = np.arange(design.most + 1) <= np.minimum(others, design.most)[:, None]
    rarest = np.min(_largest(one)[can_be]) if 0.0 < design.rate < 1.0 else 1.0
    if design.most >= _MOST_SIZES or rarest < _LEAST:
        raise NoTheorem("sizes are followed where each of them has a chance above 1e-290, and up to a thousand of them")
    return one


def _is_followed(mechanism: Mechanism) -> bool:
    return mechanism.is_gaussian and has_a_grid(mechanism)


def has_a_grid(mechanism: Mechanism) -> bool:
    """Noise on a line, not so wide that the grid grows too large."""
    return is_on_a_line(mechanism) and mechanism.line_step * _WIDEST >= 1.0


def _followed(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    found = bounded(trimmed(ladder_of(design, neighbors.kind)), mechanism)
    return found.symmetrised() if neighbors.kind == RO.kind else found


def _pure(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    return upper_profile(_chain(_whole(design, neighbors.kind), pure_epsilon(mechanism, AR)).upper)


def _chain(one: Ladder, epsilon: float) -> ChainValue:
    if epsilon > LARGEST_STEP:
        raise NoTheorem(f"the chain program is evaluated up to epsilon {LARGEST_STEP:g}")
    return largest_of(one.p_in, one.p_out, one.q_in, one.q_out, epsilon)


def theorems(what: str, *relations: str) -> tuple[Theorem, ...]:
    """Size by size along a chain, for Gaussian noise."""
    return tuple(
        Theorem(f"{what}, sizes along a chain", PAGE, AR.kind, kind, False, _followed, _is_followed)  # type: ignore[arg-type]
        for kind in relations
    )


def pure_theorems(what: str, cite: str) -> tuple[Theorem, ...]:
    """The chain program for pure mechanisms."""
    kinds = (AR.kind, RO.kind)
    return tuple(Theorem(f"{what}, chain program", cite, AR.kind, kind, True, _pure, _is_pure) for kind in kinds)


def _is_pure(mechanism: Mechanism) -> bool:
    return mechanism.neighbors.kind == AR.kind and mechanism.is_pure


def attacks(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> dict[Any, Profile]:
    """Sums that follow the worst sequence over sizes; for a black box the worst event."""
    if neighbors.records > 1:
        return {}
    try:
        return _seen(_folded(ladder_of(design, neighbors.kind)), mechanism, neighbors)
    except (NoTheorem, NumericalFailure):  # no attack is found, which is no reason to have no bound
        return {}


def seen_with_others(coins: tuple[int, float, float, float], mechanism: Mechanism) -> dict[Any, Profile]:
    """The same for one added record among independent coins; there may be no other records."""
    try:
        return _seen(_folded(of_coins(*coins)), mechanism, AR) if coins[0] else {}
    except (NoTheorem, NumericalFailure):  # no attack is found, which is no reason to have no bound
        return {}


def _seen(ladder: Ladder, mechanism: Mechanism, neighbors: Neighbors) -> dict[Any, Profile]:
    if is_black_box(mechanism, neighbors):
        return {"event": lower_profile(_chain(ladder, pure_epsilon(mechanism, AR)).lower)}
    if not has_a_grid(mechanism):
        return {}
    loss = 0.0 if mechanism.is_gaussian else _chain(ladder, pure_epsilon(mechanism, AR)).lower
    scenes = paths(ladder, mechanism, [share * loss for share in _SHARES if loss > 0.0])
    found = {name: mechanism.on_a_line(*scene) for name, scene in scenes.items()}
    return {name: attack for name, attack in found.items() if attack is not None}
