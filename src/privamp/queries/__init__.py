"""Questions about a table: counts, sums, means, histograms, quantiles, by public groups, from a sample or all records.

    table = privamp.open_table("people.parquet", budget="study.db", population="patients").sample(Poisson(0.05))
    table.mean("income", (0, 200_000)).by("region", ["north", "south"]).run(epsilon=1.0)
    table.plan([table.count(), table.median("age", (0, 110))]).run(epsilon=1.0)

table.py is the user interface. groups.py, questions.py and quantiles.py define what a record adds. plan.py splits the
noise between questions and releases all of them at once. answers.py turns the released numbers into answers with
intervals.
"""

from ..extras import need

need("pyarrow", "asking a table")

from .questions import Question  # noqa: E402 - after the sentence about pyarrow
from .table import Table, open_table  # noqa: E402

__all__ = ["Question", "Table", "open_table"]
