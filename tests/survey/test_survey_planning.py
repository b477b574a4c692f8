"""Plans: candidates side by side, from public columns only; and what one record can do to Neyman's allocation."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest

from privamp import InvalidInput, Population, PureDP, Stratified, amplify, spec
from privamp.core.neighbors import Neighbors
from privamp.designs.stratified import WITHIN
from privamp.survey import Stratum, allocate, allocation_loss, estimate, neyman_sensitivity, plan
from privamp.testing import seeded_key

STRATUM = np.repeat(["small", "large"], [900, 100])
CLUSTER = np.arange(1000) % 100
FRAME = {"stratum": STRATUM, "district": CLUSTER}
BOUNDS = {"small": (0, 10), "large": (0, 500)}


def test_a_plan_with_everything():
    found = plan(
        FRAME, size=100, epsilon=1.0, bounds=BOUNDS, strata="stratum", cluster="district",
        sd={"small": 2.0, "large": 90.0}, overall_sd=60.0,
    )  # fmt: skip
    names = [row.name for row in found.rows]
    assert {"simple random", "poisson", "stratified, proportional", "stratified, minimax", "stratified, optimal"} <= {
        *names
    }
    assert "cluster" in names or any("cluster" in note for note in found.notes)
    assert [row.standard_error for row in found.rows] == sorted(row.standard_error for row in found.rows)
    assert found.recommendation == names[0] == "stratified, optimal"
    assert "smallest expected standard error" in found.reason
    best = found.rows[0]
    assert isinstance(best.design, Stratified)
    assert best.amplified_upper == pytest.approx(
        amplify(PureDP(1.0, neighbors=Neighbors.REPLACE_ONE), best.design, WITHIN).epsilon()
    )
    assert best.amplified_lower <= best.amplified_upper
    cells = [Stratum("large", 100, 500, 90.0), Stratum("small", 900, 10, 2.0)]
    assert best.standard_error == pytest.approx(math.sqrt(allocate(cells, 100, 1.0).variance))


def test_without_public_spread_minimax_stands_for_optimal():
    found = plan(FRAME, size=100, epsilon=1.0, bounds=BOUNDS, strata="stratum")
    assert found.recommendation == "stratified, minimax"
    assert any("public sd" in note for note in found.notes)
    assert any("overall_sd" in note for note in found.notes)
    plain = plan({"id": np.arange(50)}, size=10, epsilon=1.0, bounds=(0, 1), overall_sd=0.3)
    assert {row.name for row in plain.rows} == {"simple random", "poisson"}


def test_the_plan_in_the_guide_runs_as_printed(capsys):
    page = (Path(__file__).parents[2] / "docs" / "which_design.md").read_text(encoding="utf-8")
    for code in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        exec(compile(code, "which_design.md", "exec"), {"__name__": "which_design"})
    assert capsys.readouterr().out.startswith("stratified, optimal because")


def test_gaussian_plans():
    found = plan(FRAME, size=200, epsilon=1.0, delta=1e-6, noise="gaussian", bounds=BOUNDS, strata="stratum")
    assert all(math.isfinite(row.standard_error) for row in found.rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strata": "region"}, "no column 'region'"),
        ({"cluster": "town"}, "no column 'town'"),
        ({"size": 0}, "size must be"),
        ({"size": 1001}, "size must be"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"bounds": (1, 0)}, "lowest below"),
        ({"bounds": {"small": (0, 1)}, "strata": "stratum"}, "name every stratum"),
        ({"delta": 1e-6}, "delta must be 0"),
        ({"frame": {}}, "at least one record"),
        ({"frame": {"a": [1], "b": [1, 2]}}, "one length"),
        ({"icc": 2}, "icc must be"),
        *[({"overall_sd": sd}, "overall_sd must be") for sd in (math.nan, math.inf, -5.0, "x", True)],
        *[({"overall_mean": mean}, "overall_mean needs overall_sd") for mean in (0.5, "x", -1)],
        ({"overall_sd": 0.5, "overall_mean": 2.0}, "overall_mean must be"),
        ({"overall_sd": 0.5, "overall_mean": "x"}, "overall_mean must be"),
        ({"overall_sd": 0.5, "overall_mean": math.nan}, "overall_mean must be"),
    ],
)
def test_bad_plans_are_refused_in_one_sentence(options, message):
    given = {"frame": FRAME, "size": 10, "epsilon": 1.0, "bounds": (0, 1)} | options
    with pytest.raises(InvalidInput, match=message) as caught:
        plan(given.pop("frame"), **given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "wr:size=200,population=2000", "poisson-pps:low=0.05,high=0.15", "systematic:step=10",
        "random-size-law:chances=150=0.5+250=0.5,population=2000", "cluster:chosen=40,clusters=400,max_size=5",
        "cluster:chosen=80,clusters=400,max_size=5,second_rate=0.5",
    ],
)  # fmt: skip
def test_a_plan_promises_what_estimates_deliver(text):
    """100 estimates: the ratio has a standard error of 7%; benchmarks/survey_plans.py has more."""
    random, cluster = np.random.default_rng(11), np.arange(2000) // 5
    x = np.clip(60 + 8 * random.standard_normal(400)[cluster] + 12 * random.standard_normal(2000), 0, 100)
    columns = {"cluster": cluster, "probability": np.linspace(0.05, 0.15, 2000)}
    design = spec.design(text)
    between = np.bincount(cluster, x - x.mean()) ** 2
    icc = (between.sum() / (2000 * x.var()) - 1) / 4
    found = plan(
        columns, size=200, epsilon=2.0, bounds=(0, 100), overall_sd=x.std(), overall_mean=x.mean(), icc=icc,
        designs={"mine": design}, cluster="cluster",
    )  # fmt: skip
    promised = next(row for row in found.rows if row.name == "mine").standard_error
    public = {name: columns[name] for name in design.reads}
    options = {} if "cluster" in text else {"sd": "range"}
    values = [
        estimate(
            design.draw(Population(2000, text, **public), seeded_key(seed)), x, bounds=(0, 100), epsilon=2.0,
            population=2000, **options,
        ).value
        for seed in range(100)
    ]  # fmt: skip
    assert promised == pytest.approx(math.sqrt(np.mean((np.array(values) - x.mean()) ** 2)), rel=0.25)


@pytest.mark.parametrize("text", ["wr:size=50,population=400", "multistage:wor=200,wr=50,population=400"])
@pytest.mark.parametrize("shape", [(2, 6), (40, 3)])
def test_errors_of_fixed_sizes_do_not_grow_with_the_distance_from_the_middle(text, shape):
    """Plan, told error and 200 estimates agree for a mean far from the middle of the bounds, and intervals cover."""
    design, x = spec.design(text), np.random.default_rng(2).beta(*shape, 400) * 100
    known = {"overall_sd": x.std(ddof=1), "overall_mean": x.mean()}
    found = plan({"id": np.arange(400)}, size=50, epsilon=1e4, bounds=(0, 100), designs={"mine": design}, **known)
    promised = next(row for row in found.rows if row.name == "mine").standard_error
    made = [estimate(design, x, bounds=(0, 100), epsilon=1e4, key=seeded_key(seed)) for seed in range(200)]
    true = np.std([one.value for one in made])
    assert promised == pytest.approx(true, rel=0.15)
    assert np.sqrt(np.mean([one.sampling_error**2 for one in made])) == pytest.approx(true, rel=0.15)
    ends = np.array([one.interval(0.95) for one in made])
    assert np.mean((ends[:, 0] <= x.mean()) & (x.mean() <= ends[:, 1])) >= 0.92


@pytest.mark.parametrize("draws", [1, 2, 3, 10])
def test_the_variance_of_a_fixed_size_is_estimated_without_bias(draws):
    """V = Q - shrink T^2 over every sample with replacement from four records; never too small on average."""
    x = np.array([3.0, 3.5, 5.0, 9.0])
    by = spec.design(f"wr:size={draws},population=4").weighting(4, 4.0, {})
    sizes = [np.array(one) for one in itertools.product(range(draws + 1), repeat=4) if sum(one) == draws]
    chance = [math.factorial(draws) / math.prod(map(math.factorial, n.tolist())) / 4.0**draws for n in sizes]
    total = np.array([n @ (by.weight * x) for n in sizes])
    seen = np.array([n @ (by.second * x**2) for n in sizes]) - by.shrink * total**2
    true = np.average(total**2, weights=chance) - np.average(total, weights=chance) ** 2
    assert np.average(seen, weights=chance) >= true * (1 - 1e-9)
    if draws > 2:
        assert np.average(seen, weights=chance) == pytest.approx(true)


def spreads(values, strata):
    return np.array([math.sqrt(v.size * ((v - v.mean()) ** 2).sum()) for v in (values[strata == k] for k in (0, 1, 2))])


def test_one_record_changes_neyman_no_more_than_the_formula_says():
    random, strata, R = np.random.default_rng(2), np.repeat([0, 1, 2], [30, 20, 10]), (1.0, 4.0, 9.0)
    largest = 0.0
    for _ in range(300):
        values = random.uniform(0, 1, 60) ** random.integers(1, 6) * np.repeat(R, [30, 20, 10])
        other, at = values.copy(), int(random.integers(60))
        i = int(strata[at])
        other[at] = random.choice([0.0, R[i]])
        before, after = spreads(values, strata), spreads(other, strata)
        d = abs(after[i] - before[i])
        assert d <= R[i] * math.sqrt((30, 20, 10)[i] - 1) * (1 + 1e-12)
        cells = [Stratum(k, int((strata == k).sum()), R[k], float(values[strata == k].std(ddof=1))) for k in (0, 1, 2)]
        worst = neyman_sensitivity(cells, 24, 1.0)[i]
        moved = 24 * np.abs(after / after.sum() - before / before.sum())
        assert moved.sum() == pytest.approx(2 * moved[i])
        rest = before.sum() - before[i]
        low = rest + min(before[i], after[i])
        assert moved[i] == pytest.approx(24 * d * rest / (low * (low + d)))
        assert moved.sum() <= worst.distance * (1 + 1e-9)
        largest = max(largest, moved.sum() / worst.distance)
    assert largest > 0.4


def test_the_bound_on_the_spread_is_attained():
    values = np.zeros(30)
    values[0] = 7.0
    assert math.sqrt(30 * ((values - values.mean()) ** 2).sum()) == pytest.approx(7.0 * math.sqrt(29))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: neyman_sensitivity([], 10, 1.0), "at least one Stratum"),
        (
            lambda: plan({"id": range(10)}, size=4, epsilon=1.0, bounds=(0, 1), overall_sd=0.53),
            "overall_sd must be at most 0.527046",
        ),
        (lambda: neyman_sensitivity([Stratum("a", 10, 1.0)], 10, 1.0), "needs the sd"),
        (lambda: neyman_sensitivity([Stratum("a", 10, 1.0, 0.0)], 10, 1.0), "above 0"),
        (lambda: neyman_sensitivity([Stratum("a", 10, 1.0, 0.5)], 10, 1.0, "up"), "rounding must be"),
        (lambda: allocation_loss({"a": 1}, {"b": 1}, Stratum("a", 10, 1.0), 1.0), "the same strata"),
        (lambda: allocation_loss({"a": -1}, {"a": 1}, Stratum("a", 10, 1.0), 1.0), "size must be"),
        (lambda: allocation_loss({"a": 20}, {"a": 20}, Stratum("a", 10, 1.0), 1.0), "fewer than the 20"),
    ],
)
def test_bad_neyman_input_is_refused(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


@pytest.mark.parametrize("missing", [None, float("nan")])
@pytest.mark.parametrize("role", ["strata", "cluster"])
def test_a_record_without_a_stratum_or_cluster_is_refused_in_words(missing, role):
    frame = {"region": np.array(["north", missing] * 50, dtype=object)}
    with pytest.raises(InvalidInput, match="every record of the frame needs a value in 'region'"):
        plan(frame, size=20, epsilon=1.0, bounds=(0, 1), **{role: "region"})


def test_one_record_may_be_planned_and_none_may_not():
    cells = [Stratum("a", 10, 1.0, 0.3), Stratum("b", 20, 1.0, 0.2)]
    assert sum(neyman_sensitivity(cells, 1, 1.0)[0].before.values()) == 1
    with pytest.raises(InvalidInput, match="size"):
        neyman_sensitivity(cells, 0, 1.0)
