"""Every design under Gaussian noise: planned, estimated, certified; and the reason where it cannot be.

The matrix is written out: a design that is added must be put in its row.
"""

import math
import warnings

import numpy as np
import pytest

import privamp
from privamp import Gaussian, Population, PrivampError, Stratified, amplify, spec
from privamp.core.neighbors import Neighbors
from privamp.survey import Stratum, adjust, allocate, estimate, plan
from privamp.survey.units import inner_shift
from privamp.testing import seeded_key

pytestmark = pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
RECORDS, DELTA = 40, 1e-6
PUBLIC = {
    "cluster": np.arange(RECORDS) % 8,
    "probability": np.linspace(0.3, 0.6, RECORDS),
    "category": np.array(["a", "b"])[np.arange(RECORDS) % 2],
    "stratum": np.arange(RECORDS) % 2,
    "size": np.linspace(1.0, 2.0, RECORDS),
    "odds": np.linspace(0.1, 0.5, RECORDS),
    "x": np.linspace(-1.0, 1.0, RECORDS),
}
WEIGHTED = {  # estimated: by their public weights
    "poisson:rate=0.5": {},
    "wor:size=20,population=40": {},
    "wr:size=20,population=40": {},
    "multistage:wor=20,wr=10,population=40": {},
    "random-size-law:chances=10=0.5+20=0.5,population=40": {},
    "proportional:rate=0.5": {},
    "systematic:step=2": {},
    "systematic:step=2,order=slots,max_slot=20": {"sd": "range"},
    "cluster:chosen=4,clusters=8,max_size=5": {},
    "cluster:chosen=4,clusters=8,max_size=5,second_rate=0.5": {},
    "cluster-pps:probabilities=0.2+0.2+0.1+0.1+0.1+0.1+0.1+0.1,max_size=5": {"sd": "range"},
    "pps-clusters:sizes=5+5+5+5+5+5+5+5,chosen=4,take=2": {},
    "systematic-pps:sizes=3+4+5+6+3+4+5+6,chosen=2,max_size=5": {"sd": "range"},
    "poisson-pps:low=0.3,high=0.6": {},
    "class-rates:rates=a=0.2+b=0.5": {},
    "capped-poisson:rate=0.5,most=30,at_least=40,at_most=40": {},
}
REFUSED = {  # no weight that is public: why
    "shared-rate:size=20,at_least=40,strata=2": "secret number of records",
    "cluster:chosen=4,clusters=8,max_size=5,second_size=3,min_size=5": "secret sizes",
    "cluster-by-size:clusters=8,max_size=5,min_size=5": "private sizes",
    "proportional-pps:size=10,low=1,high=2,at_least=40": "private sizes",
    "conditional-poisson:size=10,population=40,low=0.1,high=0.5": "everybody else",
    "importance:rule=uniform,radius=1,scale=1,rate=0.5": "weights of its own",
}
X = np.random.default_rng(5).uniform(0, 1, RECORDS)


def columns(design):
    return {name: PUBLIC[name] for name in design.reads}


def drawn(text, key):
    design = spec.design(text)
    return design, design.draw(Population(RECORDS, **columns(design)), seeded_key(key))


def test_the_matrix_has_every_design():
    named = {text.partition(":")[0] for text in (*WEIGHTED, *REFUSED)}
    aliases = {"random-size", "random-size-normal"}  # laws of random-size-law
    assert named | aliases | {"stratified"} == set(privamp.spec.DESIGNS)


@pytest.mark.parametrize("text", WEIGHTED)
@pytest.mark.parametrize("statistic", ["total", "mean"])
def test_gaussian_estimates_keep_their_budget(text, statistic):
    _, sample = drawn(text, 31)
    options = WEIGHTED[text] | ({} if statistic == "total" else {"population": RECORDS})
    found = estimate(sample, X, statistic, bounds=(0, 1), epsilon=1.0, delta=DELTA, noise="gaussian", **options)
    if "second_rate" in text and statistic == "mean":
        return  # a program is solved for them; once is enough
    least = 0.9 if "second_rate" in text else 0.98
    assert least <= found.guarantee.epsilon(DELTA) <= 1.0
    assert getattr(found.law, "kind", found.law) == "gaussian"
    assert math.isfinite(found.value)
    assert found.noise_error > 0


@pytest.mark.parametrize("text", [t for t in WEIGHTED if "second_rate" not in t and "random-size" not in t])
def test_gaussian_ratios_keep_their_budget_or_say_why_not(text):
    _, sample = drawn(text, 38)
    asked = {"bounds": (0, 1), "denominator": 1 + X, "denominator_bounds": (1, 2)}
    if WEIGHTED[text].get("sd") == "range":
        with pytest.raises(PrivampError, match="does not show how"):
            adjust(sample, X, "ratio", epsilon=3.0, delta=DELTA, noise="gaussian", **asked)
        return
    found = adjust(sample, X, "ratio", epsilon=3.0, delta=DELTA, noise="gaussian", **asked)
    assert 2.97 <= found.guarantee.epsilon(DELTA) <= 3.0
    assert math.isfinite(found.value)


@pytest.mark.parametrize("text", WEIGHTED)
def test_every_design_is_planned_with_gaussian_noise(text):
    design = spec.design(text)
    found = plan(
        PUBLIC, size=20, epsilon=1.0, delta=DELTA, noise="gaussian", bounds=(0, 1), cluster="cluster",
        designs={"mine": design},
    )  # fmt: skip
    row = next(row for row in found.rows if row.name == "mine")
    assert row.relation == design.natural
    assert 0 < row.standard_error_noise < 10
    assert math.isfinite(row.standard_error_sampling)


@pytest.mark.parametrize("text", REFUSED)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_designs_without_public_weights_say_why(text, noise):
    _, sample = drawn(text, 32)
    with pytest.raises(PrivampError, match=REFUSED[text]) as refused:
        estimate(sample, X, "total", bounds=(0, 1), epsilon=1.0, delta=DELTA * (noise == "gaussian"), noise=noise)
    assert str(refused.value).count(".") <= 3  # one sentence


@pytest.mark.parametrize("text", REFUSED)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_designs_without_public_weights_are_not_planned(text, noise):
    asked = {"size": 20, "epsilon": 1.0, "delta": DELTA * (noise == "gaussian"), "noise": noise, "bounds": (0, 1)}
    with pytest.raises(PrivampError, match=REFUSED[text]):
        plan(PUBLIC, cluster="cluster", designs={"mine": spec.design(text)}, **asked)


def test_strata_are_planned_with_gaussian_noise():
    asked = {"size": 20, "epsilon": 1.0, "delta": DELTA, "noise": "gaussian", "bounds": (0, 1)}
    rows = {row.name: row for row in plan(PUBLIC, strata="stratum", sd={0: 0.2, 1: 0.4}, **asked).rows}
    for method in ("proportional", "minimax", "optimal"):
        planned = rows[f"stratified, {method}"]
        strata = [Stratum(0, 20, 1.0, 0.2), Stratum(1, 20, 1.0, 0.4)]
        found = allocate(strata, 20, 1.0, method, DELTA, "gaussian")
        assert planned.design == found.design()
        assert planned.standard_error_noise == pytest.approx(found.scale)
        assert 0.99 <= found.guarantee.epsilon(DELTA) <= 1.0
    with pytest.raises(PrivampError, match="name their column as strata="):
        plan(PUBLIC, designs={"mine": rows["stratified, optimal"].design}, **asked)


@pytest.mark.parametrize("part", [text for text in (*WEIGHTED, *REFUSED) if text.startswith(("wor", "poisson:"))])
def test_strata_are_estimated_with_gaussian_noise(part):
    design = Stratified({0: spec.design(part.replace("20", "5").replace("40", "20")), 1: spec.design(
        part.replace("20", "9").replace("40", "20"))})  # fmt: skip
    sample = design.draw(Population(RECORDS, stratum=PUBLIC["stratum"]), seeded_key(33))
    found = estimate(sample, X, "total", bounds=(0, 1), epsilon=1.0, delta=DELTA, noise="gaussian")
    assert 0.98 <= found.guarantee.epsilon(DELTA) <= 1.0


@pytest.mark.parametrize("part", [text for text in (*WEIGHTED, *REFUSED) if not text.startswith(("wor", "poisson:"))])
def test_strata_of_other_designs_are_refused_in_words(part):
    inside = spec.design(part)
    if "stratum" in inside.reads:
        pytest.skip("it reads strata itself")
    design, everybody = Stratified({0: inside}), {name: PUBLIC[name] for name in inside.reads}
    sample = design.draw(Population(RECORDS, stratum=np.zeros(RECORDS, dtype=int), **everybody), seeded_key(34))
    with pytest.raises(PrivampError, match="all WithoutReplacement or all Poisson"):
        estimate(sample, X, "total", bounds=(0, 1), epsilon=1.0, delta=DELTA, noise="gaussian")


@pytest.mark.parametrize("method", ["optimal", "minimax", "proportional", "neyman"])
def test_allocations_with_gaussian_noise(method):
    strata = [Stratum("a", 500, 10.0, 3.0), Stratum("b", 100, 100.0, 15.0)]
    found = allocate(strata, 120, 1.0, method, DELTA, "gaussian")
    assert 0.99 <= found.guarantee.epsilon(DELTA) <= 1.0


CASES = {
    "wr:size=200,population=6000": {},
    "random-size-law:chances=200=0.5+300=0.5,population=6000": {},
    "proportional:rate=0.1": {"population": 6000},
    "systematic:step=10": {"statistic": "total"},
    "cluster:chosen=300,clusters=1500,max_size=4": {"statistic": "total"},
    "cluster:chosen=300,clusters=1500,max_size=4,second_rate=0.5": {},
    "poisson-pps:low=0.1,high=0.4": {},
}


@pytest.mark.parametrize("text", CASES)
def test_the_standard_error_matches_simulation(text):
    random, size, rounds = np.random.default_rng(9), 6000, 200
    x = np.clip(5 + random.normal(size=size) + random.normal(size=1500)[np.arange(size) % 1500], 0, 12)
    public = {"cluster": np.arange(size) % 1500, "probability": np.clip(0.05 + 0.03 * x, 0.1, 0.4)}
    design, options = spec.design(text), CASES[text]
    people = Population(size, **{name: public[name] for name in design.reads})
    found = [
        estimate(
            design.draw(people, seeded_key(41), r), x, epsilon=2.0, delta=1e-5, noise="gaussian", bounds=(0, 12),
            **options,
        )
        for r in range(rounds)
    ]  # fmt: skip
    truth = x.sum() if options.get("statistic") == "total" else x.mean()
    values = np.array([one.value for one in found])
    assert abs(values.mean() - truth) < 4.5 * values.std() / math.sqrt(rounds)
    claimed = math.sqrt(float(np.mean([one.standard_error**2 for one in found])))
    assert 0.88 <= claimed / values.std() <= 1.4  # a private variance errs to the wide side


@pytest.mark.parametrize("text", ["proportional:rate=0.5", "cluster:chosen=4,clusters=8,max_size=5"])
def test_a_louder_release_would_break_the_budget(text):
    """The planted mistake: noise for a signal that is one percent louder."""
    design = spec.design(text)
    theta = inner_shift(design, 1.0, DELTA)
    assert amplify(Gaussian(1.0, theta, Neighbors.ADD_REMOVE), design).epsilon(DELTA) <= 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert amplify(Gaussian(1.0, 1.01 * theta, Neighbors.ADD_REMOVE), design).epsilon(DELTA) > 1.0
