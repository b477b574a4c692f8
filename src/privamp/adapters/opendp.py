"""OpenDP: measurements that draw a fresh sample at every call, and OpenDP's measurements on samples of privamp.

`Amplified(mechanism, design).measurement()` is a measurement of OpenDP whose function draws by a fresh key, releases
the noisy sum of the sample, and forgets the sample. So each invocation is a fresh draw, and OpenDP's compositors,
odometers and Context may add its map up; with `make_population_amplification` the data themselves are the sample, every
measurement meets the same one, and adding up is false (OpenDP #2933).

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
from ..core.ledger import BudgetLike
from ..core.mechanism import Mechanism
from ..core.neighbors import Neighbors
from ..core.sample import Sample
from ..errors import InvalidInput
from ..extras import missing
from ..mechanisms.black_box import ApproxDP, PureDP
from ..validation import in_range, whole
from .peers import answered

try:
    import opendp.prelude as dp
    from opendp.mod import GLOBAL_FEATURES
except ModuleNotFoundError as error:
    raise missing(error, "privamp.adapters.opendp") from None

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
_ADDED, _REPLACED = ("SymmetricDistance()", "InsertDeleteDistance()"), ("ChangeOneDistance()", "HammingDistance()")


@dataclass(frozen=True, slots=True)
class Amplified:
    """The noisy sum of a fresh sample of numbers, clipped to the mechanism's sensitivity.

    `neighbors` is the design's natural relation by default; it decides the metric of the measurement.
    """

    mechanism: Mechanism
    design: Design
    neighbors: Neighbors | None = None

    def guarantee(self) -> Guarantee:
        """That of one invocation, at distance 1: numbers, relation, theorems, assumptions."""
        return amplify(self.mechanism, self.design, self.neighbors)

    def measurement(self, delta: float = 0.0, *, budget: BudgetLike | None = None) -> Any:
        """OpenDP's measurement: pure (max divergence), or with a `delta` > 0 approximate, the same at every distance.

        Its domain is vectors of floats, under replace-one of the size that the design declares. Every invocation is
        charged to the `budget`, where one is given, before it draws noise.
        """
        in_range(0, 1, delta=delta)
        _check_features()
        found = self.guarantee()
        relation = found.neighbors
        if relation not in (AR, RO) or self.design.reads:
            raise InvalidInput(
                f"OpenDP's vectors hold numbers alone, and its distances count records; {self.design} under {relation} "
                "needs more"
            )
        if relation == RO and self.design.public_size is None:
            raise InvalidInput(f"replaced records need a public number of records, and {self.design} declares none")
        upper = found.upper.symmetrised()

        def epsilon(distance: int) -> float:
            return group(upper, distance).rounded_up().epsilon(delta) if distance else 0.0

        def release(records: Sequence[float]) -> float:
            sample = self.design.draw(len(records), Key.generate())
            sample._planned([self.mechanism], budget, "OpenDP measurement", delta or None)
            return float(sample.release(self.mechanism, np.asarray(records, dtype=np.float64)))

        with answered("opendp", "making a measurement"):
            size = self.design.public_size if relation == RO else None
            domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size)
            metric = dp.change_one_distance() if relation == RO else dp.symmetric_distance()
            pure = dp.max_divergence()
            measure, told = (dp.approximate(pure), lambda d: (epsilon(d), delta)) if delta else (pure, epsilon)
            return dp.m.make_user_measurement(domain, metric, measure, release, told, TO=float)


def mechanism_of(measurement: Any, *, delta: float | None = None) -> PureDP | ApproxDP:
    """An OpenDP measurement as a black box: what its map says of one record, under the relation of its metric.

    Measures with a curve (zero-concentrated, smoothed) are stated at `delta`.
    """
    with answered("opendp", "reading a measurement"):
        metric, measure = str(measurement.input_metric), str(measurement.output_measure)
        size = getattr(measurement.input_domain, "size", None)
        if metric not in (*_ADDED, *_REPLACED):
            raise InvalidInput(f"{metric} counts none of a sample's records; give a measurement on vectors of records")
        is_added = metric in _ADDED and size is None
        apart = 2 if metric in _ADDED and size is not None else 1  # of a known size: one record out, one in
        relation = AR if is_added else RO
        if measure == "MaxDivergence":
            return PureDP(float(measurement.map(apart)), relation)
        if measure == "Approximate(MaxDivergence)":
            epsilon, lost = measurement.map(apart)
            return ApproxDP(float(epsilon), float(lost), relation)
        if measure not in ("ZeroConcentratedDivergence", "SmoothedMaxDivergence"):
            raise InvalidInput(f"privamp reads no {measure}; convert the measurement to (epsilon, delta) first")
        if delta is None:
            raise InvalidInput(f"a {measure} is a curve; say at which delta=… it counts")
        curve = dp.c.make_zCDP_to_approxDP(measurement) if measure.startswith("Zero") else measurement
        return ApproxDP(float(curve.map(apart).epsilon(delta)), delta, relation)


def run_on(sample: Sample, measurement: Any, records: Sequence[Any], *, delta: float | None = None) -> Any:
    """Run an OpenDP measurement on the sample's records; the sample's guarantee counts it, amplified.

    `records` holds one entry per record of the population. A measurement for a known size runs on samples of that size.
    """
    mechanism = mechanism_of(measurement, delta=delta)
    size = measurement.input_domain.size
    if size is not None and getattr(sample.design, "size", None) != size:
        raise InvalidInput(
            f"the measurement is for {size} records, and OpenDP does not check that; samples by {sample.design} have "
            "not that number for certain"
        )
    whole(sample._ids.size, sample._ids.size, records=len(records))

    def run(drawn: Any, stream: Any) -> Any:
        with answered("opendp", "running a measurement"):
            return measurement([records[i] for i in np.repeat(drawn.positions, drawn.counts)])

    return sample.run(mechanism, run)


def _check_features() -> None:
    absent = {"contrib", "honest-but-curious"} - GLOBAL_FEATURES
    if absent:
        named = ", ".join(repr(name) for name in sorted(absent))
        raise InvalidInput(f"OpenDP makes such measurements on request only; call dp.enable_features({named}) first")
