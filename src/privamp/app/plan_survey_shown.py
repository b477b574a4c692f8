"""How "Plan a survey" is shown: allocations side by side, sizes in each stratum, and the designs of `survey.plan`."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..numerics.printing import as_asked, shown_down
from ..survey import Plan
from .plan_survey import DESIGNS, METHODS, Allocated, State
from .shown import COLORS, GREY, Chart, Detail, Shown, Table
from .which_design_shown import epsilon_text
from .work import Failed


def show(state: State, results: Mapping[str, Any]) -> Shown:
    """The page for what is ready."""
    ready = [found for name in METHODS if isinstance(found := results.get(name), Allocated)]
    tables = (_allocations(state, results), _sizes(state, ready), _designs(state, results.get(DESIGNS)))
    charts = (_errors(ready), _bars(state, ready))
    return Shown(_summary(state, ready, results), tables, charts, state.notes())


def _summary(state: State, ready: Sequence[Allocated], results: Mapping[str, Any]) -> str:
    asked = f"{len(state.lines)} strata, {state.records:,} records, ε = {as_asked(state.epsilon)}"
    if not ready:
        failed = [found.reason for found in results.values() if isinstance(found, Failed)]
        return f"{asked}: {failed[0]}." if failed else f"{asked}: computing…"
    best = min(ready, key=lambda found: (found.error if state.goal == "size" else found.interviews, found.method))
    found = f"{best.interviews:,} interviews, standard error {best.error:.4g}, cost {best.cost:,.6g}"
    return f"{asked}: {METHODS[best.method].lower()} allocation is best, {found}."


def _allocations(state: State, results: Mapping[str, Any]) -> Table:
    rows: list[tuple[str, ...]] = []
    details: list[tuple[Detail, ...]] = []
    for name, label in METHODS.items():
        found = results.get(name)
        if isinstance(found, Allocated):
            parts = (f"{found.error:.4g}", f"{found.sampling:.4g}", f"{found.noise:.4g}")
            rows.append((label, f"{found.interviews:,}", *parts, epsilon_text(found.epsilon), f"{found.cost:,.6g}"))
            details.append((Detail("Because", found.because), Detail("Assumes", found.assumes)))
        else:
            is_failed = isinstance(found, Failed)
            rows.append((label, "no number" if is_failed else "computing…", *[""] * 5))
            details.append((Detail("Why not", (found.reason,)),) if isinstance(found, Failed) else ())
    heads = ("<Allocation", "Interviews", "Standard error", "from sampling", "from noise", "ε at most", "Cost")
    at = f", δ = {as_asked(state.delta)}" if state.noise == "gaussian" else ""
    return Table(f"Allocations of a private mean, {state.noise} noise{at}", heads, tuple(rows), tuple(details))


def _sizes(state: State, ready: Sequence[Allocated]) -> Table:
    rows = tuple(
        (each.name, f"{each.population:,}", *(f"{found.sizes[each.name]:,}" for found in ready)) for each in state.lines
    )
    heads = ("<Stratum", "Records", *(METHODS[found.method] for found in ready))
    return Table("Interviews in each stratum", heads, rows)


def _designs(state: State, found: Any) -> Table:
    heads = ("<Design", "<Relation", "Standard error", "ε amplified, at most", "at least")
    caption = f"Designs at the same size; what ε = {as_asked(state.epsilon)} on the sample amplifies to"
    if isinstance(found, Failed):
        return Table(caption, heads, (("no comparison", found.reason, "", "", ""),))
    if not isinstance(found, Plan):
        return Table(caption, heads, (("computing…", "", "", "", ""),))
    rows = tuple(
        (row.name, str(row.relation), f"{row.standard_error:.4g}", epsilon_text(row.amplified_upper),
         "no attack known" if row.amplified_lower is None else shown_down(row.amplified_lower, 4))
        for row in found.rows
    )  # fmt: skip
    details = tuple((Detail("Note", (row.note,)),) if row.note else () for row in found.rows)
    return Table(caption, heads, rows, details)


def _chart(title: str, words: str, names: Sequence[str], series: Sequence[dict[str, Any]]) -> Chart:
    options: dict[str, Any] = {
        "animation": False,
        "textStyle": {"color": GREY},
        "aria": {"enabled": True, "description": words},
        "grid": {"left": 8, "right": 16, "top": 16, "bottom": 56, "containLabel": True},
        "legend": {"type": "scroll", "bottom": 0, "textStyle": {"color": GREY}},
        "tooltip": {"trigger": "axis", "confine": True},
        "xAxis": {"type": "category", "data": list(names), "axisLabel": {"color": GREY}},
        "yAxis": {"type": "value", "axisLabel": {"color": GREY},
                  "splitLine": {"lineStyle": {"color": GREY, "opacity": 0.25}}},
        "series": [{"type": "bar", "barMaxWidth": 36} | one for one in series],
    }  # fmt: skip
    return Chart(title, words, options)


def _errors(ready: Sequence[Allocated]) -> Chart:
    parts = (
        ("from sampling", COLORS[0], [found.sampling for found in ready]),
        ("from noise", COLORS[1], [found.noise for found in ready]),
        ("together", COLORS[8], [found.error for found in ready]),
    )
    series = [{"name": name, "data": data, "itemStyle": {"color": color}} for name, color, data in parts]
    words = "; ".join(f"{METHODS[found.method]} {found.error:.4g}" for found in ready)
    made = _chart("Standard error of the mean", words, [METHODS[found.method] for found in ready], series)
    made.options["xAxis"]["axisLabel"] |= {"interval": 0, "fontSize": 11}  # every name, on a phone too
    return made


def _bars(state: State, ready: Sequence[Allocated]) -> Chart:
    names = [each.name for each in state.lines]
    series = [
        {"name": METHODS[found.method], "data": [found.sizes[name] for name in names],
         "itemStyle": {"color": COLORS[list(METHODS).index(found.method)]}}
        for found in ready
    ]  # fmt: skip
    words = "Interviews in each stratum by allocation; the table has the numbers."
    return _chart("Interviews in each stratum", words, names, series)
