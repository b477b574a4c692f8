"""Searches in the gaps that docs/theory.md lists: what the bound says, what was tried, what was found.

Chains of three stages: the linear program over all events beside the bound and the moment of the copies. A shared
rate, moved: every additive function of the two strata's sizes with steps of one, at both corners of the rounding.
Poisson proportional to size: the best function of the record and the number of others beside the record alone.
"""

import warnings
from itertools import product

import numpy as np

from privamp import Gaussian, MultiStage, Neighbors, PoissonPPS, PureDP, SharedRate, amplify
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


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    proportional()
    moved()
    chains()
