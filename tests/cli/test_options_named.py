"""A refusal of a spec names the option that it stands after."""

import pytest

GOOD = {"--design": "poisson:rate=0.1", "--mechanism": "gaussian:sigma=1"}


@pytest.mark.parametrize("command", ["amplify", "compare", "calibrate", "audit release"])
@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("--design", "poison:rate=0.1"),
        ("--design", "poisson:rate=2"),
        ("--mechanism", "gausian:sigma=1"),
        ("--mechanism", "gaussian:sigma=-1"),
    ],
)
def test_a_refused_spec_names_its_option(privamp, command, option, text) -> None:
    words = [word for pair in (GOOD | {option: text}).items() for word in pair]
    more = ["--epsilon", "1", "--delta", "1e-6"] if command == "calibrate" else []
    found = privamp(*command.split(), *words, *more)
    assert found.exit_code == 2
    assert found.stderr.startswith(f"Error: {option}: ")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--radius", "1", "--bounds", "0:1"], "give --bounds of the columns, or --radius"),
        ([], "--bounds LOW:HIGH of the columns, or use '--radius private'"),
        (["--radius", "1", "--noise", "norm", "--delta", "1e-6"], "use --noise gaussian for a delta above 0"),
    ],
)
def test_a_refusal_names_options_and_not_arguments_of_python(privamp, tmp_path, words, sentence) -> None:
    points = tmp_path / "points.csv"
    points.write_text("x,y\n0.1,0.2\n0.3,0.1\n0.2,0.2\n")
    found = privamp("kmeans", str(points), "--k", "2", "--out", str(tmp_path / "centres.csv"), *words)
    assert found.exit_code == 2
    assert sentence in found.stderr
    assert not (tmp_path / "centres.csv").exists()


def test_a_field_of_a_spec_stays_as_it_is_written(privamp) -> None:
    design = "importance:rule=privacy-constrained,epsilon=1"
    found = privamp("amplify", "--design", design, "--mechanism", "laplace:scale=1", "--epsilon", "1")
    assert found.exit_code == 2
    assert "--epsilon=1" not in found.stderr
    assert "--rule" not in found.stderr
