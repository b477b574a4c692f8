"""docs/cli.md has an example of every spec, and each of them is read."""

import re
from pathlib import Path

import pytest

from privamp import Neighbors, spec

PAGE = (Path(__file__).parents[2] / "docs/cli.md").read_text(encoding="utf-8")
TABLES = PAGE[PAGE.index("## Specs") : PAGE.index("## amplify")]
ROWS = [line.rsplit("|", 2)[1] for line in TABLES.splitlines() if line.startswith("| ")]
EXAMPLES = [text for row in ROWS for text in re.findall(r"`([^`]+)`", row)]


def test_every_word_has_an_example():
    shown = {text.partition(":")[0] for text in EXAMPLES}
    assert shown == {*spec.DESIGNS, *spec.SCHEDULES, *spec.MECHANISMS}


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_example_is_read(text):
    if text.partition(":")[0] in spec.MECHANISMS:
        spec.mechanism(text, Neighbors.ADD_REMOVE)
    else:
        spec.design_or_schedule(text)
