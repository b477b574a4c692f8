"""How long the explorer takes: until the first view shows a number and its curves, and until a moved slider's number.

Needs `pip install 'privamp[app]' playwright` and Chromium. The aims are 1 s and a median of 300 ms on an idle machine;
the time of `amplify` for the same design, in the same run, is printed as the baseline. A busy machine makes the waits
longer, not the processor time of the server. As root, `chrt -r 1 python benchmarks/explorer.py` keeps others away.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from privamp import Gaussian, Neighbors, Poisson, amplify

VIEWS, MOVES = 9, 20
READY = "() => document.querySelector('.summary')?.innerText.includes('ε ≤')"
CURVES = "() => document.querySelector('.plot canvas') && !document.querySelector('.plot:not(:has(canvas))')"
DONE = "() => document.querySelector('[role=status]').getAttribute('aria-busy') === 'false'"
CHANGED = "t => { const s = document.querySelector('.summary').innerText; return s.includes('ε ≤') && s !== t }"


def baseline() -> float:
    """Milliseconds of one answer without a page."""
    times = []
    for step in range(MOVES):
        started = time.perf_counter()
        amplify(Gaussian(2.0 + 0.1 * step), Poisson(0.02), Neighbors.REPLACE_ONE).epsilon(1e-6)
        times.append(1e3 * (time.perf_counter() - started))
    return statistics.median(times)


def used(pid: int) -> float:
    """Seconds of processor time of the server itself; nan where there is no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(address: str, chromium: str) -> tuple[list[float], list[float], list[float]]:
    """Seconds to the number and to its curves in fresh browser windows, milliseconds of each move of a slider."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        firsts, curves = [], []
        for _ in range(VIEWS):
            for before in browser.contexts:
                before.close()  # nothing is kept from it
            page = browser.new_context().new_page()
            page.goto("about:blank")
            started = time.perf_counter()
            page.goto(address, wait_until="commit")
            page.wait_for_function(READY, polling="raf")
            firsts.append(time.perf_counter() - started)
            page.wait_for_function(CURVES, polling="raf")
            curves.append(time.perf_counter() - started)
            page.wait_for_function(DONE, timeout=120_000)
        slider, moves = page.get_by_role("slider", name="Noise"), []
        slider.focus()
        for _ in range(MOVES):
            time.sleep(2.0)  # the other designs come in
            before = page.inner_text(".summary")
            started = time.perf_counter()
            page.keyboard.press("ArrowRight")
            page.wait_for_function(CHANGED, arg=before, polling="raf")
            moves.append(1e3 * (time.perf_counter() - started))
        browser.close()
    return firsts, curves, moves


def main() -> None:
    chromium = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), None)
    if chromium is None or find_spec("playwright") is None or find_spec("nicegui") is None:
        print("skipped: needs NiceGUI, Playwright and Chromium")
        return
    command = [sys.executable, "-u", "-m", "privamp", "serve", "--no-browser"]
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = re.search(r"http\S+", server.stdout.readline())
        assert address is not None
        print(f"server started after     {time.perf_counter() - started:6.2f} s")
        time.sleep(8.0)  # its processes warm up
        try:
            before = used(server.pid)
            firsts, curves, moves = measured(address[0], chromium)
            spent = used(server.pid) - before
        finally:
            server.terminate()
    alone = baseline()
    first, median = firsts[0], statistics.median(firsts)
    print(f"first view with a number {first:6.2f} s   then a median of {median:.2f} in fresh windows (aim 1.00)")
    print(f"its curves drawn         {curves[0]:6.2f} s   then a median of {statistics.median(curves):.2f}")
    print(f"answer to a slider       {statistics.median(moves):6.0f} ms  median of {MOVES} (aim 300)")
    print(f"server's processor time  {1e3 * spent / (VIEWS + MOVES):6.0f} ms  for each view or move")
    print(
        f"amplify alone            {alone:6.0f} ms  median; the page takes {statistics.median(moves) / alone:.1f} times"
    )


if __name__ == "__main__":
    main()
