"""amplify: the privacy of a mechanism run on a sample, by the tightest theorems known for its design."""

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from .accounting.allocation import allocation, allocation_attack
from .accounting.composition import compose
from .accounting.convex_order import POINTS
from .accounting.joint import Joint
from .core.claim import Claim
from .core.curves import group
from .core.design import Design
from .core.guarantee import NOT_PRIVATE, Guarantee, Lower, Part
from .core.ledger import Finished, Ledger
from .core.mechanism import Mechanism
from .core.neighbors import Neighbors, check_relation
from .core.profile import Profile
from .core.schedule import Followed, OneOf, Schedule
from .core.theorem import Theorem
from .errors import PURE_ONLY, DegradingDesign, InvalidInput, NoTheorem
from .mechanisms.black_box import PureDP
from .mechanisms.gaussian_losses import GaussianLosses, covers
from .numerics.printing import shown_up
from .numerics.rounding import margin

ADAPTIVE = "the total over this sample was bounded beforehand (a filter); without a bound it is an odometer's reading"
CLAIMED = "what was run on the sample by Sample.run is as private as it was declared to be"
DECLARED = "the declared sensitivity bounds what one record moves each released function of the sample"
OWN_IDS = ("every record of a person has an id of its own (records that share an id share their chance)",)
AT_LEAST = (
    "every data set has at least as many records as the design declares, also without the record or person in question",
)
Bounds = list[tuple[str, Profile]]  # the name of a theorem, and what it says
_ROUGH = 1200  # points of sums over rounds where they only show where to look
_PROBES = np.concatenate([[0.0], np.geomspace(1e-3, 64.0, 13)])


def amplify(mechanism: Mechanism, design: Design | Schedule, neighbors: Neighbors | None = None) -> Guarantee:
    """Certify `mechanism` on a sample drawn by `design`, or run in every round of a schedule.

    `neighbors=None` reports the relation the design is naturally stated for: add/remove for Poisson, replace-one for
    designs of fixed size. Several queries on one sample are one `Joint` mechanism.

    >>> from privamp import Gaussian, Poisson
    >>> guarantee = amplify(Gaussian(sigma=1.0), Poisson(rate=0.01))
    >>> print(f"{guarantee.delta(1.0):.4e} {guarantee.neighbors}")
    2.7320e-09 add-remove
    """
    if not isinstance(mechanism, Mechanism) or not isinstance(design, (Design, Schedule)):
        raise InvalidInput(
            f"amplify takes a mechanism and a design, got {type(mechanism).__name__} and {type(design).__name__}"
        )
    neighbors = design.natural if neighbors is None else neighbors
    check_relation(neighbors)
    if isinstance(design, Schedule):
        return _over_rounds(mechanism, design, neighbors)
    return guaranteed(mechanism, design, neighbors, theorem_bounds(mechanism, design, neighbors))


def without_attacks(mechanism: Mechanism, design: Design | Schedule, neighbors: Neighbors | None = None) -> Guarantee:
    """`amplify` for searches that read the upper bound only: attacks can take much longer to find."""
    if not (isinstance(design, Design) and isinstance(mechanism, Mechanism)):
        return amplify(mechanism, design, neighbors)
    neighbors = design.natural if neighbors is None else neighbors
    check_relation(neighbors)
    bounds = theorem_bounds(mechanism, design, neighbors)
    return guaranteed(mechanism, design, neighbors, bounds, is_attacked=False)


def roughly(mechanism: Mechanism, design: Design | Schedule, neighbors: Neighbors | None = None) -> Guarantee:
    """`amplify` for the first steps of a search, whose answer another guarantee confirms: see `rough_profile`."""
    if isinstance(design, Schedule) and isinstance(mechanism, Mechanism):
        return _over_rounds(mechanism, design, neighbors or design.natural, _ROUGH)
    relation = neighbors or getattr(design, "natural", None)
    is_attacked = relation is not None and relation.kind == "replace-one"
    return (amplify if is_attacked else without_attacks)(mechanism, design, neighbors)


def guaranteed(
    mechanism: Mechanism, design: Design, neighbors: Neighbors, bounds: Bounds, *, is_attacked: bool = True
) -> Guarantee:
    """The guarantee made of named upper bounds and the lower bounds of the design's attacks."""
    upper = Profile.minimum(p.rounded_up() for _, p in bounds)
    if neighbors.kind == "replace-one":
        upper = upper.symmetrised()  # the two data sets have no order, and may change places from round to round
    found = design.attacks(mechanism, neighbors) if is_attacked else {}
    attacks = {label: attack.rounded_down() for label, attack in found.items()}
    lower = Profile.maximum(attacks.values()) if attacks else None
    several = tuple(attacks.items()) if len(attacks) > 1 else ()
    parts = (Part(upper, lower, claim=Claim(mechanism, design, neighbors), attacks=several),)
    is_counted = neighbors.kind == "add-remove" and _declares_records(design)
    assumed = (*(OWN_IDS if neighbors.records > 1 else ()), *(AT_LEAST if is_counted else ()))
    everybody = Guarantee(
        neighbors=neighbors,
        upper=upper,
        reasons=lambda: _binding(bounds),
        assumes=tuple(dict.fromkeys((*mechanism.assumes, *design.assumes, *assumed))),
        parts=parts,
        lower=Lower(lower) if lower else None,
        degrades=_degrades(mechanism, design, neighbors, upper),
    )

    def personal(record: Any) -> Guarantee:
        """The same release, from the view of one record."""
        own = design.personal(mechanism, neighbors, record)
        if own is None:
            return everybody
        own = Profile.minimum([own.rounded_up(), upper])
        part = (Part(own, None),)
        return replace(everybody, upper=own, parts=part, lower=None)

    return replace(everybody, personal=personal)


def _over_rounds(mechanism: Mechanism, schedule: Schedule, neighbors: Neighbors, points: int = POINTS) -> Guarantee:
    """The composition of the schedule's blocks, each by its own theorem; sums on a grid of about so many points."""
    blocks = schedule.blocks()
    whole = compose([compose(_of_block(mechanism, block, neighbors, points), times) for block, times in blocks])
    if not schedule.is_tight:  # what breaks a block need not break the schedule
        parts = tuple(replace(part, lower=None, claim=None, attacks=()) for part in whole.parts)
        attack = allocation_attack(mechanism, *schedule.joined) if schedule.joined else None
        whole = replace(whole, lower=attack, parts=parts)
    return replace(whole, assumes=tuple(dict.fromkeys((*whole.assumes, *schedule.assumes))))


def _of_block(
    mechanism: Any, block: Design | OneOf | Followed | None, neighbors: Neighbors, points: int = POINTS
) -> Guarantee:
    if block is None:
        return _by_itself(mechanism, neighbors)
    if isinstance(block, OneOf):
        return allocation(mechanism, block, neighbors, points)
    if isinstance(block, Followed):
        return compose(amplify(mechanism, block.design, neighbors), block.rounds, adaptive=True)
    return amplify(mechanism, block, neighbors)


def _by_itself(stated: Any, neighbors: Neighbors) -> Guarantee:
    """What a rule, a filter or a whole job guarantees, computed again from its public fields."""
    if not callable(getattr(stated, "guarantee", None)):
        raise InvalidInput(
            f"a claim needs a design, or a mechanism with a guarantee of its own, got {type(stated).__name__} alone"
        )
    found: Guarantee = stated.guarantee()
    if found.neighbors != neighbors:
        raise InvalidInput(
            f"{type(stated).__name__} is certified under {found.neighbors}, but the claim is about {neighbors}; "
            "state that relation"
        )
    return found


def evaluated(claims: tuple[Claim, ...]) -> Guarantee:
    """The guarantee that these claims make together."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegradingDesign)  # said when the claim was made
        each = [compose(_of_block(c.mechanism, c.design, c.neighbors), c.times) for c in claims]
        return compose(each) if len(each) > 1 else each[0]


def _declares_records(design: Design) -> bool:
    """Whether it declares a number of records: under add/remove that is a lower bound, and smaller data sets are not
    covered."""
    if design.parts:
        return any(_declares_records(part) for _, part in design.parts)
    return design.public_size is not None or getattr(design, "at_least", 0) > 0


def quick_bound(mechanism: Mechanism, design: Design, neighbors: Neighbors | None = None) -> Profile:
    """An upper bound for searches: theorems that solve a program are left out if others apply."""
    asked = neighbors or design.natural
    try:
        bounds = theorem_bounds(mechanism, design, asked, searching=False)
    except NoTheorem:
        bounds = theorem_bounds(mechanism, design, asked)
    found = Profile.minimum(p.rounded_up() for _, p in bounds)
    return found.symmetrised() if asked.kind == "replace-one" else found


def theorem_bounds(mechanism: Mechanism, design: Design, neighbors: Neighbors, *, searching: bool = True) -> Bounds:
    """The bounds of all theorems that cover this relation and mechanism; raises NoTheorem if there are none."""
    mechanism.check_scope(design.keeps_apart)
    bounds: Bounds = []
    reasons: list[str] = []
    known = [m for m in (mechanism, mechanism.covering) if m is not None]
    for theorem in sorted(design.theorems, key=lambda t: not t.settles):
        if theorem.searches and not searching:
            continue
        try:
            covered = next((m for m in known if theorem.covers(m, neighbors)), None)
            if covered is not None:
                bounds.extend(_evaluated(theorem, covered, design, neighbors))
                if theorem.settles and (covered is mechanism or mechanism.is_covered_exactly):
                    return bounds
        except NoTheorem as error:
            reasons.append(str(error))
    if not bounds:
        proved = " or ".join(dict.fromkeys(t.relation for t in design.theorems))
        reasons.sort(key=lambda reason: PURE_ONLY in reason)  # another reason is more informative
        why = reasons[0] if reasons else f"its theorems give {proved}; ask for that relation"
        raise NoTheorem(f"no theorem covers {design} under {neighbors.kind} with this mechanism: {why}")
    return bounds


def _evaluated(theorem: Theorem, mechanism: Mechanism, design: Design, neighbors: Neighbors) -> Bounds:
    if neighbors.records == 1 or theorem.people:
        return [(str(theorem), theorem.bound(design, mechanism, neighbors))]
    one = theorem.bound(design, mechanism, neighbors.per_record)
    found = [(f"{theorem}, then group privacy", group(one, neighbors.records))]
    if theorem.groups:
        found.append((f"{theorem}, for all of a person's records", theorem.bound(design, mechanism, neighbors)))
    return found


def _binding(bounds: Bounds) -> tuple[str, ...]:
    """The smallest set of theorems whose minimum is the bound everywhere (up to rounding)."""
    if len(bounds) == 1:
        return (bounds[0][0],)
    values = np.stack([p.log_delta(_PROBES) for _, p in bounds])
    losses = np.asarray([[p.largest_loss] for _, p in bounds])
    lowest = np.min(values, axis=0)
    attains = values <= lowest + 1e3 * margin(lowest)
    attains = np.hstack([attains[:, lowest > -700.0], losses <= np.min(losses) * (1.0 + 1e-9)])
    used: list[int] = []
    while not np.all(np.any(attains[used], axis=0)):
        missing = attains[:, ~np.any(attains[used], axis=0)]
        used.append(int(np.argmax(np.sum(missing, axis=1))))
    return tuple(bounds[i][0] for i in sorted(used))


def _degrades(mechanism: Mechanism, design: Design, neighbors: Neighbors, upper: Profile) -> bool:
    if design.trades_privacy:
        return False
    try:
        alone = mechanism.profile(neighbors.per_record).largest_loss * neighbors.records
    except NoTheorem:
        return False
    if not (math.isfinite(alone) and upper.largest_loss > alone * (1.0 + 1e-9)):
        return False
    warnings.warn(
        f"{design} loses privacy: epsilon {shown_up(upper.largest_loss, 4)} under {neighbors} where the mechanism on "
        f"all the data has {shown_up(alone, 4)}",
        DegradingDesign,
        stacklevel=4,
    )
    return True


def certify_ledger(
    ledger: Ledger | Finished, design: Design, neighbors: Neighbors | None, *, is_test: bool
) -> Guarantee:
    """The guarantee of a sample's releases: composed inside the sample, amplified once.

    A declared plan and a filter's limit are certified whole, used up or not; without either, what was released.
    """
    whole = _inside(ledger)
    guarantee = amplify(whole, design, neighbors)
    extra = [*ledger.past_assumes, *(a for m in ledger.entries for a in m.assumes)]
    is_open = ledger.filter is not None or len(ledger.entries) < len(ledger.plan or ())
    may_come = is_open and ledger.functions  # a plan is certified as a whole, however much of it is released
    if ledger.has_claims or may_come:
        extra.append(CLAIMED)
    if ledger.has_functions or may_come:
        extra.append(DECLARED)
    if ledger.plan is None and ledger.filter is None and len(ledger.entries) > 1:
        extra.append(ADAPTIVE)
    if is_test:
        extra.append(NOT_PRIVATE)
    because = (ledger.filter.theorem,) if ledger.filter is not None else ()
    return replace(
        guarantee,
        reasons=lambda: (*because, *guarantee.reasons()),
        assumes=tuple(dict.fromkeys((*guarantee.assumes, *extra))),
    )


def _inside(ledger: Ledger | Finished) -> Mechanism:
    """One mechanism for the whole ledger: a declared plan exactly, a filter's limit, or an adaptive sum."""
    if ledger.filter is not None:
        return ledger.filter.whole()
    entries = ledger.plan or ledger.entries
    if not entries:
        return PureDP(0.0)
    if len(entries) == 1:
        return entries[0]
    joint = Joint(entries)
    if joint.is_gaussian:
        return joint  # Gaussian releases may be chosen adaptively: squared shifts add up (docs/ledger.md, Thm 3)
    if all(map(covers, entries)):
        return GaussianLosses(entries)
    if ledger.plan:
        return joint
    losses = [m.profile(joint.neighbors).largest_loss for m in entries]
    if all(math.isfinite(loss) for loss in losses):
        return PureDP(math.fsum(losses), neighbors=joint.neighbors)
    raise NoTheorem(
        "adaptively chosen releases can be composed only if all are pure or all are Gaussian; declare the plan first "
        "(Sample.declare), set a limit first (Sample.limit with a RenyiFilter), or draw a fresh sample"
    )
