"""run: a private bootstrap from the records to the interval."""

from dataclasses import replace
from typing import Any, Unpack

from ..chance.keys import Key, given_key
from ..core.guarantee import NOT_PRIVATE
from ..core.ledger import BudgetLike, whole_job
from ..errors import InvalidInput
from ..validation import in_range, whole
from .bounded import DECLARED, TRUSTED, Bounded
from .direct import direct
from .drawing import Progress, group_averages
from .moments import Mean, Variance
from .planning import Plan, PlanKeywords, PlanOptions, plan
from .quantile import Quantile
from .regression import Regression
from .result import CHECKED, Averages, Result
from .statistic import Statistic

NAMES = "mean, variance, median, quantile:P, regression"


def run(
    values: Any,
    statistic: Any = "mean",
    *,
    bounds: Any = None,
    sensitivity: Any = None,
    options: PlanOptions | None = None,
    key: Key | None = None,
    budget: BudgetLike | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    **asked: Unpack[PlanKeywords],
) -> Result:
    """Release an estimate, its standard error and its interval, all for (epsilon, delta) under replace-one.

    `statistic` is "mean", "variance", "median", "quantile:0.9" (with 32 bins; "quantile:0.9:64" with 64), "regression"
    (values=(X, y), bounds one pair per column of X, then one for y), or a function of the resample's entries whose
    value lies in `bounds` (with `sensitivity`, how far one replaced entry moves it, where that is known to be less).
    Values outside the bounds are clipped to them, and entries that are not numbers (missing, nan, text) count as the
    middle of them.

    `method` is "subsampling", "m-out-of-n", "double" or "little", or for a mean "direct": one release from all the
    data, without resampling, whose interval is narrower. `size` and `resamples` are chosen from public facts only by
    default. They are keywords, or `PlanOptions` with the same names, as are `epsilon`, `delta` and the `confidence` of
    the interval. The number of records is public. A `budget` is charged once, for all of it, before anything is drawn.
    `jobs` threads work at a time, and `progress(done, total)` is called after each step.

    >>> import numpy as np
    >>> from privamp.testing import seeded_key
    >>> found = run(np.arange(2000) % 10, bounds=(0, 10), key=seeded_key(1))
    >>> low, high = found.interval(0.95)
    >>> low < 4.5 < high, found.guarantee.is_private
    (True, False)
    """
    if jobs is not None:
        whole(1, 1024, jobs=jobs)
    if progress is not None and not callable(progress):
        raise InvalidInput(f"progress must be a function of two numbers, got {type(progress).__name__} instead")
    computed = statistic_of(statistic, bounds, sensitivity)
    rows = computed.rows(values)
    chosen = plan(len(rows), options=options, least=computed.least, **asked)
    if chosen.procedure.method == "direct":
        computed = direct(computed, len(rows))
    if isinstance(computed, Bounded):
        computed.probe(rows, chosen.procedure.size)
    key = given_key(key)
    with whole_job("bootstrap", key, chosen.certified, budget, chosen.delta):
        averages = group_averages(chosen, computed, rows, key, jobs, progress)
    return conclude(chosen, computed, averages, key)


def conclude(chosen: Plan, asked: Statistic, averages: Any, key: Key) -> Result:
    """Everything after the release."""
    declared = isinstance(asked, Bounded) and asked.change is not None
    own = (TRUSTED,) * isinstance(asked, Bounded) + (DECLARED,) * declared
    extra = (CHECKED, *own, *(NOT_PRIVATE,) * key.is_test)
    privacy = replace(chosen.guarantee, assumes=(*chosen.guarantee.assumes, *extra))
    return Result.of(Averages(asked.remembered(chosen.procedure.size), chosen, averages), privacy)


def statistic_of(statistic: Any, bounds: Any, sensitivity: Any = None) -> Statistic:
    """The statistic for a name, a function or a statistic object."""
    if isinstance(statistic, Statistic):
        return statistic
    if callable(statistic):
        return Bounded(statistic, bounds, sensitivity)
    word, _, probability = str(statistic).partition(":")
    if sensitivity is not None:
        raise InvalidInput(
            f"sensitivity is only for your own function, because that of {statistic!r} is proved; omit it"
        )
    if word == "regression" and not probability:
        return Regression(bounds)
    if word in ("mean", "variance") and not probability:
        return Mean(bounds) if word == "mean" else Variance(bounds)
    if word == "median" and not probability:
        return Quantile(bounds)
    if word == "quantile":
        share, _, bins = probability.partition(":")
        return Quantile(bounds, _probability(share), _bins(bins)) if bins else Quantile(bounds, _probability(share))
    raise InvalidInput(f"statistic must be one of {NAMES} or a function, got {statistic!r} instead")


def _probability(text: str) -> float:
    try:
        probability = float(text)
    except ValueError:
        raise InvalidInput(f"a quantile must be written as quantile:0.9, got 'quantile:{text}' instead") from None
    in_range(0, 1, open_ends=True, probability=probability)
    return probability


def _bins(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(
            f"the bins of a quantile must be a whole number, as in quantile:0.9:64, got {text!r}"
        ) from None
