"""A slot may hold as many records as were declared, and one more is refused."""

import numpy as np
import pytest

from privamp import InvalidInput, Population, Systematic
from privamp.testing import seeded_key


def drawn(records, **changes):
    design = Systematic(2, order="slots", max_slot=3, **changes)
    return design.draw(Population(records), seeded_key(1)).reveal_secret().positions


def test_a_full_slot_is_drawn():
    found = drawn(6)
    assert found.tolist() in ([0, 2, 4], [1, 3, 5])
    assert np.array_equal(drawn(5)[:2], found[:2])


def test_a_slot_with_one_record_more_is_refused():
    with pytest.raises(InvalidInput, match="at most 3 records in a slot"):
        drawn(7)
