"""Figure S2: the printed accountant is reproduced, is wrong, and cannot be reached by those who want a guarantee."""

import ast
from pathlib import Path

import pytest

import privamp
from privamp.papers.must import equation_6 as must_equation_6
from privamp.papers.must import figure_s2 as must_figure_s2
from privamp.papers.must import printed_accountant_invalid as invalid
from privamp.papers.printed import as_expected

ROOT = Path(privamp.__file__).parent
PICTURE = ROOT.parents[1] / "docs" / "pictures" / "must_equation_6.svg"


@pytest.fixture(scope="module")
def found() -> list[must_figure_s2.Line]:
    return must_figure_s2.lines((200, 1000))


def test_the_printed_method_is_reproduced_and_far_too_small(found) -> None:
    assert as_expected(must_figure_s2.checks(found))
    first, last = found
    assert first.printed.value == pytest.approx(1.41e-8, rel=0.005)
    assert last.printed.value == pytest.approx(1.52e-4, rel=0.005)
    assert first.understated > 340_000
    assert last.understated > 250
    for line in found:
        assert line.printed.low < line.printed.value < line.printed.high < line.attack <= line.sound
        assert line.poisson < line.wor < line.attack


def test_checks_notice_a_method_that_is_right(found) -> None:
    """Negative control: an interval that holds the attack would no longer be an erratum."""
    from dataclasses import replace

    repaired = [replace(x, printed=invalid.InvalidDelta(x.attack, x.attack, x.sound)) for x in found]
    assert not as_expected(must_figure_s2.checks(repaired))


def test_one_step_is_the_integral_of_the_printed_pair() -> None:
    law = must_equation_6.DESIGN.appearances()
    (one,) = invalid.invalid_printed_deltas(law, must_equation_6.SIGMA, 0.5, [1], grid=100_000)
    wanted = must_equation_6.divergence(1.0, -1.0, 0.5)
    assert one.value == pytest.approx(wanted, rel=1e-3)
    assert one.low < wanted  # its upper end, a left sum of a falling density, is not even above its own integral


def test_equation_6_is_below_real_neighbours() -> None:
    assert as_expected(must_equation_6.checks())


def test_invalid_code_says_so_and_is_out_of_reach_of_guarantees() -> None:
    public = [name for name in vars(invalid) if getattr(vars(invalid)[name], "__module__", "") == invalid.__name__]
    assert all("invalid" in name.lower() for name in public if not name.startswith("_"))
    users = []
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or "", *(a.name for a in node.names)] if isinstance(node, ast.ImportFrom) else []
            names += [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if any("printed_accountant_invalid" in name for name in names):
                users.append(path.relative_to(ROOT).as_posix())
    assert "papers/must/figure_s2.py" in users
    assert {user.split("/")[0] for user in users} <= {"papers", "audits"}  # audits plant it, to catch it


def test_the_documentation_shows_the_counterexample() -> None:
    if not PICTURE.parents[1].is_dir():
        pytest.skip("the documentation is not beside the package")
    assert PICTURE.read_text(encoding="utf-8").lstrip().startswith("<?xml")
    assert PICTURE.stat().st_size < 60_000
    for page in ("errata.md", "designs/multistage.md"):
        assert PICTURE.name in (PICTURE.parents[1] / page).read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_entries_write_their_files(tmp_path) -> None:
    for entry, endings in (
        (must_figure_s2.ENTRY, {".png", ".csv", ".html"}),
        (must_equation_6.ENTRY, {".svg", ".csv", ".html"}),
    ):
        outcome = entry.run(tmp_path / entry.name)
        assert outcome.ok, outcome.text
        assert {path.suffix for path in outcome.files} == endings
