"""Controls: every URL makes a state, bad values are answered by a sentence, and a state survives its URL."""

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privamp.app.controls import controls, query, read
from privamp.app.views import VIEWS

STATES = [view.state for view in VIEWS]
HOSTILE = ["nan", "inf", "-inf", "-1", "0", "1e400", "", " ", "1e9999", "0x10", "<script>alert(1)</script>", "../../a",
           "1_000", "9" * 5000, "²", "true", "None", "1;2", "%00", "\x00"]  # fmt: skip


@pytest.mark.parametrize("kind", STATES)
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_values_are_answered_by_a_sentence(kind, text) -> None:
    names = controls(kind)
    state, notes = read(kind, dict.fromkeys(names, text))
    for name, control in names.items():
        value = getattr(state, name)
        if control.kind in ("whole", "number"):
            assert control.low <= value <= control.high
    assert len(notes) <= len(names)
    assert all(len(note) < 400 and note.endswith(".") and "\x00" not in note for note in notes)


def test_the_sentence_names_value_rule_and_what_is_shown() -> None:
    state, notes = read(STATES[0], {"population": "nan", "relation": "friends", "unknown": "1"})
    assert state == STATES[0]()
    assert notes == (
        "Records in the population must be a whole number from 20 to 10000000, got 'nan' instead; the page shows its "
        "default.",
        "Neighbours must be one of replace-one, add-remove, got 'friends' instead; the page shows its default.",
    )


@given(st.data())
@pytest.mark.parametrize("kind", STATES)
def test_a_state_survives_its_url(kind, data) -> None:
    chosen = {}
    for name, control in controls(kind).items():
        if control.kind == "whole":
            chosen[name] = data.draw(st.integers(int(control.low), int(control.high)))
        elif control.kind == "number":
            chosen[name] = data.draw(st.floats(control.low, control.high))
        elif control.kind in ("choice", "text"):
            chosen[name] = data.draw(
                st.sampled_from(
                    [value if control.kind == "choice" else control.read(text) for value, text in control.options]
                )
            )
    state = kind(**chosen)
    assert read(kind, dict(parse_qsl(query(state)))) == (state, ())


@pytest.mark.parametrize("kind", STATES)
def test_sliders_reach_their_ends_and_defaults(kind) -> None:
    for name, control in controls(kind).items():
        if control.stops:
            assert (control.stops[0], control.stops[-1]) == (control.low, control.high)
            assert all(control.read(str(stop)) == stop for stop in control.stops)
            default = getattr(kind(), name)
            assert control.stops[control.position(default)] == pytest.approx(default, rel=0.13)
