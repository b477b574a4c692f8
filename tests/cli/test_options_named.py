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
