"""Who is written beside an entry of a budget."""

import os
import platform
import sys

import pytest

from privamp import __version__
from privamp.accounting import budget_origin
from privamp.accounting.budget_origin import _program, _user, now, origin, plain


@pytest.mark.skipif(os.name != "posix", reason="users have no numbers here")
def test_the_user_is_the_one_of_the_system(monkeypatch):
    import pwd

    assert _user() == pwd.getpwuid(os.getuid()).pw_name
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    assert _user() == f"uid {2**31 - 7}"


def test_the_user_of_another_system_is_its_variable(monkeypatch):
    monkeypatch.setattr(budget_origin.os, "name", "nt")
    monkeypatch.setenv("USERNAME", "somebody")
    assert _user() == "somebody"
    monkeypatch.delenv("USERNAME")
    assert _user() == "unknown"


def test_the_program_is_named_without_its_arguments(monkeypatch):
    monkeypatch.setattr(sys, "argv", [os.path.join("some", "where", "job.py"), "--secret"])
    assert _program() == "job.py"
    told = origin()
    assert told["program"] == "job.py"
    assert told["process"] == os.getpid()
    assert told["version"] == f"privamp {__version__}, Python {platform.python_version()}"
    assert set(told) == {"user", "host", "process", "program", "version"}
    for nothing in ([], [""]):
        monkeypatch.setattr(sys, "argv", nothing)
        assert _program() == "interactive"


def test_texts_can_be_written_into_a_file():
    odd = {"a": "b\ud800c", 3: ["\udfff", (1, None)]}
    assert plain(odd) == {"a": "b?c", "3": ["?", [1, None]]}
    assert now().endswith("+00:00")
