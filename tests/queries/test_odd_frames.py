"""Frames whose cells raise, cannot be written, or change the type of their column."""

import decimal

import pytest

from privamp import InvalidInput, PrivateKMeans, open_table

pd = pytest.importorskip("pandas", reason="pandas is not installed")


class Angry(int):
    def __str__(self):
        raise RuntimeError("no")


ODD = [decimal.Decimal("sNaN"), 10**5000, Angry(3), pd.NA, object(), "\ud800"]


@pytest.mark.parametrize("odd", ODD, ids=["signalling", "long", "angry", "missing", "object", "surrogate"])
def test_one_cell_stops_no_question(odd):
    frame = pd.DataFrame({"y": [1.0] * 100, "x": pd.Series([1] * 99 + [odd], dtype=object)})
    table = open_table(frame)
    assert table.mean("y", (0, 2)).run(epsilon=100.0).value == pytest.approx(1.0, abs=0.1)
    assert table.count().by("x", [1]).run(epsilon=100.0).value[0] == pytest.approx(99, abs=1)


@pytest.mark.parametrize("last", ["b", "\ud800"], ids=["plain", "surrogate"])
def test_one_cell_takes_no_column_away(last):
    column = pd.Series(["a"] * 99 + [last], dtype=pd.StringDtype("python"))
    found = open_table(pd.DataFrame({"x": column})).count().by("x", ["a"]).run(epsilon=100.0)
    assert found.value[0] == pytest.approx(99, abs=1)


def test_the_guarantee_says_that_the_types_of_a_pandas_frame_are_public():
    said = open_table(pd.DataFrame({"x": [1.0] * 10})).count().run(epsilon=1.0).guarantee.assumes
    assert any("also where pandas guesses them" in sentence for sentence in said)


def test_values_and_cells_are_trimmed_alike(tmp_path):
    path = tmp_path / "spaces.csv"
    path.write_text("x,y\n" + "\u00a05,1\n" * 10 + " 5,1\n" * 30, encoding="utf-8")
    found = open_table(path).count().by("x", ["\u00a05", "5"]).run(epsilon=100.0)
    assert found.value == pytest.approx([10, 30], abs=1)


def test_numbers_that_doubles_confuse_are_refused(tmp_path):
    path = tmp_path / "large.csv"
    path.write_text("x,y\n" + "9007199254740993,1\n" * 5)
    with pytest.raises(InvalidInput, match="below 2\\^53"):
        open_table(path).count().by("x", [2**53]).run(epsilon=1.0)


def test_a_ball_beyond_the_doubles_is_refused():
    for wide in (1e200, 1.79e308):
        with pytest.raises(InvalidInput, match=r"at most 1e\+150|finite"):
            PrivateKMeans(2, epsilon=1.0, bounds=(-wide, wide)).fit([[0.0, 1.0]] * 20)


def test_a_frame_that_is_changed_later_does_not_change_an_opened_table():
    frame = pd.DataFrame(
        {"x": [1.0] * 100, "n": pd.array([1] * 100, dtype="Int64"), "c": pd.Categorical(["a"] * 100, ["a", "b"])}
    )
    table = open_table(frame)
    frame.loc[:, "x"] = 5.0
    frame.loc[:, "n"] = 5
    frame.loc[:, "c"] = "b"
    assert table.sum("x", (0, 9)).by("c", ["a"]).run(epsilon=1e6).value[0] == pytest.approx(100, abs=1)
    assert table.sum("n", (0, 9)).run(epsilon=1e6).value == pytest.approx(100, abs=1)
