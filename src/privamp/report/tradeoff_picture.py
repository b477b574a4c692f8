"""The picture of an audit: misses against false alarms, as claimed and as reached by an attacker."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..numerics.log_domain import FloatArray
from ..numerics.printing import as_asked, shown_down, shown_up
from ..verify.attack import Finding
from .pictures import COLORS, GREY, new_figure, save, tidy

Curve = Callable[[FloatArray], Any]


def claimed_curve(finding: Finding) -> Curve:
    """The trade-off curve that (epsilon, delta)-DP allows."""
    growth, delta = np.exp(finding.claimed), finding.delta

    def misses(false_alarm: FloatArray) -> FloatArray:
        steep, flat = 1 - delta - growth * false_alarm, (1 - delta - false_alarm) / growth
        return np.asarray(np.maximum(np.maximum(steep, flat), 0.0))

    return misses


def draw_tradeoff(findings: Sequence[tuple[Finding, Curve | None]], path: Path) -> None:
    """One panel per finding; no attack may lie below the claimed curve."""
    columns = min(3, len(findings))
    rows = -(-len(findings) // columns)
    figure = new_figure(4.4 * columns + 0.6, 4.4 * rows)
    panels = np.ravel(figure.subplots(rows, columns, squeeze=False))
    at = np.concatenate([np.geomspace(1e-4, 0.1, 100), np.linspace(0.1, 1.0, 100)])
    for axes, (finding, curve) in zip(panels, findings, strict=False):
        allowed = np.asarray((curve or claimed_curve(finding))(at))
        axes.fill_between(at, 0.0, allowed, color=COLORS[0], alpha=0.12, linewidth=0)
        axes.plot(at, allowed, color=COLORS[0], linewidth=2, label=f"claimed: ε = {shown_up(finding.claimed, 3)}")
        color = COLORS[1] if finding.refuted else COLORS[2]
        reached = f"attack: ε ≥ {shown_down(finding.shown, 3)}"
        axes.plot(finding.false_alarms, finding.misses, color=color, linewidth=1.5, label=reached)
        axes.plot([0, 1], [1, 0], color=GREY, linewidth=0.8, linestyle=":")
        axes.set(xlabel="false alarms", ylabel="misses", xlim=(0, 1), ylim=(0, 1), aspect="equal")
        axes.legend(frameon=False, loc="upper right", fontsize=9)
        delta = f"δ = {as_asked(finding.delta)}"
        tidy(axes, finding.name, f"{finding.verdict}, {finding.confidence:.4g} confidence, {delta}")
    for axes in panels[len(findings) :]:
        axes.set_visible(False)
    save(figure, path)
