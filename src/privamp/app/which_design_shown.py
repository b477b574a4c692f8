"""How "Which design?" is shown: the ranked table, epsilon from both sides, and the curves of delta."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..numerics.printing import as_asked, shown_down, shown_up
from .shown import COLORS, GREY, POWERS, Chart, Detail, Shown, Table, line, lines_chart
from .which_design import Row, State, designs, ranked
from .work import Failed

_DIGITS = 4
_HEADS = ("<Design", "ε at most", "ε at least", "Expected size")


def show(state: State, results: Mapping[str, Row | Failed]) -> Shown:
    """The page for the designs that are ready, with a note about the others."""
    rows = ranked([found for found in results.values() if isinstance(found, Row)])
    failed = {name: found.reason for name, found in results.items() if isinstance(found, Failed)}
    waiting = [name for name, _ in designs(state) if name not in results]
    order = {name: index for index, (name, _) in enumerate(designs(state))}
    caption = f"Ranked by certified ε at δ = {as_asked(state.delta)}, {state.neighbors}"
    body = [_cells(rank, row) for rank, row in enumerate(rows, 1)]
    body += [(name, "no theorem" if "proved" in reason else "no number", "", "") for name, reason in failed.items()]
    body += [(name, "computing…", "", "") for name in waiting]
    details = [_details(row) for row in rows] + [(Detail("Why not", (reason,)),) for reason in failed.values()]
    charts = (_intervals(state, rows, order), _curves(state, rows, order))
    summary = _summary(state, rows, is_done=not waiting)
    return Shown(summary, (Table(caption, _HEADS, tuple(body), tuple(details)),), charts, state.notes())


def epsilon_text(value: float) -> str:
    """A certified epsilon, rounded up."""
    return shown_up(value, _DIGITS) if math.isfinite(value) else "∞"


def _cells(rank: int, row: Row) -> tuple[str, ...]:
    attack = "no attack known" if row.epsilon_lower is None else shown_down(row.epsilon_lower, _DIGITS)
    mark = " (loses privacy)" if row.degrades else ""
    return (f"{rank}. {row.name}{mark}", epsilon_text(row.epsilon_upper), attack, f"{row.expected_size:,.6g}")


def _details(row: Row) -> tuple[Detail, ...]:
    proofs = tuple(f"privamp theorem {name}" for name in row.theorems)
    more = (Detail("Proofs", proofs),) if proofs else ()
    return (Detail("Spec", (row.spec,)), Detail("Because", row.because), *more, Detail("Assumes", row.assumes))


def _summary(state: State, rows: Sequence[Row], *, is_done: bool) -> str:
    fresh = f", {state.rounds:,} rounds" if state.rounds > 1 else ""
    asked = f"{state.drawn:,} of {state.population:,} records{fresh}"
    if not rows:
        return f"{asked}: computing…"
    best = rows[0]
    if not math.isfinite(best.epsilon_upper):
        return f"{asked}: no design reaches δ = {as_asked(state.delta)}; add noise or use a larger δ."
    found = f"ε ≤ {epsilon_text(best.epsilon_upper)} at δ = {as_asked(state.delta)}"
    return f"{asked}: {best.name} is the most private{'' if is_done else ' so far'}, {found}."


def _intervals(state: State, rows: Sequence[Row], order: Mapping[str, int]) -> Chart:
    """A bar for each design: what an attack reaches, and what is certified."""
    drawn = [row for row in rows if math.isfinite(row.epsilon_upper)][::-1]
    shade = [COLORS[order[row.name] % len(COLORS)] for row in drawn]
    certified = [{"value": row.epsilon_upper, "itemStyle": {"color": c}} for row, c in zip(drawn, shade, strict=True)]
    attacked = [row.epsilon_lower for row in drawn]
    title = f"ε at δ = {as_asked(state.delta)}: certified (bar), reached by an attack (line)"
    words = [f"{row.name} at most {epsilon_text(row.epsilon_upper)}" for row in drawn[::-1]]
    options: dict[str, Any] = {
        "animation": False,
        "textStyle": {"color": GREY},
        "aria": {"enabled": True, "description": "; ".join(words)},
        "grid": {"left": 8, "right": 24, "top": 8, "bottom": 24, "containLabel": True},
        "tooltip": {"trigger": "axis", "confine": True},
        "xAxis": {"type": "value", "axisLabel": {"color": GREY, "hideOverlap": True},
                  "splitLine": {"lineStyle": {"color": GREY, "opacity": 0.25}}},
        "yAxis": {"type": "category", "data": [row.name for row in drawn], "axisLabel": {"color": GREY}},
        "series": [
            {"name": "certified: at most", "type": "bar", "data": certified, "barWidth": "55%"},
            {"name": "attack: at least", "type": "scatter", "data": attacked, "symbol": "rect", "symbolSize": [3, 20],
             "itemStyle": {"color": GREY, "borderColor": "#fff", "borderWidth": 0.5}},
        ],
    }  # fmt: skip
    return Chart(title, "; ".join(words), options)


def _curves(state: State, rows: Sequence[Row], order: Mapping[str, int]) -> Chart:
    lowest = state.delta / 1e3
    series = []
    for row in rows:
        above = [(e, d) for e, d in zip(row.epsilons, row.deltas_upper, strict=True) if d >= lowest]
        series.append(line(row.name, order[row.name], above))
        if row.deltas_lower is not None:
            below = [(e, d) for e, d in zip(row.epsilons, row.deltas_lower, strict=True) if d >= lowest]
            series.append(line(f"{row.name}, attack", order[row.name], below, dashed=True))
    x = {"name": "ε", "min": 0}
    y = {"type": "log", "name": "δ", "min": lowest, "max": 1, "axisLabel": POWERS}
    title = "δ at each ε: certified (solid), reached by an attack (dashed)"
    words = f"Curves of delta for {', '.join(row.name for row in rows) or 'no design yet'}; the table has the numbers."
    return lines_chart(title, words, (x, y), series)
