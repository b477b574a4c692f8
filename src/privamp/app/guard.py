"""Access control of the server: only this machine's browser, only with the token, only small requests.

Every request's path starts with the token of this run, compared in constant time; no cookie is set, because other
servers on 127.0.0.1 would get it too. The `Host` must be this server (a name that an attacker points to 127.0.0.1 is
refused), and so must the `Origin`, which websockets and uploads have to send. A rejected request gets one sentence with
the reason.
"""

import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

MOST_BYTES = 1_000_000  # of a request's body
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]


class TooLarge(Exception):
    """The body is too long."""


def new_token() -> str:
    """A token of 256 random bits from the operating system."""
    return secrets.token_urlsafe(32)


class Guard:
    """An ASGI application that passes allowed requests to `application`."""

    def __init__(self, application: Application, token: str, port: int, most_bytes: int = MOST_BYTES) -> None:
        self.application = application
        self.token = token.encode()
        self.hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}
        self.origins = {b"http://" + host for host in self.hosts}
        self.most_bytes = most_bytes

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer with the reason for its rejection."""
        if scope["type"] == "lifespan":
            await self.application(scope, receive, send)
            return
        status, reason = self.refusal(scope)
        if status:
            await _refuse(scope, receive, send, status, reason)
        elif scope["type"] == "http":
            await self._passed(scope, receive, send)
        else:
            await self.application(scope, receive, send)

    def refusal(self, scope: Message) -> tuple[int, str]:
        """The status and the reason of a refusal; (0, "") for what may pass."""
        given: dict[bytes, list[bytes]] = {}
        for name, value in scope.get("headers", ()):
            given.setdefault(name.lower(), []).append(value)
        if len(given.get(b"host", ())) != 1 or given[b"host"][0].lower() not in self.hosts:
            return 421, "This server answers only at 127.0.0.1; open the address that privamp serve printed."
        origins = given.get(b"origin", [])
        if any(origin not in self.origins for origin in origins):
            return 403, "Another site asked for this page; open the address that privamp serve printed."
        is_changing = scope["type"] == "websocket" or scope.get("method") not in ("GET", "HEAD")
        if is_changing and not origins:
            return 403, "A request that changes something must have an Origin header."
        if scope["type"] == "http" and scope.get("method") not in ("GET", "HEAD", "POST"):
            return 405, "This server accepts only GET, HEAD and POST."
        if not self._has_token(scope.get("path", "")):
            return 403, "The token is missing or wrong; open the address that privamp serve printed."
        if any(part == ".." for part in scope["path"].replace("\\", "/").split("/")) or "\0" in scope["path"]:
            return 404, "There is no such page."
        length = given.get(b"content-length", [b"0"])[0]
        if not length.isdigit() or int(length) > self.most_bytes:
            return 413, f"A request may have at most {self.most_bytes:,} bytes."
        return 0, ""

    def _has_token(self, path: str) -> bool:
        first = path.split("/", 2)[1] if path.startswith("/") else ""
        return hmac.compare_digest(first.encode("utf-8", "replace"), self.token)

    async def _passed(self, scope: Message, receive: Receive, send: Send) -> None:
        """Count the body as it comes, and add the headers that keep the page's data on this machine."""
        counted, has_started = 0, False

        async def counting() -> Message:
            nonlocal counted
            message = await receive()
            counted += len(message.get("body", b""))
            if counted > self.most_bytes:
                raise TooLarge
            return message

        async def adding(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        try:
            await self.application(scope, counting, adding)
        except TooLarge:
            if not has_started:
                await _refuse(scope, receive, send, 413, f"A request may have at most {self.most_bytes:,} bytes.")


async def _refuse(scope: Message, receive: Receive, send: Send, status: int, reason: str) -> None:
    if scope["type"] == "websocket":
        await receive()  # the opening
        await send({"type": "websocket.close", "code": 1008, "reason": reason})
        return
    body = reason.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode()), *_HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope.get("method") == "HEAD" else body})
