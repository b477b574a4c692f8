"""A running explorer and a browser for it."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def explorer(tmp_path_factory):
    """The address of a running `privamp serve`."""
    if find_spec("nicegui") is None:
        pytest.skip("NiceGUI is not installed (make test-app)")
    log = tmp_path_factory.mktemp("explorer") / "log"
    surroundings = os.environ | {"PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": "1"}
    surroundings.pop("PYTEST_CURRENT_TEST", None)  # NiceGUI would think that it is tested
    command = [sys.executable, "-m", "privamp", "serve", "--no-browser", "--port", "0"]
    with log.open("w") as errors:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=surroundings)
    try:
        address = re.search(r"http\S+", server.stdout.readline())[0]
        yield address
    finally:
        server.terminate()
        printed = server.communicate(timeout=20)[0]
    said = log.read_text() + printed
    assert "Traceback" not in said, said
    assert address.split("/")[3] not in said, "the token was logged"


@pytest.fixture(scope="module")  # Playwright keeps an event loop running, which other modules cannot share
def chromium():
    """The system's browser, driven by Playwright."""
    if find_spec("playwright") is None:
        pytest.skip("Playwright is not installed (make test-app)")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def window(chromium, explorer):
    """window(path, width) opens a page; requests to other hosts and errors of scripts fail the test."""
    contexts, wrong = [], []

    def opened(path="", width=1400, **more):
        context = chromium.new_context(viewport={"width": width, "height": 900}, **more)
        contexts.append(context)
        page = context.new_page()
        host = explorer[: explorer.index("/", 8)]
        own = (host, host.replace("http", "ws"), "data:", "blob:")
        page.on("request", lambda request: request.url.startswith(own) or wrong.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(explorer + path)
        page.wait_for_selector(".summary", timeout=20_000)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not wrong
