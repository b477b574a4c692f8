"""The door: only this machine's address, only with the token, only small bodies. Refusals never reach the pages."""

import asyncio

import pytest

from privamp.app.guard import Guard, new_token

TOKEN, PORT = "Zm9yIHRlc3RzIG9ubHksIG5vdCBhIHNlY3JldCBhdCBhbGw", 8123  # names of tests must not change
HOST, ORIGIN = (b"host", b"127.0.0.1:8123"), (b"origin", b"http://127.0.0.1:8123")


def ask(path=f"/{TOKEN}/", headers=(HOST,), kind="http", method="GET", bodies=(b"",), most=1000):
    """(status or close code, body, whether the application was reached)."""
    reached, sent, coming = [], [], [{"type": "http.request", "body": b, "more_body": True} for b in bodies]

    async def application(scope, receive, send):
        for _ in bodies:
            await receive()
        reached.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"page"})

    async def receive():
        return coming.pop(0)

    async def send(message):
        sent.append(message)

    scope = {"type": kind, "path": path, "headers": list(headers), "method": method}
    asyncio.run(Guard(application, TOKEN, PORT, most)(scope, receive, send))
    return sent[0].get("status", sent[0].get("code")), sent[-1].get("body", b""), bool(reached), sent[0]


def test_the_right_address_passes() -> None:
    status, body, reached, first = ask()
    assert (status, body, reached) == (200, b"page", True)
    policy = dict(first["headers"])[b"content-security-policy"]
    assert b"default-src 'self'" in policy
    assert b"http" not in policy
    assert ask(headers=[(b"host", b"localhost:8123"), (b"origin", b"http://localhost:8123")])[2]
    assert ask(kind="websocket", headers=[HOST, ORIGIN])[2]
    assert ask(method="POST", headers=[HOST, ORIGIN])[2]


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"host", b"evil.example:8123")],
        [(b"host", b"127.0.0.1:8124")],
        [(b"host", b"127.0.0.1")],
        [(b"host", b"127.0.0.1:8123.evil.example")],
        [HOST, (b"host", b"evil.example")],
        [HOST, (b"origin", b"http://evil.example")],
        [HOST, (b"origin", b"null")],
        [HOST, (b"origin", b"http://127.0.0.1:8124")],
        [HOST, (b"origin", b"https://127.0.0.1:8123")],
        [HOST, ORIGIN, (b"origin", b"http://evil.example")],
    ],
)
def test_a_hostile_host_or_origin_is_refused(kind, headers) -> None:
    status, _, reached, _ = ask(kind=kind, headers=headers)
    assert status in (403, 421, 1008)
    assert not reached


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    "path",
    ["/", "", "/wrong/", f"/{TOKEN[:-1]}/", f"/{TOKEN}x/", f"/x/{TOKEN}/", f"//{TOKEN}/", f"/{TOKEN.swapcase()}/",
     "/_nicegui_ws/socket.io/", "/ümlaut/", f"/{TOKEN}\0/"],
)  # fmt: skip
def test_a_missing_or_wrong_token_is_refused(kind, path) -> None:
    status, _, reached, _ = ask(path, kind=kind, headers=[HOST, ORIGIN])
    assert status in (403, 1008)
    assert not reached


@pytest.mark.parametrize("path", [f"/{TOKEN}/../../etc/passwd", f"/{TOKEN}/a/..\\..\\b", f"/{TOKEN}/\0"])
def test_paths_that_climb_are_refused(path) -> None:
    assert ask(path)[0] == 404


def test_what_changes_something_must_say_where_it_comes_from() -> None:
    assert ask(method="POST")[0] == 403
    assert ask(kind="websocket")[0] == 1008
    assert ask(method="DELETE", headers=[HOST, ORIGIN])[0] == 405


@pytest.mark.parametrize("length", [b"1001", b"-1", b"many", b"9" * 40])
def test_a_declared_body_may_not_be_large(length) -> None:
    status, body, reached, _ = ask(method="POST", headers=[HOST, ORIGIN, (b"content-length", length)])
    assert (status, reached) == (413, False)
    assert body == b"A request may have at most 1,000 bytes."


def test_a_body_that_only_grows_is_cut_off() -> None:
    status, _, reached, _ = ask(method="POST", headers=[HOST, ORIGIN], bodies=(b"x" * 600, b"x" * 600))
    assert (status, reached) == (413, False)


def test_refusals_name_no_token_and_no_header() -> None:
    _, body, _, _ = ask("/secret-guess/", headers=[HOST])
    assert b"secret" not in body
    assert TOKEN.encode() not in body


def test_tokens_are_long_and_new() -> None:
    assert len({new_token() for _ in range(100)}) == 100
    assert len(new_token()) >= 43
