"""A file of finished runs, one JSON object a line: a run that is in it is not made again."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Facts = dict[str, Any]


class KeptRuns:
    """Runs by what was asked for. Without a path they are kept in memory alone."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        text = path.read_text(encoding="utf-8") if path and path.exists() else ""
        if path and text and not text.endswith("\n"):  # cut off by a crash
            text = text[: text.rfind("\n") + 1]
            path.write_text(text, encoding="utf-8")
        self._runs: list[Facts] = [json.loads(line) for line in text.splitlines()]

    def found(self, asked: Facts) -> Facts | None:
        """The run with all of these facts, or None."""
        wanted = json.loads(json.dumps(asked))  # tuples are lists in the file
        return next((run for run in self._runs if all(run.get(k) == v for k, v in wanted.items())), None)

    def add(self, asked: Facts, found: Facts) -> Facts:
        """Keep a run, at once."""
        run: Facts = json.loads(json.dumps({**asked, **found}))
        self._runs.append(run)
        if self._path:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(run) + "\n")
        return run

    def found_or_made(self, asked: Facts, make: Callable[[], Facts]) -> Facts:
        """The kept run, or the one that `make` gives."""
        held = self.found(asked)
        return self.add(asked, make()) if held is None else held
