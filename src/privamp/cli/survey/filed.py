"""Documentation of a survey: the frame, the design with its sizes and weights, and who knows the sample.

Only public facts: where the number of records is secret (add/remove), neither it nor the number drawn is shown.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..console import number

if TYPE_CHECKING:
    from ...core.design import Design
    from ...core.release import Release
    from .population import Records

Table = tuple[list[str], list[list[str]], str]
SUMMARY = (
    "Estimates have two errors: the sampling error, because not everyone was asked, and the noise, which protects "
    "everyone in the frame. The interval accounts for both. It does not account for values outside the bounds, or "
    "for nonrespondents who differ from the respondents of their class."
)


def facts_of(records: "Records", is_public: bool) -> list[tuple[str, str]]:
    """The frame in words."""
    columns = ", ".join(f"{role}: {column}" for role, column in records.roles.items())
    size = f"{records.size:,} records" if is_public else "a secret number of records"
    return [("frame", f"{records.name}, {size}" + (f" ({columns})" if columns else ""))]


def tables_of(design: "Design") -> list[Table]:
    """Sizes and weights, where they are public."""
    from ...core.weighting import Coins, Subset

    rows = []
    for name, part in design.parts or (("everybody", design),):
        chances: Any = part.equal_chances
        if isinstance(chances, Subset):
            many = f"{chances.size:,}", number(chances.population / chances.size)
            rows.append([str(name), f"{chances.population:,}", *many])
        elif isinstance(chances, Coins):
            rows.append([str(name), "secret", f"probability {number(chances.rate)} each", number(1.0 / chances.rate)])
    if not rows:
        weight = design.weight
        rows.append(["everybody", "as declared", str(design.spec or design), number(weight) if weight else "by record"])
    return [(["stratum", "records", "drawn", "weight"], rows, "Design weights: one over the drawing probability.")]


def effects_of(each: "Mapping[str, Release]") -> list[tuple[str, str]]:
    """Design effects of the estimates that have one."""
    told = [(name, one.details["design_effect"]) for name, one in each.items() if "design_effect" in one.details]
    words = [(f"{name}: " if name else "") + ("hidden by noise" if x is None else number(x)) for name, x in told]
    return [("design effect", ", ".join(words))] if words else []
