"""A sample's file is private, whole or not there, marked, and the same after every accident."""

import json
import os
import signal
import stat
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from privamp import Design, Poisson, Stratified, WithoutReplacement
from privamp.chance.keys import Key
from privamp.engines import local
from privamp.engines.earlier import drawn_before
from privamp.engines.kernel import Kernel
from privamp.errors import InvalidInput
from privamp.tables import secret_files
from privamp.tables.key_files import make_key_file, read_key_file
from privamp.tables.secret_files import private_writer

posix = pytest.mark.skipif(os.name != "posix", reason="permissions, limits and signals of POSIX")
KEY = Key.from_bytes(bytes(range(32)))
DATA = pa.table({"id": np.arange(20_000), "x": np.random.default_rng(1).normal(size=20_000)})
HALF = Poisson(0.5)

WRITE = """
import sys, time
from privamp import Poisson
from privamp.chance.keys import Key
from privamp.engines import local
key = Key.from_bytes(bytes(range(32)))
local.write("data.parquet", Poisson(0.5), "out.parquet", key=key, label="population", id="id", {more})
"""

SLOW = "threads=1, progress=lambda *_: (sys.stderr.write('.'), sys.stderr.flush(), time.sleep(0.2))"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parquet.write_table(DATA, "data.parquet", row_group_size=1000)
    return tmp_path


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def in_a_process(code, before="", **more):
    return subprocess.Popen([sys.executable, "-c", before + WRITE.format(more=code)], stderr=subprocess.PIPE, **more)


@pytest.mark.parametrize("name", ["out.parquet", "out.feather"])
def test_the_file_is_private_marked_and_the_same_again(folder, name):
    umask = os.umask(0)
    try:
        stored = local.write("data.parquet", HALF, name, key=KEY, id="id", label="d", spec="poisson:rate=0.5")
    finally:
        os.umask(umask)
    first = (folder / name).read_bytes()
    if os.name == "posix":
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    table = parquet.read_table(name) if name.endswith("parquet") else feather.read_table(name)
    assert table.equals(local.sample("data.parquet", HALF, key=KEY, id="id", label="d"))
    facts = json.loads(table.schema.metadata[b"privamp"])
    assert facts["spec"] == "poisson:rate=0.5"
    assert facts["design"] == "Poisson(rate=0.5)"
    assert facts["key_fingerprint"] == KEY.fingerprint.hex()
    assert facts["ledger_id"] == stored.ledger_id == HALF.subkey(KEY, "d", 0).fingerprint.hex()
    assert "secret" in facts["secret"]
    for secret in (
        KEY.secret_bytes(),
        KEY.secret_bytes().hex().encode(),
        HALF.subkey(KEY, "d", 0).secret_bytes(),
    ):
        assert secret not in first
    local.write(
        "data.parquet", HALF, name, key=KEY, id="id", label="d", spec="poisson:rate=0.5", overwrite=True, threads=3
    )
    assert (folder / name).read_bytes() == first
    assert files(folder) == sorted(["data.parquet", name])


def test_opening_needs_the_key_and_the_design(folder):
    written = local.write("data.parquet", HALF, "out.parquet", key=KEY, label="d", round=3)
    opened = local.open_sample("out.parquet", HALF, key=KEY)
    assert opened.ledger_id == written.ledger_id
    kept = pa.Table.from_batches(opened.reveal_secret())
    assert kept.equals(local.sample("data.parquet", HALF, key=KEY, label="d", round=3))
    with pytest.raises(InvalidInput, match="another design"):
        local.open_sample("out.parquet", Poisson(0.4), key=KEY)
    with pytest.raises(InvalidInput, match="another key"):
        local.open_sample("out.parquet", HALF, key=Key.generate())
    with pytest.raises(InvalidInput, match="not written as a sample"):
        local.open_sample("data.parquet", HALF, key=KEY)


def by_repr(design, monkeypatch):
    """Draw and describe as versions before identities did."""
    before = Kernel.facts
    shown = repr(design)
    monkeypatch.setattr(Design, "subkey", lambda self, key, label, round: key.subkey(shown, label, round))
    monkeypatch.setattr(
        Kernel,
        "facts",
        lambda *given: {k: v for k, v in before(*given).items() if not k.startswith("identity")} | {"design": shown},
    )


OLD = [
    (Poisson(0.5), Poisson(0.5), Poisson(0.4), "Poisson(rate=0.5)"),
    (WithoutReplacement(5, 20_000), WithoutReplacement(np.int64(5), 20_000), WithoutReplacement(6, 20_000), None),
]


@pytest.mark.parametrize(("design", "same", "other", "shown"), OLD, ids=["poisson", "wor"])
def test_samples_of_the_version_before_open(folder, monkeypatch, design, same, other, shown):
    with monkeypatch.context() as earlier:
        by_repr(design, earlier)
        written = local.write("data.parquet", design, "out.parquet", key=KEY, label="d", round=3)
    assert written.ledger_id == KEY.subkey(shown or repr(design), "d", 3).fingerprint.hex()
    opened = local.open_sample("out.parquet", same, key=KEY)
    assert opened.ledger_id == written.ledger_id != design.subkey(KEY, "d", 3).fingerprint.hex()
    assert pa.Table.from_batches(opened.reveal_secret()).num_rows > 0
    with pytest.raises(InvalidInput, match="earlier privamp with the design"):
        local.open_sample("out.parquet", other, key=KEY)
    with pytest.raises(InvalidInput, match="another key"):
        local.open_sample("out.parquet", design, key=Key.generate())


def test_numbers_of_numpy_in_files_of_the_version_before():
    key, facts = KEY, {"label": "d", "round": 0, "design": "Poisson(rate=np.float64(0.5))"}
    facts |= {"key_fingerprint": key.fingerprint.hex()}
    facts["ledger_id"] = key.subkey(facts["design"], "d", 0).fingerprint.hex()
    assert drawn_before(Kernel.of(HALF, key, label="d"), key, facts, "f").ledger_id == facts["ledger_id"]
    with pytest.raises(InvalidInput, match="another design"):  # the metadata were changed
        drawn_before(Kernel.of(HALF, key, label="d"), key, facts | {"round": 1}, "f")


def test_a_draw_of_the_version_before_is_known_to_the_last_bit():
    """Fingerprints that the version before printed for this key."""
    facts = {"label": "population", "round": 3, "key_fingerprint": KEY.fingerprint.hex()}
    strata = Stratified({"a": Poisson(0.5), "b": WithoutReplacement(2, 5)})
    for design, ledger in (
        (Poisson(0.1), "cdb0ca65d33a691d819b682d714cd490"),
        (strata, "bc741fb9b542ed9d9fed27dd3db69036"),
    ):
        old = facts | {"design": repr(design), "ledger_id": ledger}
        assert drawn_before(Kernel.of(design, KEY, label="population", round=3), KEY, old, "f").ledger_id == ledger


def test_samples_of_a_later_version_are_refused(folder):
    local.write("data.parquet", HALF, "out.parquet", key=KEY, label="population")
    table = parquet.read_table("out.parquet")
    facts = json.loads(table.schema.metadata[b"privamp"])
    assert facts["identity"] == HALF.identity
    facts["identity_version"] = 2
    later = table.replace_schema_metadata({"privamp": json.dumps(facts)})
    parquet.write_table(later, "later.parquet")
    with pytest.raises(InvalidInput, match="identities of version 2, and this one has version 1"):
        local.open_sample("later.parquet", HALF, key=KEY)


def test_outputs_that_are_refused_before_anything_is_read(folder):
    (folder / "old.parquet").write_text("old")
    for out, part in (
        ("old.parquet", "already exists"), ("data.parquet", "already exists"), ("out.csv", "must be named"),
        ("none/out.parquet", "folder that exists"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=part):
            local.write("data.parquet", HALF, out, key=KEY, label="population")
    with pytest.raises(InvalidInput, match="lies in the data"):
        local.write("data.parquet", HALF, "data.parquet", key=KEY, label="population", overwrite=True)
    with pytest.raises(InvalidInput, match="lies in the data"):
        local.write(folder, HALF, "new.parquet", key=KEY, label="population")
    assert (folder / "old.parquet").read_text() == "old"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_nothing_is_left_when_the_work_fails(folder, error):
    (folder / "old.parquet").write_text("old")

    def failing(out, overwrite):
        with private_writer(out, DATA.schema, overwrite=overwrite) as write:
            write(DATA.to_batches()[0])
            raise error

    for out, overwrite in (("out.parquet", False), ("old.parquet", True)):
        with pytest.raises(error):
            failing(out, overwrite)
    assert files(folder) == ["data.parquet", "old.parquet"]
    assert (folder / "old.parquet").read_text() == "old"


def test_bad_ids_leave_no_file(folder):
    parquet.write_table(DATA.set_column(0, "id", [np.zeros(20_000, dtype=np.int64)]), "data.parquet")
    for design in (HALF, WithoutReplacement(5, 20_000)):
        with pytest.raises(InvalidInput, match="some repeat"):
            local.write("data.parquet", design, "out.parquet", key=KEY, label="population", id="id")
    assert files(folder) == ["data.parquet"]


@posix
def test_a_full_disk_leaves_nothing_half_written(folder):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
    process = in_a_process("", limit)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "InvalidInput: cannot write 'out.parquet'" in told.decode()
    assert files(folder) == ["data.parquet"]


@posix
def test_a_killed_run_is_repeated_with_the_same_sample(folder):
    small = "from privamp.tables import pieces, secret_files; secret_files._GROUP_ROWS = 100; pieces._PIECE = 1000\n"
    small += "secret_files._BUFFER = 100\n"
    process = in_a_process(SLOW, small)
    assert process.stderr.read(3) == b"..."  # some pieces are done
    process.kill()
    process.wait()
    process.stderr.close()
    assert files(folder) == [".out.parquet.part", "data.parquet"]
    left = folder / ".out.parquet.part"
    assert left.stat().st_size > 4
    assert stat.S_IMODE(left.stat().st_mode) == 0o600
    left.chmod(0o644)
    local.write("data.parquet", HALF, "out.parquet", key=KEY, label="population", id="id")
    assert files(folder) == ["data.parquet", "out.parquet"]
    assert stat.S_IMODE((folder / "out.parquet").stat().st_mode) == 0o600
    assert parquet.read_table("out.parquet").equals(
        local.sample("data.parquet", HALF, key=KEY, label="population", id="id")
    )


@posix
def test_an_interrupt_cleans_up_and_a_second_writer_waits_its_turn(folder):
    small = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    small += "from privamp.tables import pieces; pieces._PIECE = 1000\n"
    process = in_a_process(SLOW, small)
    assert process.stderr.read(2) == b".."
    with pytest.raises(InvalidInput, match="another process is writing"):
        local.write("data.parquet", HALF, "out.parquet", key=KEY, label="population", id="id")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    for _ in range(50):
        if files(folder) == ["data.parquet"]:
            break
        time.sleep(0.1)
    assert files(folder) == ["data.parquet"]


@posix
def test_a_second_writer_cannot_touch_a_file_that_was_finished_meanwhile(folder, monkeypatch):
    """It opens the hidden file of the first, gets its lock when the first is done, and holds the finished file then."""
    import fcntl

    real = fcntl.flock

    def when_the_first_is_done(handle, how):
        monkeypatch.setattr(fcntl, "flock", real)
        local.write("data.parquet", HALF, "out.parquet", key=KEY, label="population", id="id")
        real(handle, how)

    expected = local.sample("data.parquet", HALF, key=KEY, label="population", id="id")
    (folder / ".out.parquet.part").touch()
    monkeypatch.setattr(fcntl, "flock", when_the_first_is_done)
    with pytest.raises(InvalidInput, match="try again"):
        local.write("data.parquet", HALF, "out.parquet", key=KEY, label="population", id="id", overwrite=True)
    assert parquet.read_table("out.parquet").equals(expected)
    assert files(folder) == ["data.parquet", "out.parquet"]


@posix
def test_a_file_that_comes_while_a_sample_is_written_is_not_replaced(folder, monkeypatch):
    def comes(*_):
        (folder / "out.parquet").write_text("of another program")

    monkeypatch.setattr(secret_files.os, "fsync", comes)
    monkeypatch.setattr(secret_files, "check_output", lambda out, overwrite=False: folder / out)
    with pytest.raises(InvalidInput, match="another program was faster"):
        local.write("data.parquet", HALF, "out.parquet", key=KEY, label="population", id="id")
    assert (folder / "out.parquet").read_text() == "of another program"
    assert files(folder) == ["data.parquet", "out.parquet"]


@posix
def test_a_kill_between_the_two_names_of_a_finished_file(folder):
    local.write("data.parquet", HALF, "out.parquet", key=KEY, label="population", id="id")
    before = (folder / "out.parquet").read_bytes()
    os.link("out.parquet", ".out.parquet.part")
    with pytest.raises(ZeroDivisionError):
        local.write(
            "data.parquet",
            HALF,
            "out.parquet",
            key=KEY,
            label="population",
            id="id",
            overwrite=True,
            progress=lambda *_: 1 / 0,
        )
    assert (folder / "out.parquet").read_bytes() == before


@posix
def test_many_writers_of_one_file_leave_one_whole_sample(folder):
    processes = [in_a_process("") for _ in range(4)]
    codes = [process.wait(timeout=100) for process in processes]
    for process in processes:
        process.stderr.close()
    assert codes.count(0) >= 1
    assert parquet.read_table("out.parquet").equals(
        local.sample("data.parquet", HALF, key=KEY, label="population", id="id")
    )
    assert files(folder) == ["data.parquet", "out.parquet"]


def test_key_files(folder):
    key = make_key_file("new.key")
    assert read_key_file("new.key") == key
    if os.name == "posix":
        assert stat.S_IMODE(os.stat("new.key").st_mode) == 0o600
        os.chmod("new.key", 0o640)
        with pytest.raises(InvalidInput, match="readable by other users"):
            read_key_file("new.key")
    with pytest.raises(InvalidInput, match="already exists"):
        make_key_file("new.key")
    with pytest.raises(InvalidInput, match="no key file"):
        read_key_file("none.key")
    with pytest.raises(InvalidInput, match="not a file"):
        read_key_file(".")
    for text in ("", "abc", "x" * 64, "é" * 64):
        bad = folder / "bad.key"
        bad.write_text(text)
        bad.chmod(0o600)
        with pytest.raises(InvalidInput, match=r"cannot be read|64 hexadecimal") as caught:
            read_key_file(bad)
        assert not text or text not in str(caught.value)


def test_several_samples_are_not_opened_as_one(tmp_path):
    """Their sum would move by two for one record, and be charged to the ledger of the first."""
    (tmp_path / "out").mkdir()
    parquet.write_table(pa.table({"id": np.arange(50)}), tmp_path / "data.parquet")
    for round in (0, 1):
        out = tmp_path / "out" / f"{round}.parquet"
        local.write(tmp_path / "data.parquet", HALF, out, key=KEY, id="id", label="rounds", round=round)
    for several in (tmp_path / "out", tmp_path / "out" / "*.parquet", (tmp_path / "out").as_uri()):
        with pytest.raises(InvalidInput, match="one file"):
            local.open_sample(several, HALF, key=KEY)
    for one in ((tmp_path / "out" / "0.parquet").as_uri(), tmp_path / "out" / "0.*"):
        assert local.open_sample(one, HALF, key=KEY).ledger.entries == ()


def test_only_what_may_repeat_is_stored_as_a_dictionary(folder):
    parquet.write_table(
        pa.table({"id": np.arange(900), "x": np.ones(900), "kind": ["a", "b", "c"] * 300}), "in.parquet"
    )
    local.write("in.parquet", HALF, "out.parquet", key=KEY, id="id", label="d", columns=["id", "kind"])
    group = parquet.read_metadata("out.parquet").row_group(0)
    columns = [group.column(k) for k in range(group.num_columns)]
    assert {c.path_in_schema for c in columns if "RLE_DICTIONARY" in c.encodings} == {"kind", "privamp_count"}
