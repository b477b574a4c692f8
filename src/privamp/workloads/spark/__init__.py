"""Jobs on a Spark table: the same plans and guarantees as in memory, with sums taken where the records are."""
