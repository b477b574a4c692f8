"""check_schedule: every schedule's bound against exact results on small cases, and its sampler against its law.

The truth is found by enumeration: all ways in which the records join the rounds, and all answers of a randomised
response that reports in each round whether the changed record (or an odd number of records) is there. In the adaptive
variant the question of a round is inverted whenever the previous answer was yes. Every check must catch a planted
mistake: a bound 1% too small, a sampler broken in 30% of its draws.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np

from ..core.curves import pair_profile
from ..core.population import Population
from ..core.profile import Profile
from ..core.schedule import Meetings, Schedule
from ..errors import InvalidInput
from ..numerics.log_domain import FloatArray
from ..validation import whole
from .checks import ATTACK_SLACK, DELTA_SLACK, DRAWS, _Count, kind_of
from .report import Report, Tally
from .sampler import FALSE_ALARM, contaminated, follows_law
from .symmetry import Units

_MANY = 1000  # more than any id of a small case
_EQUAL = 2e-3  # relative: what the grid may cost
Question = Callable[[Units], bool]


def check_schedule(schedule_class: type[Schedule], *, checks: int = 40, seed: int = 0) -> Report:
    """Compare `checks` guarantees with enumerated truths, each at several epsilons, and test the sampler."""
    if not (isinstance(schedule_class, type) and issubclass(schedule_class, Schedule)):
        raise InvalidInput(
            "check_schedule takes the class of a schedule (BallsInBins, not BallsInBins(10)), "
            f"got {kind_of(schedule_class)}; use check_design for designs"
        )
    whole(1, checks=checks)
    random, cases = np.random.default_rng(seed), list(schedule_class.small_cases())
    counts = [
        _Count("upper bounds"),
        _Count("attacks", fresh=False),
        _Count("tight bounds", fresh=False),
        _Count("bounds 1% too small are caught", fresh=False),
    ]
    for i in range(checks):
        schedule, others = cases[int(random.permutation(len(cases))[0])] if i >= len(cases) else cases[i]
        _check_case(schedule, others, float(random.uniform(0.3, 2.5)), counts)
    return Report(schedule_class.__name__, (*(c.tally() for c in counts), *_check_sampler(cases, seed)))


def _check_case(schedule: Schedule, others: int, strength: float, counts: list[_Count]) -> None:
    from ..amplification import amplify
    from ..mechanisms.black_box import PureDP

    upper, attacks, tight, teeth = counts
    guarantee = amplify(PureDP(strength, neighbors=schedule.natural), schedule)
    epsilons = np.asarray([0.05, 0.3, 0.7]) * strength
    for larger, smaller in schedule.neighboring(others, schedule.natural):
        truths = {
            (name, adaptive): np.asarray(
                exact_schedule(schedule, larger, smaller, question, strength, adaptive).delta(epsilons)
            )
            for (name, question), adaptive in product(_questions(larger, smaller).items(), (False, True))
        }
        claims = np.asarray(guarantee.delta(epsilons))
        case = f"{schedule} with {others} others, epsilon {strength:.4g}"
        worst = np.max(list(truths.values()), axis=0)
        alone = truths["the changed record", False]
        for e, claim, truth, reached in zip(epsilons, claims, worst, alone, strict=True):
            said = f"{case}, delta({e:.4g}): {claim:.9g} for {truth:.9g}"
            upper.compare(bool(claim >= truth - DELTA_SLACK), said)
            if guarantee.lower is not None:
                attack = float(guarantee.lower.delta(e))
                attacks.compare(attack <= reached + ATTACK_SLACK, f"{said}, attack {attack:.9g}, not {reached:.9g}")
            if schedule.is_tight:
                tight.compare(bool(claim <= reached * (1 + _EQUAL) + 1e-9), said)
                if reached > 1e-6:
                    teeth.compare(bool(0.99 * claim < reached), f"{said}: 1% less was not caught")


def _questions(larger: Population, smaller: Population) -> dict[str, Question]:
    """What randomised response may be asked about a round; each answer changes when one record comes or goes."""
    changed = (set(larger.ids.tolist()) - set(smaller.ids.tolist())).pop()
    questions: dict[str, Question] = {"the changed record": lambda units: changed in units}
    if larger.size != smaller.size:
        questions["an odd number"] = lambda units: len(units) % 2 == 1
    return questions


def exact_schedule(
    schedule: Schedule, larger: Population, smaller: Population, question: Question, strength: float, adaptive: bool
) -> Profile:
    """The exact profile of randomised response in every round."""
    laws = [_answers(schedule, population, question, strength, adaptive) for population in (larger, smaller)]
    with np.errstate(divide="ignore"):
        return pair_profile(np.log(laws[0]), np.log(laws[1]))


def _answers(
    schedule: Schedule, population: Population, question: Question, strength: float, adaptive: bool
) -> FloatArray:
    """The probability of every sequence of answers."""
    yes: dict[tuple[bool, ...], float] = {}
    for meetings, chance in schedule.law(population):
        there = tuple(question(units) for units in meetings)
        yes[there] = yes.get(there, 0.0) + float(chance)
    honest = 1.0 / (1.0 + math.exp(-strength))
    total = []
    for answers in product((False, True), repeat=schedule.steps):
        turned = [adaptive and before for before in (False, *answers[:-1])]
        total.append(
            math.fsum(
                chance
                * math.prod(
                    honest if (a ^ t) == is_there else 1.0 - honest
                    for a, t, is_there in zip(answers, turned, there, strict=True)
                )
                for there, chance in yes.items()
            )
        )
    return np.asarray(total)


def _check_sampler(cases: list[tuple[Schedule, int]], seed: int) -> tuple[Tally, ...]:
    """One key decides all rounds, as the law says; `draw` and `drawn` agree."""
    from ..testing import seeded_key

    follows, same = _Count("sampler follows its law"), _Count("draw and drawn agree", fresh=False)
    control = _Count("broken samplers are caught", fresh=False)
    chosen = [case for case in cases if case[1] >= 1][:6]
    for schedule, size in chosen:
        population, case = Population.of(size), f"{schedule} on {size} records"
        law: dict[Units, Fraction] = {}
        for meetings, chance in schedule.law(population):
            units = _coded(meetings)
            law[units] = law.get(units, Fraction(0)) + chance
        observed = []
        for r in range(DRAWS):
            key = seeded_key(seed).subkey("schedule", r)
            rounds = [tuple(population.ids[d.positions].tolist()) for d in schedule.draw(population, key)]
            observed.append(_coded(tuple(rounds)))
            if r < 3:
                again = [
                    tuple(population.ids[schedule.drawn(population, key, s).positions].tolist())
                    for s in range(schedule.steps)
                ]
                same.compare(again == rounds, f"{case}: drawing round by round gives a different schedule")
        problem = follows_law(observed, law, FALSE_ALARM / len(chosen))
        follows.compare(problem is None, f"{case}: {problem}")
        if len(law) > 1:
            caught = follows_law(contaminated(observed, law, seed), law, FALSE_ALARM / len(chosen))
            control.compare(caught is not None, f"{case}: the law test did not notice a broken sampler")
    return follows.tally(), same.tally(), control.tally()


def _coded(meetings: Meetings) -> Units:
    """(round, id) as one number each, so that the sampler tests of designs apply."""
    return tuple(sorted(step * _MANY + int(i) for step, units in enumerate(meetings) for i in units))
