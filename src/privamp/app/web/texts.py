"""A text on the page: a field to edit, examples to start from, and a file to upload."""

from typing import Any

from ...errors import InvalidInput
from ...extras import missing
from ..controls import Control
from ..strata import MOST_BYTES, decoded

try:
    from nicegui import ui
except ModuleNotFoundError as error:
    raise missing(error, "the explorer") from error


def draw(name: str, control: Control, value: str, changed: Any, refused: Any) -> None:
    """Draw the field; `changed(name, text)` is called for every text that `control` accepts, `refused` for the
    others."""
    field = ui.textarea(control.label, value=value).props("outlined autogrow debounce=600 spellcheck=false")
    field.props(f'input-class="table-text" data-name="{name}"').style("width: 100%")

    def take(text: str) -> bool:
        try:
            found = control.read(text)
        except InvalidInput as error:
            refused(f"{control.label}: {error}.")
            return False
        changed(name, found)
        return True

    async def uploaded(event: Any) -> None:
        try:
            text = decoded(await event.file.read())
        except InvalidInput as error:
            refused(f"{control.label}: {error}.")
            return
        if take(text):
            field.set_value(control.read(text))

    def put(text: str) -> None:
        if take(text):
            field.set_value(control.read(text))

    field.on_value_change(lambda event: take(str(event.value)))
    with ui.element("div").classes("buttons"):
        for label, example in control.options:
            ui.button(f"Example: {label}", on_click=lambda text=example: put(text)).props("no-caps dense flat")
    upload = ui.upload(auto_upload=True, on_upload=uploaded, max_file_size=MOST_BYTES)
    upload.on_rejected(
        lambda: refused(f"{control.label}: a table may have at most {MOST_BYTES:,} bytes; upload strata, not records.")
    )
    upload.props('accept=".csv,text/csv,text/plain"').style("display: none")  # its own button has no name
    button = ui.button("Upload a table (CSV)").props("no-caps outline dense").style("width: 100%")
    button.on("click", js_handler=f"() => getElement({upload.id}).$refs.qRef.pickFiles()")
