"""Cluster sampling: closed forms, per-pair exactness, draws, and what is refused."""

import math
import warnings
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from privamp import (
    ApproxDP,
    ClusterPPS,
    ClusterSampling,
    InvalidInput,
    Key,
    Laplace,
    Neighbors,
    NoTheorem,
    Poisson,
    PoissonPPS,
    Population,
    PureDP,
    amplify,
    spec,
)
from privamp.numerics.symmetric import log_symmetric_ratio
from privamp.testing import seeded_key
from privamp.verify import exact_epsilon, exact_epsilon_of_laws
from privamp.verify.symmetry import collect

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
WITHIN = Neighbors("replace-one", scope="within cluster")
SHARED = [  # rows of the shared reference table: sizes, chosen, rate, epsilon, relation, linear program
    ((1, 1), 1, None, 1.0, AR, 0.921659341),
    ((1, 2, 3), 1, None, 1.0, AR, 0.958860986),
    ((0, 3, 1), 2, None, 1.0, AR, 0.973085609),
    ((1, 1), 1, None, 1.0, WITHIN, 1.43378083),
    ((1, 2, 3), 1, None, 1.0, WITHIN, 1.658277939),
    ((2, 1, 1, 3), 2, None, 0.3, WITHIN, 0.412595989),
    ((1, 1), 1, 0.5, 1.0, AR, 0.487402841),
    ((1, 2, 2), 1, 0.3, 2.0, AR, 0.872489785),
    ((0, 2), 1, 0.5, 1.0, AR, 0.460796467),
]


def changed_pair(design, sizes, changed, neighbors):
    """Laws of the two populations: one more in the changed cluster, or its first record replaced."""
    old = design.sized(sizes)
    cluster = old.columns["cluster"].tolist()
    ids = [int(i) for i in old.ids]
    if neighbors == AR:
        new = Population([*ids, 99], cluster=np.array([*cluster, changed], dtype=np.int64))
    else:
        at = cluster.index(changed)
        new = Population([*ids[:at], 99, *ids[at + 1 :]], cluster=cluster)
    return collect(design.law(old)), collect(design.law(new))


@pytest.mark.parametrize(("sizes", "chosen", "rate", "epsilon", "neighbors", "lp"), SHARED)
def test_reference_rows_by_formula_and_by_law(sizes, chosen, rate, epsilon, neighbors, lp):
    design = ClusterSampling(chosen, len(sizes), 5, None if rate is None else Poisson(rate))
    assert design.pair_loss(epsilon, sizes, 0, neighbors) == pytest.approx(lp, abs=1e-8)
    laws = changed_pair(design, sizes, 0, neighbors)
    assert exact_epsilon_of_laws(*laws, epsilon, "add-remove") == pytest.approx(lp, abs=1e-8)


def test_the_formula_of_a_pair_is_exact_for_all_small_sizes():
    random = np.random.default_rng(4)
    for _ in range(60):
        k = int(random.integers(2, 4))
        sizes = tuple(int(n) for n in random.integers(0, 3, k))
        chosen, changed = int(random.integers(1, k + 1)), int(random.integers(0, k))
        stage = [None, Poisson(0.4)][int(random.integers(0, 2))] if sum(sizes) < 5 else None
        neighbors = WITHIN if sizes[changed] and random.random() < 0.5 else AR
        design, epsilon = ClusterSampling(chosen, k, 3, stage), float(random.uniform(0.1, 2.5))
        truth = exact_epsilon_of_laws(*changed_pair(design, sizes, changed, neighbors), epsilon, "add-remove")
        assert design.pair_loss(epsilon, sizes, changed, neighbors) == pytest.approx(truth, abs=1e-8), (design, sizes)
        assert truth <= amplify(PureDP(epsilon), design, neighbors).epsilon() + 1e-9


def test_the_certified_number_is_the_supremum_over_sizes():
    caps = (3, 1, 2)
    for design in (ClusterSampling(2, 3, 2), ClusterSampling(2, 3, caps), ClusterSampling(1, 3, 2, Poisson(0.3))):
        for neighbors, less in ((AR, 1), (WITHIN, 0)):
            pairs = [
                design.pair_loss(0.7, sizes, changed, neighbors)
                for sizes in product(*(range(cap + 1) for cap in design.caps))
                for changed in range(3)
                if less <= sizes[changed] + less <= design.caps[changed] and (neighbors == AR or sizes[changed])
            ]
            assert amplify(PureDP(0.7), design, neighbors).epsilon() == pytest.approx(max(pairs), abs=1e-9)


def test_closed_forms():
    a, q, c = math.e, 5 / 50, 4
    design = ClusterSampling(5, 50, c)
    assert amplify(PureDP(1.0), design).epsilon() == pytest.approx(
        math.log(1 + (a - 1) * q / (q + (1 - q) * a ** -(2 * c - 1))), rel=1e-10
    )
    assert amplify(PureDP(1.0), design, WITHIN).epsilon() == pytest.approx(
        math.log(1 + (a**2 - 1) * q / (q + (1 - q) * a ** -(2 * c - 2))), rel=1e-10
    )
    assert amplify(PureDP(1.0), design, RO).epsilon() < 2 * amplify(PureDP(1.0), design).epsilon()  # Theorem 3
    r = 0.2
    tempting = math.log(1 + q * r * (a - 1))
    right = math.log(1 + q * r * (a - 1) / (q + (1 - q) * (1 + r * (a - 1)) ** -(c - 1) * (1 - r * (1 - 1 / a)) ** c))
    thinned = amplify(PureDP(1.0), ClusterSampling(5, 50, c, Poisson(r)))
    assert thinned.epsilon() == pytest.approx(right, rel=1e-10)
    assert thinned.lower.epsilon() > tempting


@pytest.mark.filterwarnings("ignore::privamp.errors.DegradingDesign")
def test_trimming_and_second_stages_can_degrade():
    trimmed = ClusterSampling(1, 2, 1, trim=True)
    assert amplify(PureDP(1.0), trimmed).epsilon() == pytest.approx(1.434, abs=5e-4)
    assert amplify(PureDP(1.0), ClusterSampling(1, 2, 1)).epsilon() == pytest.approx(0.814, abs=5e-4)
    some = ClusterSampling(1, 2, 4, 2, min_size=2)
    truth = exact_epsilon(some, some.sized((2, 2)), AR, 1.0)
    assert truth == pytest.approx(1.558, abs=5e-4)
    assert amplify(PureDP(1.0), some).epsilon() >= truth


def test_symmetric_polynomials_against_fractions():
    random = np.random.default_rng(1)
    for _ in range(200):
        k = int(random.integers(1, 9))
        sizes, order, epsilon = (
            random.integers(0, 30, k),
            int(random.integers(1, k + 1)),
            float(random.uniform(0.01, 4)),
        )
        t = [Fraction(math.exp(-epsilon)) ** int(n) for n in sizes]
        e = [
            sum((math.prod(some) for some in combinations(t, j)), Fraction(0)) if j else Fraction(1)
            for j in range(k + 1)
        ]
        exact = e[order] / e[order - 1]
        if exact > Fraction(1, 10**300):
            assert log_symmetric_ratio(-epsilon * sizes, order) == pytest.approx(math.log(exact), rel=1e-12, abs=1e-12)
    assert log_symmetric_ratio(np.zeros(3), 4) == -math.inf


@pytest.mark.parametrize("chosen", [1, 300, 9_999, 10_000])
@pytest.mark.parametrize("epsilon", [0.001, 1.0, 40.0])
def test_ten_thousand_clusters_of_up_to_a_thousand(chosen, epsilon):
    caps = tuple(int(c) for c in np.random.default_rng(0).integers(1, 1001, 10_000))
    loss = ClusterSampling(chosen, 10_000, caps).added_loss(epsilon)
    assert 0 < loss <= epsilon * (1 + 1e-12)
    q, equal = chosen / 10_000, ClusterSampling(chosen, 10_000, max(caps)).added_loss(epsilon)
    assert math.log1p(q * math.expm1(epsilon)) * (1 - 1e-9) <= loss <= equal * (1 + 1e-9)


def test_large_and_small_epsilons_stay_finite_and_ordered():
    for epsilon in (0.0, 1e-9, 1e-3, 30.0, 800.0):
        for design in (ClusterSampling(3, 7, 5), ClusterSampling(3, 7, 5, Poisson(0.1)), ClusterSampling(7, 7, 5)):
            added, replaced = design.added_loss(epsilon), design.replaced_loss(epsilon)
            assert 0.0 <= added <= replaced <= 2 * epsilon * (1 + 1e-12)


def test_names_of_clusters_draw_like_numbers_do_and_batches_agree():
    named = ClusterSampling(2, 3, 4, labels=("north", "south", "west"))
    column = np.array(["south", "north", "south", "west", "west", "west"])
    population = Population(6, cluster=column)
    drawn = [named.draw(population, seeded_key(1), r).reveal_secret().positions.tolist() for r in range(200)]
    assert {tuple(column[d]) for d in drawn} == {
        ("south", "north", "south"), ("south", "south", "west", "west", "west"), ("north", "west", "west", "west"),
    }  # fmt: skip
    law = collect(named.law(population))
    assert sum(law.values()) == 1
    assert len(law) == 3
    for one, other in named.neighboring(population, RO):
        assert one.size == other.size == 6 or one.size == 7


def test_mechanisms_stated_for_add_remove():
    design = ClusterSampling(1, 2, 1)
    assert amplify(Laplace(2.0), design).epsilon() == pytest.approx(design.added_loss(0.5), rel=1e-9)
    assert amplify(PureDP(1.0), design).epsilon() < amplify(ApproxDP(1.0, 1e-6), design).epsilon(1e-5) < 1.0
    with pytest.raises(NoTheorem, match="says nothing about add-remove"):
        amplify(PureDP(1.0, neighbors=RO), design)
    with pytest.raises(NoTheorem, match="displace"):
        ClusterSampling(1, 2, 1, trim=True).pair_loss(1.0, (1, 1), 0)


def test_spec_words():
    assert spec.design("cluster:chosen=5,clusters=50,max_size=4") == ClusterSampling(5, 50, 4)
    assert spec.design("cluster:chosen=5,clusters=50,max_size=4,second_rate=0.2").second_stage == Poisson(0.2)
    assert spec.design("cluster:chosen=5,clusters=50,max_size=4,second_size=2,min_size=3").second_size == 2
    with pytest.raises(InvalidInput, match="both"):
        spec.design("cluster:chosen=5,clusters=50,max_size=4,second_size=2,second_rate=0.5")


def draw(design, **columns):
    size = len(next(iter(columns.values()), []))
    return design.draw(Population(size, **columns), Key.generate())


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ClusterSampling(0, 2, 1), "chosen"),
        (lambda: ClusterSampling(3, 2, 1), "chosen"),
        (lambda: ClusterSampling(1, 0, 1), "clusters"),
        (lambda: ClusterSampling(1, 2, 0), "max_size"),
        (lambda: ClusterSampling(1, 2, (1, 2, 3)), "one per cluster"),
        (lambda: ClusterSampling(1, 2, 1.5), "max_size"),
        (lambda: ClusterSampling(1, 2, 3, min_size=4), "min_size"),
        (lambda: ClusterSampling(1, 2, 3, 0), "second_stage"),
        (lambda: ClusterSampling(1, 2, 3, 0.5), "second_stage"),
        (lambda: ClusterSampling(1, 2, 3, 2, trim=True), "trim"),
        (lambda: ClusterSampling(1, 2, 3, labels=("a", "a")), "labels"),
        (lambda: ClusterSampling(1, 2, 3).pair_loss(1.0, (1, 2, 3), 0), "sizes"),
        (lambda: ClusterSampling(1, 2, 3).pair_loss(1.0, (0, 1), 0, WITHIN), "changed_cluster"),
        (lambda: draw(ClusterSampling(1, 2, 2), cluster=[0, 0, 0, 1]), "a cluster has more records"),
        (lambda: draw(ClusterSampling(1, 2, 2, 1, min_size=1), cluster=[0, 0]), "fewer records"),
        (lambda: draw(ClusterSampling(1, 2, 2), district=[0, 1]), "column 'cluster'"),
    ],
)
def test_bad_input_is_one_sentence_without_values_of_records(make, says):
    with pytest.raises(InvalidInput, match=says) as caught:
        make()
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_trimmed_cluster_is_not_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = ClusterSampling(2, 2, 2, trim=True).draw(Population(5, cluster=[0, 0, 0, 0, 1]), Key.generate())
    assert drawn.reveal_secret().positions.size == 3


STRANGE = ["z", "", None, 7, -1, 2.5, float("nan"), b"a", ("a",), [1], 10**30]
IN_CLUSTERS = [
    (ClusterSampling(2, 4, 12), range(4), "cluster"),
    (ClusterSampling(2, 4, 12, labels=("1", "2", "x", "y")), ("1", "2", "x", "y"), "cluster"),
    (ClusterSampling(2, 4, 12, labels=("1", "2", "3", "4")), (1, 2, 3, 4), "cluster"),
    (ClusterPPS((0.25,) * 4, 12), range(4), "cluster"),
    (ClusterPPS.proportional_to_size(4, 12), range(4), "cluster"),
    (PoissonPPS.by_class({"a": 0.9, "b": 0.5, "c": 0.2, 3: 0.3}), ("a", "b", "c", 3), "category"),
]


@pytest.mark.parametrize("label", STRANGE, ids=repr)
@pytest.mark.parametrize(("design", "names", "column"), IN_CLUSTERS, ids=lambda x: type(x).__name__)
def test_a_record_in_no_cluster_or_class_of_the_design_is_never_drawn_and_changes_nothing(design, names, column, label):
    """It was refused in memory and in files, or stopped the draw, and never drawn on Spark."""
    labels = [names[i % 4] for i in range(40)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = design.draw(Population(40, **{column: labels}), seeded_key(3)).reveal_secret()
        found = design.draw(Population(41, **{column: [*labels, label]}), seeded_key(3)).reveal_secret()
    assert found.positions.tolist() == plain.positions.tolist()
    weights = [design.weights(Population(len(some), **{column: some})) for some in (labels, [*labels, label])]
    assert (weights[0] is None) == (weights[1] is None)
    if weights[0] is not None:
        assert weights[1][:40].tolist() == weights[0].tolist()
    assert any("never drawn" in words for words in design.assumes)
