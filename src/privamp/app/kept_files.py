"""A cache of the framework's own files: a page has twenty of them, and the first view waits for each.

They are the same for every visitor until the server stops. All other requests pass through.
"""

from .guard import Application, Message, Receive, Send


class KeptFiles:
    """An ASGI application that serves files under `folders` from memory once they were requested."""

    def __init__(self, application: Application, folders: tuple[str, ...]) -> None:
        self.application = application
        self.folders = folders
        self.kept: dict[str, tuple[Message, bytes]] = {}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer from memory, or pass the request on and store a complete answer."""
        path = scope.get("path", "")
        if scope["type"] != "http" or scope.get("method") != "GET" or not path.startswith(self.folders):
            await self.application(scope, receive, send)
            return
        if path not in self.kept:
            await self._passed(path, scope, receive, send)
            return
        start, body = self.kept[path]
        await send({**start, "headers": list(start["headers"])})
        await send({"type": "http.response.body", "body": body})

    async def _passed(self, path: str, scope: Message, receive: Receive, send: Send) -> None:
        starts: list[Message] = []
        parts: list[bytes] = []

        async def keeping(message: Message) -> None:
            if message["type"] == "http.response.start":
                starts.append(dict(message))
            elif message["type"] == "http.response.body":
                parts.append(message.get("body", b""))
            await send(message)

        await self.application(scope, receive, keeping)
        if len(starts) == 1 and starts[0]["status"] == 200:
            self.kept[path] = (starts[0], b"".join(parts))
