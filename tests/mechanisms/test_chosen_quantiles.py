"""Quantiles by the exponential mechanism: the loss by enumeration, and the draw against its definition."""

import itertools
import math

import numpy as np
import pytest

from privamp import Neighbors, Poisson, WithoutReplacement, amplify
from privamp.errors import InvalidInput
from privamp.mechanisms import rank_choice
from privamp.mechanisms.cell_counts import CellCounts
from privamp.mechanisms.chosen_quantiles import ChosenQuantiles, levels_of
from privamp.mechanisms.rank_choice import STEPS, Aim, Ranks, choose
from privamp.testing import seeded_stream


class Defined:
    """The mechanism as the module says it, in the plainest way: every position's chance, with `steps` to a cell."""

    def __init__(self, counts, steps=2):
        self.steps = steps
        self.x = np.array([self._below(counts, c) for c in range(len(counts) * steps)])
        self.all = float(sum(counts))
        self.last = len(counts) * steps - 1

    def _below(self, counts, position):
        cell, inside = divmod(position, self.steps)
        return sum(counts[:cell]) + counts[cell] * (inside + 0.5) / self.steps

    def _law(self, lacks, weights, scale):
        raw = np.array(weights) * np.exp(-np.array(lacks) / scale)
        return np.log(raw / raw.sum())

    def node(self, a, b, low, high, p, epsilon):
        """log chances of the positions a to b, for the share p of what lies between."""
        under = 0.0 if low else self.x[a]
        upto = self.all if high else self.x[b]
        here = self.x[a : b + 1]
        lacks = np.abs((1 - p) * (here - under) - p * (upto - here))
        return self._law(lacks, np.ones(len(lacks)), 2 * max(p, 1 - p) / epsilon)


def losses(one, other, probabilities, level, mistake=False):
    """The largest log ratio over all outcomes, both ways; by mistake, all quantiles are chosen among all records."""
    p, q = (Defined(counts) for counts in (one, other))
    k, worst = len(probabilities), [0.0, 0.0]
    nodes = [node for nodes in levels_of(k) for node in nodes]

    def walk(chosen, left, total):
        if left:
            (m, low, high), *rest = left
            if mistake:
                low, high = -1, k
            a, b = chosen[low], chosen[high]
            pa = probabilities[low] if low >= 0 else 0.0
            pb = probabilities[high] if high < k else 1.0
            share = (probabilities[m] - pa) / (pb - pa)
            ratio = np.subtract(*(d.node(a, b, low < 0, high == k, share, level) for d in (p, q)))
            for c in range(a, b + 1):
                walk({**chosen, m: c}, rest, total + ratio[c - a])
            return
        worst[0], worst[1] = max(worst[0], total), max(worst[1], -total)

    walk({-1: 0, k: p.last}, nodes, 0.0)
    return max(worst)


def worst(probabilities, level, cells=2, most=3):
    """Over all small tables and one more record anywhere."""
    found = 0.0
    for counts in itertools.product(range(most + 1), repeat=cells):
        for place in range(cells):
            more = list(counts)
            more[place] += 1
            found = max(found, losses(counts, more, probabilities, level))
    return found


@pytest.mark.parametrize("probabilities", [(0.5,), (0.2,), (0.25, 0.75), (0.25, 0.5, 0.75)], ids=str)
def test_a_record_costs_what_the_levels_add_up_to(probabilities):
    """Every outcome of every small table: all levels together, ties and all."""
    level = 0.7
    assert worst(probabilities, level) <= level * len(levels_of(len(probabilities))) + 1e-9


def test_the_bound_is_nearly_reached_and_a_mistake_passes_it():
    """The planted mistake: quartiles are not chosen from the halves, so a record counts in both."""
    assert 0.999 < losses((30, 30, 0, 60), (31, 30, 0, 60), (0.5,), 1.0) <= 1.0
    quartiles, many, more = (0.25, 0.5, 0.75), (30, 30, 0, 60, 0, 60, 0, 60), (31, 30, 0, 60, 0, 60, 0, 60)
    assert 0.594 < losses(many, more, quartiles, 0.3) <= 0.6
    assert losses(many, more, quartiles, 0.3, mistake=True) > 0.65


def drawn(ranks, aim, runs, seed=1):
    """How often each position was chosen."""
    stream = seeded_stream(seed)
    found = np.array([choose(ranks, aim, stream) for _ in range(runs)])
    return np.bincount(found, minlength=aim.last + 1)


def expected(ranks, aim):
    """By the definition."""
    lacks = np.abs(aim.factor * ranks.below(np.arange(aim.first, aim.last + 1)) - aim.target).astype(float)
    raw = np.zeros(aim.last + 1)
    raw[aim.first : aim.last + 1] = np.exp(-aim.rate * lacks)
    return raw / raw.sum()


@pytest.mark.parametrize("few", [256, 0])
def test_positions_are_drawn_by_their_definition(few, monkeypatch):
    """With cells looked at one by one, and with the far ones lumped together."""
    monkeypatch.setattr(rank_choice, "_FEW", few)
    cells = np.array([0, 2, 3, 5, 30, 31, 32])
    ranks = Ranks.of(CellCounts(cells, np.array([3, 1, 40, 2, 300, 1, 5])))
    aim = Aim(10, 33 * STEPS + 7, 1, int(ranks.before[2]) + 900, 0.004)
    chances, runs = expected(ranks, aim), 1000
    seen = drawn(ranks, aim, runs)
    bins = np.add.reduceat(chances * runs, np.arange(0, len(chances), 60))
    counts = np.add.reduceat(seen, np.arange(0, len(chances), 60))
    big = bins > 5
    assert seen[: aim.first].sum() == 0
    assert np.sum((counts[big] - bins[big]) ** 2 / bins[big]) < 2.0 * big.sum() + 12.0


def test_below_by_hand():
    ranks = Ranks.of(CellCounts(np.array([1, 4]), np.array([2, 3])))
    parts = ranks.below(np.array([0, STEPS, 2 * STEPS - 1, 2 * STEPS, 4 * STEPS, 9 * STEPS]))
    assert parts.tolist() == [0, 2, 2 * (2 * STEPS - 1), 4 * STEPS, 4 * STEPS + 3, 10 * STEPS]
    nobody = Ranks.of(CellCounts(np.empty(0, np.int64), np.empty(0, np.int64)))
    assert nobody.below(np.array([0, 99])).tolist() == [0, 0]


def test_the_guarantee_is_that_of_its_epsilon():
    mechanism = ChosenQuantiles(1.0, cells=10)
    assert mechanism.profile(Neighbors.ADD_REMOVE).epsilon() == pytest.approx(1.0, rel=1e-8)
    assert mechanism.profile(Neighbors.REPLACE_ONE).epsilon() == pytest.approx(2.0, rel=1e-8)
    assert amplify(mechanism, Poisson(0.1)).epsilon() == pytest.approx(math.log1p(0.1 * math.expm1(1.0)), rel=1e-8)
    assert amplify(mechanism, WithoutReplacement(10, 100)).epsilon() <= 2.0


def test_the_mechanism_draws_by_its_definition():
    """Two quantiles of a few records: the chance of every outcome, cell by cell."""
    counts, runs, epsilon = (2, 0, 5, 1), 4000, 3.0
    mechanism = ChosenQuantiles(epsilon, cells=4, probabilities=(0.25, 0.75))
    held = CellCounts(np.array([0, 2, 3]), np.array([2, 5, 1]))
    stream, truth, seen = seeded_stream(5), np.zeros((4, 4)), np.zeros((4, 4))
    fine = Defined(counts, STEPS)
    last = 4 * STEPS - 1
    lower = np.exp(fine.node(0, last, True, True, 0.25, epsilon / 2))  # the first of two is chosen first
    for c in range(last + 1):
        upper = np.exp(fine.node(c, last, False, True, 2 / 3, epsilon / 2))
        np.add.at(truth, (c // STEPS, np.arange(c, last + 1) // STEPS), lower[c] * upper)
    for _ in range(runs):
        low, high = mechanism.release(held, stream)[0] // STEPS
        seen[low, high] += 1
    big = truth * runs > 5
    assert np.sum((seen[big] - runs * truth[big]) ** 2 / (runs * truth[big])) < 2.0 * big.sum() + 12.0


def test_falling_probabilities_are_refused():
    with pytest.raises(InvalidInput, match="increasing"):
        ChosenQuantiles(1.0, cells=10, probabilities=(0.5, 0.25))


@pytest.mark.parametrize("probabilities", [(0.5,), (0.25, 0.5, 0.75), (0.1, 0.2, 0.5, 0.7, 0.95)])
@pytest.mark.parametrize("shape", ["even", "at the top", "at the bottom"])
def test_with_little_noise_the_quantiles_are_those_of_the_records(probabilities, shape):
    """Up to one cell; epsilon 1e5 leaves no other position a chance above e^-1000."""
    cells, counts = 40, np.full(40, 50)
    if shape != "even":
        counts[-10:], counts[:-10] = 180, 5
        counts = counts if shape == "at the top" else counts[::-1]
    mechanism = ChosenQuantiles(1e5, Neighbors.ADD_REMOVE, cells=cells, probabilities=probabilities)
    found = mechanism.release(CellCounts.of(np.arange(cells), counts), seeded_stream(4))[0] / STEPS
    exact = [np.searchsorted(np.cumsum(counts), p * counts.sum()) for p in probabilities]
    assert np.all(np.abs(found - (np.array(exact) + 0.5)) <= 1.0)
