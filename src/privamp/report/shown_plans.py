"""Comparisons and plans as notebooks show them: a table, a picture, and the assumptions, folded."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.guarantee import Guarantee
from ..numerics.printing import as_asked, shown_down, shown_up
from .comparison import ADVICE, Comparison, Row
from .curve_lines import Curve, curves_of
from .html import Report
from .pictures import COLORS, compared_epsilons, new_figure, tidy
from .release import number
from .shown import folded, guarantee_fragment, guarantee_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..bootstrap.planning import Plan as BootstrapPlan
    from ..queries.plan import Plan as QuestionsPlan
    from ..survey.allocation import Allocation
    from ..survey.planning import Plan as SurveyPlan
    from ..torch.bands import BandsPlan


def comparison_fragment(found: Comparison) -> str:
    """The ranking, the curves of all designs, and the theorems and assumptions of each."""
    asked, page = found.question, Report("Comparison", "")
    header = ["design", "ε at most", "an attack reaches", "draws", "different records"]
    draws = f", {asked.steps:,} fresh draws" if asked.steps > 1 else ""
    caption = f"Ranked by ε at δ = {as_asked(asked.delta)} ({asked.neighbors}{draws})"
    page.add_table(header, [_compared(row) for row in found.rows], caption)
    rows = [row for row in found.rows if row.guarantee is not None]
    reasons = [_reasons(row.label, row.guarantee) for row in rows if row.guarantee is not None]
    return page.body() + _compared_curves(rows) + folded("Notes", tuple(_notes(found))) + "".join(reasons)


def _compared(row: Row) -> list[str]:
    sizes = [number(row.expected_size, 6), number(row.expected_distinct)]
    if row.epsilon_upper is None:
        return [row.label, "no number" if row.failed else "no theorem", "—", *sizes]
    attack = "—" if row.epsilon_lower is None else shown_down(row.epsilon_lower)
    return [row.label, shown_up(row.epsilon_upper), attack, *sizes]


def _compared_curves(rows: list[Row]) -> str:
    if not rows:
        return ""
    epsilons, is_wide = compared_epsilons(rows)
    lines = [Curve(row.label, *guarantee_lines(row.guarantee, epsilons)) for row in rows if row.guarantee is not None]
    return curves_of(epsilons, lines, "δ(ε) of every design: certified (solid), attacked (dashed)", log=is_wide)


def _notes(found: Comparison) -> Iterable[str]:
    uneven = found.uneven()
    if uneven:
        yield uneven
    for row in found.rows:
        if row.guarantee is not None and row.guarantee.degrades:
            yield f"{row.label} makes the release LESS private than the mechanism on all the data"
        if row.reason:
            yield f"{row.label}: {row.reason}"
    if found.has_repeats:
        yield ADVICE


def _reasons(title: str, guarantee: Guarantee) -> str:
    return folded(f"{title}: theorems and assumptions", (*guarantee.because, *guarantee.assumes))


def survey_fragment(plan: "SurveyPlan") -> str:
    """The candidates, best first, and why the first one is recommended."""
    page = Report("Plan", "")
    header = ["design", "error", "from sampling", "from noise", "amplified ε", "an attack reaches", "note"]
    rows = [
        [
            row.name,
            *map(number, (row.standard_error, row.standard_error_sampling, row.standard_error_noise)),
            shown_up(row.amplified_upper, 4),
            "—" if row.amplified_lower is None else shown_down(row.amplified_lower, 4),
            row.note,
        ]
        for row in plan.rows
    ]
    page.add_table(header, rows, f"Expected standard errors of a mean at ε = {as_asked(plan.epsilon)}, best first")
    page.add_text(f"Recommended: {plan.recommendation}; {plan.reason}.")
    return page.body() + (folded("Notes", plan.notes) if plan.notes else "")


def allocation_fragment(found: "Allocation") -> str:
    """The size of every stratum, and the standard error of the mean."""
    page = Report("Allocation", "")
    rows = [
        [str(h.name), f"{h.population:,}", f"{found.sizes[h.name]:,}", f"{found.sizes[h.name] / h.population:.3g}"]
        for h in found.strata
    ]
    at = f" and δ = {as_asked(found.delta)}" if found.delta else ""
    page.add_table(["stratum", "records", "drawn", "rate"], rows, f"{found.method}, ε = {as_asked(found.epsilon)}{at}")
    parts = [number(np.sqrt(part)) for part in (found.cost.total, found.cost.sampling, found.cost.noise)]
    page.add_text(f"Standard error of the mean: {parts[0]} ({parts[1]} from sampling, {parts[2]} from noise).")
    return page.body()


def allocation_figure(found: "Allocation") -> "Figure":
    """The share of every stratum in the sample, beside its share of the records."""
    records = np.array([h.population for h in found.strata], dtype=np.float64)
    drawn = np.array([found.sizes[h.name] for h in found.strata], dtype=np.float64)
    figure = new_figure(6.4, 2.0 + 0.5 * records.size)
    axes, at = figure.subplots(), np.arange(records.size)
    axes.barh(at - 0.2, 100 * drawn / drawn.sum(), height=0.36, color=COLORS[0], label="of the sample")
    axes.barh(at + 0.2, 100 * records / records.sum(), height=0.36, color=COLORS[4], label="of all records")
    axes.set_yticks(at, labels=[str(h.name) for h in found.strata])
    axes.invert_yaxis()
    axes.set_xlabel("per cent")
    figure.legend(loc="outside lower left", ncols=2, frameon=False)
    tidy(axes, "Shares of the strata", f"{found.method}, {int(drawn.sum()):,} of {int(records.sum()):,} records")
    return figure  # type: ignore[no-any-return]


def bootstrap_fragment(plan: "BootstrapPlan") -> str:
    """The choices, and the guarantee of all releases together."""
    made = plan.procedure
    facts = {
        "method": made.method,
        "records": f"{made.population:,}",
        "sizes": ", ".join(f"{size:,}" for size in made.sizes) or "all records",
        "resamples": f"{plan.resamples:,}",
        "confidence": f"{plan.confidence:g}",
    }
    return _facts("Bootstrap plan", facts) + guarantee_fragment(plan.guarantee)


def training_fragment(plan: Any) -> str:
    """The public facts of a training run, and the guarantee of all its steps together."""
    facts = {name: value for name, value in plan.facts().items() if value is not None}
    return _facts("Training plan", facts) + guarantee_fragment(plan.guarantee())


def questions_fragment(plan: "QuestionsPlan") -> str:
    """The questions that share one sample; their cost is set when they are run."""
    page = Report("Plan", "")
    rows = [[question.name, f"{question.weight:g}"] for question in plan.questions]
    page.add_table(["question", "weight"], rows, f"Asked of one sample by {plan.table.design}")
    return page.body()


def questions_figure(plan: "QuestionsPlan") -> "Figure":
    """How much each question weighs where the noise is split."""
    names = [question.name for question in plan.questions]
    figure = new_figure(6.4, 1.6 + 0.4 * len(names))
    axes, at = figure.subplots(), np.arange(len(names))
    axes.barh(at, [question.weight for question in plan.questions], height=0.6, color=COLORS[0])
    axes.set_yticks(at, labels=names)
    axes.invert_yaxis()
    tidy(axes, "Weights of the questions", f"one sample by {plan.table.design}")
    return figure  # type: ignore[no-any-return]


def bands_fragment(plan: "BandsPlan") -> str:
    """The noise and the predicted error of every number of bands."""
    page = Report("Bands", "")
    rows = [[f"{one.bands}", shown_up(one.noise_multiplier), f"{one.ratio:.3f}"] for one in plan.tried]
    page.add_table(["bands", "noise multiplier", "error of prefix sums"], rows, _bands_asked(plan))
    page.add_text(f"Best: {plan.bands} band{'s' if plan.bands > 1 else ''}, {plan.ratio:.3f} of independent noise.")
    return page.body()


def bands_figure(plan: "BandsPlan") -> "Figure":
    """The predicted error of prefix sums against the number of bands."""
    figure = new_figure(6.4, 3.4)
    axes, bands = figure.subplots(), [one.bands for one in plan.tried]
    axes.plot(bands, [one.ratio for one in plan.tried], marker="o", color=COLORS[0])
    axes.axhline(1.0, color=COLORS[4], linestyle=":")
    axes.set_xscale("log", base=2)
    axes.set_xticks(bands, labels=[str(number) for number in bands])
    axes.set_xlabel("bands")
    tidy(axes, "Error of prefix sums, independent noise = 1", _bands_asked(plan))
    return figure  # type: ignore[no-any-return]


def _bands_asked(plan: "BandsPlan") -> str:
    return f"{plan.steps:,} steps, rate {plan.rate:g}, ε = {as_asked(plan.epsilon)}, δ = {as_asked(plan.delta)}"


def _facts(title: str, facts: dict[str, Any]) -> str:
    page = Report(title, "")
    page.add_table([title, ""], [[name.replace("_", " "), str(value)] for name, value in facts.items()], "Public facts")
    return page.body()
