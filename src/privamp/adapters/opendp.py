"""OpenDP: measurements that draw a fresh sample at every call, and OpenDP's measurements on samples of privamp.

`Amplified(mechanism, design).measurement()` is a measurement of OpenDP whose function draws with a fresh key, releases
the noisy sum of the sample, and drops the sample. So each invocation is a fresh draw, and OpenDP's compositors,
odometers and Context may add its map up; with `make_population_amplification` the data themselves are the sample, every
measurement uses the same one, and adding up is wrong (OpenDP #2933). The other way is `opendp_measurements.py`.

A map is about every vector of its domain. OpenDP's distances do not depend on the order of records, so the design must
treat all positions alike; and vectors may have any length under add/remove, so the design must draw from any number.

Maps. One added or removed record is distance 1 of SymmetricDistance and InsertDeleteDistance, one replaced record is
distance 1 of ChangeOneDistance and HammingDistance. Distance k > 1 is a chain of k such steps, in either direction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..amplification import amplify
from ..chance.keys import Key
from ..core.curves import group
from ..core.design import Design
from ..core.guarantee import Guarantee
from ..core.ledger import BudgetLike, check_budget
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..errors import InvalidInput
from ..validation import in_range
from .opendp_measurements import mechanism_of, run_on
from .peers import answered, imported

with imported("opendp", "privamp.adapters.opendp"):
    import opendp.prelude as dp
    from opendp.mod import GLOBAL_FEATURES

__all__ = ["Amplified", "mechanism_of", "run_on"]

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


@dataclass(frozen=True, slots=True)
class Amplified:
    """The noisy sum of a fresh sample of numbers, clipped to the mechanism's sensitivity.

    `neighbors` is the design's natural relation by default; it determines the metric of the measurement.
    """

    mechanism: Mechanism
    design: Design
    neighbors: Neighbors | None = None

    def guarantee(self) -> Guarantee:
        """That of one invocation, at distance 1: numbers, relation, theorems, assumptions."""
        return amplify(self.mechanism, self.design, self.neighbors)

    def measurement(self, delta: float = 0.0, *, budget: BudgetLike | None = None) -> Any:
        """OpenDP's measurement: pure (max divergence), or with a `delta` > 0 approximate, the same at every distance.

        Its domain is vectors of floats (of integers where the noise is discrete), under replace-one of the size that
        the design declares. Every invocation is charged to the `budget`, where one is given, before it draws noise.
        """
        in_range(0, 1, delta=delta)
        if budget is not None:
            check_budget(budget)
        _check_features()
        found = self.guarantee()
        relation = found.neighbors
        _check_design(self.design, relation)
        number = _number(self.mechanism)
        upper = found.upper.symmetrised()

        def epsilon(distance: int) -> float:
            return group(upper, distance).rounded_up().epsilon(delta) if distance else 0.0

        def release(records: Sequence[float]) -> float | int:
            sample = self.design.draw(len(records), Key.generate())
            sample._planned([self.mechanism], budget, "OpenDP measurement", delta or None)
            return number(sample.release(self.mechanism, np.asarray(records, dtype=number)))

        with answered("opendp", "making a measurement"):
            atom = dp.atom_domain(T=float, nan=False) if number is float else dp.atom_domain(T=int)
            size = self.design.public_size if relation == RO else None
            domain = dp.vector_domain(atom, size=size)
            metric = dp.change_one_distance() if relation == RO else dp.symmetric_distance()
            pure = dp.max_divergence()
            measure, told = (dp.approximate(pure), lambda d: (epsilon(d), delta)) if delta else (pure, epsilon)
            return dp.m.make_user_measurement(domain, metric, measure, release, told, TO=number)


def _check_design(design: Design, relation: Neighbors) -> None:
    if relation not in (AR, RO) or design.reads:
        raise InvalidInput(
            f"OpenDP's vectors hold only numbers, and its distances count records; {design} under {relation} needs more"
        )
    if not design.treats_alike:
        raise InvalidInput(
            f"OpenDP's distances ignore the order of records, which {design} may depend on; use a design that treats "
            "all positions alike, such as Poisson or WithoutReplacement"
        )
    size = design.public_size
    if relation == RO and size is None:
        raise InvalidInput(
            f"replace-one needs a public number of records, and {design} declares none; use a design of fixed size"
        )
    limits = size, getattr(design, "at_least", 0) or None, getattr(design, "at_most", None)
    if relation == AR and limits != (None, None, None):
        raise InvalidInput(
            f"under add-remove OpenDP's vectors have any length, and {design} draws only from certain numbers of "
            "records, so whether it answers would reveal the number; use Poisson, or a public number of records and "
            "replace-one"
        )


def _number(mechanism: Mechanism) -> type[float] | type[int]:
    """Of which numbers it hides a sum; what could answer no vector is refused before anything is drawn or paid."""
    bound = mechanism.row_bound
    if bound is None or bound.are_replaced or (bound.width or 1) > 1:
        raise InvalidInput(
            f"the measurement clips one number of each record around 0, and {type(mechanism).__name__} as given does "
            "not say how far one added record may move the sum of such numbers; take Laplace, Gaussian or discrete "
            "noise stated for add-remove"
        )
    return int if bound.is_whole else float


def _check_features() -> None:
    absent = {"contrib", "honest-but-curious"} - GLOBAL_FEATURES
    if absent:
        named = ", ".join(repr(name) for name in sorted(absent))
        raise InvalidInput(f"OpenDP makes such measurements only on request; call dp.enable_features({named}) first")
