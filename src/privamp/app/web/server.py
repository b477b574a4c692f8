"""The server: one process, 127.0.0.1 only, quiet."""

import logging
import re
import socket
import threading
import urllib.request
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import urljoin

from ...errors import InvalidInput
from ...extras import missing
from ..guard import Guard, new_token
from ..kept_files import KeptFiles
from ..views import VIEWS, View
from ..work import warm_up
from .page import Page
from .style import CSS

try:
    import uvicorn
    from fastapi import FastAPI, Request
    from nicegui import __version__, ui
    from nicegui.dependencies import esm_modules
except ModuleNotFoundError as error:
    raise missing(error, "the explorer") from error

ADDRESS = "127.0.0.1"
_FILE = re.compile(r"""(?:href=|src=|url\(|from )["'](/[^"']+\.(?:css|m?js))["']""")  # of this server, in its page


def serve(port: int, opened: Callable[[str], None], *, browser: bool) -> None:
    """Serve until the process is interrupted; `opened` is called with the address once the port is bound."""
    with bound(port) as door:
        chosen: int = door.getsockname()[1]
        token = new_token()
        address = f"http://{ADDRESS}:{chosen}/{token}/"
        config = uvicorn.Config(
            application(token, chosen), log_level="critical", access_log=False, server_header=False,
            ws_max_size=1_000_000, timeout_graceful_shutdown=1,
        )  # fmt: skip
        threading.Thread(target=_prepare, args=(address,), daemon=True).start()
        opened(address)
        if browser:
            threading.Timer(0.5, webbrowser.open, (address,)).start()
        uvicorn.Server(config).run(sockets=[door])


def _prepare(address: str) -> None:
    """Import what answers need, then ask for the page and its files once: a first visitor finds them ready."""
    warm_up()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # this machine only, whatever proxy is set

    def got(path: str) -> str:
        with suppress(OSError), opener.open(urljoin(address, path), timeout=10.0) as answer:
            return str(answer.read().decode("utf-8", "replace"))
        return ""

    for path in dict.fromkeys(_FILE.findall(got(""))):
        got(path)


def bound(port: int) -> socket.socket:
    """A socket on this machine's own address; 0 takes a free port."""
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind((ADDRESS, port))
        door.listen(64)  # a browser that opens the address at once waits instead of failing
    except OSError:
        door.close()
        raise InvalidInput(f"port {port} is in use or not allowed; choose another with --port, or --port 0") from None
    return door


def application(token: str, port: int) -> Guard:
    """The pages behind the guard."""
    logging.getLogger("nicegui").setLevel(logging.ERROR)  # it would write addresses it does not know, with the token
    outer = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    for view in VIEWS:
        ui.page(view.path, title=f"{view.title} · privamp")(_page_of(view, f"/{token}"))
    ui.run_with(
        outer, mount_path=f"/{token}", dark=None, tailwind=False, show_welcome_message=False, reconnect_timeout=10.0,
        binding_refresh_interval=None, title="privamp", favicon="📐", gzip_middleware_factory=None,
    )  # fmt: skip
    folders = tuple(f"/{token}/_nicegui/{__version__}/{folder}/" for folder in ("static", "components", "esm"))
    return Guard(KeptFiles(outer, folders), token, port)


@cache
def _plots() -> tuple[str, ...]:
    """The files of the plots, which the browser would request only after everything else has run."""
    found = ((key, module.path / "index.js") for key, module in esm_modules.items() if module.name == "nicegui-echart")
    library = (
        f"/_nicegui/{__version__}/esm/{key}/{name}"
        for key, entry in found
        for name in (entry.name, *re.findall(r"from\s*['\"]\./([\w.-]+)['\"]", entry.read_text()))
    )
    return (f"/_nicegui/{__version__}/components/{ui.echart.component.key}", *library)


def _page_of(view: View, root: str) -> Callable[[Request], Any]:
    async def page(request: Request) -> None:
        ui.add_css(CSS)
        ui.add_head_html("".join(f'<link rel="modulepreload" href="{root}{path}">' for path in _plots()))
        await Page(view, dict(request.query_params), root).open()

    return page
