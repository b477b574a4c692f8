import numpy as np
import pytest

from privamp import Gaussian, MultiStage, Neighbors, Poisson, PureDP, WithoutReplacement, WithReplacement
from privamp.report.aligned import Aligned
from privamp.report.comparison import Question, compare_designs, label

RO = Neighbors.REPLACE_ONE
S1 = [
    WithoutReplacement(400, 1000),
    WithReplacement(400, 1000),
    MultiStage([("wor", 500), ("wr", 400)], 1000),
    MultiStage([("wr", 500), ("wr", 400)], 1000),
]


def test_the_honest_order_is_the_reverse_of_must() -> None:
    """THEORY 4: n=1000, m=400, b=500, sensitivity/sigma = 1, delta = 1e-6."""
    found = compare_designs(S1[::-1], Question(Gaussian(1.0, neighbors=RO)))
    assert [row.design for row in found.rows] == S1
    assert [round(row.epsilon_lower, 2) for row in found.rows] == [3.79, 14.97, 24.95, 54.71]
    etas = [row.eta for row in found.rows]
    assert etas == pytest.approx([0.4, 0.329814, 0.275515, 0.240908], abs=1e-6)
    assert [row.aligned.epsilon for row in found.rows] == sorted((r.aligned.epsilon for r in found.rows), reverse=True)


@pytest.mark.parametrize(
    ("epsilon", "delta", "kind"),
    [
        (0.5, 0.05, "strong"),
        (0.5, 0.2, "weak I"),
        (1.5, 0.05, "weak II"),
        (1.5, 0.2, "dilution"),
        (0.5, 0.1, "strong"),
        (1.0, 0.1, "none"),
        (1.0, 0.1 * (1 + 1e-12), "none"),
    ],
)
def test_types_of_must_definition_5(epsilon, delta, kind) -> None:
    assert Aligned(1.0, 0.1, epsilon, delta).kind == kind


def test_a_multiset_design_is_weak_where_must_says_so() -> None:
    """Weak I at a large base epsilon, strong at a small one; simple random sampling is strong everywhere."""
    for epsilon, kind in ((0.1, "strong"), (3.0, "weak I")):
        rows = compare_designs(S1, Question(Gaussian(1.0, neighbors=RO), epsilon=epsilon)).rows
        assert [row.aligned.kind for row in rows] == ["strong", kind, kind, kind]


def test_pure_and_certain_designs() -> None:
    question = Question(PureDP(1.0, neighbors=RO))
    everyone, half = (compare_designs([WithoutReplacement(m, 10)], question).rows[0] for m in (10, 5))
    assert (everyone.aligned.kind, half.aligned.kind) == ("none", "strong")
    assert everyone.epsilon_upper == pytest.approx(1.0, abs=1e-5)


def test_steps_compose_but_must_looks_at_one_draw() -> None:
    one = compare_designs([S1[0]], Question(PureDP(0.1, neighbors=RO))).rows[0]
    five = compare_designs([S1[0]], Question(PureDP(0.1, neighbors=RO), steps=5)).rows[0]
    assert one.epsilon_upper < five.epsilon_upper <= 5 * one.epsilon_upper * 1.01
    assert one.aligned == five.aligned


def test_designs_without_a_theorem_come_last_with_the_reason() -> None:
    found = compare_designs([S1[2], Poisson(0.4)], Question(Gaussian(1.0), neighbors=Neighbors.ADD_REMOVE))
    assert [row.label for row in found.rows] == ["Poisson 0.4", "WOR 500 → WR 400"]
    assert found.rows[1].reason
    assert found.rows[1].to_json()["epsilon_upper"] is None


def test_populations_and_sizes() -> None:
    question = Question(Gaussian(2.0))
    found = compare_designs([Poisson(0.4), S1[0]], question)
    assert found.population == 1000
    assert [row.expected_size for row in found.rows] == pytest.approx([400, 400])
    assert found.uneven() is None
    assert not found.has_repeats
    uneven = compare_designs([Poisson(0.4), S1[0]], question, population=2000)
    assert "from 400 to 800" in uneven.uneven()
    assert compare_designs([Poisson(0.4)], question).rows[0].expected_size is None


def test_labels() -> None:
    assert [label(design) for design in (Poisson(0.04), *S1[:2])] == ["Poisson 0.04", "WOR 400", "WR 400"]


def test_bounds_are_ordered_at_every_epsilon() -> None:
    epsilons = np.linspace(0.0, 20.0, 41)
    for row in compare_designs(S1, Question(Gaussian(1.0, neighbors=RO))).rows:
        assert np.all(np.asarray(row.guarantee.lower.delta(epsilons)) <= row.guarantee.delta(epsilons))
