"""What privamp says about a printed value of another library: from below and from above."""

import csv
from pathlib import Path

import numpy as np

from privamp import DiscreteLaplace, Neighbors, amplify, compose
from privamp.adapters.moved_gaussians import MovedGaussians
from privamp.core.profile import _extended
from privamp.spec import design, mechanism

FACTS = Path(__file__).parents[1] / "peers" / "facts.csv"
NUMBERS = ("records", "steps", "at", "value", "tolerance")


def facts():
    """All facts, numbers as numbers."""
    with FACTS.open(encoding="utf-8", newline="") as file:
        return [row | {name: float(row[name]) for name in NUMBERS} for row in csv.DictReader(file)]


def mechanism_of(text):
    word, _, rest = text.partition(":")
    if word not in ("mixture", "discrete-laplace"):
        return mechanism(text, Neighbors.ADD_REMOVE)
    given = dict(part.split("=") for part in rest.split(";"))
    if word == "discrete-laplace":
        return DiscreteLaplace(1.0 / float(given["parameter"]), int(given["sensitivity"]))
    several = [tuple(map(float, given[name].split("+"))) for name in ("moves", "chances")]
    return MovedGaussians(float(given["sigma"]), *several)


def guarantee_of(fact):
    """One step of what the fact is about; `steps` of them, fresh."""
    neighbors = Neighbors.parse(fact["neighbors"]).for_person(int(fact["records"]))
    one = amplify(mechanism_of(fact["mechanism"]), design(fact["design"]), neighbors)
    return one, compose(one, int(fact["steps"]))


def noise_for(fact):
    """The least noise (the largest parameter of discrete noise) with delta at most `target` at epsilon `at`."""
    is_inverse = fact["mechanism"].startswith("discrete-laplace")
    low, high = np.log(fact["value"]) - 0.5, np.log(fact["value"]) + 0.5
    for _ in range(40):
        middle = 0.5 * (low + high)
        given = fact["mechanism"].replace("?", repr(float(np.exp(middle))))
        enough = said(fact | {"asks": "delta", "mechanism": given})[1] <= float(fact["target"])
        low, high = (low, middle) if enough != is_inverse else (middle, high)
    return float(np.exp(0.5 * (low + high)))


def said(fact):
    """(lower, upper) of the value that is asked for; the same twice where it is exact."""
    if fact["asks"] == "noise":
        return (noise_for(fact),) * 2
    one, all_steps = guarantee_of(fact)
    if fact["asks"] == "renyi":
        upper = fact["steps"] * one.renyi(fact["at"])
        return upper, upper
    if fact["side"]:
        upper = one.upper
        curves = (upper.forward, upper.backward) if fact["side"] == "with" else (upper.backward, upper.forward)
        value = float(np.exp(_extended(*curves, np.float64(fact["at"]))))
        return value, value
    upper = float(getattr(all_steps, fact["asks"])(fact["at"]))
    lower = float(getattr(all_steps.lower, fact["asks"])(fact["at"])) if all_steps.lower else upper
    return lower, upper
