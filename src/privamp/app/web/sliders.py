"""A control on the page: a slider with a field for the exact number beside it, or a list to choose from."""

from collections.abc import Callable
from typing import Any

from ...errors import InvalidInput
from ...extras import missing
from ..controls import Control, plain
from . import texts

try:
    from nicegui import ui
except ModuleNotFoundError as error:
    raise missing(error, "the explorer") from error

Changed = Callable[[str, Any], None]
Refused = Callable[[str], None]


def draw(name: str, control: Control, value: Any, changed: Changed, refused: Refused) -> None:
    """Draw the control of one field; `changed(name, value)` is called for every new value, `refused` for bad ones."""
    with ui.element("div").classes("control"):
        if control.kind == "choice":
            _choice(name, control, value, changed, refused)
        elif control.kind == "text":
            texts.draw(name, control, value, changed, refused)
        else:
            _slider(name, control, value, changed, refused)
        if control.hint:
            ui.label(control.hint).classes("hint")


def _choice(name: str, control: Control, value: str, changed: Changed, refused: Refused) -> None:
    select = ui.select(dict(control.options), label=control.label, value=value)
    select.props(f'dense outlined options-dense data-name="{name}"').style("width: 100%")

    def chosen(event: Any) -> None:
        try:
            changed(name, control.read(str(event.value)))
        except InvalidInput as error:
            refused(f"{error}.")

    select.on_value_change(chosen)


def _slider(name: str, control: Control, value: float, changed: Changed, refused: Refused) -> None:
    """Moving one moves the other; the field keeps what was typed, the slider the nearest stop.

    It is the browser's native slider, which works with keyboards and screen readers.
    """
    with ui.element("div").classes("name"):
        ui.label(control.label).props('aria-hidden="true"')
        field = ui.input(value=plain(value)).props("dense outlined debounce=400")
        field.props(f'inputmode="decimal" data-name="{name}" input-class="text-right"')
        field.props["aria-label"] = f"{control.label}, exact value"
    slider = ui.element("input").props(f"type=range min=0 max={len(control.stops) - 1} step=1")
    slider.props["aria-label"] = control.label
    positions = {str(index) for index in range(len(control.stops))}
    is_following = [False]  # the field is being set by the slider

    def point_to(found: float) -> None:
        slider.props["value"] = control.position(found)
        slider.props["aria-valuetext"] = plain(found)
        slider.update()

    def slid(event: Any) -> None:
        position = str(event.args)
        if position not in positions:
            return  # no browser sends this
        stop = control.stops[int(position)]
        found = int(stop) if control.kind == "whole" else stop
        is_following[0] = True
        field.set_value(plain(found))
        is_following[0] = False
        point_to(found)
        changed(name, found)

    def typed(event: Any) -> None:
        if is_following[0]:
            return
        try:
            found = control.read(str(event.value).strip().replace(",", ""))
        except InvalidInput as error:
            refused(f"{error}.")
            return
        point_to(found)
        changed(name, found)

    point_to(value)
    slider.on("input", slid, js_handler="(event) => emit(event.target.value)", throttle=0.05)
    field.on_value_change(typed)
