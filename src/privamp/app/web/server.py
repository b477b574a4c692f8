"""The server: one process, 127.0.0.1 only, quiet."""

import socket
import threading
import webbrowser
from collections.abc import Callable
from typing import Any

from ...errors import InvalidInput
from ...extras import missing
from ..guard import Guard, new_token
from ..views import VIEWS, View
from ..work import warm_up
from .page import Page
from .style import CSS

try:
    import uvicorn
    from fastapi import FastAPI, Request
    from nicegui import ui
except ModuleNotFoundError as error:
    raise missing(error, "the explorer") from error

ADDRESS = "127.0.0.1"


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
        threading.Thread(target=warm_up, daemon=True).start()
        opened(address)
        if browser:
            threading.Timer(0.5, webbrowser.open, (address,)).start()
        uvicorn.Server(config).run(sockets=[door])


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
    outer = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    for view in VIEWS:
        ui.page(view.path, title=f"{view.title} · privamp")(_page_of(view, f"/{token}"))
    ui.run_with(
        outer, mount_path=f"/{token}", dark=None, tailwind=False, show_welcome_message=False, reconnect_timeout=10.0,
        binding_refresh_interval=None, title="privamp", favicon="📐",
    )  # fmt: skip
    return Guard(outer, token, port)


def _page_of(view: View, root: str) -> Callable[[Request], Any]:
    async def page(request: Request) -> None:
        ui.add_css(CSS)
        Page(view, dict(request.query_params), root)

    return page
