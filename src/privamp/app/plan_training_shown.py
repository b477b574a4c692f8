"""How "Plan a training" is shown: epsilon at the end by schedule, over the epochs, and the gain of banded noise."""

from collections.abc import Mapping
from typing import Any

from ..numerics.printing import as_asked, shown_down
from .plan_training import GAIN, Gain, Point, State, epochs_shown, specs
from .shown import Chart, Detail, Shown, Table, line, lines_chart
from .which_design_shown import epsilon_text
from .work import Failed

_DIGITS = 4


def show(state: State, results: Mapping[str, Any]) -> Shown:
    """The page for what is ready."""
    names = list(specs(state, state.epochs))
    ends = {name: results.get(f"{name}, {state.epochs}") for name in names}
    ready = sorted((p for p in ends.values() if isinstance(p, Point)), key=lambda p: (p.epsilon_upper, p.schedule))
    rows = [(p.schedule, epsilon_text(p.epsilon_upper), _attack(p)) for p in ready]
    failed = {name: found.reason for name, found in ends.items() if isinstance(found, Failed)}
    rows += [(name, "no number", "") for name in failed]
    rows += [(name, "computing…", "") for name, found in ends.items() if found is None]
    details = [_details(point) for point in ready] + [(Detail("Why not", (why,)),) for why in failed.values()]
    steps = state.rounds * state.epochs
    caption = f"ε at δ = {as_asked(state.delta)} after {state.epochs:,} epochs ({steps:,} rounds), add-remove"
    table = Table(caption, ("<Schedule", "ε at most", "ε at least"), tuple(rows), tuple(details))
    return Shown(
        _summary(state, ready, len(names)), (table, _gains(state, results.get(GAIN))), (_over_epochs(state, results),),
        state.notes(),
    )  # fmt: skip


def _attack(point: Point) -> str:
    return "no attack known" if point.epsilon_lower is None else shown_down(point.epsilon_lower, _DIGITS)


def _details(point: Point) -> tuple[Detail, ...]:
    proofs = tuple(f"privamp theorem {name}" for name in point.theorems)
    more = (Detail("Proofs", proofs),) if proofs else ()
    return (Detail("Spec", (point.spec,)), Detail("Because", point.because), *more, Detail("Assumes", point.assumes))


def _summary(state: State, ready: list[Point], count: int) -> str:
    asked = (
        f"{state.epochs:,} epochs of {state.rounds:,} rounds with about {state.drawn:,} of {state.records:,} records"
    )
    if not ready:
        return f"{asked}: computing…"
    best, so_far = ready[0], " so far" if len(ready) < count else ""
    found = f"ε ≤ {epsilon_text(best.epsilon_upper)} at δ = {as_asked(state.delta)}"
    return f"{asked}: {best.schedule} costs least{so_far}, {found}."


def _gains(state: State, gain: Any) -> Table:
    """Independent against banded noise, at the same epsilon."""
    heads = ("<Noise at the same ε", "sigma", "error of prefix sums")
    caption = f"Predicted gain of banded noise ({state.usable_bands} bands, cyclic Poisson) at the ε of Poisson batches"
    if isinstance(gain, Gain):
        ratio, word = (gain.factor, "smaller") if gain.factor >= 1 else (1.0 / gain.factor, "larger")
        caption += f": the error is {ratio:.3g} times {word}"
        rows = [
            ("independent", f"{state.noise:.4g}", f"{gain.independent:.4g}"),
            (f"{state.usable_bands} bands", f"{gain.sigma:.4g}", f"{gain.banded:.4g}"),
        ]
    elif isinstance(gain, Failed):
        rows = [("no number", "", gain.reason)]
    else:
        rows = [("computing…", "", "")] if state.usable_bands > 1 else [("one band is independent noise", "", "")]
    return Table(caption, heads, tuple(rows))


def _over_epochs(state: State, results: Mapping[str, Any]) -> Chart:
    series = []
    for color, name in enumerate(specs(state, state.epochs)):
        found = [results.get(f"{name}, {epochs}") for epochs in sorted(epochs_shown(state))]
        points = [p for p in found if isinstance(p, Point)]
        above = line(name, color, [(p.epochs, p.epsilon_upper) for p in points])
        series.append(above | {"showSymbol": True})
        below = [(p.epochs, p.epsilon_lower) for p in points if p.epsilon_lower is not None]
        if below:
            series.append(line(f"{name}, attack", color, below, dashed=True))
    title = f"ε at δ = {as_asked(state.delta)} over the epochs: certified (solid), reached by an attack (dashed)"
    words = "Epsilon grows with the epochs for each schedule; the table has the numbers at the end."
    made = lines_chart(title, words, ({"name": "epochs", "min": 0}, {"name": "ε", "min": 0}), series)
    names = list(specs(state, state.epochs))
    made.options["legend"] = {"type": "scroll", "bottom": 0, "data": names, "textStyle": {"color": "#8a939c"}}
    made.options["grid"]["bottom"] = 60
    return made
