"""Full disks, closed streams, strange names and signals: one sentence, an exit code, never a traceback."""

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="streams, names and signals as POSIX has them")
QUESTION = "amplify --design poisson:rate=0.1 --mechanism pure:epsilon=1"


def shell(command, folder):
    run = subprocess.run(
        ["bash", "-c", command.replace("privamp", f"'{sys.executable}' -m privamp")],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
    )
    assert "Traceback" not in run.stderr
    assert "Exception ignored" not in run.stderr
    return run


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("command", [QUESTION, f"{QUESTION} --json", "--version"])
def test_a_full_disk(tmp_path, command):
    run = shell(f"privamp {command} > /dev/full", tmp_path)
    assert run.returncode == 1
    assert run.stderr == "Error: the output cannot be written (No space left on device); redirect it\n"


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (f"privamp {QUESTION} >&-", 1, "Bad file descriptor"),
        ("privamp budget show none.db --json >&-", 2, "no budget store"),
        ("privamp budget show none.db 2>&-", 2, ""),
        (f"privamp {QUESTION} >&- 2>&-", 1, ""),
    ],
)
def test_closed_streams(tmp_path, command, code, words):
    run = shell(command, tmp_path)
    assert (run.returncode, run.stdout) == (code, "")
    assert words in run.stderr


def test_a_store_never_becomes_standard_output(tmp_path):
    """With handles 1 and 2 closed, files opened first would get those numbers."""
    create = "privamp budget create study.db --epsilon 1 --population a"
    assert shell(f"{create} >&- 2>&-", tmp_path).returncode == 1  # made, but nobody could be told
    assert shell("privamp budget verify study.db", tmp_path).returncode == 0


@pytest.mark.parametrize("name", [b"\xff\xfe.db", b"line\nbreak \x1b[31m.db", b"x" * 247, b"-- x.db"])
def test_strange_names_of_stores(privamp, tmp_path, name):
    text = os.fsdecode(name)
    made = privamp("budget", "create", "--epsilon", "1", "--population", "a", "--", text)
    if made.exit_code:  # a file system may refuse a name, with a sentence
        assert "cannot be" in made.stderr
        return
    for command in ("show", "log", "head", "verify"):
        shown = privamp("budget", command, "--", text)
        assert shown.exit_code == 0, shown.output
        assert "\x1b" not in shown.output
    assert privamp("budget", "show", "--population", "b", "--", text).exit_code == 2


ODD = ["loop.parquet", "x" * 250 + ".parquet", "a\0b.parquet", os.fsdecode(b"\xff\xfe.parquet"), "\x1b[31m.parquet", ""]
SAMPLE = ["sample", "d.parquet", "--id", "id", "--design", "poisson:rate=0.5", "--key-file", "k.key"]
SAMPLE += ["--out", "o.parquet", "--label", "people", "--overwrite"]
ROTATE = ["budget", "rotate-key", "study.db", "--key", "k.key", "--sample", "o.parquet", "--new-key", "n.key"]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("command", [SAMPLE, ROTATE], ids=["sample", "rotate-key"])
def test_odd_names_and_labels_are_one_sentence(privamp, tmp_path, command, odd):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"id": range(20)}), "d.parquet")
    (tmp_path / "loop.parquet").symlink_to("loop.parquet")
    privamp("budget", "create", "study.db", "--epsilon", "1", "--population", "a")
    privamp("sample", "--new-key", "k.key")
    for at, word in enumerate(command):
        if word in ("d.parquet", "k.key", "o.parquet", "people", "study.db", "n.key"):
            run = privamp(*command[:at], odd, *command[at + 1 :])
            assert run.exit_code in (0, 2), (word, run.output)
            assert "\x1b" not in run.output
            assert not run.exit_code or run.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["x" * 248, "x" * 300, "loop.db", "loop.db/study.db"])
def test_names_that_cannot_be(privamp, tmp_path, name):
    (tmp_path / "loop.db").symlink_to("loop.db")
    privamp("budget", "create", "study.db", "--epsilon", "1", "--population", "a")
    before = sorted(os.listdir(tmp_path))
    commands = [("create", name, "--epsilon", "1", "--population", "a"), ("backup", "study.db", name)]
    commands += [(command, name) for command in ("show", "log", "head", "verify")]
    for command in commands:
        run = privamp("budget", *command)
        assert run.exit_code == 2, run.output
        assert "unexpected error" not in run.stderr
    assert sorted(os.listdir(tmp_path)) == before


SLEEPY = """
import sys, time
import privamp.cli.application, privamp.accounting.budget_store as store
def sleep(*_):
    print("asleep", flush=True)
    time.sleep(60)
store.Store.head = sleep
from privamp.cli import main
sys.argv = ["privamp", "budget", "head", "study.db"]
main()
"""


def started(code, **options):
    """A program that heeds interrupts, also when the tests run in the background, where shells ignore them."""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **options,
    )


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signals_clean_up_and_say_so(privamp, tmp_path, sent, code):
    privamp("budget", "create", "study.db", "--epsilon", "1", "--population", "a")
    run = started(SLEEPY, cwd=tmp_path)
    assert run.stdout.readline() == "asleep\n"
    run.send_signal(sent)
    _, said = run.communicate(timeout=60)
    assert (run.returncode, said) == (code, "Error: interrupted; no half-written file was left behind\n")


FIRST_SECOND = """
import builtins, sys
from privamp.cli import main

def told(*asked, plain=builtins.__import__):
    builtins.__import__ = plain
    print("up", flush=True)  # main began: it is importing what it needs
    return plain(*asked)

sys.argv = ["privamp", "demo"]
builtins.__import__ = told
main()
"""


@pytest.mark.slow  # an interrupt that falls into a finaliser is lost to Python, so this is a matter of timing
def test_ctrl_c_in_the_first_second():
    for delay in (0.0, 0.0, 0.0, 0.05, 0.15, 0.4):
        run = started(FIRST_SECOND)
        assert run.stdout.readline() == "up\n"
        time.sleep(delay)
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=60)
        assert "Traceback" not in said, said
        assert run.returncode in (130, -signal.SIGINT)
