"""`privamp survey draw`, interviews, `privamp survey estimate --answers`."""

import json
import stat

import numpy as np
import pytest

from privamp.core.ledger import REGISTRY

N = 900


@pytest.fixture(autouse=True)
def people(tmp_path):
    """900 people of three regions; 'north' answers less often, and earns more."""
    random = np.random.default_rng(6)
    region = ["nse"[k % 3] for k in range(N)]
    income = [40 + 30 * (r == "n") + 10 * random.random() for r in region]
    (tmp_path / "people.csv").write_text("person,region\n" + "".join(f"p{k},{r}\n" for k, r in enumerate(region)))
    rows = [
        f"p{k},{income[k]:.3f},{'fm'[k % 2]}\n"
        for k in range(N)
        if random.random() < (0.5 if region[k] == "n" else 0.9)
    ]
    rows += ["stranger,9999,f\n", "p1,5,f\n", f"p2,,m\np2,{income[2]:.3f},m\n", "p4,what?,f\n"]
    (tmp_path / "answers.csv").write_text("person,income,sex\n" + "".join(rows))
    return float(np.mean(income))


def drawn(privamp, *more, key="a.key"):
    asked = ["survey", "draw", "people.csv", "--id", "person", "--out", f"{key}.csv", "--key-file", key, "--label", "w"]
    made = privamp(*asked, *(more or ("--strata", "region", "--size", "600", "--method", "proportional")))
    assert made.exit_code == 0, made.output
    return made


def budget(privamp, name="b.db", relation="replace-one"):
    made = privamp("budget", "create", name, "--epsilon", "50", "--population", "people", "--neighbors", relation)
    assert made.exit_code == 0, made.output


def asked(*more, key="a.key", epsilon="8"):
    return ["survey", "estimate", "people.csv", "--answers", "answers.csv", "--key-file", key, "--value", "income",
            "--bounds", "0:100", "--epsilon", epsilon, "--budget", "b.db", "--json", *more]  # fmt: skip


def test_interviews_come_back(privamp, people):
    said = drawn(privamp)
    assert "interviewers and respondents know who was drawn" in " ".join(said.stdout.split())
    budget(privamp)
    result = privamp(*asked("--classes", "region"))
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    (one,) = answer["estimates"]
    assert abs(one["value"] - people) < 4.5 * one["standard_error"] < 12
    assert answer["epsilon_upper"] == pytest.approx(8.0, rel=1e-6)
    assert answer["epsilon_if_sample_known"] > 8.0
    assert any("without sampling" in sentence for sentence in answer["assumes"])


def test_the_sample_is_the_one_that_was_drawn(privamp, tmp_path, people):
    """Only drawn people answered: the estimate is as good as when everybody's answers are in the file."""
    drawn(privamp)
    people_drawn = {line.split(",")[0] for line in (tmp_path / "a.key.csv").read_text().replace('"', "").splitlines()}
    rows = (tmp_path / "answers.csv").read_text().splitlines()
    kept = [rows[0], *(row for row in rows[1:] if row.split(",")[0] in people_drawn)]
    (tmp_path / "answers.csv").write_text("\n".join(kept) + "\n")
    assert 300 < len(kept) < 620
    budget(privamp)
    (one,) = json.loads(privamp(*asked("--classes", "region", epsilon="40")).stdout)["estimates"]
    assert abs(one["value"] - people) < 4.5 * one["standard_error"] < 5


def test_a_sample_is_asked_once(privamp):
    drawn(privamp)
    budget(privamp)
    assert privamp(*asked()).exit_code == 0
    assert privamp(*asked()).exit_code == 2
    REGISTRY.clear()  # as another program
    assert privamp(*asked()).exit_code == 2
    REGISTRY.clear()
    other = privamp(*asked(epsilon="1"))
    assert other.exit_code == 2
    assert "already charged" in json.loads(other.stdout)["error"]


def test_several_questions_and_groups(privamp):
    drawn(privamp, "--design", "poisson:rate=0.6")
    budget(privamp, relation="add-remove")
    result = privamp(*asked("--value", "sex", "--bounds", "income=0:100,sex=0:1", "--by", "sex", "--groups", "f,m"))
    assert result.exit_code == 0, result.output
    names = [one["group"] for one in json.loads(result.stdout)["estimates"]]
    assert names == ["income, f", "income, m", "sex, f", "sex, m"]


def test_margins_and_ratio(privamp, people):
    drawn(privamp, "--size", "600")
    budget(privamp)
    result = privamp(*asked("--margin", "sex=f:450,m:450", "--margin", "region=n:300,s:300,e:300"))
    (one,) = json.loads(result.stdout)["estimates"]
    assert abs(one["value"] - people) < 4.5 * one["standard_error"] < 20
    ratio = privamp(
        "survey", "estimate", "answers.csv", "--size", "400", "--value", "income", "--over", "income", "--statistic",
        "ratio", "--bounds", "0:100", "--over-bounds", "0:100", "--epsilon", "9", "--json",
    )  # fmt: skip
    assert json.loads(ratio.stdout)["estimates"][0]["value"] == pytest.approx(1.0, abs=0.2)


def test_what_is_kept_beside_the_key_is_secret_and_remembers_every_survey(privamp, tmp_path):
    drawn(privamp)
    path = tmp_path / "a.key.survey.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    first = path.read_text()
    (tmp_path / "a.key.csv").unlink()
    drawn(privamp)  # the same survey again
    assert path.read_text() == first
    (tmp_path / "a.key.csv").unlink()
    drawn(privamp, "--size", "60")
    assert len(json.loads(path.read_text())["surveys"]) == 2
    budget(privamp)
    assert "has drawn 2 surveys" in json.loads(privamp(*asked()).stdout)["error"]


BAD = [
    ([], {"--budget": None}, "only a budget knows"),
    ([], {"--key-file": None}, "needs --key-file"),
    ([], {"--key-file": "other.key"}, "survey draw writes beside its key"),
    ([], {"--answers": "none.csv"}, "there is no file"),
    ([], {"--answers": "people2.csv"}, "has no column 'person'"),
    ([], {"--value": "wealth"}, "has no column 'wealth'"),
    ([], {"--label": "x"}, "has drawn 0 surveys"),
    (["--size", "5"], {}, "--size is known from the draw"),
    (["--by", "sex"], {}, "needs --groups"),
    (["--classes", "sex"], {}, "has no column 'sex' (--classes)"),
    (["--margin", "sex"], {}, "takes public totals"),
    (["--margin", "sex=f:1,m:2", "--margin", "region=n:5"], {}, "one sum"),
    (["--margin", "sex=f:1,m:2", "--classes", "region"], {}, "one of the margins"),
    (["--over", "sex"], {}, "must be given together"),
    (["--bounds", "E=0:1,H=0:3"], {}, "one pair for all, or one per question"),
    (["--statistic", "median"], {}, "statistic must be one of"),
]


@pytest.mark.parametrize(("more", "changes", "part"), BAD, ids=str)
def test_bad_input_is_one_sentence_and_costs_nothing(privamp, tmp_path, more, changes, part):
    drawn(privamp)
    budget(privamp)
    (tmp_path / "people2.csv").write_text("id,income\np1,777\n")
    words = asked(*more)
    for option, value in changes.items():
        if option in words:
            at = words.index(option)
            words[at : at + 2] = [] if value is None else [option, value]
        else:
            words += [option, value]
    result = privamp(*words)
    assert result.exit_code == 2, result.output
    assert part in json.loads(result.stdout)["error"]
    assert "777" not in result.output
    assert not json.loads(privamp("budget", "show", "b.db", "--json").stdout).get("entries")


def test_another_frame_is_refused(privamp, tmp_path):
    drawn(privamp)
    budget(privamp)
    frame = tmp_path / "people.csv"
    frame.write_text("\n".join(frame.read_text().splitlines()[:-1]) + "\n")
    result = privamp(*asked())
    assert result.exit_code == 2
    assert "is not the frame that the survey was drawn from" in json.loads(result.stdout)["error"]


def test_the_report_is_what_an_agency_files(privamp, tmp_path):
    drawn(privamp)
    budget(privamp)
    result = privamp(*asked("--classes", "region", "--report", "page.html"))
    assert result.exit_code == 0, result.output
    page = " ".join((tmp_path / "page.html").read_text().split())
    for part in (
        "people.csv, 900 records", "200", "1.5", "two errors", "if the sample is known", "interviewers and the people",
        "AES is a pseudo-random function", "95%",
    ):  # fmt: skip
        assert part in page, part


def test_a_report_tells_no_secret_size(privamp, tmp_path):
    drawn(privamp, "--design", "poisson:rate=0.6")
    budget(privamp, relation="add-remove")
    assert privamp(*asked("--report", "page.html")).exit_code == 0
    page = (tmp_path / "page.html").read_text()
    assert "a secret number of records" in page
    assert "900" not in page


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--size", "9"], "needs --bounds"),
        (["--bounds", "0:9"], "give --size"),
        (["--bounds", "0:9", "--size", "9", "--key-file", "k"], "need --answers"),
        (["--bounds", "0:9", "--answers", "a.csv", "--key-file", "k"], "needs --budget"),
        (["--bounds", "0:9", "--answers", "a.csv", "--size", "3"], "known from the draw"),
    ],
)
def test_a_pilot_refuses_what_does_not_fit(privamp, more, sentence):
    found = privamp("survey", "pilot", "people.csv", "--value", "income", "--epsilon", "1", *more)
    assert found.exit_code == 2
    assert sentence in " ".join(found.output.split())


def test_a_pilot_by_interviews_gives_the_sizes_of_the_main_sample(privamp):
    drawn(privamp)
    budget(privamp)
    found = privamp(
        "survey", "pilot", "people.csv", "--answers", "answers.csv", "--key-file", "a.key", "--value", "income",
        "--bounds", "0:100", "--epsilon", "20", "--budget", "b.db", "--json",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    answer = json.loads(found.stdout)
    assert set(answer["sd"]) == {"n", "s", "e"}
    made = privamp(
        "survey", "draw", "people.csv", "--id", "person", "--strata", "region", "--size", "300", "--bounds", "0:100",
        "--sd", answer["option"], "--epsilon", "1", "--out", "main.csv", "--json",
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    assert sum(one["size"] for one in json.loads(made.stdout)["strata"]) == 300
