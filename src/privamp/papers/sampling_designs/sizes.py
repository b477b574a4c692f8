"""SD sections 2 to 4: every number and bound in the text about samples of one stratum.

The exact values are linear programs over all mechanisms on small populations (`privamp.verify`).
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, product
from pathlib import Path

from ...amplification import amplify
from ...core.neighbors import Neighbors
from ...designs.random_size import RandomSize
from ...designs.rounded_size import random_added, size_weights, whole_size
from ...designs.simple_random import WithoutReplacement
from ...mechanisms.black_box import ApproxDP, PureDP
from ...numerics.log_domain import log_mix
from ...numerics.printing import shown_down, shown_up
from ...verify.exact import exact_epsilon_of_laws
from ..files import compared
from ..printed import Check, agrees, said
from ..registry import Entry, Outcome
from .count_error import least_squared_error
from .figure_2 import SD
from .laws import NEW, mixed, subsets
from .rounding_factor import printed_bound

RO = Neighbors.REPLACE_ONE
SCALE = "noise of scale 1/(100n) has epsilon 100; log(1 + 100(e - 1)) = 5.15 is enough and needed"
SMALL = "log(1 + x) is not x: log(1 + 0.01(e - 1)) = 0.0170"
TWO_STEPS = "a replaced record is two steps for a mechanism that is epsilon-DP under deletion"
RELATION = "the lemma holds for add/remove; a mechanism that releases its sample's size is 0-DP under replacement"
HALF = "Laplace(1/epsilon) noise has variance 2/epsilon^2, and the relations are mixed"


def section_2() -> Iterator[Check]:
    """Uniform sampling."""
    truth = exact_epsilon_of_laws(subsets(range(4), 2), subsets([1, 2, 3, NEW], 2), 1.0, "replace-one")
    printed = math.log1p(0.5 * math.expm1(1.0))
    yield Check("Theorem 2.2, 2 of 4 records, epsilon 1", f"{printed:.6f}", f"{truth:.6f} exactly",
                abs(truth - printed) < 1e-7)  # fmt: skip
    doubled = exact_epsilon_of_laws(subsets(range(2), 2), subsets([1, NEW], 2), 1.0, "add-remove")
    yield Check("an epsilon-deletion-DP mechanism is 2 epsilon-replacement-DP", "2", f"{doubled:.6f} exactly",
                abs(doubled - 2.0) < 1e-7)  # fmt: skip
    losses = [amplify(PureDP(e, neighbors=RO), WithoutReplacement(m, 100)).epsilon() / e
              for e in (0.01, 0.1, 1.0, 4.0) for m in (1, 10, 50, 100)]  # fmt: skip
    most = max(losses)
    yield said("Theorem 2.2: epsilon' <= epsilon for every m <= n", most <= 1.0 + 1e-12, f"at most {most:.4f} times")
    near = amplify(PureDP(0.01, neighbors=RO), WithoutReplacement(10, 100)).epsilon() / 0.01
    yield said("Theorem 2.2: epsilon' is about (m/n) epsilon for small epsilon", abs(near - 0.1) < 0.001,
               f"{near:.5f} epsilon at m/n = 0.1")  # fmt: skip
    claimed = amplify(ApproxDP(1.0, 1e-3, neighbors=RO), WithoutReplacement(10, 100))
    delta = float(claimed.delta(math.log1p(0.1 * math.expm1(1.0))))
    yield Check("Theorem 2.2: delta' = (m/n) delta, 10 of 100 records, delta 0.001", "0.0001", f"{delta:.6f}",
                agrees(round(delta, 12), "0.0001"))  # fmt: skip
    one_percent = amplify(PureDP(1.0, neighbors=RO), WithoutReplacement(100, 10_000)).epsilon()
    yield Check("section 2.4: noise of scale 1/n on a 1% sample", "0.01", f"{one_percent:.5f}",
                agrees(one_percent, "0.01"), SMALL)  # fmt: skip
    needed = math.log1p(math.expm1(1.0) / 0.01)
    at_100 = amplify(PureDP(100.0, neighbors=RO), WithoutReplacement(100, 10_000)).epsilon()
    yield Check("section 2.4: to get epsilon' = 1, noise of scale 1/(100n)", "1/(100n)",
                f"1/({needed:.3f}n); scale 1/(100n) has epsilon' = {at_100:.1f}", at_100 <= 1.0, SCALE)  # fmt: skip


def section_3() -> Iterator[Check]:
    """Check statements about random sample sizes."""
    truth = exact_epsilon_of_laws(subsets(range(4), 2), subsets([1, 2, 3, NEW], 2), 1.0, "add-remove")
    upper, lower = math.log1p(0.5 * math.expm1(1.0)), -math.log1p(0.5 * math.expm1(-1.0))
    yield Check("Theorem 3.1, upper bound, 4 records, always 2, epsilon 1", shown_up(upper, 4), f"{truth:.4f} exactly",
                truth <= upper, TWO_STEPS)  # fmt: skip
    yield said(f"Theorem 3.1, lower bound {shown_down(lower, 4)}, same setting", lower <= truth, f"{truth:.4f} exactly",
               better=f"the exact value is {shown_up(truth / lower, 3)} times the bound")  # fmt: skip
    tiny = math.log1p(0.5 * math.expm1(1e-3)), -math.log1p(0.5 * math.expm1(-1e-3))
    yield said("Theorem 3.1: for small epsilon both bounds are (E m / n) epsilon (1/2, epsilon 0.001)",
               all(abs(x / 5e-4 - 1.0) < 1e-3 for x in tiny), ", ".join(f"{x:.7f}" for x in tiny))  # fmt: skip
    some = RandomSize((0.2, 0.3, 0.5, 0.0, 0.0))
    mean = math.exp(some.log_tilted_mean(1.0))
    yield said("the tilted mean is at most the largest size", mean <= 2.0, f"{mean:.4f} <= 2")
    fixed = amplify(PureDP(1.0), RandomSize((0, 0, 1, 0, 0)), RO).epsilon()
    random = amplify(PureDP(1.0), some, RO).epsilon()
    yield said("a random size is at least as private as its largest value", random <= fixed + 1e-9,
               f"{random:.4f} <= {fixed:.4f}")  # fmt: skip
    law = [0.0] * 1001
    law[10], law[1000] = 1.0 - 1e-6, 1e-6
    share = math.exp(RandomSize(tuple(law)).log_tilted_mean(0.1)) / 1000
    yield said("drawing all 1000 records with probability 1e-6 ends amplification; the mode is 10 (epsilon 0.1)",
               share > 0.99, f"tilted mean {share:.6f} n")  # fmt: skip
    light = math.exp(RandomSize.truncated_normal(100, 10, 10_000).log_tilted_mean(0.01)) / 10_000
    yield said("a light-tailed size concentrated far below n amplifies (100 of 10,000, sd 10, epsilon 0.01)",
               light < 0.02, f"tilted mean {light:.4f} n")  # fmt: skip
    normal = RandomSize.truncated_normal(5000, 10, 10_000)
    near = math.exp(normal.log_tilted_mean(0.01)) / 10_000
    yield said("a concentrated size around n/2 gives about epsilon/2 in the printed bounds", abs(near - 0.5) < 0.01,
               f"{near:.4f} epsilon; under replacement twice that (see sd-figure-2)")  # fmt: skip


def section_4() -> Iterator[Check]:
    """Check statements about sizes that depend on the data."""
    apart = exact_epsilon_of_laws(subsets(range(4), 1), subsets(range(4), 3), 0.5, "add-remove")
    yield Check("section 4.1: sizes m and m + 2 lose 2 epsilon (epsilon 0.5)", "1", f"{apart:.6f} exactly",
                agrees(round(apart, 6), "1"))  # fmt: skip
    advantage, best = math.expm1(1.0), math.tanh(0.5)
    yield said("section 4.2: a test's advantage is at most e^eps - 1 (epsilon 1: 1.718)", best <= advantage,
               f"at most {best:.4f}", better="(e^eps - 1)/(e^eps + 1), reached by randomised response")  # fmt: skip
    yield from proposition_4_1()
    yield from proposition_4_2()
    sizes = whole_size(Fraction(1, 10), 14, "half-up"), whole_size(Fraction(1, 10), 15, "half-up")
    yield Check("section 4.3: 14 and 15 records at r = 1/10 draw", "1, 2", f"{sizes[0]}, {sizes[1]}", sizes == (1, 2))
    loss = exact_epsilon_of_laws(subsets(range(14), 1), subsets(range(15), 2), 1.0, "add-remove")
    yield said("section 4.3: deterministic rounding never amplifies", loss >= 1.0 - 1e-9,
               f"{loss:.4f} at epsilon 1, exactly")  # fmt: skip
    most = max(max(size_weights(r, n, "random")) - whole_size(r, n, "half-up")
               for r in (Fraction(1, 10), Fraction(1, 3), Fraction(7, 10)) for n in range(1, 200))  # fmt: skip
    yield said("section 4.3: randomised rounding draws at most m + 1", most <= 1, f"at most m + {most}")
    yield from theorem_4_3()


def proposition_4_1() -> Iterator[Check]:
    """The best test of a size, 10 records, rate 0.25 rounded at random, against 11."""
    rate, epsilon = Fraction(1, 4), 1.0
    laws = [
        mixed([(Fraction(w, sum(size_weights(rate, n, "random").values())), subsets(range(n), m))
               for m, w in size_weights(rate, n, "random").items()])
        for n in (10, 11)
    ]  # fmt: skip
    loss = exact_epsilon_of_laws(laws[0], laws[1], epsilon, "add-remove")
    chances = [float(sum(p for units, p in law.items() if len(units) == 2)) for law in laws]
    moved = abs(chances[0] - chances[1])
    test = moved * math.tanh(epsilon / 2)  # answers e^eps/(1 + e^eps) or 1/(1 + e^eps) by the size, an eps-DP test
    yield said("Proposition 4.1: a test of the size has advantage at most e^eps' - 1 (10 or 11 records, r = 1/4)",
               test <= math.expm1(loss), f"{test:.4f} <= {math.expm1(loss):.4f}")  # fmt: skip


def proposition_4_2() -> Iterator[Check]:
    """f = f~ = the number of records: f~ has no error at all."""
    epsilon = 0.5
    least = least_squared_error(epsilon, 16)
    slack = 1.0 / epsilon**2
    yield Check("Proposition 4.2: error of f~ = f is at least alpha - 1/eps^2 (epsilon 0.5, f = the number of records)",
                "yes", f"the error is 0, alpha at least {least:.2f} > {slack:.0f}", least <= slack, HALF)  # fmt: skip
    most = 2.0 * slack
    yield Check(
        "Proposition 4.2 with the variance 2/eps^2 holds there", "-", f"alpha is at most {most:.0f}", least <= most
    )


def theorem_4_3() -> Iterator[Check]:
    """Randomised rounding."""
    for r, epsilon in ((Fraction(1, 100), 0.1), (Fraction(1, 10), 1.0)):
        claim, truth = printed_bound(float(r), epsilon), random_added(r, epsilon)
        where = f"Theorem 4.3 at r = {float(r):g}, epsilon {epsilon:g}"
        yield said(f"{where}: at most {shown_up(claim, 4)}", truth <= claim,
                   f"{truth:.5f}", better=f"{shown_down(claim / truth, 3)} times smaller, and reached")  # fmt: skip
    one = math.log1p(0.02 * math.expm1(0.002)), float(log_mix(0.01, 0.002))
    yield said("log(1 + 2r(e^2eps - 1)) is about 4 r eps, log(1 + r(e^2eps - 1)) about 2 r eps (r = 0.01, eps 0.001)",
               abs(one[0] / 1e-5 - 4) < 0.01 and abs(one[1] / 1e-5 - 2) < 0.01,
               f"{one[0] / 1e-5:.4f}, {one[1] / 1e-5:.4f} r eps")  # fmt: skip


def appendix_a() -> Iterator[Check]:
    """Lemmas A.3 and A.4."""
    coupled = exact_epsilon_of_laws(subsets(range(3), 3), subsets([0, NEW], 2), 0.5, "add-remove")
    yield Check("Lemma A.3: samples at distance 3 are 3 epsilon-indistinguishable (epsilon 0.5)", "1.5",
                f"{coupled:.6f} exactly", agrees(round(coupled, 6), "1.5"))  # fmt: skip
    grid = [k / 20 for k in range(1, 20)]
    worst = max(_mixed_loss(q, 0.3, 0.7, y0, y1) - (0.3 + float(log_mix(q, 0.7)))
                for q in (0.1, 0.5, 0.9) for y0 in grid for y1 in grid)  # fmt: skip
    yield said("Lemma A.4: advanced joint convexity (epsilon 0.3, epsilon' 0.7, three weights)", worst <= 1e-12,
               f"the largest ratio of mixtures is {worst:+.1e} from the bound")  # fmt: skip


def _mixed_loss(q: float, epsilon: float, more: float, y0: float, y1: float) -> float:
    """The largest log ratio of the mixtures' probabilities of an event with y0 and y1 under the parts of the second."""
    x0 = min(math.exp(epsilon) * y0, math.exp(epsilon + more) * y1, 1.0)
    x1 = min(math.exp(epsilon + more) * min(y0, y1), 1.0)
    return math.log(((1 - q) * x0 + q * x1) / ((1 - q) * y0 + q * y1))


def appendix_b() -> Iterator[Check]:
    """Lemmas B.1 and B.3."""
    weights, law = [1.0 + m / 4 for m in range(5)], [0.1, 0.3, 0.2, 0.25, 0.15]

    def mean(q: Sequence[float]) -> float:
        total = math.fsum(a * p for a, p in zip(q, law, strict=True))
        return math.fsum(a * w * p for a, w, p in zip(q, weights, law, strict=True)) / total

    steps = product((-0.5, 0.0, 0.5), repeat=4)
    most = max(mean([math.exp(x) for x in (0.0, *accumulate(step))]) for step in steps)
    steepest = mean([math.exp(0.5 * m) for m in range(5)])
    yield said("Lemma B.3: the steepest log-Lipschitz q is the worst (sizes 0 to 4, epsilon 0.5)",
               most <= steepest + 1e-12, f"{most:.6f} over 81 others, {steepest:.6f}")  # fmt: skip
    one, two = subsets(range(2), 1), subsets(range(3), 2)
    claim = math.log1p(math.expm1(2.0) / 3) + 1.0
    told = exact_epsilon_of_laws(one, two, 1.0, "replace-one")
    yield Check("Lemma B.1, 1 of 2 against 2 of 3 records, epsilon 1, replacement", shown_up(claim, 5), f"{told:g}",
                told <= claim, RELATION)  # fmt: skip
    truth = exact_epsilon_of_laws(one, two, 1.0, "add-remove")
    yield said(f"Lemma B.1 under add/remove: at most {shown_up(claim, 5)}", truth <= claim, f"{truth:.4f} exactly")


def checks() -> list[Check]:
    """All checks, in the order of the text."""
    return [*section_2(), *section_3(), *section_4(), *appendix_a(), *appendix_b()]


def run(out_dir: Path) -> Outcome:
    """Compute, compare and write the files."""
    return compared(out_dir, ENTRY, checks())


ENTRY = Entry(
    name="sd-sizes",
    paper=SD,
    title="Sections 2 to 4: samples of one stratum",
    summary="every number and bound in the text about fixed, random and data-dependent sizes",
    run=run,
    errata="sampling-designs-sd",
)
