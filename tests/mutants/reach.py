"""Which tests enter which functions: a plugin for pytest that draws the map, or runs only the tests that it is told.

With REACH_MAP the tests run under a tracer, and the file of that name gets each test's time and the functions of
REACH_SOURCE that it entered. Caches are emptied before each test, so that it enters what it would enter alone. What a
shared fixture or the import of a test file enters counts for every test that uses it. Other processes are not followed.
With REACH_TESTS only the tests in the file of that name run, in its order.
"""

import functools
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest


class Map:
    """Times and entered functions, test by test."""

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source = name, source
        self.codes: dict[int, CodeType] = {}  # kept, so that no number is given twice
        self.entered: set[int] = set()
        self.shared: dict[Any, set[int]] = {}  # by fixture or test file
        self.tests: dict[str, dict[str, Any]] = {}

    def enter(self, frame: FrameType, event: str, value: object) -> None:
        """The tracer: it is called once for each call, not for each line."""
        number = id(frame.f_code)
        if number not in self.entered:
            self.entered.add(number)
            self.codes[number] = frame.f_code

    def follow(self) -> None:
        threading.settrace(self.enter)
        sys.settrace(self.enter)

    def _apart(self, owner: Any) -> Iterator[None]:
        outside, self.entered = self.entered, set()
        self.follow()
        result = yield
        self.shared[owner] = self.shared.get(owner, set()) | self.entered
        self.entered = outside
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector):
        return (yield from self._apart(collector.path))

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        return (yield from self._apart(fixturedef)) if fixturedef.scope != "function" else (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        _empty_caches()
        self.entered, begin = set(), time.process_time()
        self.follow()
        result = yield
        sys.settrace(None)
        fixtures = getattr(item, "_fixtureinfo", None)
        owners = [item.path, *(one for some in fixtures.name2fixturedefs.values() for one in some)] if fixtures else []
        numbers = self.entered.union(*(self.shared.get(owner, set()) for owner in owners))
        self.tests[item.nodeid] = {
            "seconds": round(time.process_time() - begin, 3),
            "enters": sorted({self._name(self.codes[n]) for n in numbers} - {""}),
        }
        return result

    def _name(self, code: CodeType) -> str:
        if not code.co_filename.startswith(self.source):
            return ""
        path = os.path.relpath(code.co_filename)
        return f"{path}::{'.'.join(part for part in code.co_qualname.split('.') if '<' not in part)}"

    def pytest_sessionfinish(self) -> None:
        Path(self.name).write_text(json.dumps(self.tests))


def _empty_caches() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("privamp") and module is not None:
            for value in list(vars(module).values()):
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()


class Choice:
    """Only some tests, in an order of our own."""

    def __init__(self, name: str) -> None:
        self.place = {test: place for place, test in enumerate(json.loads(Path(name).read_text()))}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in self.place])
        items[:] = [item for item in items if item.nodeid in self.place]
        items.sort(key=lambda item: self.place[item.nodeid])


def pytest_configure(config: pytest.Config) -> None:
    """Draw the map or follow it, whichever is asked for."""
    if "REACH_MAP" in os.environ:
        config.pluginmanager.register(Map(os.environ["REACH_MAP"], os.environ["REACH_SOURCE"]))
    elif "REACH_TESTS" in os.environ:
        config.pluginmanager.register(Choice(os.environ["REACH_TESTS"]))
