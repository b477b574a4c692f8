"""Counts of cells, levels of quantiles and runs of positions: against dictionaries and every position by itself."""

import itertools
import math

import numpy as np
import pytest

from privamp import InvalidInput, Neighbors
from privamp.core.multiplicity import Multiplicity
from privamp.mechanisms import rank_choice
from privamp.mechanisms.cell_counts import CellCounts
from privamp.mechanisms.chosen_quantiles import DENOMINATOR, ChosenQuantiles, levels_of, share_between
from privamp.mechanisms.rank_choice import STEPS, Aim, Ranks

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


def test_counts_of_cells_are_those_of_a_dictionary():
    cells, counts = np.array([5, -1, 2, 5, 9, 2]), np.array([1, 7, 2, 3, 1, -2])
    held = CellCounts.of(cells, counts)
    assert (held.cells.tolist(), held.counts.tolist()) == ([2, 5, 9], [0, 4, 1])
    other = CellCounts.of(np.array([5, 7]), np.array([1, 2]))
    both = held.plus(other)
    assert dict(zip(both.cells.tolist(), both.counts.tolist(), strict=True)) == {2: 0, 5: 5, 7: 2, 9: 1}
    assert held.distance(other) == 3 + 2 + 1
    part = held.between(3, 9)
    assert (part.cells.tolist(), part.counts.tolist()) == ([2], [4])
    assert held.between(5, 10).cells.tolist() == [0, 4]


@pytest.mark.parametrize("quantiles", [1, 2, 3, 6, 9])
def test_levels_choose_the_middle_of_what_is_left(quantiles):
    levels = levels_of(quantiles)
    nodes = [node for level in levels for node in level]
    assert sorted(middle for middle, _, _ in nodes) == list(range(quantiles))
    assert len(levels) == math.ceil(math.log2(quantiles + 1))
    known = {-1, quantiles}
    for level in levels:
        for middle, low, high in level:
            assert {low, high} <= known
            assert middle == (low + high) // 2
        known |= {middle for middle, _, _ in level}
        spans = sorted((low, high) for _, low, high in level)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))


def test_a_share_is_of_what_lies_between():
    probabilities = (0.1, 0.5, 0.9)
    assert share_between((1, -1, 3), probabilities) == 0.5
    assert share_between((0, -1, 1), probabilities) == pytest.approx(0.2, abs=1 / DENOMINATOR)
    assert share_between((2, 1, 3), probabilities) == pytest.approx(0.8, abs=1 / DENOMINATOR)
    assert share_between((0, -1, 1), (1e-9, 0.5)) == 1 / DENOMINATOR
    assert share_between((1, 0, 2), (0.5, 1 - 1e-12)) == 1 - 1 / DENOMINATOR


@pytest.mark.parametrize("seed", range(12))
def test_cells_that_are_left_out_are_too_far_to_be_drawn(seed, monkeypatch):
    """With all runs evaluated and with the far ones lumped together, every position has the same chance to 1e-9."""
    random = np.random.default_rng(seed)
    cells = np.sort(random.choice(60, 30, replace=False))
    ranks = Ranks.of(CellCounts(cells, random.integers(1, 9, 30)))
    first, last = sorted(random.choice(60 * STEPS, 2, replace=False).tolist())
    target = int(random.integers(0, int(ranks.before[-1]) * 4))
    aim = Aim(first, last, 4, target, float(random.choice([0.003, 0.02, 0.3])))

    def law(few):
        monkeypatch.setattr(rank_choice, "_FEW", few)
        starts, lengths, lacks, far = rank_choice._runs(ranks, aim)
        assert starts[0] == first
        assert int(starts[-1] + lengths[-1]) == last + 1
        assert np.array_equal(starts[1:], (starts + lengths)[:-1])
        least = int(np.min(lacks))
        proposals = np.where(far == 1, 2, rank_choice._proposals(lacks - least, aim.rate))
        own = aim.lacks(ranks, np.arange(first, last + 1))
        spread = [np.repeat(part, lengths) for part in (lacks, far, proposals)]
        assert np.all((own == spread[0]) | (spread[1] == 1))
        heights = 2.0**32 * np.exp(-aim.rate * (own - least))
        assert np.all(heights <= spread[2] * (1 + 1e-12))  # a chance is at most 1
        return heights

    assert law(2) == pytest.approx(law(10**6), rel=1e-9)


def test_quantiles_refuse_what_is_not_increasing_or_not_a_count():
    refused = [{"cells": cells} for cells in (0, 2**20 + 1)] + [{"groups": 0}, {"neighbors": RO}]
    refused += [{"probabilities": p} for p in ((0.0,), (1.0,), (0.5, 0.5), (0.6, 0.5))]
    for given in refused:
        with pytest.raises(InvalidInput):
            ChosenQuantiles(1.0, **given)
    one = ChosenQuantiles(1.0, cells=2**20)
    assert one.profile(AR).epsilon() == pytest.approx(1.0 + 1e-9, rel=1e-12)
    assert float(one.family(AR)(np.array(1.0), np.array(0.0))) == pytest.approx(float(one.profile(AR).forward(0.0)))
    assert one.mixture(AR, Multiplicity.binomial(1, 0.5)) is None
    assert one.opposite_mixture(0.5) is None
