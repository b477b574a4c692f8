"""Every theorem has one id, one proof, one test and sources, and every line of `because` leads there."""

import csv
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import guarantee_cases
import pytest
from typer.testing import CliRunner

from privamp import Gaussian, InvalidInput, Poisson, amplify, compose
from privamp.cli.application import app
from privamp.proofs import _PAGE, _marks, _sections, cited, proof, proofs

ROOT = Path(__file__).parents[1]


def reasons() -> set[str]:
    """Every line of `because` in the table of saved guarantees."""
    with guarantee_cases.SAVED.open(encoding="utf-8") as file:
        return {line for row in list(csv.reader(file))[1:] for line in row[-1].split(" + ")}


def test_every_theorem_has_a_statement_a_proof_a_test_and_a_source() -> None:
    found = proofs()
    assert len(found) > 70
    for each in found.values():
        assert "Proof" in each.text, f"{each.id} has no proof"
        assert each.bibtex.startswith("@"), each.id
        file, _, name = each.test.partition("::")
        assert (ROOT / file).is_file(), f"{each.id} names no test"
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{each.id}: {each.test} is gone"


def test_ids_are_unique() -> None:
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")]
    ids = [name for text in pages for name, _, _ in _sections(text)]
    assert len(ids) == len(set(ids)) == len(proofs())


@pytest.mark.parametrize("page", sorted({each.page for each in proofs().values()}))
def test_no_theorem_of_a_page_is_without_an_id(page: str) -> None:
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    starts = [line for line in lines if re.match(r"#+ (Theorem|Lemma)\b|\*\*(Theorem|Lemma)\b", line)]
    assert not [line for line in starts if line.startswith("**")], "an anchor stands before the statement"
    for number, line in enumerate(lines):
        if re.match(r"#+ (Theorem|Lemma) ", line):
            assert lines[number - 2].startswith("<a id="), line


def test_every_reason_of_a_saved_guarantee_leads_to_its_proof() -> None:
    assert not [line for line in reasons() if not cited(line)]


def unknown(reason: str) -> list[str]:
    """Theorems that a reason numbers but no page has."""
    numbered = [(page, mark) for page, numbers in _PAGE.findall(reason) if numbers for mark in _marks(numbers)]
    return [f"{page}-{mark}" for page, mark in numbered if f"{page}-{mark}".replace("_", "-") not in proofs()]


def test_no_reason_of_a_saved_guarantee_numbers_a_theorem_that_is_not_there() -> None:
    assert not [line for line in reasons() if unknown(line)]
    assert unknown("Rounds (docs/designs/rounds.md, Thm 1 and 99)") == ["rounds-99"]


def test_the_command_prints_all_that_a_saved_guarantee_cites() -> None:
    for line in sorted(reasons()):
        answer = CliRunner().invoke(app, ["theorem", line, "--json"], prog_name="privamp")
        assert answer.exit_code == 0, line
        found = json.loads(answer.stdout)["theorems"]
        assert [each["id"] for each in found] == list(cited(line))
        for each in found:
            assert all(each[part] for part in ("title", "page", "test")), line
            statement, _, argument = each["text"].partition("Proof")
            assert len(statement) > 40, f"{each['id']} states nothing"
            assert len(argument) > 20, f"{each['id']} proves nothing"
            assert each["bibtex"].startswith("@"), each["id"]


def test_every_theorem_of_every_design_leads_to_its_proof() -> None:
    named = [str(theorem) for design in guarantee_cases.DESIGNS.values() for theorem in design.theorems]
    assert not [line for line in named if not cited(line)]


def test_ids_of_a_guarantee() -> None:
    one = amplify(Gaussian(1.0), Poisson(0.01))
    assert one.theorems == ("poisson-1",)
    assert compose(one, 10).theorems == ("poisson-1", "composition-1")
    assert cited("Rounds (docs/designs/rounds.md, Thm 1 to 3)") == ("rounds-1", "rounds-2", "rounds-3")
    assert cited("no theorem at all") == ()


def test_a_section_ends_where_the_next_begins() -> None:
    first, second = '<a id="x-1"></a>\n\n## Theorem 1\n\n*A.*\n\n### Remark\n\nB.', '<a id="x-2"></a>**Theorem 2.** C.'
    text = f"{first}\n\n## Other\n\n{second}\n"
    assert _sections(text) == [
        ("x-1", "Theorem 1", "## Theorem 1\n\n*A.*\n\n### Remark\n\nB."),
        ("x-2", "Theorem 2", "**Theorem 2.** C."),
    ]


def test_an_unknown_id_is_one_sentence() -> None:
    with pytest.raises(InvalidInput, match=r"poisson-1.* may be what you mean"):
        proof("poison-1")


def run(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "privamp", "theorem", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command() -> None:
    assert "persons-5" in run()
    assert "Proof." in run("poisson-1")
    assert run("poisson-1", "--bibtex").startswith("@inproceedings{balle2018")
    reason = amplify(Gaussian(1.0), Poisson(0.01)).because[0]
    (found,) = json.loads(run(reason, "--json"))["theorems"]
    assert found["id"] == "poisson-1"


@pytest.mark.slow
def test_a_wheel_carries_the_proofs(tmp_path: Path) -> None:
    """Built from a copy of the sources, and read without the checkout."""
    import shutil

    ignore = shutil.ignore_patterns(".git", ".venv*", "build", "tests", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, tmp_path / "source", ignore=ignore)
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(tmp_path / "source")]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        content.extractall(tmp_path / "installed")
    program = "from privamp.proofs import proof; print(proof('cluster-8').text)"
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(tmp_path / "installed")}, capture_output=True, text=True
    )
    assert "Theorem 8" in done.stdout, done.stderr
