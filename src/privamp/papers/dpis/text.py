"""DPIS sections 3 and 4: what the text says about sampling and accounting, in numbers."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ...amplification import amplify
from ...designs.poisson import Poisson
from ...mechanisms.gaussian import Gaussian
from ..files import compared
from ..printed import Check, said
from ..registry import Entry, Outcome
from .figure_1 import DPIS

DELTA = 1e-5
SCALED = "the sum is divided by p after summing, so a record moves it by C/p and the multiplier is sigma_K p"
CUT = "where the probability is capped at 1, the weight no longer shrinks with it"
TWICE = "q p already holds b"


def sampling() -> Iterator[Check]:
    """Check section 3: probabilities proportional to norms."""
    norms = np.random.default_rng(1).lognormal(0.0, 1.0, 2000)
    batch, growth, total = 50, 3.0, float(norms.sum())
    accepted = batch * norms / total
    proportional = float(np.sum(norms**2 / accepted))
    uniform = float(np.sum(norms**2) * len(norms) / batch)
    yield said("section 3.1: q proportional to the norms has the smallest variance (2000 made-up norms)",
               proportional <= uniform, f"{proportional / uniform:.3f} times that of equal probabilities")  # fmt: skip
    others = np.random.default_rng(2).uniform(0.5, 2.0, (200, len(norms)))
    tried = accepted * others / (accepted * others).sum(axis=1, keepdims=True) * batch
    least = float(np.min(np.sum(norms**2 / tried, axis=1)))
    yield said("section 3.1: its variance is below that of 200 other rules of the same size", proportional <= least,
               f"they have at least {least / proportional:.3f} times as much")  # fmt: skip
    largest = float(np.max(norms / accepted)) / (total / batch)
    yield said("section 3.1: every weighted gradient has norm K/b", abs(largest - 1.0) < 1e-12, f"{largest:.6f} K/b")
    sizes = float(np.sum(np.minimum(growth * accepted, 1.0))), float(accepted.sum())
    yield said("section 3.3: the expected sizes of the two sets are about k b and b",
               abs(sizes[0] / (growth * batch) - 1.0) < 0.1 and abs(sizes[1] / batch - 1.0) < 1e-9,
               f"{sizes[0]:.1f} and {sizes[1]:.1f} for k b = 150, b = 50")  # fmt: skip


def noise() -> Iterator[Check]:
    """Check section 3.2: at equal multiplier, a smaller sum of norms costs less privacy."""
    rate, multiplier = 0.02, 1.0
    losses = []
    for share in (1.0, 0.5, 0.2):  # K / (N C)
        step = amplify(Gaussian(multiplier / share, 1.0), Poisson(rate / share))
        losses.append(step.epsilon(DELTA))
    yield said("section 3.2: the privacy cost of a step grows with K/(N C) (1, 0.5, 0.2)",
               losses == sorted(losses, reverse=True), ", ".join(f"{x:.4f}" for x in losses))  # fmt: skip


def accounting() -> Iterator[Check]:
    """Check what the errata say about Equations 11 and 19 and Algorithm 1."""
    records, batch = 1437, 32
    stated = amplify(Gaussian(0.02 * records, 1.0), Poisson(batch / records)).epsilon(DELTA)
    true = amplify(Gaussian(0.02 * batch, 1.0), Poisson(batch / records)).epsilon(DELTA)
    yield Check("Equation 19: epsilon of one sum of norms (N = 1437, b = 32, sigma_K = 0.02 N)", f"{stated:.4f}",
                f"{true:.2f}", true <= stated * 1.01, SCALED)  # fmt: skip
    probability = 4096 * 5.0 / (0.1 * 60_000)  # b k C / K for a record of norm C
    adds = probability / min(probability, 1.0)
    yield Check("Algorithm 1, line 17: a record adds at most C (b = 4096, k = 5, K = 0.1 N C)", "1", f"{adds:.2f}",
                adds <= 1.0, CUT)  # fmt: skip
    norms, b = np.arange(1.0, 9.0), 4.0
    chance = b * norms / norms.sum()
    mean = float(np.sum(chance * norms / (len(norms) * np.minimum(chance, 1.0)))) / b
    yield Check("Algorithm 1, line 26: the released mean is unbiased (eight gradients, b = 4)", f"{norms.mean():.3f}",
                f"{mean:.3f}", math.isclose(mean, float(norms.mean()), rel_tol=0.1), TWICE)  # fmt: skip


def checks() -> list[Check]:
    """All checks."""
    return [*sampling(), *noise(), *accounting()]


def run(out_dir: Path) -> Outcome:
    """Compute, compare and write the files."""
    return compared(out_dir, ENTRY, checks())


ENTRY = Entry(
    name="dpis-text",
    paper=DPIS,
    title="Sections 3 and 4: sampling and accounting",
    summary="variance, sizes and cost of a step as stated in the text, and the errata of Algorithm 1 in numbers",
    run=run,
    errata="training-with-importance-sampling-dpis",
)
