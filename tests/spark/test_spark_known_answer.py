"""Whatever decides about rows on a worker computes known answers of the keyed function before its first row."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from privamp import InvalidInput, Poisson, WithoutReplacement
from privamp.chance import known_answer
from privamp.engines.kernel import Kernel
from privamp.engines.spark_draw import Draw
from privamp.engines.spark_gathered import _decided
from privamp.testing import seeded_key

pytest.importorskip("pyspark")


@pytest.fixture
def another_function(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A worker whose keyed function gives other numbers."""
    known_answer.check_known_answer.cache_clear()
    monkeypatch.setattr(known_answer, "_OF_NUMBERS", ((1, 2, 3), (4, 5, 6)))
    yield
    known_answer.check_known_answer.cache_clear()


def test_a_keeper_is_made_by_workers_that_agree() -> None:
    draw: Any = Draw(None, Kernel.of(Poisson(0.5), seeded_key(941), id="uid"))  # type: ignore[arg-type]
    assert draw.keeper()().tally()


@pytest.mark.usefixtures("another_function")
def test_a_worker_that_draws_otherwise_stops() -> None:
    draw: Any = Draw(None, Kernel.of(Poisson(0.5), seeded_key(941), id="uid"))  # type: ignore[arg-type]
    make = draw.keeper()  # on the driver; each job calls it on its workers
    with pytest.raises(InvalidInput, match="gives other numbers here than everywhere else"):
        make()
    fixed = Kernel.of(WithoutReplacement(1, 2), seeded_key(941), id="uid")
    with pytest.raises(InvalidInput, match="gives other numbers here than everywhere else"):
        next(iter(_decided(fixed, iter(()), b"", 2, pa.schema([("uid", pa.int64())]))))
