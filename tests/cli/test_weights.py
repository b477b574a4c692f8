"""`privamp weights`: every rule in numbers and as a picture, and one sentence for a wrong question."""

import json
import math

import pytest

from privamp import Laplace, LinearProfile, privacy_constrained


def test_the_numbers_are_those_of_the_rules(privamp):
    options = "--noise laplace --dimension 1 --epsilon 1 --radius 4 --scale 30 --norms 1:100,2:500,3:300,4:100"
    result = privamp("weights", *options.split(), "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["schema"] == 1
    assert [rule["rule"] for rule in answer["rules"]] == [
        "privacy-constrained", "uniform", "variance-optimal", "coreset",
    ]  # fmt: skip
    rule = privacy_constrained(LinearProfile.of(Laplace(30.0)), 1.0, radius=4.0)
    constrained, same_size, *_ = answer["rules"]
    assert constrained["probabilities"] == rule.of_norms(answer["norms"]).tolist()
    assert constrained["epsilon_upper"] == 1.0
    assert max(constrained["losses"]) <= 1.0
    sizes = [rule["expected_size"] for rule in answer["rules"]]
    assert sizes == pytest.approx([rule.expected_size([1, 2, 3, 4], [100, 500, 300, 100])] * 4, rel=1e-8)
    q = same_size["probabilities"][0]
    assert same_size["epsilon_upper"] == pytest.approx(math.log1p(q * math.expm1(4 / 30 / q)), rel=1e-9)
    for other in answer["rules"]:
        assert max(other["losses"]) <= other["epsilon_upper"] * (1 + 1e-9)
        assert min(other["losses"]) >= 0
        everybody = [u / 30 for u in answer["norms"]]  # sampling never lowers a pure linear loss
        assert all(loss >= c * (1 - 1e-9) for loss, c in zip(other["losses"], everybody, strict=True))
        assert other["noise_needed"] >= 30 * (1 - 1e-9)


def test_a_wanted_size_decides_the_noise(privamp):
    options = "--noise gaussian --epsilon 1 --delta 1e-6 --size 50 --population 10000"
    result = privamp("weights", *options.split(), "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["rules"][0]["expected_size"] == pytest.approx(50, rel=1e-3)
    assert answer["rules"][0]["epsilon_upper"] <= 1.0
    assert len(answer["rules"]) == 4


def test_a_picture_and_a_table(privamp, tmp_path):
    result = privamp("weights", "--plot", "weights.svg")
    assert result.exit_code == 0, result.output
    for part in ("privacy-constrained", "coreset", "everybody", "Sampling is for speed", "weights.svg"):
        assert part in result.stdout
    picture = (tmp_path / "weights.svg").read_text(encoding="utf-8")
    assert picture.startswith("<?xml")
    assert [p.name for p in tmp_path.iterdir()] == ["weights.svg"]


def test_what_is_left_out_is_said(privamp):
    laplace = privamp("weights", "--noise", "laplace")
    assert "coreset uses l2 norms" in laplace.stdout
    large = privamp("weights", "--size", "400", "--norms", "0.05:50000,1:1")
    assert large.exit_code == 0, large.output
    assert "probability above 1" in large.stdout


BAD = [
    ("--epsilon 0", "epsilon must be"),
    ("--epsilon nan", "epsilon must be"),
    ("--delta 1e-6", "delta must be 0 for norm noise"),
    ("--noise gaussian", "needs a delta"),
    ("--noise gaussian --delta 1", "needs a delta"),
    ("--noise uniform", "noise must be one of"),
    ("--scale 3 --size 5", "not both"),
    ("--scale 0", "scale must be"),
    ("--scale 0.5", "add noise, or declare a smaller radius"),
    ("--size -1", "size must be"),
    ("--size 900", "cannot be reached"),
    ("--radius 0", "radius must be"),
    ("--radius inf", "radius must be"),
    ("--dimension 0", "dimension must be"),
    ("--population 0", "population must be"),
    ("--norms 1", "must be pairs"),
    ("--norms a:b", "must be pairs"),
    ("--norms 2:5", "must not exceed the radius"),
    ("--norms 1:5,0.5:5", "grow from bin to bin"),
    ("--norms 1:5 --population 5", "omit --population"),
    ("--plot weights.pdf", ".png or .svg"),
    ("--plot no/weights.png", "folder that exists"),
]


@pytest.mark.parametrize(("options", "sentence"), BAD, ids=[b[0] for b in BAD])
def test_bad_input_is_one_sentence(privamp, tmp_path, options, sentence):
    result = privamp("weights", *options.split())
    assert result.exit_code == 2, result.output
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
    asked = privamp("weights", *options.split(), "--json")
    assert sentence in json.loads(asked.stdout)["error"]
