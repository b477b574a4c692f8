"""The explorer in a real browser: it answers, shows what `amplify` says, works by keyboard, and refuses strangers."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from privamp import Gaussian, Neighbors, Poisson, Rounds, amplify, survey
from privamp.app import strata
from privamp.numerics.printing import shown_up

DONE = "() => document.querySelector('[role=status]').getAttribute('aria-busy') === 'false'"


def table(page, index=0) -> dict[str, list[str]]:
    """The rows of a table by their names, without ranks and details."""
    script = "t => [...t.tBodies[0].rows].map(r => [...r.cells].map(c => (c.querySelector('summary') || c).innerText))"
    rows = page.locator("table").nth(index).evaluate(script)
    return {re.sub(r"^\d+\. ", "", row[0].strip()): [cell.strip() for cell in row[1:]] for row in rows}


def settled(page):
    page.wait_for_function(DONE, timeout=120_000)
    return table(page)


def test_a_slider_moves_and_the_page_shows_the_numbers_of_amplify(window) -> None:
    page = window("?population=1000&size=100")
    before = settled(page)
    assert before["Poisson"][0] == shown_up(epsilon(2.0), 4)
    slider = page.get_by_role("slider", name="Noise")
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("t => !document.querySelector('.summary').innerText.includes(t)", arg=before["Poisson"][0])
    after = settled(page)
    noise = float(page.get_by_label("Noise, exact value").input_value())
    assert noise > 2.0
    assert slider.get_attribute("aria-valuetext") == f"{noise:g}"
    assert after["Poisson"][0] == shown_up(epsilon(noise), 4)
    assert f"noise={noise:g}" in page.url  # the state is in the URL
    again = window("?" + urlsplit(page.url).query)
    assert settled(again) == after


def epsilon(noise: float) -> float:
    return amplify(Gaussian(noise, 1.0, Neighbors.ADD_REMOVE), Poisson(0.1), Neighbors.REPLACE_ONE).epsilon(1e-6)


@pytest.mark.parametrize(
    ("path", "slider"),
    [("survey", "Epsilon"), ("training?records=1000&batch=500&epochs=1&bands=1", "Noise multiplier")],
)
def test_other_views_change_when_a_slider_moves(window, path, slider) -> None:
    page = window(path)
    before, text = settled(page), page.locator("table").first.inner_text()
    page.get_by_role("slider", name=slider, exact=True).focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => location.search.includes('epsilon=') || location.search.includes('noise=')")
    page.wait_for_function("t => document.querySelector('table').innerText !== t", arg=text)
    after = settled(page)
    assert before.keys() == after.keys()
    assert before != after
    shown = dict(parse_qsl(urlsplit(page.url).query))
    if path == "survey":
        cells = [each.stratum for each in strata.read(strata.SCHOOLS)]
        found = survey.allocate(cells, 60, float(shown["epsilon"]), "neyman")
        assert after["Neyman"][1] == f"{found.variance**0.5:.4g}"
    else:
        found = amplify(Gaussian(float(shown["noise"])), Rounds(Poisson(0.5), 2))
        assert after["Poisson"][0] == shown_up(found.epsilon(1e-6), 4)


def test_strata_are_uploaded_and_bad_files_answered_by_a_sentence(window) -> None:
    page = window("survey")
    settled(page)
    upload = page.locator("input[type=file]")
    with page.expect_file_chooser():
        page.get_by_role("button", name="Upload a table (CSV)").click()
    good = b"stratum,population,low,high,sd\nshops,500,0,10,2\nmines,50,0,100,30\n"
    upload.set_input_files({"name": "strata.csv", "mimeType": "text/csv", "buffer": good})
    page.wait_for_function("() => document.querySelector('.summary').innerText.includes('2 strata, 550 records')")
    assert "shops" in page.get_by_label("Strata").input_value()
    for content, said in (
        (b"id,income\nAnna,43000\n", "must start with a header line"),
        (b"\xff\xfe\x00\x01", "not UTF-8 text"),
        (b"x" * 5000, "not records"),
        (b"", "must start with a header line"),
    ):
        upload.set_input_files({"name": "strata.csv", "mimeType": "text/csv", "buffer": content})
        page.wait_for_function("t => document.querySelector('.note').innerText.includes(t)", arg=said)
        assert "43000" not in page.locator(".note").inner_text()
    assert "2 strata" in page.locator(".summary").inner_text()


@pytest.mark.parametrize("path", ["", "survey", "training?records=1000&batch=500&epochs=1&bands=1"])
def test_every_control_has_a_name_and_the_keyboard_reaches_it(window, path) -> None:
    page = window(path)
    settled(page)
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('button, a[href], input, textarea, [role], [tabindex="0"]')]
        .filter(e => e.offsetParent && !(e.getAttribute('aria-label') || e.innerText || e.labels?.length
          || e.closest('label') || e.title || e.getAttribute('aria-labelledby')))
        .map(e => e.outerHTML.slice(0, 200))"""
    )
    assert not unnamed
    page.keyboard.press("Tab")
    seen = set()
    for _ in range(60):
        seen.add(page.evaluate("e => (e = document.activeElement).getAttribute('aria-label') || e.innerText"))
        page.keyboard.press("Tab")
    assert {"Delta", "Delta, exact value", "Copy as Python", "Copy as command", "Download report"} <= seen


@pytest.mark.parametrize("path", ["", "survey", "training?records=1000&batch=500&epochs=1&bands=1"])
def test_it_fits_a_phone(window, path) -> None:
    page = window(path, width=390)
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.get_by_role("slider", name="Delta").bounding_box()["width"] > 200


def test_what_is_copied_and_downloaded(window, tmp_path) -> None:
    page = window("?population=500&size=50", permissions=["clipboard-read", "clipboard-write"])
    rows = settled(page)
    page.get_by_role("button", name="Copy as Python").click()
    page.get_by_text("Copied.").first.wait_for()
    assert "wor:size=50,population=500" in page.evaluate("navigator.clipboard.readText()")
    page.get_by_role("button", name="Copy as command").click()
    page.wait_for_function("async () => (await navigator.clipboard.readText()).startsWith('privamp compare')")
    with page.expect_download() as coming:
        page.get_by_role("button", name="Download report").click()
    coming.value.save_as(tmp_path / "report.html")
    assert rows["Poisson"][0] in (tmp_path / "report.html").read_text()


def test_a_bad_url_and_a_bad_entry_are_answered_by_a_sentence(window) -> None:
    page = window("?noise=nan&population=%3Cscript%3Ealert(1)%3C/script%3E&size=1e99")
    settled(page)
    said = page.locator(".note").inner_text()
    assert "Noise must be a number from 0.1 to 100, got 'nan' instead" in said
    assert "<script>alert(1)</script>" in said  # as text
    field = page.get_by_label("Noise, exact value")
    field.fill("a lot")
    page.wait_for_function("() => document.querySelector('.note').innerText.includes('a lot')")
    field.fill("4")
    page.wait_for_function("() => !document.querySelector('.note').innerText.includes('a lot')")
    assert settled(page)["Poisson"][0]


def asked(explorer, method="GET", path=None, **headers):
    """(status, body) of a request with these headers and no others."""
    found = urlsplit(explorer)
    connection = http.client.HTTPConnection(found.hostname, found.port, timeout=10)
    connection.putrequest(method, found.path if path is None else path, skip_host=True, skip_accept_encoding=True)
    for name, value in ({"Host": found.netloc} | headers).items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(errors="replace")
    connection.close()
    return found


UPGRADE = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
           "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}  # fmt: skip
SOCKET = "_nicegui_ws/socket.io/?EIO=4&transport=websocket"


def test_strangers_are_refused(explorer) -> None:
    root = urlsplit(explorer).path
    assert asked(explorer)[0] == 200
    assert asked(explorer, path="/")[0] == 403
    assert asked(explorer, path=f"/{'x' * 43}/")[0] == 403
    assert asked(explorer, Host="evil.example")[0] == 421
    assert asked(explorer, Origin="http://evil.example")[0] == 403
    assert asked(explorer, path=f"/{SOCKET}", **UPGRADE)[0] == 403
    assert asked(explorer, path=root + SOCKET, **UPGRADE)[0] == 403
    assert asked(explorer, path=root + SOCKET, Origin="http://evil.example", **UPGRADE)[0] == 403
    for path in ("..%2f..%2fetc/passwd", "_nicegui/3/static/..%2f..%2f__init__.py", "%2e%2e/%2e%2e/etc/passwd", "a%00"):
        assert asked(explorer, path=root + path)[0] == 404
    own = f"http://{urlsplit(explorer).netloc}"
    assert asked(explorer, "POST", Origin=own, **{"Content-Length": "2000000"})[0] == 413
    assert asked(explorer, path=root + "openapi.json")[0] == 404
    page = asked(explorer, path=root + "no-such-page")[1]
    assert "Traceback" not in page


def test_it_listens_on_this_machine_only(explorer) -> None:
    port = f"{urlsplit(explorer).port:04X}"
    tables = [path for path in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")) if path.exists()]
    if not tables:
        pytest.skip("this system has no /proc/net/tcp")
    rows = [line.split() for path in tables for line in path.read_text().splitlines()[1:]]
    listening = {row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{port}")}
    assert listening == {f"0100007F:{port}"}


def test_the_page_names_nothing_from_elsewhere(explorer) -> None:
    page = asked(explorer)[1]
    own = urlsplit(explorer).netloc
    loaded = re.findall(r"""(?:src|href|@import url)[=(]["']?(?:https?:)?//([^/"')]+)""", page)
    imports = json.loads(re.search(r'type="importmap">\s*(\{.*?\})\s*</script>', page, re.DOTALL)[1])["imports"]
    assert {*loaded} <= {own}
    assert all(value.startswith("/") for value in imports.values())


def test_ctrl_c_ends_it_without_a_word() -> None:
    if find_spec("nicegui") is None or os.name != "posix":
        pytest.skip("NiceGUI is not installed (make test-app)")
    command = [sys.executable, "-u", "-m", "privamp", "serve", "--no-browser"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(command, **pipes) as server:
        server.stdout.readline()
        time.sleep(1.0)  # its processes are being prepared
        os.killpg(server.pid, signal.SIGINT)
        _, errors = server.communicate(timeout=30)
    assert (server.returncode, errors) == (0, "")
