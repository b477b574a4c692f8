"""Clusters under mechanisms that are not pure: components of what is drawn, and how far apart (core/transport.py).

q is the chance that the changed cluster is drawn; exchanging it for another one leaves all other drawn clusters as they
are, so "in" and "out" differ by the members of the two. Distances grow with the sizes, and where members are kept by
coins or all of them, clusters below their caps can be filled up with records that the mechanism ignores: the caps are
the worst case. At a cap c, in add/remove steps:

    one record more              in, in 1;  in, out 2c;  out, in 2c - 1
    replaced inside its cluster  in, in 2;  in, out 2c;  out, in 2c
    moved from cluster 1 to 2    subsets of {1, 2}: `moved`
    members by coins of chance r (in, a, x), (out, y): a + |x - x'|, a + x + y', y + x', |y - y'|
    m members of each cluster    in with the record, in without it, out: `some_members`

Proofs: docs/transport.md.
"""

from itertools import product
from math import comb
from typing import Any

import numpy as np

from ..core.curves import out_and_in
from ..core.line_attack import Places
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.profile import Profile
from ..core.theorem import Theorem
from ..core.transport import Components, has_noise, is_covered, transported
from ..errors import NoTheorem
from ..numerics.count_laws import binomial_chance
from .cluster_gaussian import is_covered_by_gaussian
from .kept_sizes import has_a_grid

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
_MOST = 6  # members by coins up to which the program is solved


def added(chance: float, own: int, other: int, *, displaced: bool = False) -> Components:
    """One record more in a cluster of `own` members then, another one having up to `other`."""
    steps = 2 if displaced else 1
    return _two(chance, steps, own + other, (own if displaced else own - 1) + other)


def replaced(chance: float, own: int, other: int) -> Components:
    """One of the `own` members replaced by another."""
    return _two(chance, 2, own + other, own + other)


def _two(chance: float, inside: int, leaving: int, entering: int) -> Components:
    return Components.of([chance, 1.0 - chance], [chance, 1.0 - chance], [[inside, leaving], [entering, 0]])


def moved(chosen: int, clusters: int, cap: int) -> Components:
    """A record leaves cluster 1 and one enters cluster 2: which of the two are drawn, in each data set."""
    sets = [frozenset(s) for s in ((), (1,), (2,), (1, 2))]
    total = comb(clusters, chosen)
    chances = [
        comb(clusters - 2, chosen - len(s)) / total if len(s) <= chosen <= clusters - 2 + len(s) else 0.0 for s in sets
    ]
    before, after = {1: cap, 2: cap - 1}, {1: cap - 1, 2: cap}

    def apart(one: frozenset[int], other: frozenset[int]) -> int:
        gone, new = sum(before[h] for h in one - other), sum(after[h] for h in other - one)
        return len(one & other) + gone + new + abs(len(one) - len(other)) * cap

    return Components.of(chances, chances, [[apart(one, other) for other in sets] for one in sets])


def one_of_several(first: float, second: float, own: int, others: int) -> Components:
    """One cluster is drawn by public chances; a record leaves the first and one enters the second."""
    rest = max(1.0 - first - second, 0.0)
    far = [
        [1, 2 * own, own + others],
        [2 * own - 2, 1, own - 1 + others],
        [others + own - 1, others + own, 0],
    ]
    return Components.of([first, second, rest], [first, second, rest], far)


def by_coins(chance: float, rate: float, own: int, other: int, *, is_replaced: bool) -> Components:
    """Members kept by coins: the changed cluster has own - 1 members besides the record."""
    if max(own, other) > _MOST:
        raise NoTheorem(
            f"clusters of up to {max(own, other)} members whose members are kept by coins need a larger program than "
            f"the {_MOST} that is solved; use Laplace noise, or keep whole clusters"
        )
    beside, outside = binomial_chance(np.arange(own), own - 1, rate), binomial_chance(np.arange(other + 1), other, rate)
    coin = {0: 1.0 - rate, 1: rate}
    present = [(chance * coin[a] * beside[x], (1, a, x)) for a, x in product((0, 1), range(own))]
    absent = [(chance * beside[x], (1, 0, x)) for x in range(own)]
    out = [((1.0 - chance) * outside[y], (0, 0, y)) for y in range(other + 1)]
    first, second = [*present, *out], [*(present if is_replaced else absent), *out]

    def apart(one: tuple[int, int, int], another: tuple[int, int, int]) -> float:
        (here, a, x), (there, b, y) = one, another
        steps = abs(x - y) if here == there else x + y
        if here == there and abs(x - y) > 2:
            return float("nan")  # never worth it: a nearer pair is there
        return a + b + steps

    far = [[apart(one, another) for _, another in second] for _, one in first]
    return Components.of([p for p, _ in first], [p for p, _ in second], far)


def some_members(chance: float, kept: int, cap: int, smallest: int) -> list[Components]:
    """One record more where `kept` members of each drawn cluster stay: just above that number, and below it."""
    found = []
    others = max(kept, smallest)  # the fewest others with whom the record has to compete
    if others + 1 <= cap:
        inside = chance * kept / (others + 1)
        found.append(
            Components.of(
                [inside, chance - inside, 1.0 - chance],
                [chance, 1.0 - chance],
                [[2, 2 * kept], [0, 2 * kept], [2 * kept, 0]],
            )
        )
    if smallest < kept:  # all members stay: as for whole clusters
        own = min(kept, cap)
        found.append(added(chance, own, own))
    if not found:
        raise NoTheorem(
            f"clusters of exactly {cap} members have no neighbour with one record more; lower min_size or raise "
            "max_size, or ask about one record replaced within its cluster"
        )
    return found


def some_members_replaced(chance: float, kept: int, cap: int, smallest: int) -> Components:
    """One member replaced: the larger its chance to stay, the worse."""
    inside = chance * min(1.0, kept / max(smallest, 1))
    far, stay = 2 * min(kept, cap), [inside, chance - inside, 1.0 - chance]
    return Components.of(stay, stay, [[2, 2, far], [2, 0, far], [far, far, 0]])


def full_clusters(
    neighbors: Neighbors, chance: float, cap: int, others: list[tuple[float, int]]
) -> tuple[Places, Places]:
    """Where a sum lies in which the changed cluster's records count 1 and all others -1, every cluster full."""
    elsewhere: dict[float, float] = {}
    for p, size in others:
        elsewhere[-float(size)] = elsewhere.get(-float(size), 0.0) + p
    after = float(cap - 1 if neighbors.kind == AR.kind else cap - 2)
    return _joined({float(cap): chance}, elsewhere), _joined({after: chance}, elsewhere)


def taken(neighbors: Neighbors, chance: float, kept: int, cap: int, smallest: int) -> dict[str, tuple[Places, Places]]:
    """Two less the distance to the samples with the record, where `kept` members of each drawn cluster stay.

    Another member in its place is 2 away, another cluster in its cluster's place 2 `kept`.
    """
    found, is_added = {}, neighbors.kind == AR.kind
    members = max(kept, smallest) + 1 if is_added else max(smallest, 1)  # of the changed cluster, with the record
    if kept < members <= cap:
        inside, far = chance * kept / members, 2.0 - 2.0 * kept
        p = _joined({2.0: inside}, {0.0: chance - inside})
        found["another member"] = _joined(p, {far: 1.0 - chance}), _joined({0.0: chance}, {far: 1.0 - chance})
    own = min(kept, cap)
    if smallest <= own - is_added:  # all members stay: as for whole clusters
        found["everybody"] = full_clusters(neighbors, chance, own, [(1.0 - chance, own)])
    return found


def _joined(one: Places, other: Places) -> Places:
    return {at: one.get(at, 0.0) + other.get(at, 0.0) for at in (*one, *other)}


def _check_no_coins(design: Any) -> None:
    if not design.second_size and design.second_stage is not None:
        raise NoTheorem("members kept by coins have theorems of their own")


def _coins(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    """Members kept by coins, by a program over how many are kept."""
    if design.second_size or design.second_stage is None:
        raise NoTheorem("this theorem is about members kept by coins")
    if design.trim:
        raise NoTheorem("trimmed clusters whose members are kept by coins are covered for pure mechanisms")
    if not is_covered(mechanism) or has_a_grid(mechanism):
        raise NoTheorem("members kept by coins have theorems for pure mechanisms and for noise on a line")
    cap, is_replaced = max(design.caps), neighbors.kind == RO.kind
    return transported([by_coins(design.share, design.rate, cap, cap, is_replaced=is_replaced)], mechanism)


def _check_not_exact(design: Any, mechanism: Mechanism) -> None:
    if is_covered_by_gaussian(mechanism) and design.second_stage is None and not design.trim:
        raise NoTheorem("Gaussian noise on whole clusters has an exact theorem of its own")


_OWN = "Gaussian noise and pure mechanisms on whole clusters have theorems of their own, as near and quicker"


def _added_transport(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    _check_not_exact(design, mechanism)
    q, cap = design.share, max(design.caps)
    if design.second_size:
        return transported(some_members(q, design.second_size, cap, design.min_size), mechanism)
    _check_no_coins(design)
    return transported([added(q, cap, cap, displaced=design.trim)], mechanism)


def _replaced_transport(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    _check_not_exact(design, mechanism)
    return _inside(design, mechanism)


def _inside(design: Any, mechanism: Mechanism) -> Profile:
    q, cap = design.share, max(design.caps)
    if design.second_size:
        return transported([some_members_replaced(q, design.second_size, cap, design.min_size)], mechanism)
    _check_no_coins(design)
    return transported([replaced(q, cap, cap)], mechanism)


def _moved_transport(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    if design.trim or design.second_stage is not None:
        return out_and_in(_one_more_or_less(design, mechanism))
    if mechanism.is_gaussian or not is_covered(mechanism):
        raise NoTheorem(_OWN)
    inside = _inside(design, mechanism)
    if design.clusters == 1:
        return inside
    across = transported([moved(design.chosen, design.clusters, max(design.caps))], mechanism)
    return Profile.maximum([inside, across]).symmetrised()


def _one_more_or_less(design: Any, mechanism: Mechanism) -> Profile:
    """The release without the record that leaves and without the one that enters may have a smaller cluster."""
    if design.second_size:
        least = max(design.min_size - 1, 0)
        return transported(some_members(design.share, design.second_size, max(design.caps), least), mechanism)
    if design.second_stage is not None:
        return _coins(design, mechanism, AR)
    return transported([added(design.share, max(design.caps), max(design.caps), displaced=True)], mechanism)


def _one_cluster(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    """One cluster by public chances: every kind of cluster in turn."""
    if is_covered_by_gaussian(mechanism):
        raise NoTheorem(_OWN)
    make = added if neighbors.kind == AR.kind else replaced
    return transported([make(p, cap, max(design.caps)) for p, cap in _kinds(design)], mechanism)


def _one_cluster_moved(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    if mechanism.is_gaussian or not is_covered(mechanism):
        raise NoTheorem(_OWN)
    kinds, largest = _kinds(design), max(design.caps)
    worst = [replaced(p, cap, largest) for p, cap in kinds]
    if len(kinds) > _MOST:
        raise NoTheorem(f"moves are covered between up to {_MOST} kinds of clusters, or for pure mechanisms")
    if len(design.caps) > 1:
        worst += [one_of_several(p, r, max(c, d), largest) for (p, c), (r, d) in product(kinds, repeat=2) if p + r <= 1]
    return transported(worst, mechanism).symmetrised()


def _kinds(design: Any) -> list[tuple[float, int]]:
    pairs = zip(design.probabilities, design.caps, strict=True)
    return list(dict.fromkeys((p, cap) for p, cap in pairs if p > 0.0))


PAGE = "docs/transport.md, Thm 2"
ONE_CLUSTER = (
    Theorem("One cluster, one record more, transport", PAGE, AR.kind, AR.kind, False, _one_cluster, has_noise),
    Theorem(
        "One cluster, one record replaced inside its cluster, transport", PAGE, AR.kind, RO.kind, False, _one_cluster,
        has_noise, scope="within cluster",
    ),
    Theorem(
        "One cluster, one record replaced, transport", PAGE, AR.kind, RO.kind, False, _one_cluster_moved, has_noise
    ),
)  # fmt: skip
THEOREMS = (
    Theorem("Clusters, one record more, transport", PAGE, AR.kind, AR.kind, False, _added_transport, has_noise),
    Theorem(
        "Clusters, one record replaced inside its cluster, transport", PAGE, AR.kind, RO.kind, False,
        _replaced_transport, has_noise, scope="within cluster",
    ),
    Theorem("Clusters, one record replaced, transport", PAGE, AR.kind, RO.kind, False, _moved_transport, has_noise),
    Theorem(
        "Clusters, members by coins, one record more, transport", PAGE, AR.kind, AR.kind, False, _coins, has_noise,
        searches=True,
    ),
    Theorem(
        "Clusters, members by coins, one record replaced inside its cluster, transport", PAGE, AR.kind, RO.kind, False,
        _coins, has_noise, scope="within cluster", searches=True,
    ),
)  # fmt: skip
