"""The freshness of a run's key and the payment for all its steps, taken before anything is drawn."""

from collections.abc import Callable

from ..chance.keys import Key
from ..core.guarantee import Guarantee
from ..core.ledger import REGISTRY, BudgetLike, Payment, certificate_of, check_budget
from ..core.neighbors import Neighbors
from ..mechanisms.gaussian import Gaussian
from .dpis import DPISPlan
from .plan import Plan

_JOB = "training"


def open_run(
    plan: Plan | DPISPlan,
    key: Key,
    certify: Callable[[Neighbors | None], Guarantee],
    budget: BudgetLike | None,
    *,
    resumed: bool,
) -> Payment | None:
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
) -> Payment:
    delta = getattr(plan, "delta", None)
    terms = {"run": {name: str(value) for name, value in plan.facts().items()}}
    paid = budget.pay_for_sample(
        whole, draw=draw, terms=terms, note=_JOB, delta=delta, key=key.fingerprint,
        certificate=certificate_of(whole, delta), again=resumed,
    )  # fmt: skip
    if paid.past.releases == 0:
        multiplier = getattr(plan, "noise_multiplier", 1.0)  # of "dpis" it is chosen on the way
        paid.record(Gaussian(multiplier), 0, None, claimed=False, trusted=False)
    return paid
