"""R `sampling` 2.11: its manual says by which rule and for which numbers; its vignettes print mostly random ones."""

from fractions import Fraction
from itertools import pairwise

from privamp import Population, SystematicPPS
from privamp.designs.pps_clusters import PPSClusters
from privamp.designs.proportional_pps import capped_exactly

PRESCRIBED = [Fraction(k, 10) for k in (2, 7, 8, 5, 4, 4)]  # of UPsampford.Rd, UPbrewer.Rd, UPsystematic.Rd, …
UNITS = Population(6, cluster=list(range(6)))


def met(design):
    """The inclusion probabilities of single units and of pairs, from the exact law of the design."""
    one, two = [Fraction(0)] * 6, {}
    for units, chance in design.law(UNITS):
        for unit in units:
            one[unit] += chance
            for other in units:
                two[unit, other] = two.get((unit, other), Fraction(0)) + chance
    return one, two


def test_inclusion_probabilities_are_cut_at_one_again_and_again():
    """inclusionprobabilities(1:20, 12): 18 to 20 are certain, and 9 more of 1 to 17 are k/17 each."""
    assert capped_exactly(list(range(1, 21)), 12) == [Fraction(min(k, 17), 17) for k in range(1, 21)]


def test_totals_of_a_vignette():
    """inst/doc/HT_Hajek_estimators.pdf, Cases 1 and 3: 589 units, 20 drawn; 3 each, and 1/pi with pi as k is."""
    probabilities = capped_exactly(list(range(1, 590)), 20)
    assert sum(probabilities) == 20
    assert 3 * len(probabilities) == 1767
    assert f"{float(sum(1 / chance for chance in probabilities)):.2f}" == "60436.25"


def test_sampford_draws_with_the_prescribed_probabilities():
    one, _ = met(PPSClusters([2, 7, 8, 5, 4, 4], 3, 1))
    assert [round(float(chance), 12) for chance in one] == [float(chance) for chance in PRESCRIBED]
    assert sum(one) == 3


def test_systematic_pairs():
    """UPsystematicpi2 for the same numbers: by the start u in [0, 1), where the units cut the line of their sums."""
    ends = [Fraction(0)]
    for chance in PRESCRIBED:
        ends.append(ends[-1] + chance)
    pairs = {}
    starts = sorted({end % 1 for end in ends} | {Fraction(1)})
    for low, high in pairwise(starts):
        drawn = [k for k in range(6) if any(ends[k] <= low + j < ends[k + 1] for j in range(3))]
        for a in drawn:
            for b in drawn:
                pairs[a, b] = pairs.get((a, b), Fraction(0)) + high - low
    one, two = met(SystematicPPS((2, 7, 8, 5, 4, 4), 3))
    assert one == PRESCRIBED
    assert two == pairs
