"""One page for every view: controls on the left, results on the right, updated as they arrive."""

import asyncio
import threading
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ...extras import missing
from ..controls import controls, query, read
from ..report import report
from ..shown import Shown
from ..views import VIEWS, View
from ..work import Work
from . import sliders

try:
    from nicegui import ui
except ModuleNotFoundError as error:
    raise missing(error, "the explorer") from error

_GATHER = 0.03  # seconds in which results that come together are drawn together
_LOADING = 2.0  # seconds for a browser to draw the charts, before slow jobs start without them
_PATIENCE = 0.15  # seconds for a first result, before the page says that it computes


class Page:
    """A view in one browser window: its state, its work, and what is on the screen."""

    def __init__(self, view: View, given: dict[str, str], root: str) -> None:
        self.view = view
        self.root = root
        self.state, self.said = read(view.state, given)
        self.results: dict[str, Any] = {}
        self.has_result = asyncio.Event()
        self.work = Work(view.answer)
        self.client = ui.context.client
        self.loop = asyncio.get_running_loop()
        self.is_drawn = False
        self.is_drawing = False
        self.is_loaded = threading.Event()
        self.frames: list[tuple[ui.html, ui.element]] = []
        self.charts: list[ui.echart] = []  # one in each frame, once the browser has connected

    async def open(self) -> None:
        """Draw the page with its first number, or without it if that takes long."""
        self.client.on_connect(self._draw_charts)
        self.client.on_delete(self.work.stop)
        self.compute()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.has_result.wait(), _PATIENCE)
        self.draw()

    def draw(self) -> None:
        """Everything once; later only what changes."""
        _top(self.view, self.root)
        with ui.element("main").classes("page"):
            with ui.element("div").classes("head"):
                ui.html(f"<h1>{self.view.title}</h1>", sanitize=False)
                ui.html(f"<p>{self.view.lead}</p>", sanitize=False)
            with ui.element("section").classes("card side").props('aria-label="Settings"'):
                for name, control in controls(self.state).items():
                    sliders.draw(name, control, getattr(self.state, name), self.changed, self.refused)
            with ui.element("section").classes("results").props('aria-label="Results"'):
                self._draw_results(self.view.show(self.state, self.results))
        self.is_drawn = True

    def _draw_results(self, first: Shown) -> None:
        self.status = ui.element("div").classes("card").props('role="status" aria-live="polite" aria-busy="true"')
        with self.status:
            self.summary = ui.label(first.summary).classes("summary")
            self.notes = ui.label(self._said(first)).classes("note")
        self._mark()
        with ui.element("div").classes("card"):
            self.tables = ui.html("".join(table.html() for table in first.tables), sanitize=False)
        with ui.element("div").classes("pair"):
            for chart in first.charts:
                with ui.element("div").classes("card chart"):
                    title = ui.html(f"<h2>{chart.title}</h2>", sanitize=False)
                    self.frames.append((title, ui.element("div").classes("plot")))
        self._draw_buttons()

    def _draw_charts(self) -> None:
        """After the numbers, which would otherwise wait for the plot library, the page's largest file."""
        if self.charts:
            return  # connected again
        for (_, frame), chart in zip(self.frames, self.view.show(self.state, self.results).charts, strict=True):
            with frame:
                drawn = ui.echart(chart.options).props('role="img"')
            drawn.props["aria-label"] = chart.description
            drawn.on("chart:rendered.once", self.is_loaded.set, [])
            self.charts.append(drawn)
        self.loop.call_later(_LOADING, self.is_loaded.set)

    def _draw_buttons(self) -> None:
        with ui.element("div").classes("card"):
            with ui.element("div").classes("buttons"):
                ui.button(
                    "Copy as Python", on_click=lambda: self.copy(self.view.python(self.state, self.results))
                ).props("no-caps")
                ui.button(
                    "Copy as command", on_click=lambda: self.copy(self.view.command(self.state, self.results))
                ).props("no-caps")
                ui.button("Download report", on_click=self.download).props("no-caps outline")
            with ui.expansion("Show the code").classes("code").style("width: 100%"):
                self.python = ui.element("pre").props('tabindex="0" aria-label="As Python" data-code="python"')
                self.command = ui.element("pre").props('tabindex="0" aria-label="As a command" data-code="command"')
        self._draw_code()

    def _draw_code(self) -> None:
        for place, code in ((self.python, self.view.python), (self.command, self.view.command)):
            place.clear()
            with place:
                ui.label(code(self.state, self.results)).style("white-space: pre")

    def changed(self, name: str, value: Any) -> None:
        """A control has a new value: stop running jobs, and compute again."""
        if getattr(self.state, name) == value:
            return
        self.state, self.said = replace(self.state, **{name: value}), ()
        ui.navigate.history.replace("?" + query(self.state))
        self.compute()

    def refused(self, sentence: str) -> None:
        """Report an invalid value, and keep the state."""
        self.said = (sentence,)
        self.redraw()

    def compute(self) -> None:
        """Start the jobs of the state."""
        self.results = {}
        jobs = self.view.jobs(self.state)
        self.missing = len(jobs)
        self.work.start(jobs, self._found, is_loaded=self.is_loaded)
        if self.is_drawn:
            self._mark()
        self.loop.call_later(_PATIENCE, self._draw_if_empty, self.state)

    def _found(self, job: Any, result: Any) -> None:
        """A result, perhaps from a thread."""
        with suppress(RuntimeError):  # the server has ended
            self.loop.call_soon_threadsafe(self._keep, job, result)

    def _keep(self, job: Any, result: Any) -> None:
        if job.state != self.state or job.name in self.results:
            return
        is_first = not self.results
        self.results[job.name] = result
        self.missing -= 1
        self.has_result.set()
        if not self.is_drawing and self.is_drawn:
            self.is_drawing = True
            self.loop.call_later(0.0 if is_first else _GATHER, self.redraw)

    def _draw_if_empty(self, state: Any) -> None:
        if self.is_drawn and state == self.state and not self.results:
            self.redraw()

    def _mark(self) -> None:
        """Tell screen readers whether more results are coming."""
        self.status.props["aria-busy"] = "true" if self.missing else "false"

    def _said(self, shown: Shown) -> str:
        return " ".join((*self.said, *shown.notes))

    def redraw(self) -> None:
        """Show what is known now."""
        self.is_drawing = False
        if self.client.is_deleted:
            return
        shown = self.view.show(self.state, self.results)
        with self.client:
            self._mark()
            self.summary.set_text(shown.summary)
            self.notes.set_text(self._said(shown))
            self.tables.set_content("".join(table.html() for table in shown.tables))
            for (title, _), chart in zip(self.frames, shown.charts, strict=True):
                title.set_content(f"<h2>{chart.title}</h2>")
            for drawn, chart in zip(self.charts, shown.charts, strict=bool(self.charts)):
                drawn.props["aria-label"] = chart.description
                drawn.options.clear()
                drawn.options.update(chart.options)
                drawn.update()
            self._draw_code()

    def copy(self, text: str) -> None:
        """Copy a text to the clipboard."""
        ui.clipboard.write(text)
        ui.notify("Copied.")

    def download(self) -> None:
        """The report of what is shown."""
        shown = self.view.show(self.state, self.results)
        page = report(
            self.view.title,
            shown,
            self.view.python(self.state, self.results),
            self.view.command(self.state, self.results),
        )
        ui.download.content(page, "privamp-report.html", "text/html")


def _top(current: View, root: str) -> None:
    with ui.element("nav").classes("top").props('aria-label="Views"'):
        ui.html("<b>privamp</b>", sanitize=False)
        for view in VIEWS:
            link = ui.link(view.title, root + view.path)
            if view is current:
                link.props('aria-current="page"')
