"""Private choice among settings: the best of a random number of runs, and what it costs.

Theorem (in the relation of the runs). The number of runs K is geometric, P[K = k] = g (1-g)^(k-1),
each run draws its setting at random and all are independent given K; only the run with the best score is released. If
the Rényi divergences of one run are at most e(a) at order a > 1 and e(b) at order b > 1, in both directions, that of
the release at order a is at most e(a) + 2 (1 - 1/b) e(b) + (2/b) log(1/g) + log(1/g)/(a - 1).
Papernot & Steinke 2022, Theorem 2 with eta = 1. A setting drawn at random is part of a run. Ties: the first of the
best; as runs are exchangeable this has the law of an independent tie-breaker, which is part of a run too.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..accounting.composition import compose
from ..accounting.renyi import renyi_curve
from ..chance.keys import Key, given_key
from ..chance.stream import Stream
from ..core.guarantee import Guarantee
from ..core.profile import Profile
from ..errors import InvalidInput, NoTheorem
from ..numerics.printing import as_asked, shown_up
from ..validation import in_range, whole

_ORDERS = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 128.0)
_MOST_RUNS = 4096.0  # then 2^64/mean_runs is a whole number, and a word decides a coin exactly


@dataclass(frozen=True, slots=True)
class ChoicePrice:
    """Epsilon at `delta` of one run, of all settings composed, and of the best of a random number of runs."""

    delta: float
    settings: int
    mean_runs: float
    one_run: float
    composed: float
    random_stopping: float

    def __str__(self) -> str:
        return (
            f"epsilon at delta {as_asked(self.delta)}: one run {shown_up(self.one_run, 4)}; all {self.settings} "
            f"settings, everything published {shown_up(self.composed, 4)}; best of {self.mean_runs:g} runs on average, "
            f"only it published {shown_up(self.random_stopping, 4)}"
        )


class Chosen(NamedTuple):
    """The best run: its setting, its score and what `train` gave."""

    setting: Any
    score: float
    result: Any


def chosen_loss(one: float, other: float, order: float, other_order: float, mean_runs: float) -> float:
    """The theorem: the divergence of order `order` of the best run, rounded up."""
    runs = math.log(mean_runs)
    total = one + 2.0 * (1.0 - 1.0 / other_order) * other + 2.0 * runs / other_order + runs / (order - 1.0)
    return total * (1.0 + 1e-12)


def choice_price(guarantee: Guarantee, *, settings: int, mean_runs: float, delta: float) -> ChoicePrice:
    """What a choice among `settings` costs, when each run has this guarantee.

    `composed`: every setting is trained once and everything is published. `random_stopping`: `private_choice` with
    `mean_runs`, and only the best run is published.
    """
    whole(1, settings=settings)
    check_runs(mean_runs)
    in_range(0, 1, open_ends=True, delta=delta)
    losses = {order: guarantee.renyi(order) for order in _ORDERS}
    finite = {order: loss for order, loss in losses.items() if math.isfinite(loss)}
    if not finite:
        raise NoTheorem(
            "the theorem of random stopping needs a finite Rényi divergence, and this guarantee has none; compose the "
            "runs instead"
        )
    other = min(finite, key=lambda order: chosen_loss(0.0, finite[order], 2.0, order, mean_runs))
    curves = [
        renyi_curve(order, chosen_loss(loss, finite[other], order, other, mean_runs)) for order, loss in finite.items()
    ]
    stopped = Profile.minimum(Profile.symmetric(curve) for curve in curves).epsilon(delta)
    return ChoicePrice(
        delta,
        settings,
        float(mean_runs),
        guarantee.epsilon(delta),
        compose(guarantee, settings).epsilon(delta),
        stopped,
    )


def private_choice(
    settings: Sequence[Any], train: Callable[[Any, Key], tuple[float, Any]], *, mean_runs: float, key: Key | None = None
) -> Chosen:
    """The best of a random number of runs, `mean_runs` on average, each with a setting drawn at random.

    `train(setting, key)` makes one run under its own key, and returns (score, result); larger scores are better. Formal
    guarantee: `choice_price(...).random_stopping`, if every run, score included, has the guarantee that is given there.
    How many runs there were is secret, also as a running time.
    """
    check_runs(mean_runs)
    if not len(settings):
        raise InvalidInput("settings must have at least one entry, got none instead")
    own = given_key(key)
    stream, best, run = Stream(own.subkey("choice")), None, 0
    is_over = False
    while not is_over:
        setting = settings[int(stream.below(len(settings), 1)[0])]
        score, result = train(setting, own.subkey("run", run))
        score = -math.inf if math.isnan(score) else float(score)
        if best is None or score > best.score:
            best = Chosen(setting, score, result)
        run += 1
        is_over = int(stream.words(1)[0]) < int(math.ldexp(1.0 / mean_runs, 64))
    assert best is not None
    return best


def check_runs(mean_runs: float) -> None:
    """Raise unless this can be the mean of a geometric number of runs."""
    in_range(1, _MOST_RUNS, mean_runs=mean_runs)
