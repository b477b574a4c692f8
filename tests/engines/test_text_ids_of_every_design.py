"""Text ids in a file draw the sample that the same ids draw in memory, for every design there is."""

import inspect
from importlib import import_module
from pkgutil import iter_modules

import pyarrow as pa
import pytest
from pyarrow import parquet

from privamp import Population, designs
from privamp.core.design import Design
from privamp.engines import local, reading
from privamp.engines.kernel import COUNT, WEIGHT
from privamp.errors import InvalidInput
from privamp.tables import pieces
from privamp.testing import seeded_key

TEXTS = ["", "a", "é漢😀", "x" * 16, "x" * 17, "long " * 300, "a\0b", "7"]
ROUNDS = 6
CASES = 6


def concrete():
    rooms = [import_module(f"privamp.designs.{info.name}") for info in iter_modules(designs.__path__)]
    kinds = {kind for room in rooms for kind in vars(room).values() if inspect.isclass(kind)}
    kinds = {kind for kind in kinds if issubclass(kind, Design) and not inspect.isabstract(kind)}
    return sorted(kinds, key=lambda kind: kind.__name__)


def cases(kind):
    """The largest of the design's own small cases, with texts for ids."""
    every = [(design, Population.of(people)) for design, people in kind.small_cases()]
    for design, people in sorted(every, key=lambda case: case[1].size)[-CASES:]:
        assert people.size <= len(TEXTS)
        yield design, Population(TEXTS[: people.size], **people.columns)


def as_table(people, kind):
    columns = {name: values.tolist() for name, values in people.columns.items()}
    return pa.table({"id": pa.array(TEXTS[: people.size], kind), "place": range(people.size), **columns})


def in_memory(design, people, key):
    drawn = design.draw(people, key).reveal_secret()
    return sorted(zip(*(part.tolist() for part in (drawn.positions, drawn.counts, drawn.weights)), strict=True))


def of_file(design, path, key):
    found = local.sample(path, design, key=key, id="id")
    return sorted(zip(*(found[name].to_pylist() for name in ("place", COUNT, WEIGHT)), strict=True))


def answer(draw, *arguments):
    try:
        return draw(*arguments)
    except InvalidInput as error:
        return str(error)


@pytest.mark.parametrize("kind", concrete(), ids=lambda kind: kind.__name__)
def test_a_file_with_text_ids_gives_the_sample_drawn_in_memory(tmp_path, monkeypatch, kind):
    for room in (pieces, reading):
        monkeypatch.setattr(room, "BATCH", 2)
    seen = set()
    for number, (design, people) in enumerate(cases(kind)):
        path = tmp_path / f"{number}.parquet"
        parquet.write_table(as_table(people, pa.string() if number % 2 else pa.large_string()), path, row_group_size=3)
        for seed in range(ROUNDS):
            expected = answer(in_memory, design, people, seeded_key(seed))
            assert answer(of_file, design, path, seeded_key(seed)) == expected
            seen.add(str(expected))
    assert len(seen) > 2
