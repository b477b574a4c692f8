"""The freshness of a run's key, the payment for all its steps, and the store's count of the steps begun.

A checkpoint can be copied and gone on with twice, which would release more steps than were paid for. So a run with a
budget writes into the store, before it begins a step, that the step is begun; of two copies the first to begin it goes
on, and the other is refused.
"""

from collections.abc import Callable

from ..chance.keys import Key
from ..core.guarantee import Guarantee
from ..core.ledger import REGISTRY, BudgetLike, Payment, certificate_of, check_budget
from ..core.neighbors import Neighbors
from ..errors import InvalidInput
from ..mechanisms.gaussian import Gaussian
from .dpis import DPISPlan
from .plan import Plan

_JOB = "training"
_CLAIMS = 1000  # in a long run several steps are written down at once; those not made before a resume are lost
_COPY = (
    "another program went on with this training from a copy of its checkpoint; go on with the newest copy, or train "
    "anew with a fresh key"
)


class PaidSteps:
    """What of a run its budget's store knows to be begun: blocks of steps, and the releases beside them.

    The checkpoint or its journal counts them first, and the store then. So whatever the store counts, a checkpoint that
    may go on has charged for.
    """

    def __init__(self, paid: Payment, plan: Plan | DPISPlan) -> None:
        self._paid = paid
        self._known = paid.past.releases
        self._block = 1 if isinstance(plan, DPISPlan) else -(-plan.steps // _CLAIMS)
        self._mechanism = Gaussian(getattr(plan, "noise_multiplier", 1.0))  # of "dpis" it is chosen on the way

    def take_up(self, steps: int, beside: int) -> int:
        """How many steps count as begun when a checkpoint counts `steps`: all of a block that was written down."""
        if self._known > self._counted(steps, beside):
            raise InvalidInput(_COPY)
        return max(steps, (self._known - beside) * self._block)

    def begin(self, steps: int, beside: int) -> None:
        """Write down what begins now, before anything of it is drawn."""
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
        """Every step was taken."""
        self._paid.commit()


def open_run(
    plan: Plan | DPISPlan,
    key: Key,
    certify: Callable[[Neighbors | None], Guarantee],
    budget: BudgetLike | None,
    *,
    resumed: bool,
) -> PaidSteps | None:
    """Take the key for this run, and charge the budget for all planned steps, taken or not.

    A run that is taken up from its checkpoint goes on under its first payment. When the budget refuses, the key is as
    fresh as before. Keys of tests may train again, and no budget counts them.
    """
    draw = key.subkey("job", _JOB).fingerprint
    if not resumed and not key.is_test and REGISTRY.find(draw) is not None:
        REGISTRY.claim(draw, _JOB)  # refuses, before anything is paid
    if budget is not None:
        check_budget(budget)
    paid = None if budget is None else _charged(plan, key, certify(budget.neighbors), budget, draw, resumed)
    if not key.is_test and REGISTRY.find(draw) is None:
        REGISTRY.claim(draw, _JOB)
    return paid


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
