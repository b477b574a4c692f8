"""IS Figure 2: a sum of 1000 made-up points with Laplace noise, sampled by three strategies.

Left: the weight of every point when 19 are expected in the sample. Right: error against the largest loss, for noise
scales from 3 to 3000. The strategies are the privacy-constrained rule, uniform sampling, and the variance-optimal
oracle q = min(1, kappa ||x||_2), whose kappa is fitted to the points: it has the smallest error that any sample of that
expected size can have, but no guarantee.

The paper does not print its target epsilons. Noise 30 with epsilon 1 expects 19 points, so the right panel takes
epsilon = 30/noise: 10 at noise 3, 0.01 at noise 3000. Losses are the largest over the points, as in the paper; the
privacy-constrained one holds for every point up to the declared radius, the others do not.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...mechanisms.laplace import Laplace
from ...numerics.log_domain import FloatArray
from ...report.html import Report, png_of
from ...report.pictures import COLORS, new_figure, plain_ticks, tidy
from ...rules.privacy_constrained import privacy_constrained
from ...rules.profiles import LinearProfile
from ...rules.sampled_curves import amplified
from ..files import columns, csv_of, publish
from ..printed import HEADER, Check, agrees, counted
from ..registry import Entry, Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IS = "Fay, Mair & Sjölund, Personalized Privacy Amplification via Importance Sampling (IS)"
N, D = 1000, 10
NOISE_TIMES_EPSILON = 30.0
SHOWN = (30.0, 1.0)  # noise scale and target epsilon of the left panel
SCALES = (3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000, 2000, 3000)
RUNS = 1000
ORACLE, CONSTRAINED, UNIFORM = "variance-optimal (oracle)", "privacy-constrained", "uniform"
_STYLES = {UNIFORM: (COLORS[0], "s"), CONSTRAINED: (COLORS[1], "o"), ORACLE: (COLORS[2], "^")}


@dataclass(frozen=True, slots=True)
class Points:
    """The made-up points and their norms."""

    x: FloatArray = field(repr=False)  # (N, D)

    @classmethod
    def made_up(cls) -> "Points":
        """Isotropic normal, variance 1/D in each dimension."""
        return cls(np.random.default_rng(2).normal(size=(N, D)) / np.sqrt(D))

    @property
    def l1(self) -> FloatArray:
        """The norms that Laplace noise depends on."""
        return np.asarray(np.sum(np.abs(self.x), axis=1))

    @property
    def l2(self) -> FloatArray:
        """The norms that the error of the sum depends on."""
        return np.asarray(np.linalg.norm(self.x, axis=1))


@dataclass(frozen=True, slots=True)
class Panel:
    """Probabilities of every point by every strategy, at one noise scale and one expected size."""

    points: Points
    scale: float
    probabilities: dict[str, FloatArray]

    @classmethod
    def at(cls, points: Points, scale: float, epsilon: float) -> "Panel":
        """The privacy-constrained rule for `epsilon`, and the others at its expected size."""
        rule = privacy_constrained(LinearProfile.of(Laplace(scale)), epsilon, radius=float(points.l1.max()))
        q = rule.of_norms(points.l1)
        size = float(np.sum(q))
        return cls(
            points, scale, {UNIFORM: np.full(N, size / N), CONSTRAINED: q, ORACLE: proportional(points.l2, size)}
        )

    @property
    def size(self) -> float:
        """The expected number of points in the sample, under every strategy."""
        return float(np.sum(self.probabilities[CONSTRAINED]))

    def loss(self, name: str) -> float:
        """The largest personal loss over the points."""
        q = self.probabilities[name]
        return float(np.max(amplified(q, self.points.l1 / self.scale / q)))

    def sampling_error(self, name: str) -> float:
        """The sampling variance of the sum, over all dimensions."""
        return float(np.sum((1.0 / self.probabilities[name] - 1.0) * self.points.l2**2))

    def error(self, name: str) -> float:
        """Mean squared error per dimension, exactly: noise and sampling."""
        return 2.0 * self.scale**2 + self.sampling_error(name) / D

    def simulated(self, name: str, rng: np.random.Generator) -> float:
        """The same from 1000 samples, as in the paper."""
        q = self.probabilities[name]
        kept = rng.random((RUNS, N)) < q
        sums = (kept / q) @ self.points.x + rng.laplace(0.0, self.scale, (RUNS, D))
        return float(np.mean((sums - self.points.x.sum(axis=0)) ** 2))

    def gap(self, name: str = CONSTRAINED) -> float:
        """The excess sampling variance over the oracle: 0.01 is one percent."""
        return self.sampling_error(name) / self.sampling_error(ORACLE) - 1.0


def proportional(norms: FloatArray, size: float) -> FloatArray:
    """min(1, kappa·norm) with the kappa that expects `size` points."""
    free = np.ones(norms.size, dtype=bool)
    while True:
        kappa = (size - np.count_nonzero(~free)) / float(np.sum(norms[free]))
        over = free & (kappa * norms > 1.0)
        if not np.any(over):
            return np.where(free, kappa * norms, 1.0)
        free &= ~over


def left(points: Points) -> Panel:
    """The panel of weights."""
    return Panel.at(points, *SHOWN)


def right(points: Points, scales: Sequence[float] = SCALES) -> list[Panel]:
    """One panel per noise scale."""
    return [Panel.at(points, float(b), NOISE_TIMES_EPSILON / b) for b in scales]


def for_free(points: Points, scale: float) -> Panel:
    """At the loss of the release without sampling: the sample costs no privacy, only accuracy."""
    return Panel.at(points, scale, float(points.l1.max()) / scale * (1.0 + 1e-12))


def checks(shown: Panel, panels: Sequence[Panel]) -> Iterator[Check]:
    """Check what the text says about the figure."""
    yield Check("expected size at noise 30 and epsilon 1", "19", f"{shown.size:.2f}", agrees(shown.size, "19"))
    apart = np.abs(shown.probabilities[CONSTRAINED] / shown.probabilities[ORACLE] - 1.0)
    near = float(np.median(apart)) < 0.2 and shown.gap() < 0.05
    ours = f"weights {np.median(apart):.1%} apart (median), variance +{shown.gap():.1%}"
    yield Check("the two weights are almost identical", "yes", ours, near)
    better = all(p.loss(CONSTRAINED) < p.loss(UNIFORM) and p.error(CONSTRAINED) < p.error(UNIFORM) for p in panels)
    factor = [p.loss(UNIFORM) / p.loss(CONSTRAINED) for p in panels]
    yield Check(
        "less loss and less error than uniform sampling, at every noise scale", "yes",
        f"the loss of uniform is {min(factor):.2f} to {max(factor):.2f} times as large", better,
    )  # fmt: skip
    bound = all(p.gap() >= -1e-12 and p.gap(UNIFORM) >= -1e-12 for p in panels)
    yield Check("the oracle is a lower bound on the variance", "yes", "yes" if bound else "no", bound)
    free = for_free(shown.points, SHOWN[0])
    unsampled = float(shown.points.l1.max()) / SHOWN[0]
    ours = f"{free.size:.0f} of {N} points at {free.loss(CONSTRAINED):.4f} = {unsampled:.4f} unsampled"
    is_free = free.size < N / 5 and agrees(free.loss(CONSTRAINED), f"{unsampled:.6f}")
    yield Check("sampling 'for free', at the loss without sampling", "yes", ours, is_free)


def picture(shown: Panel, panels: Sequence[Panel]) -> "Figure":
    """Both panels."""
    figure = new_figure(11.0, 5.0)
    weights, errors = figure.subplots(1, 2)
    order = np.argsort(shown.points.l1)
    for name, (color, marker) in _STYLES.items():
        w = 1.0 / shown.probabilities[name][order]
        size = 5 if name == CONSTRAINED else 3
        weights.plot(shown.points.l1[order], w, marker, color=color, markersize=size, alpha=0.6, label=name, mew=0)
        loss, error = [p.loss(name) for p in panels], [p.error(name) for p in panels]
        errors.plot(loss, error, marker=marker, color=color, lw=1.8, markersize=6, mec="white", label=name)
    weights.set(yscale="log", xlabel="ℓ1 norm of the point", ylabel="weight 1/q")
    plain_ticks(weights.yaxis)
    tidy(weights, f"Weights, {shown.size:.0f} of {N} points expected", f"noise {shown.scale:g}, ε = {SHOWN[1]:g}")
    errors.set(xscale="log", yscale="log", xlabel="largest loss ε over the points", ylabel="mean squared error")
    plain_ticks(errors.xaxis, (1,))
    tidy(errors, "Error against loss", f"noise {SCALES[0]} (right) to {SCALES[-1]} (left), equal expected sizes")
    figure.legend(*errors.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure  # type: ignore[no-any-return]


_COLUMNS = (
    "noise", "size", "loss constrained", "loss uniform", "loss oracle", "error constrained", "error uniform",
    "error oracle", "gap", "uniform's gap", "simulated error gap",
)  # fmt: skip


def _rows(panels: Sequence[Panel]) -> list[tuple[str, ...]]:
    rng = np.random.default_rng(3)
    rows = []
    for p in panels:
        drawn = p.simulated(CONSTRAINED, rng) / p.simulated(ORACLE, rng) - 1.0
        losses = [f"{p.loss(name):.4g}" for name in (CONSTRAINED, UNIFORM, ORACLE)]
        errors = [f"{p.error(name):.4g}" for name in (CONSTRAINED, UNIFORM, ORACLE)]
        gaps = [f"{100 * g:.2f}%" for g in (p.gap(), p.gap(UNIFORM), drawn)]
        rows.append((f"{p.scale:g}", f"{p.size:.1f}", *losses, *errors, *gaps))
    return rows


_NOTE = (
    "gap: sampling variance above that of the variance-optimal oracle at the same expected size. The oracle's loss is "
    "not a guarantee: its constant is fitted to the points. Errors are exact; the last column uses 1000 samples each."
)


def run(out_dir: Path) -> Outcome:
    """Compute, compare, draw and write the files."""
    points = Points.made_up()
    shown, panels = left(points), right(points)
    compared, rows, figure = list(checks(shown, panels)), _rows(panels), picture(shown, panels)
    gaps = [100 * p.gap() for p in panels]
    free = for_free(points, SHOWN[0])
    said = (
        f"Gap to the variance-optimal oracle: {100 * shown.gap():.2f}% at {shown.size:.0f} points (left panel), "
        f"{min(gaps):.2f}% to {max(gaps):.2f}% over the noise scales (right panel); "
        f"at the loss without sampling ({free.size:.0f} points at noise 30) {100 * free.gap():.1f}%, where uniform "
        f"sampling has {100 * free.gap(UNIFORM):.1f}% and loses {free.loss(UNIFORM) / free.loss(CONSTRAINED):.1f} "
        "times as much."
    )
    text = "\n\n".join([columns(_COLUMNS, rows), _NOTE, columns(HEADER, (c.row for c in compared)), said])
    text += f"\n{counted(compared)}."
    report = Report("IS Figure 2: sampling strategies for a sum with Laplace noise", f"{said} {counted(compared)}.")
    report.add_figure(figure, "Left: weights by norm. Right: error against the largest loss over the points.", _SEEN)
    report.add_table(_COLUMNS, rows, _NOTE)
    marked = [i for i, check in enumerate(compared) if not check.agrees]
    report.add_table(HEADER, (c.row for c in compared), "What the paper says about the figure.", marked)
    report.add_text(" ".join((__doc__ or "").split("\n\n")[2].split()), "What the paper leaves open")
    header = ("l1_norm", *(f"weight_{name.split()[0].replace('-', '_')}" for name in _STYLES))
    weights = zip(shown.points.l1.tolist(), *((1.0 / shown.probabilities[n]).tolist() for n in _STYLES), strict=True)
    others = {".png": png_of(figure), ".csv": csv_of(_COLUMNS, rows), "-weights.csv": csv_of(header, weights)}
    return publish(out_dir, ENTRY.name, text, compared, report, others)


_SEEN = (
    "Left: privacy-constrained and variance-optimal weights fall together with the norm, uniform weights are one line. "
    "Right: error falls as the loss grows; uniform sampling lies above and to the right of the other two."
)

ENTRY = Entry(
    name="is-figure-2",
    paper=IS,
    title="Figure 2: a Laplace sum under three sampling strategies",
    summary="weights and errors of privacy-constrained, uniform and variance-optimal samples, and their gap",
    run=run,
    errata="is-smaller-slips",
)
