"""Every printed value about sampling in the tests and pages of other libraries, against privamp from below and above.

`facts.csv` holds what they print (facts with source and tolerance, no code) and the verdict:

- agrees: privamp's upper bound is the printed value, within the tolerance that the source states;
- looser: the value is an upper bound, and privamp's is smaller; `why` says how it was found;
- lower: the value is a lower bound, and privamp's upper bound is not below it; `why` says how it was found;
- false: an attack reaches more than the printed value, so it is no guarantee; `why` says how it was found.
"""

from collections import Counter

import mpmath
import pytest

from peer_facts import facts, said

FACTS = facts()
PEERS = {"dp_accounting 0.6.0", "opacus 1.6.0", "tensorflow_privacy 03035d5", "autodp 06489ea"}
ONE = [fact for fact in FACTS if fact["steps"] == 1 and fact["asks"] != "renyi"]  # a minute and more: the others
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
    elif verdict == "lower":
        assert upper >= value - tolerance, told
        assert fact["why"], told
    else:
        assert verdict == "false", told
        assert lower > value + tolerance, told
        assert fact["why"], told


def test_values_of_one_release():
    assert len(ONE) > 300
    for fact in ONE:
        check(fact)


@pytest.mark.parametrize("fact", SOME, ids=lambda fact: fact["source"].split()[-1])
def test_values_of_several_rounds(fact):
    check(fact)


@pytest.mark.slow  # many rounds take 1 to 25 s a value, Rényi divergences by quadrature 1.5 s
@pytest.mark.parametrize("fact", [fact for fact in FACTS if fact not in ONE], ids=lambda fact: fact["source"])
def test_every_value(fact):
    check(fact)


def test_a_wrong_value_is_caught():
    """The planted mistake: the printed value a hundredth off, or called false."""
    fact = next(fact for fact in ONE if 0.05 < fact["value"] < 0.2)
    wrong = {"value": fact["value"] * 1.01}
    for change in (wrong, wrong | {"verdict": "lower", "why": "-"}, {"verdict": "false", "why": "-"}):
        with pytest.raises(AssertionError, match="printed"):
            check(fact | change)


def test_the_pages_counts_are_those_of_the_facts():
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "peers.md").read_text(encoding="utf-8")
    counts = Counter((fact["peer"], fact["verdict"]) for fact in FACTS)
    assert {peer for peer, _ in counts} == PEERS
    for peer in PEERS:
        row = " | ".join(str(counts[peer, verdict]) for verdict in ("agrees", "looser", "lower", "false"))
        assert f"| {peer} | {row} |" in page


def without_replacement(epsilon, q, shift):
    """delta of (1-q) N(0) + q N(shift) against N(0), 40 digits: rows of norm C that are exchanged move a sum by 2C."""
    mpmath.mp.dps = 40
    q, shift, epsilon = mpmath.mpf(q), mpmath.mpf(shift), mpmath.mpf(epsilon)
    inner = mpmath.log(1 + (mpmath.exp(epsilon) - 1) / q)
    return q * (mpmath.ncdf(shift / 2 - inner / shift) - mpmath.exp(inner) * mpmath.ncdf(-shift / 2 - inner / shift))


def test_the_value_by_mpmath_where_dp_accounting_is_too_small():
    """100 of 1000 without replacement, noise multiplier 1, delta 1e-6 (docs/peers.md)."""
    found = mpmath.findroot(lambda x: mpmath.log(without_replacement(x, "0.1", 2) / mpmath.mpf("1e-6")), (7, 8))
    assert float(found) == pytest.approx(7.6950806915713, rel=1e-12)
    assert without_replacement(2.7356, "0.1", 2) > 1e-3  # what their 2.7356 is worth


def test_the_value_by_hand_where_dp_accountings_mixtures_are_too_small():
    """0.8 (2 Phi(1/2) - 1) is delta(0) of a sum that one record moves by sigma with chance 0.8."""
    mpmath.mp.dps = 40
    exact = mpmath.mpf("0.8") * (2 * mpmath.ncdf(0.5) - 1)
    several = [fact for fact in FACTS if fact["verdict"] == "false" and fact["peer"].startswith("dp_accounting")]
    assert len(several) == 9
    assert all("test_mixture_gaussian" in fact["source"] for fact in several)
    first = [fact for fact in several if fact["mechanism"].endswith("chances=0.2+0.8") and fact["at"] == 0.0]
    for fact in first:
        assert fact["value"] < 0.274 < exact
        assert said(fact)[0] == pytest.approx(float(exact), rel=1e-12)


def test_the_inventory_counts_what_was_taken():
    """docs/peers.md says file by file how many values were taken; the files of the facts are all there."""
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "peers.md").read_text(encoding="utf-8")
    inventory = page.partition("### What was taken")[2].partition("### Where they differ")[0]
    counts = Counter(fact["source"].split()[0] for fact in FACTS)
    for name in ("pld/privacy_loss_mechanism_test.py", "pld/privacy_loss_distribution_test.py",
                 "pld/pld_privacy_accountant_test.py", "pld/accountant_test.py", "rdp/rdp_privacy_accountant_test.py",
                 "tests/prv_accountant.py", "tests/accountants_test.py",
                 "test/unit_test_dp_sgd_poisson_sampling_add_remove.py"):  # fmt: skip
        (line,) = [line for line in inventory.splitlines() if f"| `{name}` |" in line]
        assert line.split("|")[3].strip().startswith(f"{counts[name]}"), name
    assert sum(n for name, n in counts.items() if name.startswith("tutorials/") and name.endswith(".ipynb")) == 37 + 11
    assert f"checks the {len(ONE)} of one release" in page
