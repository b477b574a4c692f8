"""Files of the framework are asked for once; everything else reaches the application every time."""

import asyncio

import pytest

from privamp.app.kept_files import KeptFiles


def asked(paths, status=200, method="GET", kind="http"):
    """(answers, how often the application was reached) of requests in this order."""
    reached, answers = [], []

    async def application(scope, receive, send):
        reached.append(scope["path"])
        await send({"type": "http.response.start", "status": status, "headers": [(b"a", b"1")]})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        await send({"type": "http.response.body", "body": b" and half"})

    async def ask():
        files = KeptFiles(application, ("/token/files/",))
        for path in paths:
            sent = []

            async def send(message, sent=sent):
                sent.append(message)

            await files({"type": kind, "path": path, "method": method}, None, send)
            body = b"".join(message.get("body", b"") for message in sent)
            answers.append((sent[0]["status"], sent[0]["headers"], body))

    asyncio.run(ask())
    return answers, len(reached)


def test_a_file_is_kept_whole() -> None:
    answers, reached = asked(["/token/files/a.js"] * 3)
    assert answers == [(200, [(b"a", b"1")], b"half and half")] * 3
    assert reached == 1


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/token/page", {}),
        ("/token/files", {}),
        ("/token/files/a.js", {"status": 404}),
        ("/token/files/a.js", {"status": 206}),
        ("/token/files/a.js", {"method": "HEAD"}),
        ("/token/files/a.js", {"kind": "websocket"}),
    ],
)
def test_nothing_else_is_kept(path, more) -> None:
    assert asked([path] * 3, **more)[1] == 3
