"""Searches in the gaps that docs/theory.md lists: what the bound says, what was tried, what was found.

Chains of three stages: the linear program over all events beside the bound and the moment of the copies. A shared
rate, moved: every additive function of the two strata's sizes with steps of one, at both corners of the rounding.
Poisson proportional to size: the best function of the record and the number of others beside the record alone.
Members of clusters by coins: sizes along a chain, nobody's coin told but those of clusters drawn in any case.
With replacement, (epsilon, delta) boxes: one event for all numbers of copies beside an event for each.
"""

import warnings
from itertools import product

import numpy as np
from scipy.stats import binom

from privamp import (
    ApproxDP,
    ClusterSampling,
    Gaussian,
    MultiStage,
    Neighbors,
    Poisson,
    PoissonPPS,
    PureDP,
    SharedRate,
    WithReplacement,
    amplify,
)
from privamp.core.size_paths import Ladder, bounded
from privamp.verify import exact_epsilon

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
DELTA, SIGMA = 1e-6, 2.0


def chains() -> None:
    """Pure epsilon 1, replace-one."""
    for stages, n in (
        ((("wr", 2), ("wr", 2), ("wr", 2)), 2),
        ((("wor", 2), ("wr", 2), ("wr", 2)), 3),
        ((("wr", 2), ("wr", 2), ("wr", 2)), 3),
    ):
        design = MultiStage(stages, n)
        law = design.appearances()
        moment = float(np.logaddexp(law.log_none, np.logaddexp.reduce(law.log_p + law.counts)))
        bound = amplify(PureDP(1.0, neighbors=RO), design).epsilon()
        truth = exact_epsilon(design, n, RO, 1.0)
        name = "-".join(kind for kind, _ in stages)
        print(f"{name} of {n}: bound {bound:.4f}, program {truth:.4f}, moment {moment:.4f}")


def moved() -> None:
    """Gaussian noise, rate .1: (record in, others, chance) of a stratum with it, and (others, chance) without."""
    r = 0.1
    whole = ([(1, -1, (1 - r) * r), (1, 0, r * r), (0, 0, (1 - r) ** 2), (0, 1, r * (1 - r))], [(0, 1.0)])
    carried = ([(1, 0, r), (0, 1, 1 - r)], [(0, r), (1, 1 - r)])
    best = 0.0
    for (with_s, without_s), (with_t, without_t) in product((whole, carried), repeat=2):
        for fs, ft in product(product((-1.0, 0.0, 1.0), repeat=2), repeat=2):
            f, g = ({-1: ends[0], 0: 0.0, 1: ends[1]} for ends in (fs, ft))
            p, q = {}, {}
            for (a, s, x), (t, y) in product(with_s, without_t):
                p[f[s] + a + g[t]] = p.get(f[s] + a + g[t], 0.0) + x * y
            for (s, x), (a, t, y) in product(without_s, with_t):
                q[f[s] - a + g[t]] = q.get(f[s] - a + g[t], 0.0) + x * y
            best = max(best, Gaussian(SIGMA).on_a_line(p, q).rounded_down().epsilon(DELTA))
    bound = amplify(Gaussian(SIGMA), SharedRate(100, 1000, 3), RO).epsilon(DELTA)
    print(f"shared rate .1, moved: bound {bound:.4f}, best of {4 * 81} functions {best:.4f}")


def proportional() -> None:
    """Gaussian noise."""
    design = PoissonPPS.proportional(10.0, 1.0, 3.0, 1000)
    found = {name: attack.rounded_down().epsilon(DELTA) for name, attack in design.attacks(Gaussian(SIGMA), AR).items()}
    bound = amplify(Gaussian(SIGMA), design).epsilon(DELTA)
    others = max(value for name, value in found.items() if name != "alone")
    print(f"proportional to size: bound {bound:.4f}, record alone {found['alone']:.4f}, with the others {others:.4f}")


def members_by_coins() -> None:
    """5 of 50 clusters of up to 10, coins .3: the sample has x others of the record's cluster, or y of another."""
    share, rate, cap = 0.1, 0.3, 10
    own, out = np.zeros((1, 2 * cap)), np.zeros((1, 2 * cap))
    own[0, :cap] = share * binom.pmf(np.arange(cap - 1, -1, -1), cap - 1, rate)
    out[0, cap - 1 :] = (1.0 - share) * binom.pmf(np.arange(cap + 1), cap, rate)
    inside, without = rate * own, (1.0 - rate) * own + out
    ladders = {
        AR: Ladder(inside, without, np.zeros(own.shape), own + out),
        Neighbors("replace-one", scope="within cluster"): Ladder(inside, without, inside, without),
    }
    for relation, ladder in ladders.items():
        found = amplify(Gaussian(SIGMA), ClusterSampling(5, 50, cap, Poisson(rate)), relation)
        chain, attack = bounded(ladder, Gaussian(SIGMA)).epsilon(DELTA), found.lower.epsilon(DELTA)
        print(f"by coins, {relation}: bound {found.epsilon(DELTA):.4f}, chain {chain:.4f}, attack {attack:.4f}")


def boxes() -> None:
    """20 of 100 with replacement, one record replaced, a box of epsilon .5 and delta 1e-6: an event by its copies."""
    strength, extra, n, m = 0.5, 1e-6, 100, 20
    bound = amplify(ApproxDP(strength, extra, neighbors=RO), WithReplacement(m, n))
    often = binom.pmf(np.arange(m + 1), m, 1.0 / n)
    for target in (0.05, 0.1, 0.2):
        best = 0.0
        for without in np.concatenate([np.geomspace(1e-9, 0.5, 2001), 1.0 - np.geomspace(1e-9, 0.5, 2001)]):
            up = down = without
            p = q = often[0] * without
            for chance in often[1:]:
                up = min(np.exp(strength) * up + extra, 1.0 - np.exp(-strength) * (1.0 - up - extra), 1.0)
                down = max((down - extra) * np.exp(-strength), 1.0 - (1.0 - down) * np.exp(strength) - extra, 0.0)
                p, q = p + chance * up, q + chance * down
            best = max(best, p - np.exp(target) * without, without - np.exp(target) * q)
        print(f"with replacement, box: delta({target:g}) at most {bound.delta(target):.4g}, one event {best:.4g}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    boxes()
    members_by_coins()
    proportional()
    moved()
    chains()
