"""IS Figure 1, on made-up data: which records three rules keep for k-means, and with what weight.

The paper uses the Song data, which are not needed to show the effect. All three rules expect the same number of
records and use the same noise; only the privacy-constrained one was designed for it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.influence import clipped
from ...mechanisms.laplace import Laplace
from ...mechanisms.norm_noise import NormNoise
from ...mechanisms.sum_and_count import SumAndCount
from ...numerics.log_domain import FloatArray
from ...numerics.printing import shown_up
from ...report.html import Report, png_of
from ...report.pictures import GREY, new_figure, tidy
from ...rules.coreset import coreset
from ...rules.noise_and_size import noise_for_size
from ...rules.norm_histogram import NormHistogram
from ...rules.profiles import LinearProfile
from ...rules.rule import Rule
from ...rules.uniform import uniform
from ..files import columns, csv_of, publish
from ..printed import HEADER, Check, counted
from ..registry import Entry, Outcome
from .figure_2 import IS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N, SIZE, EPSILON, RADIUS = 6000, 150, 1.0, 1.0
COUNT_TO_SUM = 2.0  # ratio of count noise to sum noise


@dataclass(frozen=True, slots=True)
class Sampled:
    """The records, the three rules and what each of them kept."""

    x: FloatArray = field(repr=False)  # (N, 2)
    rules: dict[str, Rule]
    kept: dict[str, NDArray[np.intp]] = field(repr=False)  # positions

    @property
    def norms(self) -> FloatArray:
        """Distances from the public centre."""
        return np.asarray(np.linalg.norm(self.x, axis=1))

    @property
    def unsampled(self) -> FloatArray:
        """The privacy loss of every record without sampling."""
        return next(iter(self.rules.values())).profile.influence.at(self.norms)  # type: ignore[union-attr]


def sampled() -> Sampled:
    """Many records near the centre, three smaller groups farther away."""
    rng = np.random.default_rng(4)
    groups = [((0.0, 0.0), 0.11, 4800), ((0.6, 0.45), 0.09, 500), ((-0.65, 0.3), 0.07, 400), ((0.1, -0.7), 0.08, 300)]
    x = clipped(np.concatenate([rng.normal(c, s, (n, 2)) for c, s, n in groups]), RADIUS, 2.0)
    norms = np.linalg.norm(x, axis=1)
    counts, edges = np.histogram(norms, bins=40, range=(0.0, RADIUS))
    found = noise_for_size(_step, NormHistogram(edges[1:], counts), size=SIZE, epsilon=EPSILON, radius=RADIUS)
    profile = LinearProfile.of(found.mechanism)
    size = found.rule.expected_size(norms)
    facts: dict[str, Any] = {"population": N, "mean_squared_norm": float(np.mean(norms**2)), "radius": RADIUS}
    rules = {
        "privacy-constrained": found.rule,
        "coreset": coreset(profile, share=0.5, size=size, **facts),
        "uniform": uniform(profile, rate=size / N, radius=RADIUS),
    }
    coins = rng.random(N)  # a record has the same coin under every rule
    return Sampled(x, rules, {name: np.flatnonzero(coins < rule.of_norms(norms)) for name, rule in rules.items()})


def _step(noise: float) -> SumAndCount:
    return SumAndCount(NormNoise(noise, 2), Laplace(COUNT_TO_SUM * noise))


def checks(found: Sampled) -> Iterator[Check]:
    """Check what the caption and the text say."""
    q = {name: rule.of_norms(found.norms) for name, rule in found.rules.items()}
    grows = bool(np.all(np.diff(q["privacy-constrained"][np.argsort(found.norms)]) >= 0))
    yield Check(
        "higher loss, kept more often with lower weight", "yes", "yes, for every record" if grows else "no", grows
    )
    together = float(np.corrcoef(np.log(q["privacy-constrained"]), np.log(q["coreset"]))[0, 1])
    yield Check("privacy and coreset weights are similar", "yes", f"correlation {together:.3f}", together > 0.9)
    worst = {name: rule.guarantee().epsilon() for name, rule in found.rules.items()}
    ours = ", ".join(f"{name} {shown_up(loss)}" for name, loss in worst.items())
    yield Check("uniform has the most loss at equal size", "yes", ours, max(worst, key=worst.__getitem__) == "uniform")


def picture(found: Sampled) -> "Figure":
    """One panel per rule: kept records by weight (size) and loss before sampling (colour)."""
    figure = new_figure(12.0, 4.7)
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    losses, shade = found.unsampled, None
    for axes, (name, rule) in zip(panels, found.rules.items(), strict=True):
        at = found.kept[name]
        axes.scatter(*found.x.T, s=2, color="#dddddd", lw=0)
        w = rule.weights_of_norms(found.norms[at])
        shade = axes.scatter(
            *found.x[at].T, s=1.2 * w, c=losses[at], cmap="viridis", vmin=0, vmax=losses.max(), alpha=0.75,
            edgecolors="white", linewidths=0.4,
        )  # fmt: skip
        circle = np.linspace(0.0, 2.0 * np.pi, 200)
        axes.plot(RADIUS * np.cos(circle), RADIUS * np.sin(circle), color=GREY, lw=0.8, ls=":")
        axes.set(aspect="equal", xticks=(), yticks=(), xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
        ends = [f"{weight:.0f}" for weight in rule.weights_of_norms([RADIUS, 0.0])]
        tidy(
            axes,
            f"{name}: ε = {shown_up(rule.guarantee().epsilon(), 3)}",
            f"weights {' to '.join(dict.fromkeys(ends))}",
        )
        axes.spines[["bottom", "left"]].set_visible(False)
    figure.colorbar(shade, ax=panels, shrink=0.8, label="loss of the record without sampling")
    return figure  # type: ignore[no-any-return]


def run(out_dir: Path) -> Outcome:
    """Draw, compare and write the files."""
    found = sampled()
    compared, figure = list(checks(found)), picture(found)
    norms = np.linspace(0.0, RADIUS, 11)
    header = ("norm", *(f"{what} {name}" for name in found.rules for what in ("probability", "loss")))
    numbers = [pair for rule in found.rules.values() for pair in (rule.of_norms(norms), rule.losses_of_norms(norms))]
    rows = [tuple(f"{value:.4g}" for value in row) for row in np.column_stack([norms, *numbers])]
    text = "\n\n".join([columns(header, rows), columns(HEADER, (c.row for c in compared)), f"{counted(compared)}."])
    summary = f"{N} made-up records in two dimensions, {SIZE} expected in each sample. {counted(compared)}."
    report = Report("IS Figure 1: three ways to sample for k-means", summary)
    report.add_figure(figure, "A disc's area is the record's weight, its colour the loss before sampling.", _SEEN)
    report.add_table(header, rows, "Probability and loss by norm.")
    report.add_table(HEADER, (c.row for c in compared), "What the paper says about the figure.")
    others = {".png": png_of(figure), ".csv": csv_of(header, rows)}
    return publish(out_dir, ENTRY.name, text, compared, report, others)


_SEEN = (
    "Three panels with the same records. Privacy-constrained and coreset sampling keep many far records as small discs "
    "and few central ones as large discs; uniform sampling keeps mostly central records, all with one weight."
)

ENTRY = Entry(
    name="is-figure-1",
    paper=IS,
    title="Figure 1: which records three rules keep",
    summary="privacy-constrained, coreset and uniform samples of made-up data, with weights and losses",
    run=run,
)
