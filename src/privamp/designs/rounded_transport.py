"""A fixed share of the records under mechanisms with noise: components of what is drawn (core/transport.py).

A share r of n records is k or k + 1 by chance, f = rn - k. With the record in (a = 1) or out and s others drawn, (a, s)
and s' others are a + |s - s'| apart. For every n the chances lie in a polygon whose corners are two limits and n = 0,
and the bound is convex in the chances, so that it is largest at a corner:

    one record more, f = 0       P: 0, 1, 2 records apart from Q with chances (1-r)^2, r, r(1-r)
    one record more, f = 1 - r   P: in r, out 1 - r; Q: k with chance r, k + 1 with 1 - r; in 1, 2 apart, out 1, 0
    one replaced                 simple random sampling at r

By a rule (q as in `rounded_size`): one record more, 1 apart, or 2 with chance q. Proofs: docs/transport.md, Thm 4.
"""

import math
from fractions import Fraction
from typing import Any

from ..core.hub_plan import Hub
from ..core.line_attack import Places
from ..core.mechanism import Mechanism
from ..core.multiplicity import Multiplicity
from ..core.neighbors import Neighbors
from ..core.profile import Profile
from ..core.theorem import Theorem
from ..core.transport import Components, has_noise, through_hubs, transported
from . import rounded_size as rounded
from .multiplicity import shared_absence

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
PAGE = "docs/transport.md, Thm 4"
_FEWEST = 20  # records: the exact verifier, which asks for sums in smaller cases, does not know distances
_SCANNED = 200  # numbers of records looked at for an attack on sizes rounded by a rule


def one_more(rate: float) -> tuple[Components, Components]:
    """The two corners of one record more, for any number of records."""
    whole = Components.of([(1.0 - rate) ** 2, rate, rate * (1.0 - rate)], [1.0], [[0], [1], [2]])
    carried = Components.of([rate, 1.0 - rate], [rate, 1.0 - rate], [[1, 2], [1, 0]])
    return whole, carried


def hubs_up_to(rate: float) -> tuple[Hub, Hub]:
    """The same for every rate up to this one: more chance at every distance, all from one usual sample."""
    twice = rate * (1.0 - rate) if rate <= 0.5 else 0.25
    some = 1.0 - (1.0 - rate) ** 2
    whole = Hub({0: 1.0 - some, 1: some - twice, 2: twice}, {0: 1.0})
    return whole, Hub({0: 1.0 - rate, 2: rate}, {0: 1.0 - rate, 1: rate})


def by_rule(share: float, apart: int = 0) -> tuple[Hub, Hub]:
    """One record more where sizes are rounded by a rule; `apart` other records differ in any case."""
    return Hub({1 + apart: 1.0}, {0: 1.0}), Hub({2 + apart: share, apart: 1.0 - share}, {0: 1.0})


def hubs(design: Any) -> tuple[Hub, ...]:
    """One record more, in the design's way of rounding."""
    if design.how == "random":
        return hubs_up_to(float(design.share))
    return by_rule(float(rounded.share_kept(design.share, design.how)[1]))


def _added(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    if design.how == "random":
        return transported(one_more(float(design.share)), mechanism)
    return through_hubs(hubs(design), mechanism)


def _replaced(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> Profile:
    share = rounded.share_replaced(design.share, design.how) if design.share else Fraction(0)
    return shared_absence(Multiplicity.binomial(1, float(share)), mechanism, RO)


THEOREMS = (
    Theorem("Fixed share, one record more, transport", PAGE, AR.kind, AR.kind, False, _added, has_noise),
    Theorem("Fixed share, one replaced, transport", PAGE, AR.kind, RO.kind, False, _replaced, has_noise),
)


def noisy_sums(design: Any, mechanism: Mechanism, neighbors: Neighbors) -> dict[Any, Profile]:
    """Sums in which the record stands against all others, at numbers of records that are nearly worst."""
    if neighbors.records > 1 or not design.share:
        return {}
    if neighbors.kind == RO.kind:
        found = {"replaced": _opposite(design, mechanism)}
    else:
        found = {name: mechanism.on_a_line(*scene) for name, scene in _scenes(design).items()}
    return {name: attack for name, attack in found.items() if attack is not None}


def _opposite(design: Any, mechanism: Mechanism) -> Profile | None:
    """The replaced record with all others if the size is certain, or with none."""
    share, most = design.share, design.at_most
    if design.how == "random" and most is not None and share.denominator > most:
        return mechanism.opposite_mixture(float(share))
    if design.how != "random":
        numbers = range(1, min(most or _SCANNED, _SCANNED) + 1)
        share = max(Fraction(rounded.whole_size(design.share, n, design.how), n) for n in numbers)
    return mechanism.mixture(RO, Multiplicity.binomial(1, float(share)))


def _scenes(design: Any) -> dict[str, tuple[Places, Places]]:
    """The record counts 1 and every other -1; without a public bound in the limit of many records."""
    if design.at_most is not None:
        last = design.at_most - 1
        first = math.ceil(math.floor(design.share * last) / design.share)  # its share is nearly whole
        found = {f"{n} others": against_all(design.share, design.share, n, design.how) for n in {first, last}}
        return found | (_seen_sizes(design.share, last) if design.how == "random" else {})
    if design.how != "random":
        return {f"{n} others": against_all(design.share, design.share, n, design.how) for n in range(20)}
    r = float(design.share)
    # a sum of the record and of how far the number of others is from the usual one: both move it in one direction
    whole = {2.0: r * (1.0 - r), 1.0: r, 0.0: (1.0 - r) ** 2}
    carried = {1.0: r, -1.0: 1.0 - r}, {0.0: r, -1.0: 1.0 - r}
    return {"whole": (whole, {0.0: 1.0}), "carried": carried, "alone": ({1.0: r, 0.0: 1.0 - r}, {0.0: 1.0})}


def _seen_sizes(rate: Fraction, last: int) -> dict[str, tuple[Places, Places]]:
    """The record, and how far the number of others is from the usual one, at the most others whose share is whole."""
    others = last - last % rate.denominator
    if others < _FEWEST:
        return {}
    more, inside = rate, rate * others / (others + 1)  # one record more in the sample; the record in, of as many
    whole = {2.0: float((1 - more) * inside), 1.0: float(more), 0.0: float((1 - more) * (1 - inside))}
    return {"whole": (whole, {0.0: 1.0})}


def against_all(after: Fraction, before: Fraction, others: int, how: str) -> tuple[Places, Places]:
    """Where the sum lies with the record (share `after` of all) and without (share `before` of the others)."""
    p: dict[float, float] = {}
    larger = rounded.size_weights(after, others + 1, how)
    for m, weight in larger.items():
        chance, drawn = Fraction(weight, sum(larger.values())), Fraction(m, others + 1)
        for place, part in ((-float(m), 1 - drawn), (2.0 - m, drawn)):
            p[place] = p.get(place, 0.0) + float(chance * part)
    smaller = rounded.size_weights(before, others, how)
    q = {-float(m): float(Fraction(weight, sum(smaller.values()))) for m, weight in smaller.items()}
    return p, q
