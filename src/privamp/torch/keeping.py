"""A run and its files: the saved state, and how it is restored.

All steps that were begun count: the checkpoint counts the steps up to it, its journal those since. If the journal is
missing, or does not match its checkpoint, their number is unknown and the run is refused.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from ..chance.keys import Key, build
from ..errors import InvalidInput
from . import checkpoint as files
from .journal import Journal
from .run import Run
from .team import unwrapped

_OTHER_TIME = (
    "the journal {name} does not match its checkpoint, so the steps begun since cannot be counted; copy both at the "
    "same time, and continue with the newest"
)


class Keeper:
    """Saves a run regularly, and keeps a journal in between."""

    def __init__(self, run: Run, key: Key, path: Path, every: int) -> None:
        self._run, self._key, self._path, self._every = run, key, path, every
        self.journal = Journal(path)
        self._stretch = 0  # of the run when it was saved last

    def begin(self) -> None:
        """Create the files of a new run before it is charged, so that its key survives a crash."""
        with self.journal.taken_over():
            pass
        self.save()
        self._attach()

    @contextlib.contextmanager
    def going_on(self) -> Iterator[None]:
        """Resume the run from its files and charge in this block; after it they belong to this program."""
        with self.journal.taken_over():
            take_up(self._run, self._key, files.read(self._path), self.journal)
            yield
            self._write()
        self._attach()

    def _attach(self) -> None:
        self._run.keeper, self._run.batches.save = self, self.save

    def save(self) -> None:
        """The whole state, and an empty journal after it."""
        with self.journal.mine() as handle:
            self._write()
            self.journal.empty(handle)

    def append(self, entry: dict[str, Any]) -> None:
        """One more entry; a run that went back to an earlier state is saved first, since its journal is another's."""
        if self._run.stretch != self._stretch:
            self.save()
        self.journal.append(entry)

    def after_step(self) -> None:
        """Save every so many steps, and at the end."""
        if self._run.step % self._every == 0 or self._run.is_finished:
            self.save()

    def remove(self) -> None:
        """Delete the files of a run that was not paid for."""
        self._path.unlink(missing_ok=True)
        self.journal.remove()

    def _write(self) -> None:
        files.write(self._path, state_of(self._run, self._key, self.journal.mark), secret=True)
        self._stretch = self._run.stretch


def state_of(run: Run, key: Key, mark: bytes | None = None) -> dict[str, Any]:
    """Everything needed to resume; `mark` is that of the journal beside it."""
    return {
        "format": files.FORMAT,
        "plan": run.plan.facts(),
        "step": run.step,
        "charged": run.charged,
        "session": run.stretch,
        "is_paid": run.is_paid,
        "journal": None if mark is None else mark.hex(),
        "model": unwrapped(run.module).state_dict(),
        "optimizer": run.optimizer.state_dict(),
        "scheduler": None if run.scheduler is None else run.scheduler.state_dict(),
        "secret": {
            "key": torch.frombuffer(bytearray(key.secret_bytes()), dtype=torch.uint8),
            "is_test": key.is_test,
            "records": run.records.size,
            "batches": files.packed(run.batches.state()),
        },
    }


def stored_key(state: dict[str, Any]) -> Key:
    """The key that a state holds."""
    secret = state["secret"]
    return build(bytes(secret["key"].tolist()), is_test=bool(secret["is_test"]))


def go_back(run: Run, key: Key, state: dict[str, Any]) -> None:
    """Return to a state of this run. Steps made since then still count; they are repeated with fresh randomness."""
    _same_plan(state["plan"], run.plan.facts())
    if stored_key(state) != key:
        raise InvalidInput("this state belongs to another run; resume it with PrivacyEngine.make_private(checkpoint=…)")
    if state["secret"]["records"] != run.records.size:
        raise InvalidInput(
            "the data set has another number of records than when the state was saved; give the same data"
        )
    if (state["scheduler"] is None) != (run.scheduler is None):
        raise InvalidInput(
            "either both the saved run and this one must have a scheduler, or neither; make it as before"
        )
    try:
        unwrapped(run.module).load_state_dict(state["model"])
        run.optimizer.load_state_dict(state["optimizer"])
    except (RuntimeError, ValueError, KeyError):
        raise InvalidInput("the module or optimizer is not the one that was saved; build them as before") from None
    if run.scheduler is not None:
        run.scheduler.load_state_dict(state["scheduler"])
    run.restored()
    run.batches.restore(files.unpacked(state["secret"]["batches"]), run.batches.state())
    run.begin_stretch(max(run.stretch, int(state["session"])) + 1)  # first: no step is made twice with one key
    run.step, run.charged = int(state["step"]), max(run.charged, int(state["charged"]))


def share(run: Run, key: Key) -> None:
    """All processes of a run go on from where the first one is."""
    state = files.from_bytes(run.team.on_first(lambda: files.to_bytes(state_of(run, key))))
    if not run.team.is_first:
        with run.team.apart():
            go_back(run, key, state)
        run.charged = int(state["charged"])
    run.begin_stretch(int(state["session"]))


def take_up(run: Run, key: Key, stored: dict[str, Any], journal: Journal) -> None:
    """Restore the checkpoint, then the steps after it whose noisy sums are stored; a step without one is spent."""
    since, mark = int(stored["session"]), stored.get("journal")
    go_back(run, key, stored)
    found, entries = journal.stored()
    if mark is not None and found is None:
        raise InvalidInput(
            f"the journal {journal.path.name} of this checkpoint is missing, so the steps begun since cannot be "
            "counted; restore it, or copy it together with the checkpoint"
        )
    for entry in entries:
        if entry["session"] < since or (entry["session"] == since and entry["step"] < run.step):
            continue  # older than the checkpoint
        is_ours = mark is None or (found is not None and found.hex() == mark)
        if entry["session"] > since or entry["step"] > run.step or not is_ours:
            raise InvalidInput(_OTHER_TIME.format(name=journal.path.name))
        if entry["kind"] != "begun":
            run.replay(entry)
        elif entry.get("number", run.charged + 1) > run.charged:  # else tried again after the store was busy
            run.charged += 1
            run.batches.begin(entry["step"])


def _same_plan(stored: dict[str, Any], asked: dict[str, Any]) -> None:
    for name in {**asked, **stored}:
        was, now = stored.get(name), asked.get(name)
        if was != now:
            raise InvalidInput(
                f"the saved run has {name}={was!r} and this one has {now!r}; a run cannot change: resume it "
                "unchanged, or start a new one with a new checkpoint"
            )
