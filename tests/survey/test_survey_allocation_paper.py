"""The design of arXiv 2501.18121 (benchmarks/allocation_paper.py): its sizes are best, and one noise is no worse."""

from itertools import product

import pytest

from privamp.survey import Stratum, allocate
from scripts import script

paper = script("benchmarks/allocation_paper.py")


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_greedy_sizes_are_the_best_of_all(epsilon):
    strata = [Stratum("a", 9, 3, 1.0), Stratum("b", 14, 1, 0.2), Stratum("c", 6, 8, 0.5)]
    found = paper.variance_by_stratum(strata, paper.by_stratum(strata, 13, epsilon), epsilon)
    every = (
        paper.variance_by_stratum(strata, {"a": a, "b": b, "c": 13 - a - b}, epsilon)
        for a, b in product(range(1, 10), range(1, 12))
        if 1 <= 13 - a - b <= 6
    )
    assert found == pytest.approx(min(every), rel=1e-12)


@pytest.mark.parametrize("name", paper.FRAMES)
def test_one_noise_is_no_worse(name):
    strata, size = paper.FRAMES[name]
    for epsilon in (0.1, 2.0):
        theirs = paper.variance_by_stratum(strata, paper.by_stratum(strata, size, epsilon), epsilon)
        assert allocate(strata, size, epsilon).variance <= theirs * (1 + 1e-9)
