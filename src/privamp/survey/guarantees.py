"""Guarantees by stratum: records in thinly sampled strata are better protected than those in fully counted ones."""

from dataclasses import replace

from ..amplification import amplify
from ..core.design import Design
from ..core.guarantee import Guarantee
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..errors import InvalidInput


def guarantees(design: Design, mechanism: Mechanism, neighbors: Neighbors | None = None) -> dict[str | int, Guarantee]:
    """One guarantee per stratum, for a change inside it; a record that changes its stratum loses the sum of two.

    >>> from privamp import Poisson, PureDP, Stratified
    >>> each = guarantees(Stratified({"shops": Poisson(0.1), "mines": Poisson(0.5)}), PureDP(1.0))
    >>> {name: round(g.epsilon(), 4) for name, g in each.items()}
    {'mines': 0.6201, 'shops': 0.1586}
    """
    if not isinstance(design, Design) or not design.parts:
        raise InvalidInput(f"guarantees takes a Stratified design, got {type(design).__name__} instead")
    plain = replace(neighbors or design.natural, scope="anywhere")
    return {name: amplify(mechanism.in_stratum(name), part, plain) for name, part in design.parts}
