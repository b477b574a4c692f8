"""The oracle against shared/reference/designs.json, with the laws of all its designs written by hand.

Each law function returns (old law, new law); where the file leaves a convention open, its docstring says
which one reproduces the number.
"""

import json
import math
import os
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import pytest

from privamp.verify import exact_epsilon_of_laws

Units = tuple[int, ...]
Law = dict[Units, Fraction]
NEW = 99  # the id of the record that is added, or that replaces id 0


def fraction(x: float) -> Fraction:
    return Fraction(x).limit_denominator(1000)


def mixture(parts: Iterable[tuple[Fraction, Law]]) -> Law:
    law: Law = {}
    for weight, part in parts:
        for units, p in part.items():
            law[units] = law.get(units, Fraction(0)) + weight * p
    return law


def fixed(ids: Sequence[int], size: int) -> Law:
    """`size` of the ids without replacement."""
    return {tuple(sorted(s)): Fraction(1, math.comb(len(ids), size)) for s in combinations(ids, size)}


def coins(rates: dict[int, Fraction]) -> Law:
    """Every id independently with its own rate."""
    law: Law = {(): Fraction(1)}
    for i, rate in rates.items():
        law = mixture([(1 - rate, law), (rate, {tuple(sorted((*s, i))): p for s, p in law.items()})])
    return law


def replaced(ids: Sequence[int]) -> list[int]:
    return [NEW, *ids[1:]]


def wor(inputs: dict[str, Any], out: str) -> tuple[Law, Law]:
    if out == "deletion":
        ids = list(range(inputs["n_small"]))
        return fixed(ids, inputs["m"]), fixed([*ids, NEW], inputs["m"])
    ids = list(range(inputs["n"]))
    return fixed(ids, inputs["m"]), fixed(replaced(ids), inputs["m"])


def random_size(inputs: dict[str, Any], out: str) -> tuple[Law, Law]:
    ids, sizes = list(range(inputs["n"])), [fraction(t) for t in inputs["t"]]
    one, other = ([(t, fixed(x, m)) for m, t in enumerate(sizes)] for x in (ids, replaced(ids)))
    return mixture(one), mixture(other)


def rounded_at_random(ids: Sequence[int], rate: Fraction) -> Law:
    low = math.floor(rate * len(ids))
    up = rate * len(ids) - low
    return mixture([(1 - up, fixed(ids, low)), (up, fixed(ids, low + 1))] if up else [(Fraction(1), fixed(ids, low))])


def randomised_rounding(inputs: dict[str, Any], out: str) -> tuple[Law, Law]:
    ids, rate = list(range(inputs["n_small"])), fraction(inputs["r"])
    return rounded_at_random(ids, rate), rounded_at_random([*ids, NEW], rate)


def deterministic_rounding(inputs: dict[str, Any], out: str) -> tuple[Law, Law]:
    """Half-up: the row n_small=5, r=0.1 needs 0.5 -> 1 (Python's half-even `round` would draw nobody)."""
    ids, rate = list(range(inputs["n_small"])), fraction(inputs["r"])
    one, other = (fixed(x, math.floor(rate * len(x) + Fraction(1, 2))) for x in (ids, [*ids, NEW]))
    return one, other


def members(sizes: Sequence[int]) -> list[list[int]]:
    """Cluster members; ids 10 c + j."""
    return [[10 * c + j for j in range(size)] for c, size in enumerate(sizes)]


def changed_clusters(inputs: dict[str, Any], out: str) -> tuple[list[list[int]], list[list[int]]]:
    """`sizes` are those of the smaller population; the new record joins the changed cluster."""
    old, new, c = members(inputs["sizes"]), members(inputs["sizes"]), inputs.get("changed", 0)
    new[c] = replaced(new[c]) if "replacement" in out else [*new[c], NEW]
    return old, new


def some_clusters(clusters: list[list[int]], chosen: int) -> Law:
    picks = list(combinations(clusters, chosen))
    return mixture((Fraction(1, len(picks)), {tuple(sorted(chain(*pick))): Fraction(1)}) for pick in picks)


def cluster(inputs: dict[str, Any], out: str) -> tuple[Law, Law]:
    old, new = changed_clusters(inputs, out)
    return some_clusters(old, inputs["l"]), some_clusters(new, inputs["l"])


def two_stage_poisson(inputs: dict[str, Any], out: str) -> tuple[Law, Law]:
    """Cluster 0 changes."""
    rate = fraction(inputs["r"])

    def law(clusters: list[list[int]]) -> Law:
        picks = list(combinations(clusters, inputs["l"]))
        return mixture((Fraction(1, len(picks)), coins(dict.fromkeys(chain(*pick), rate))) for pick in picks)

    old, new = changed_clusters(inputs, out)
    return law(old), law(new)


def poisson_public(inputs: dict[str, Any], out: str) -> tuple[Law, Law]:
    others = {i + 1: fraction(q) for i, q in enumerate(inputs["q_others"])}
    with_x = coins(others | {0: fraction(inputs["q_x"])})
    return coins(others | {NEW: fraction(inputs["q_y"])} if out == "replacement" else others), with_x


def every_kth(order: Sequence[int], step: int) -> Law:
    return {tuple(sorted(order[start::step])): Fraction(1, step) for start in range(step)}


def systematic_fixed_slots(inputs: dict[str, Any], out: str) -> tuple[Law, Law]:
    ids = list(range(inputs["k"] * inputs["m"]))
    return every_kth(ids, inputs["k"]), every_kth(replaced(ids), inputs["k"])


def systematic_sorted_insert(inputs: dict[str, Any], out: str) -> tuple[Law, Law]:
    """`insert_at` counts from 0: the new record takes that rank and pushes the later ones on."""
    ids, at = list(range(inputs["k"] * inputs["m"])), inputs["insert_at"]
    return every_kth(ids, inputs["k"]), every_kth([*ids[:at], NEW, *ids[at:]], inputs["k"])


def pps_cluster_one(inputs: dict[str, Any], out: str) -> tuple[Law, Law]:
    """One cluster, with probability proportional to its size."""

    def law(clusters: list[list[int]]) -> Law:
        total = sum(map(len, clusters))
        return mixture((Fraction(len(c), total), {tuple(sorted(c)): Fraction(1)}) for c in clusters)

    old, new = changed_clusters(inputs, out)
    return law(old), law(new)


LAWS = {
    f.__name__: f
    for f in (
        wor, random_size, randomised_rounding, deterministic_rounding, cluster, two_stage_poisson,
        poisson_public, systematic_fixed_slots, systematic_sorted_insert, pps_cluster_one,
    )
}  # fmt: skip

METRIC = {"deletion": "add-remove", "replacement": "replace-one"}

KNOWN = [  # copied from designs.json, so that the core does not need the folder
    ("wor", {"n": 5, "m": 3, "eps": 2.0}, "replacement", "replacement", 1.575557118),
    ("wor", {"n": 5, "m": 3, "eps": 2.0}, "deletion", "replacement", 3.501310856),
    ("wor", {"n_small": 5, "m": 3, "eps": 2.0}, "deletion", "deletion", 3.325002747),
    ("random_size", {"n": 4, "t": [0.2] * 5, "eps": 2.0}, "deletion", "replacement", 2.870463435),
    ("randomised_rounding", {"n_small": 5, "r": 0.1, "eps": 1.0}, "deletion", "deletion", 0.224129413),
    ("deterministic_rounding", {"n_small": 5, "r": 0.1, "eps": 1.0}, "deletion", "deletion", 0.725054041),
    ("cluster", {"sizes": [0, 3, 1], "changed": 0, "l": 2, "eps": 1.0}, "deletion", "deletion", 0.973085609),
    (
        "two_stage_poisson",
        {"sizes": [1, 2, 2], "l": 1, "r": 0.3, "eps": 2.0},
        "deletion",
        "deletion",
        0.872489785,
    ),
    (
        "poisson_public",
        {"q_others": [0.2, 0.5], "q_x": 0.6, "q_y": 0.3, "eps": 1.0},
        "deletion",
        "replacement",
        0.918785023,
    ),
    ("systematic_fixed_slots", {"k": 2, "m": 2, "eps": 1.0}, "deletion", "replacement", 1.891221917),
    (
        "systematic_sorted_insert",
        {"k": 2, "m": 2, "insert_at": 2, "eps": 1.0},
        "deletion",
        "deletion",
        2.620114507,
    ),
    ("pps_cluster_one", {"sizes": [5, 5], "changed": 0, "eps": 0.1}, "deletion", "deletion", 0.118570635),
]


def solved(design: str, inputs: dict[str, Any], into: str, out: str) -> float:
    return exact_epsilon_of_laws(*LAWS[design](inputs, out), inputs["eps"], METRIC[into])


@pytest.mark.parametrize(("design", "inputs", "into", "out", "value"), KNOWN)
def test_oracle_reproduces_known_values(design, inputs, into, out, value):
    assert solved(design, inputs, into, out) == pytest.approx(value, abs=1e-8)


def reference_folder() -> Path | None:
    roots = [os.environ.get("PRIVAMP_SHARED"), *(p / "shared" for p in Path(__file__).parents[2:5])]
    return next((Path(r) / "reference" for r in roots if r and (Path(r) / "reference/designs.json").exists()), None)


def test_oracle_reproduces_every_reference_row():
    folder = reference_folder()
    if folder is None:
        pytest.skip("no reference/designs.json: set PRIVAMP_SHARED or put the shared folder beside the repository")
    rows = json.loads((folder / "designs.json").read_text())
    assert {row["design"] for row in rows} == set(LAWS)
    for row in rows:
        value = solved(row["design"], row["inputs"], row["rel_in"], row["rel_out"])
        assert value == pytest.approx(row["lp"], abs=1e-8), row


def test_values_printed_in_the_theory():
    two = {(0,): Fraction(1, 2), (1,): Fraction(1, 2)}, {(NEW,): Fraction(1, 2), (1,): Fraction(1, 2)}
    assert exact_epsilon_of_laws(*two, 1.0, "add-remove") == pytest.approx(1.434, abs=5e-4)  # trimmed cluster
    pair = pps_cluster_one({"sizes": [1, 9], "changed": 0}, "deletion")
    assert exact_epsilon_of_laws(*pair, 1.0, "add-remove") == pytest.approx(1.5975, abs=5e-5)
    emptied = pps_cluster_one({"sizes": [0, 6], "changed": 0}, "deletion")
    assert exact_epsilon_of_laws(*emptied, 1.0, "add-remove") == pytest.approx(5.06, abs=5e-3)
    full = wor({"n_small": 4, "m": 4}, "deletion")
    assert exact_epsilon_of_laws(*full, 1.0, "add-remove") == pytest.approx(1.81, abs=5e-3)
