"""The freshness of a run's key, the payment for all its steps, and the store's count of the steps begun.

A checkpoint can be copied and resumed twice, which would release more steps than were paid for. So a run with a budget
records each step in the store before it begins; of two copies the first to begin it continues, and the other is
refused.
"""

from collections.abc import Callable
from typing import Any

from ..chance.keys import Key
from ..core.guarantee import Guarantee
from ..core.ledger import REGISTRY, BudgetLike, Payment, certificate_of, check_budget
from ..core.neighbors import Neighbors
from ..errors import InvalidInput
from ..mechanisms.gaussian import Gaussian
from .dpis import DPISPlan
from .plan import Plan
from .run import Run

_JOB = "training"
_CLAIMS = 1000  # in a long run several steps are recorded at once; those not made before a resume are lost
_WITHOUT = (
    "this training was charged to a budget, whose store counts its steps, so it cannot continue without it; give the "
    "budget: PrivacyEngine(budget=Budget.open(…))"
)
_COPY = (
    "another program continued this training from a copy of its checkpoint; continue with the newest copy, or start "
    "again with a fresh key"
)


class PaidSteps:
    """The part of a run that the budget's store has recorded: blocks of steps, and the releases beside them.

    The checkpoint or its journal counts them first, and the store then. So whatever the store counts, a checkpoint that
    may go on has charged for.
    """

    def __init__(self, paid: Payment, plan: Plan | DPISPlan) -> None:
        self._paid = paid
        self._known = paid.past.releases
        self._steps = plan.steps
        self._block = 1 if isinstance(plan, DPISPlan) else -(-plan.steps // _CLAIMS)
        self._mechanism = Gaussian(getattr(plan, "noise_multiplier", 1.0))  # of "dpis" it is chosen on the way

    def follow(self, run: Run) -> None:
        """Continue the recorded part of a run, and record what begins from now on."""
        run.charged = self.take_up(run.charged, run.batches.side_releases)
        run.before_step = lambda: self.begin(run.charged + 1, run.batches.side_releases)
        run.batches.claim = lambda: self.begin(run.charged, run.batches.side_releases)
        run.after_step = lambda: self.commit() if run.is_finished else None

    def take_up(self, steps: int, beside: int) -> int:
        """How many steps count as begun when a checkpoint counts `steps`: all of a recorded block. What the store does
        not have yet (a run that began without a budget, a crash before it was recorded) is recorded now: another copy
        of this checkpoint could otherwise begin the same steps again.
        """
        if self._known > self._counted(steps, beside):
            raise InvalidInput(_COPY)
        begun = max(steps, min((self._known - beside) * self._block, self._steps))  # the last block may be shorter
        while self._known < self._counted(begun, beside):
            self.begin(begun, beside)
        return begun

    def begin(self, steps: int, beside: int) -> None:
        """Record what begins now, before anything of it is drawn."""
        if self._counted(steps, beside) <= self._known:
            return
        try:
            self._paid.record(self._mechanism, self._known, None, claimed=False, trusted=False)
        except InvalidInput as error:
            raise InvalidInput(_COPY if "another program" in str(error) else str(error)) from None
        self._known += 1

    def _counted(self, steps: int, beside: int) -> int:
        return -(-steps // self._block) + beside

    def commit(self) -> None:
        """Record that every step was taken."""
        self._paid.commit()


def check_key(key: Key, stored: dict[str, Any] | None, budget: BudgetLike | None) -> None:
    """Raise for a used key, or a run that would continue without its budget; nothing is charged yet."""
    if budget is not None:
        check_budget(budget)
    if stored is None:
        draw = _draw(key)
        if not key.is_test and REGISTRY.find(draw) is not None:
            REGISTRY.claim(draw, _JOB)  # refuses
    elif stored.get("is_paid") and budget is None:
        raise InvalidInput(_WITHOUT)


def open_run(
    plan: Plan | DPISPlan,
    key: Key,
    certify: Callable[[Neighbors | None], Guarantee],
    budget: BudgetLike | None,
    *,
    resumed: bool,
) -> PaidSteps | None:
    """Reserve the key for this run, and charge the budget for all planned steps, taken or not. A resumed run is not
    charged again. If the budget refuses, the key is still fresh. Test keys may train again, and no budget counts them.
    """
    draw = _draw(key)
    paid = None if budget is None else _charged(plan, key, certify(budget.neighbors), budget, draw, resumed)
    if not key.is_test and REGISTRY.find(draw) is None:
        REGISTRY.claim(draw, _JOB)
    return paid


def _draw(key: Key) -> bytes:
    return key.subkey("job", _JOB).fingerprint


def _charged(
    plan: Plan | DPISPlan, key: Key, whole: Guarantee, budget: BudgetLike, draw: bytes, resumed: bool
) -> PaidSteps:
    delta = getattr(plan, "delta", None)
    terms = {"run": {name: str(value) for name, value in plan.facts().items()}}
    paid = budget.pay_for_sample(
        whole, draw=draw, terms=terms, note=_JOB, delta=delta, key=key.fingerprint,
        certificate=certificate_of(whole, delta), again=resumed,
    )  # fmt: skip
    return PaidSteps(paid, plan)
