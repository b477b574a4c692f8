"""One private fit, from the table to the released centres."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounting.joint import Joint
from ..chance.keys import Key
from ..core.bounds import is_number, pairs_of
from ..core.guarantee import Guarantee
from ..core.influence import Influence
from ..core.ledger import BudgetLike, whole_job
from ..core.neighbors import Neighbors
from ..core.population import UNNAMED, Population
from ..core.sample import Sample, SeededSample
from ..designs.importance import ImportanceSampling
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..numerics.row_norms import norms
from ..rules.rule import Rule
from ..validation import in_range, one_of, positive, whole
from . import exact
from .ball import Ball
from .first_look import MIDDLES, FirstLook, look
from .fit_plan import Split, choose
from .privacy_spend import FirstNoise, PrivacySpend, Promise
from .private_ball import MEDIAN, SHARE, most_for_ball, private_ball, private_center, private_radius
from .sampling import Target, make_rule, noise_level
from .steps import MakeSums, Progress, Rows, Steps
from .threads import ThreadPool

_WIDEST = 1e150  # of which squares are still doubles
_FEW = 0.4  # of the first look, where a private ball found too few records to count: they show little but their mean
_ALMOST_ALL = 0.999999  # of epsilon, before the steps
SAMPLERS = ("privacy-constrained", "coreset", "uniform")


@dataclass(frozen=True, slots=True)
class Request:
    """The checked parameters of a fit."""

    clusters: int
    epsilon: float
    delta: float
    sampler: str | None
    size: float | None
    is_gaussian: bool
    radius: float | None  # None: private
    center: FloatArray | None = field(repr=False)  # None: private
    n_iter: int
    init: str | FloatArray = field(repr=False)
    first_look: float

    @classmethod
    def of(cls, model: Any, columns: int) -> "Request":
        """From an estimator's parameters; raises for the first that breaks a rule."""
        whole(1, n_clusters=model.n_clusters)
        whole(1, n_iter=model.n_iter)
        if model.epsilon is None:
            raise InvalidInput("epsilon must be chosen before a fit, got None instead; for example epsilon=1.0")
        positive(epsilon=model.epsilon)
        if model.sampler is not None:
            one_of(SAMPLERS, sampler=model.sampler)
        if model.sample_size is not None:
            positive(sample_size=model.sample_size)
        in_range(0, 1, open_ends=True, first_look=model.first_look)
        ball = _public_ball(model, columns)
        _room_for(model.first_look, most_for_ball(ball[0] is None, ball[1] is None))
        return cls(
            int(model.n_clusters), float(model.epsilon), _delta(model), model.sampler, model.sample_size,
            model.noise == "gaussian", *ball, int(model.n_iter),
            _init(model.init, model.n_clusters, columns), float(model.first_look),
        )  # fmt: skip

    def paid(self, key: Key, budget: BudgetLike | None) -> AbstractContextManager[Callable[[Guarantee], None]]:
        """Context of a fit: its key is fresh, and all of it is charged before the first look."""
        promise = Promise(self.epsilon, self.delta)
        return whole_job("k-means", key, lambda neighbors: promise.guarantee(), budget, self.delta or None)


def _room_for(first_look: float, ball: float) -> None:
    """Something must be left for the steps, however much of its share the ball takes."""
    most = _ALMOST_ALL - ball
    if first_look > most:
        why = f" with a private ball, which takes up to {ball:g} of epsilon" if ball else ""
        raise InvalidInput(f"first_look must be at most {most:.9g}{why}, got {first_look!r} instead")


def _delta(model: Any) -> float:
    one_of(("norm", "gaussian"), noise=model.noise)
    in_range(0, 1, delta=model.delta)
    if model.noise == "norm" and model.delta != 0:
        raise InvalidInput(
            f'delta must be 0 with noise="norm", got {model.delta!r} instead; use noise="gaussian" for a delta above 0'
        )
    if model.noise == "gaussian" and not 0 < model.delta < 1:
        raise InvalidInput(f'noise="gaussian" needs a delta strictly between 0 and 1, got {model.delta!r} instead')
    return float(model.delta)


def _public_ball(model: Any, columns: int) -> tuple[float | None, FloatArray | None]:
    """Radius and centre as they are given, or those of the smallest ball about the bounds; None where private."""
    if model.bounds is None:
        return _radius(model.radius), _center(model.center, columns)
    if model.radius is not None or model.center is not None:
        raise InvalidInput("give bounds= of the columns, or radius= and perhaps center= of the ball, but not both")
    if is_number(model.bounds):
        return _radius(model.bounds), np.zeros(columns)
    low, high = np.array(pairs_of(model.bounds, columns)).T
    half = 0.5 * high - 0.5 * low
    return _radius(float(norms(half[None, :], 2.0)[0])), 0.5 * low + 0.5 * high


def _radius(radius: Any) -> float | None:
    if radius is None:
        raise InvalidInput(
            "radius must be chosen before a fit, got None instead; "
            'give a public bound on the norms, bounds= of the columns, or radius="private"'
        )
    if isinstance(radius, str) and radius == "private":
        return None
    positive(radius=radius)
    if radius > _WIDEST:
        raise InvalidInput(f"the radius of the ball must be at most {_WIDEST:g}, got {radius:g}; scale the columns")
    return float(radius)


def _center(center: Any, columns: int) -> FloatArray | None:
    if center is None:
        return np.zeros(columns)
    if isinstance(center, str):
        one_of(("private",), center=center)
        return None
    return _points(center, (columns,), "center")


def _init(init: Any, clusters: int, columns: int) -> str | FloatArray:
    if isinstance(init, str):
        one_of(("spread", "ball"), init=init)
        return init
    return _points(init, (clusters, columns), "init")


def _points(values: Any, shape: tuple[int, ...], name: str) -> FloatArray:
    try:
        points = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        points = np.empty(0)
    if points.shape != shape or not np.all(np.isfinite(points)):
        raise InvalidInput(f"{name} must be finite numbers of shape {shape}, got something else")
    return points


@dataclass(frozen=True, slots=True)
class Fitted:
    """The result of a fit: released numbers and public rules, nothing secret."""

    centres: FloatArray = field(repr=False)
    counts: FloatArray = field(repr=False)
    records: float
    sample_size: float
    ball: Ball
    rule: Rule
    plan: Joint
    epsilon: float
    delta: float
    left: float  # of epsilon, for the sample
    paid: tuple[FirstNoise, ...]  # before the sample
    what: tuple[str, ...]  # was released by each
    noise_error: FloatArray = field(repr=False)  # of every centre in the last step, in the units of the data
    columns: NDArray[np.intp] = field(repr=False)  # in which centres differ; in the others all are at the overall mean

    @property
    def budget(self) -> list[tuple[str, float, float]]:
        """What was released, its epsilon and its delta, in the order it was spent."""
        spent = [mechanism.profile(Neighbors.ADD_REMOVE).epsilon() for mechanism in self.paid]
        first = [(what, cost, 0.0) for what, cost in zip(self.what, spent, strict=True)]
        return [*first, (_said(self.steps), self.left, self.delta)]

    @property
    def steps(self) -> int:
        """Lloyd steps; the overall mean comes before them."""
        return len(self.plan.mechanisms) - 1


def _said(steps: int) -> str:
    after = f" and {steps} noisy step{'s' if steps > 1 else ''}" if steps else ""
    return f"noisy overall mean{after} on one sample"


def run(
    request: Request, X: NDArray[Any], key: Key, pool: ThreadPool, progress: Progress | None = None
) -> tuple[Fitted, Guarantee]:
    """Fit the table."""
    bill = PrivacySpend(request.epsilon, request.delta, key)
    ball = _ball(request, bill, X, pool)
    share = request.first_look * (_FEW if MEDIAN in bill.what else 1.0)
    seen, lengths = look(bill, ball, X, share * request.epsilon, pool)

    def draw(rule: Rule) -> tuple[Sample, MakeSums]:
        sample = ImportanceSampling(rule).draw(Population(len(X), UNNAMED, x=lengths), key, over=pool.map)
        return sample, partial(Rows, ball, X, lengths, pool)

    return after_first_look(request, bill, ball, seen, draw, pool, progress)


def after_first_look(
    request: Request,
    bill: PrivacySpend,
    ball: Ball,
    seen: FirstLook,
    draw: Callable[[Rule], tuple[Sample, MakeSums]],
    pool: ThreadPool,
    progress: Progress | None = None,
) -> tuple[Fitted, Guarantee]:
    """The rest of a fit. `draw` gives a rule's sample, and what adds up its rows."""
    key = bill.key
    target = Target(bill.left, request.delta, request.sampler, request.size)
    d = ball.center.size
    every = Split(request.is_gaussian, d, seen.mean_square)
    scheme = choose(seen, request.clusters, request.n_iter, request.is_gaussian, noise_level(target, seen, every))
    level = noise_level(target, seen, scheme.split)
    joint = Joint(scheme.mechanisms(level, d))
    rule = make_rule(target, seen, Influence.total([m.influence for m in scheme.mechanisms(level, d)]))
    sample, make = draw(rule)
    sample = SeededSample.if_test(sample)
    sample.declare(joint.mechanisms, functions=False)
    rows = make(scheme.columns, exact.bits_for(seen.records), _sum_bits(rule, seen))
    found = Steps(ball, scheme, level, request.clusters, request.init, key).run(sample, rows, progress)
    fitted = Fitted(
        centres=found.centres,
        counts=found.counts,
        records=seen.records,
        sample_size=rule.expected_size(MIDDLES, seen.histogram),
        ball=ball,
        rule=rule,
        plan=joint,
        epsilon=request.epsilon,
        delta=request.delta,
        left=bill.left,
        paid=tuple(bill.paid),
        what=tuple(bill.what),
        noise_error=found.noise_error,
        columns=scheme.columns if scheme.steps else np.arange(0),
    )
    return fitted, bill.then(joint, rule).certified(sample.guarantee())


def _sum_bits(rule: Rule, seen: FirstLook) -> int:
    """How fine weighted records may be added up: from the rule's largest weight and the noisy number of records."""
    return exact.bits_for(seen.records, float(rule.weights_of_norms([0.0])[0]))


def _ball(request: Request, bill: PrivacySpend, X: NDArray[Any], pool: ThreadPool) -> Ball:
    if request.center is not None:
        radius = request.radius or private_radius(bill, X, request.center, SHARE, pool).length
        return Ball(request.center, radius)
    if request.radius is not None:
        return Ball(private_center(bill, X, request.radius, SHARE, pool), request.radius)
    return private_ball(bill, X, pool)
