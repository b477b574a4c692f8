"""Synthetic tables. Plain arithmetic on a generator of the standard library, so that every machine makes the same."""

import math
import random
from typing import Any

import numpy as np

Columns = dict[str, "np.ndarray[Any, Any]"]


def _bell(chance: random.Random) -> float:
    """About normal, mean 0, variance 1: twelve uniform numbers (random.random is the same in every Python)."""
    return sum(chance.random() for _ in range(12)) - 6.0


def _pick(chance: random.Random, words: str | tuple[str, ...]) -> str:
    return words[int(chance.random() * len(words))]


def schools() -> Columns:
    """Schools of three levels in ten districts of thirty; enrolment below 1,600, or 4,200 for M and H."""
    chance = random.Random(1)
    levels = ["EEEMH"[k % 5] for k in range(300)]
    typical, most = {"E": 450, "M": 800, "H": 1300}, {"E": 1600, "M": 4200, "H": 4200}
    enroll = [min(most[level], int(typical[level] * math.exp(0.4 * _bell(chance)))) for level in levels]
    return {
        "school": np.array([f"s{k:03d}" for k in range(300)]),
        "level": np.array(levels),
        "district": np.array([f"d{k // 30}" for k in range(300)]),
        "enroll": np.array(enroll),
    }


def people() -> Columns:
    """Incomes that are skewed, higher in the south and with age."""
    chance = random.Random(2)
    rows = []
    for k in range(5000):
        age, region = 18 + int(chance.random() * 70), _pick(chance, ("north", "south", "south"))
        level = 9.9 + 0.25 * (region == "south") + 0.008 * min(age, 60)
        rows.append((k, age, region, round(math.exp(level + 0.5 * _bell(chance))), int(chance.random() < 0.4)))
    return {
        name: np.array(column)
        for name, column in zip(("id", "age", "region", "income", "bicycle"), zip(*rows, strict=True), strict=True)
    }


def visits() -> Columns:
    """Patients with one to eight visits, three on average."""
    chance = random.Random(3)
    patients = [k for k in range(2000) for _ in range((1, 1, 2, 3, 3, 4, 2, 8)[k % 8])]
    return {
        "patient": np.array(patients),
        "cost": np.array([round(80 * math.exp(0.7 * _bell(chance)), 2) for _ in patients]),
    }


def points() -> Columns:
    """Four round clusters inside the unit disc."""
    chance = random.Random(4)
    corners = [(0.5 * (-1) ** k, 0.5 * (-1) ** (k // 2)) for k in range(3000)]
    shaken = [[round(side + 0.05 * _bell(chance), 4) for side in corner] for corner in corners]
    x, y = np.array(shaken).T
    return {"x": x, "y": y}


def incomes() -> Columns:
    """Two classes that age and job predict in part."""
    chance = random.Random(5)
    rows = []
    for k in range(600):
        age, job = 20 + int(chance.random() * 50), f"j{int(chance.random() * 9)}"
        high = 0.03 * (age - 45) + 0.4 * (int(job[1]) - 5) + _bell(chance) > 0
        rows.append((age, job, ("<=50K", ">50K")[high], ("train", "test")[k % 4 == 0]))
    return {
        name: np.array(column)
        for name, column in zip(("age", "job", "income", "split"), zip(*rows, strict=True), strict=True)
    }


def pictures() -> Columns:
    """Ten patterns of 7 x 7 squares, each pixel disturbed: 600 to train on, 50 to test with."""
    chance = random.Random(6)
    patterns = [[chance.random() < 0.4 for _ in range(49)] for _ in range(10)]
    arrays: Columns = {}
    for part, number in (("train", 600), ("test", 50)):
        labels = [k % 10 for k in range(number)]
        pixels = [[200 * on + int(chance.random() * 56) for on in patterns[label]] for label in labels]
        squares = np.array(pixels, np.uint8).reshape(number, 7, 7)
        arrays[f"X_{part}"] = squares.repeat(4, axis=1).repeat(4, axis=2)
        arrays[f"y_{part}"] = np.array(labels, np.uint8)
    return arrays
