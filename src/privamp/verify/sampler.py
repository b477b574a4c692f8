"""Statistical tests of a sampler against its law, with a stated false-alarm probability.

The likelihood-ratio statistic n KL(observed || law) over k possible samples satisfies, for every n and law,

    Pr[n KL >= x] <= e^(-x) (e x / (k - 1))^(k-1),   x >= k - 1       (Agrawal 2020, arXiv 1904.02291v4),

so no cells need pooling and the false-alarm probability is a bound, not an approximation. Inclusion
frequencies are tested by exact binomial tails.
"""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..chance.keys import Key
from ..core.design import Design
from ..core.population import Population
from ..core.sample import Drawn
from .symmetry import Law, Units

FALSE_ALARM = 1e-9  # of all tests of one call together, when the sampler is right


def drawn_units(drawn: Drawn, population: Population) -> Units:
    """The ids in a drawn sample, sorted and repeated."""
    return tuple(sorted(np.repeat(population.ids[drawn.positions], drawn.counts).tolist()))


def draws(design: Design, population: Population, key: Key, rounds: int) -> list[Units]:
    """One sample per round, by the three pieces that every engine calls."""
    found, batch, identity = [], population.batch(), design.identity
    for r in range(rounds):
        subkey = key.subkey(identity, population.label, r)  # design.subkey, whose identity is the same in every round
        drawn = design.finish(design.merge([design.partial(batch, subkey)]), subkey)
        found.append(drawn_units(drawn, population))
    return found


def follows_law(observed: Sequence[Units], law: Law, false_alarm: float = FALSE_ALARM) -> str | None:
    """None, or a sentence about how the observed samples contradict the law."""
    times = Counter(observed)
    impossible = [units for units in times if units not in law]
    if impossible:
        return f"sample {impossible[0]} was drawn, which is impossible under the law"
    n = len(observed)
    x = sum(c * math.log(c / (n * float(law[units]))) for units, c in times.items())
    chance = _tail(x, len(law) - 1)
    if chance < false_alarm / 2:
        return f"the samples drawn do not follow the law (chance below {chance:.1g} in {n} draws)"
    return _inclusions(observed, law, false_alarm / 2)


def _tail(x: float, freedom: int) -> float:
    if x <= freedom or freedom == 0:
        return 1.0
    return math.exp(-x + freedom * (1.0 + math.log(x / freedom)))


def _inclusions(observed: Sequence[Units], law: Law, false_alarm: float) -> str | None:
    """Every record must be in the sample as often as the law says, by an exact binomial test."""
    from scipy.special import betainc, betaincc

    n, ids = len(observed), sorted({i for units in law for i in units})
    for i in ids:
        p = float(sum((chance for units, chance in law.items() if i in units), Fraction(0)))
        k = sum(i in units for units in observed)
        at_least = float(betainc(k, n - k + 1, p)) if k > 0 else 1.0
        at_most = float(betaincc(k + 1, n - k, p)) if k < n else 1.0
        if min(at_least, at_most) < false_alarm / (2 * len(ids)):
            return f"record {i} was drawn in {k} of {n} samples, where the law says {p:.6g} of them"
    return None


def same_in_pieces(design: Design, population: Population, key: Key, rounds: int) -> str | None:
    """One key must draw one sample, whole or in two batches given in any order."""
    middle = population.size // 2
    for r in range(rounds):
        subkey = design.subkey(key, population.label, r)
        whole = design.draw(population, key, r).reveal_secret()
        parts: list[Any] = [
            design.partial(population.batch(middle), subkey),
            design.partial(population.batch(0, middle), subkey),
        ]
        if drawn_units(whole, population) != drawn_units(design.finish(design.merge(parts), subkey), population):
            return f"round {r} draws another sample in two batches than in one"
    return None


def contaminated(observed: Sequence[Units], law: Law, seed: int, share: float = 0.3) -> list[Units]:
    """A broken twin of the sampler: a share of the draws replaced by the least likely sample."""
    rare = min(law, key=lambda units: law[units])
    swap = np.random.default_rng(seed).random(len(observed)) < share
    return [rare if broken else units for units, broken in zip(observed, swap, strict=True)]
