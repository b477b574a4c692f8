"""Every printed value about sampling in the tests and pages of other libraries, against privamp from below and above.

`facts.csv` holds what they print (facts with source and tolerance, no code) and the verdict:

- agrees: privamp's upper bound is the printed value, within the tolerance that the source states;
- looser: the value is an upper bound, and privamp's is smaller; `why` says how it was found;
- false: an attack reaches more than the printed value, so it is no guarantee; `why` says how it was found.
"""

from collections import Counter

import mpmath
import pytest

from peer_facts import facts, said

FACTS = facts()
PEERS = {"dp_accounting 0.6.0", "opacus 1.6.0", "tensorflow_privacy 03035d5", "autodp 06489ea"}
ONE = [fact for fact in FACTS if fact["asks"] == "delta" and fact["steps"] == 1]
QUICK = ("_poisson_subsampled", " no_microbatching_with_subsampling_pld", "test_gdp_accountant")
SOME = [fact for fact in FACTS if any(words in fact["source"] for words in QUICK)]
SOME += [fact for fact in FACTS if fact["asks"] == "renyi" and fact["at"] == 1.5]


def check(fact):
    lower, upper = said(fact)
    value, tolerance, verdict = fact["value"], fact["tolerance"], fact["verdict"]
    told = f"{fact['peer']}, {fact['source']}: printed {value}, privamp has [{lower}, {upper}]"
    if verdict == "agrees":
        assert abs(upper - value) <= tolerance, told
    elif verdict == "looser":
        assert upper <= value + tolerance, told
        assert fact["why"], told
    else:
        assert verdict == "false", told
        assert lower > value + tolerance, told
        assert fact["why"], told


def test_values_of_one_release():
    assert len(ONE) > 160
    for fact in ONE:
        check(fact)


@pytest.mark.parametrize("fact", SOME, ids=lambda fact: fact["source"].split()[-1])
def test_values_of_several_rounds(fact):
    check(fact)


@pytest.mark.slow
@pytest.mark.parametrize("fact", [fact for fact in FACTS if fact not in ONE], ids=lambda fact: fact["source"])
def test_every_value(fact):
    check(fact)


def test_a_wrong_value_is_caught():
    """The planted mistake: the printed value a hundredth off, or called false."""
    fact = next(fact for fact in ONE if 0.05 < fact["value"] < 0.2)
    for change in ({"value": fact["value"] * 1.01}, {"verdict": "false", "why": "-"}):
        with pytest.raises(AssertionError, match="printed"):
            check(fact | change)


def test_the_pages_counts_are_those_of_the_facts():
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "peers.md").read_text(encoding="utf-8")
    counts = Counter((fact["peer"], fact["verdict"]) for fact in FACTS)
    assert {peer for peer, _ in counts} == PEERS
    for peer in PEERS:
        row = " | ".join(str(counts[peer, verdict]) for verdict in ("agrees", "looser", "false"))
        assert f"| {peer} | {row} |" in page


def without_replacement(epsilon, q, shift):
    """delta of (1-q) N(0) + q N(shift) against N(0), 40 digits: rows of norm C that are exchanged move a sum by 2C."""
    mpmath.mp.dps = 40
    q, shift, epsilon = mpmath.mpf(q), mpmath.mpf(shift), mpmath.mpf(epsilon)
    inner = mpmath.log(1 + (mpmath.exp(epsilon) - 1) / q)
    return q * (
        mpmath.ncdf(shift / 2 - inner / shift) - mpmath.exp(inner) * mpmath.ncdf(-shift / 2 - inner / shift)
    )


def test_the_value_by_mpmath_where_dp_accounting_is_too_small():
    """100 of 1000 without replacement, noise multiplier 1, delta 1e-6 (docs/peers.md)."""
    found = mpmath.findroot(lambda x: mpmath.log(without_replacement(x, "0.1", 2) / mpmath.mpf("1e-6")), (7, 8))
    assert float(found) == pytest.approx(7.6950806915713, rel=1e-12)
    assert without_replacement(2.7356, "0.1", 2) > 1e-3  # what their 2.7356 is worth


def test_r_sampling_draws_with_the_prescribed_probabilities():
    """R `sampling` prints no values; its manual states that Sampford's and maximum entropy designs have these ones."""
    from fractions import Fraction

    from privamp import Population
    from privamp.designs.pps_clusters import PPSClusters

    prescribed = [Fraction(k, 10) for k in (2, 7, 8, 5, 4, 4)]  # UPsampford.Rd, UPbrewer.Rd, UPmaxentropy.Rd
    design = PPSClusters([2, 7, 8, 5, 4, 4], 3, 1)
    population = Population(6, cluster=list(range(6)))
    met = [Fraction(0)] * 6
    for units, chance in design.law(population):
        for unit in units:
            met[unit] += chance
    assert [round(float(chance), 12) for chance in met] == [float(chance) for chance in prescribed]
    assert sum(met) == 3
