"""OpenDP's measurements as mechanisms of privamp, and on its samples.

A mechanism of privamp is about the records of a sample, in whatever order. That is what SymmetricDistance and
ChangeOneDistance are about. InsertDeleteDistance counts a record that comes or goes at any place, so with records in
the order of the population one record is one step, too. HammingDistance compares position by position, and a sample
with another record instead may have it at another position, with all between moved: one record may be many steps, so
there is no guarantee for one record. For records in a random order there is one, and `run_on` shuffles them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.neighbors import Neighbors
from ..core.sample import Sample
from ..errors import InvalidInput
from ..mechanisms.black_box import ApproxDP, PureDP
from ..validation import whole
from .batches import check_certified
from .peers import answered, imported

with imported("opendp", "privamp.adapters.opendp"):
    import opendp.prelude as dp

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
_ADDED, _REPLACED = ("SymmetricDistance()", "InsertDeleteDistance()"), ("ChangeOneDistance()", "HammingDistance()")
_BY_PLACE = "HammingDistance()"


def mechanism_of(measurement: Any, *, delta: float | None = None) -> PureDP | ApproxDP:
    """An OpenDP measurement as a black box: with the value of its map for one record, under the relation of its metric.

    Measures with a curve (zero-concentrated, smoothed) are stated at `delta`. Give it records in the population's
    order.
    """
    if _metric(measurement) == _BY_PLACE:
        raise InvalidInput(
            "HammingDistance compares records position by position, and those of a sample change positions; use "
            "change_one_distance, or run_on, which shuffles them"
        )
    return _black_box(measurement, delta)


def _metric(measurement: Any) -> str:
    with answered("opendp", "reading a measurement"):
        return str(measurement.input_metric)


def _black_box(measurement: Any, delta: float | None) -> PureDP | ApproxDP:
    with answered("opendp", "reading a measurement"):
        metric, measure = str(measurement.input_metric), str(measurement.output_measure)
        size = getattr(measurement.input_domain, "size", None)
        if metric not in (*_ADDED, *_REPLACED):
            raise InvalidInput(f"{metric} does not count records; give a measurement on vectors of records")
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
            raise InvalidInput(f"a {measure} is a curve; give delta=… to convert it")
        curve = dp.c.make_zCDP_to_approxDP(measurement) if measure.startswith("Zero") else measurement
        return ApproxDP(float(curve.map(apart).epsilon(delta)), delta, relation)


def run_on(sample: Sample, measurement: Any, records: Sequence[Any], *, delta: float | None = None) -> Any:
    """Run an OpenDP measurement on the sample's records; the sample's guarantee counts it, amplified.

    `records` holds one entry per record of the population. A measurement for a known size runs on samples of that size.
    """
    mechanism, by_place = _black_box(measurement, delta), _metric(measurement) == _BY_PLACE
    size = measurement.input_domain.size
    if size is not None and sample.design.sample_size != size:
        raise InvalidInput(
            f"the measurement is for {size} records, and OpenDP does not check that; samples by {sample.design} may "
            "have another number"
        )
    whole(sample._ids.size, sample._ids.size, records=len(records))
    check_certified(mechanism, sample.design)

    def run(drawn: Any, stream: Any) -> Any:
        places = np.sort(np.repeat(drawn.positions, drawn.counts))
        if by_place:
            places = places[stream.permutation(places.size)]
        with answered("opendp", "running a measurement"):
            return measurement([records[i] for i in places])

    return sample.run(mechanism, run)
