"""The public cut of fixed-size draws: the same records, fewer of them on the way."""

import math

import numpy as np
import pytest
from scipy import stats

from privamp import Population, WithoutReplacement, WithReplacement
from privamp.chance.keyed import keyed_pairs, smallest
from privamp.core.population import Batch
from privamp.designs.fixed_size import public_cut
from privamp.errors import InvalidInput
from privamp.testing import seeded_key

KEY = seeded_key(6)


@pytest.mark.parametrize("first", [1, 2, 5, 10, 100, 1000, 10**4, 10**6, 10**8])
@pytest.mark.parametrize("times", [2, 100, 10**6])
def test_fewer_than_wanted_lie_below_it_with_a_chance_below_2e_22(first, times):
    population = times * (first + 10 * (math.isqrt(first) + 1) + 50)
    cut = int(public_cut(first, population))
    assert stats.binom.logcdf(first - 1, population, cut / 2**64) < math.log(2e-22)


def test_there_is_none_where_nearly_all_are_drawn():
    assert public_cut(50, 100) is None
    assert public_cut(40, 10**4) is not None


@pytest.mark.parametrize("design", [WithoutReplacement(40, 10**4), WithReplacement(60, 10**4)])
def test_the_sample_is_that_of_the_whole_order(design):
    """Compared with a draw that sorts everybody."""
    people = Population(10**4, "people")
    drawn = design.draw(people, KEY).reveal_secret()
    subkey = design.subkey(KEY, "people", 0)
    high, low = keyed_pairs(subkey, people.ids)
    assert drawn.positions.tolist() == smallest(high, low, len(drawn.positions)).tolist()


def test_a_part_holds_few_records_and_merges_to_the_same():
    design, people = WithoutReplacement(1000, 10**6), np.arange(10**6, dtype=np.uint64)
    whole = design.draw(Population(people, "people"), KEY).reveal_secret()
    subkey = design.subkey(KEY, "people", 0)
    everyone = Population(people, "people")
    batches = [everyone.batch(start, start + 50_000) for start in range(0, 10**6, 50_000)]
    parts = [design.partial(batch, subkey) for batch in batches]
    assert len(parts) == 20
    assert 1000 <= sum(part.positions.size for part in parts) < 1600
    assert design.finish(design.merge(parts), subkey).positions.tolist() == whole.positions.tolist()


def test_ids_that_repeat_may_be_noticed_but_never_give_a_smaller_sample():
    """All records share one keyed number: none, or all of them, lie below the cut."""
    design, subkey = WithoutReplacement(40, 10**4), seeded_key(8).subkey("x")
    same = Batch(np.full(10**4, 7, dtype=np.uint64))
    with pytest.raises(InvalidInput, match="ids are unique"):
        design.finish(design.merge([design.partial(same, subkey)]), subkey)
