"""IS sections 2 to 5: the formulas of the text, each compared with a number computed in another way."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

from ...numerics.log_domain import log_mix
from ...verify.exact import exact_epsilon_of_laws
from ..files import compared
from ..printed import Check, said
from ..registry import Entry, Outcome
from .figure_2 import IS

SQUARE = "the second derivative of e^(cw) at 1 is c^2 e^c: the square is missing"
BRACKET = "the root lies outside: + 2, and the corrected constant, as in the proof of Proposition 12"
GRID = "a grid misses the maximum next to 0, which is narrow when lambda is small"
SPLIT = "derived for l1 noise; for l2 norm noise in the unit ball another split has the least error"
Profile = Callable[[float], float]


def psi(q: float, loss: float) -> float:
    """Equation 1."""
    return float(log_mix(q, loss))


def section_2() -> Iterator[Check]:
    """Known results."""
    near = psi(0.1, 8.0) - (8.0 - math.log(10.0))
    yield said("section 2: for epsilon > 1 the loss is about epsilon - log(1/p) (p = 0.1, epsilon 8)", abs(near) < 0.01,
               f"{psi(0.1, 8.0):.4f} and {8.0 - math.log(10.0):.4f}")  # fmt: skip
    values, chances = (3.0, -1.0, 5.0), (0.5, 0.25, 0.75)
    mean = 0.0
    for kept in product((0, 1), repeat=3):
        chance = math.prod(q if k else 1.0 - q for k, q in zip(kept, chances, strict=True))
        mean += chance * sum(k * x / q for k, x, q in zip(kept, values, chances, strict=True))
    yield said("section 2: weights 1/q make a sum unbiased (three records, all samples)", abs(mean - 7.0) < 1e-12,
               f"{mean:.6f}, the sum is 7")  # fmt: skip


def theorem_6() -> Iterator[Check]:
    """Compare with the linear program over all mechanisms, and check Appendix A."""
    for q, norm in ((Fraction(1, 2), 0.4), (Fraction(1, 10), 0.2)):
        loss = norm / float(q)
        kept = {(0,): q, (): 1 - q}
        truth = exact_epsilon_of_laws(kept, {(): Fraction(1)}, loss, "add-remove")
        stated = psi(float(q), loss)
        yield Check(f"Theorem 6, q = {q}, epsilon(w, x) = {norm} w", f"{stated:.6f}", f"{truth:.6f} exactly",
                    abs(truth - stated) < 1e-7)  # fmt: skip
    rates = np.linspace(0.02, 1.0, 50).tolist()
    falls = all(psi(a, c / a) > psi(b, c / b) for c in (0.01, 0.5, 3.0) for a, b in pairwise(rates))
    yield said("Appendix A: for profiles linear in w the loss falls as q grows", falls, "at 50 probabilities, 3 norms")


def weights_of(loss: Profile, target: float) -> float:
    """The largest feasible weight, Problem 7."""
    return float(brentq(lambda w: psi(1.0 / w, loss(w)) - target, 1.0 + 1e-9, 1e6, xtol=1e-12))


def theorem_10() -> Iterator[Check]:
    """Check the privacy-constrained weights."""
    norms, target = (0.05, 0.2, 0.6), 1.0
    found = [weights_of(lambda w, c=c: c * w, target) for c in norms]  # type: ignore[misc]
    reached = [psi(1.0 / w, c * w) for c, w in zip(norms, found, strict=True)]
    yield said("Theorem 10: every record has exactly epsilon* (norms 0.05, 0.2, 0.6, epsilon* 1)",
               all(abs(x - target) < 1e-9 for x in reached), ", ".join(f"w = {w:.3f}" for w in found))  # fmt: skip
    yield said("the smaller the loss, the larger the weight", found == sorted(found, reverse=True),
               "in the same order")  # fmt: skip
    yield said("sampling for free: epsilon* = epsilon of the worst record keeps fewer of the others",
               all(weights_of(lambda w, c=c: c * w, max(norms)) > 1.0 for c in norms[:-1]),  # type: ignore[misc]
               "weights above 1 for both others")  # fmt: skip


def equation_4_and_algorithm_1() -> Iterator[Check]:
    """T = 10 steps of weighted DP-Lloyd, one record."""
    steps, rate, target = 10, 0.02, 1.0
    c = steps * rate
    printed, true = steps**2 * rate * math.exp(c), c * c * math.exp(c)
    yield Check("Equation 4: the second derivative of e^epsilon is at least mu (T = 10, loss 0.02 a step)",
                f"{printed:.4f}", f"{true:.4f} at w = 1", printed <= true, SQUARE)  # fmt: skip
    start = min(math.exp(c) + printed / 2, c * math.exp(c) + 1.0)
    end = 2.0 * (math.exp(target) - start) / printed + 1.0
    root = weights_of(lambda w: c * w, target)
    yield Check("Algorithm 1: the bracket [1, b] holds the weight (epsilon* 1)", f"b = {end:.3f}", f"w = {root:.3f}",
                root <= end, BRACKET)  # fmt: skip
    start = min(math.exp(c) + true / 2, c * math.exp(c) + 1.0)
    end = 2.0 * (math.exp(target) - start) / true + 2.0
    yield Check("the corrected bracket", "-", f"{root:.3f} <= {end:.3f}", root <= end)
    accuracy = 1e-3
    evaluations = math.ceil(math.log2(end / accuracy))
    yield said("Proposition 12: a few evaluations per record (accuracy 0.001)", evaluations <= 20, f"{evaluations}")


def section_4() -> Iterator[Check]:
    """Coreset sampling."""
    ratio, share = 40.0, 0.5  # r^2 / x~, lambda
    at_most = share / ratio + (1.0 - share)
    yield said("m <= n x~/r^2 makes probabilities (r^2 = 40 x~, lambda 1/2)", at_most <= 1.0,
               f"the largest is {at_most:.4f}", better="m may be almost twice as large")  # fmt: skip
    a, t, b, s, radius = 1e-7, 1e-3, 1e-6, 1e-3, 1.0

    def loss(x: float) -> float:
        q = b + s * x * x
        return psi(q, (a + t * x) / q)

    grid = max(loss(radius * k / 100) for k in range(101))
    truth = max(loss(radius * k / 20_000) for k in range(2001))  # it lies below a tenth of the radius
    yield Check("Equation 5: the supremum over norms by grid search (100 points)", f"{grid:.4f}", f"{truth:.4f}",
                truth <= grid * 1.001, GRID)  # fmt: skip


def section_5() -> Iterator[Check]:
    """Check the noise split."""
    d, rho = 54, 0.225
    ratio = (4.0 * d * rho**2) ** (1.0 / 3.0)
    best = (d * (d + 1) / (2.0 * 0.25)) ** (1.0 / 3.0)  # for norm noise in the unit ball and a centre of norm 1/2
    yield Check("section 5: beta_count/beta_sum = (4 d rho^2)^(1/3) (d = 54), against the one of least error",
                f"{ratio:.2f}", f"{best:.2f}", abs(ratio / best - 1.0) < 0.1, SPLIT)  # fmt: skip


def checks() -> list[Check]:
    """All checks, in the order of the text."""
    parts = (section_2(), theorem_6(), theorem_10(), equation_4_and_algorithm_1(), section_4(), section_5())
    return [check for part in parts for check in part]


def run(out_dir: Path) -> Outcome:
    """Compute, compare and write the files."""
    return compared(out_dir, ENTRY, checks())


ENTRY = Entry(
    name="is-text",
    paper=IS,
    title="Sections 2 to 5: the formulas of the text",
    summary="Theorems 6 and 10, Equations 4 and 5, Algorithm 1 and the noise split, compared with exact values",
    run=run,
    errata="importance-sampling-is",
)
