"""No error, with its traceback, repeats a record's value, an id or a key."""

import pickle
import re

import numpy as np
import pytest

import privamp
from canaries import MECHANISMS, NAMES, SECRET, VALUE, errors_of, key, leaks, spoken
from privamp import (
    Key,
    Laplace,
    Poisson,
    Population,
    PrivateKMeans,
    PrivateMean,
    PrivateSum,
    Stratified,
    bootstrap,
    survey,
)

BAD_VALUES = [
    np.array([VALUE, np.nan]), [f"{VALUE}", NAMES[0]], [[VALUE], [VALUE, 1.0]], np.array([VALUE, np.inf]),
    np.array([object()]), np.array([VALUE + 1j]), f"{NAMES[0]} {VALUE}", {"id": NAMES[0]}, [NAMES[0], None],
]  # fmt: skip


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms_do_not_repeat_what_they_refuse(name):
    from privamp.testing import seeded_stream

    mechanism = getattr(privamp, name)(*MECHANISMS[name])
    assert not leaks(spoken(mechanism))
    for value in BAD_VALUES:
        assert not leaks(errors_of(lambda value=value: mechanism.release(value, seeded_stream(1))))


def test_errors_do_not_repeat_what_they_refuse():
    x = np.array([[VALUE, np.nan], [1.0, 2.0]])
    few = Population(NAMES[:2])
    actions = [
        lambda: Population([NAMES[0], NAMES[0]]),
        lambda: Population(NAMES[:3], stratum=[VALUE]),
        lambda: Population([VALUE, 1.5]),
        lambda: Population([NAMES[0], 7351]),
        lambda: Population([NAMES[0], None]),
        lambda: Population([NAMES[0], NAMES[0] + "\0"]),
        lambda: Population([[NAMES[0]], [NAMES[1]]]),
        lambda: Key.from_bytes(SECRET + b"x"),
        lambda: Key.from_bytes(SECRET.hex()),
        lambda: pickle.dumps(key()),
        lambda: pickle.dumps(Poisson(0.5).draw(few, key(50))),
        lambda: Poisson(0.5).draw(few, key(51)).release(Laplace(1.0), [VALUE]),
        lambda: Poisson(0.5).draw(few, key(52)).release(Laplace(1.0), [NAMES[0], NAMES[1]]),
        lambda: Stratified({"a": Poisson(0.5)}).draw(Population(NAMES[:2], stratum=NAMES[:2]), key(53)),
        lambda: privamp.PoissonPPS(0.9, 0.2).draw(Population(NAMES[:2], probability=[VALUE, 0.1]), key(54)),
        lambda: PrivateKMeans(1, 1.0, radius=1.0).fit(x),
        lambda: PrivateKMeans(1, 1.0, radius=1.0).fit([[NAMES[0]]]),
        lambda: privamp.private_norm_histogram([VALUE, np.nan], radius=1.0, epsilon=1.0),
        lambda: privamp.RandomizedResponse(1.0, 3).release([7351], None),
    ]  # fmt: skip
    for job in (PrivateSum(bounds=1.0, epsilon=1.0), PrivateMean(bounds=1.0, epsilon=1.0)):
        actions += [lambda value=value, job=job: job.release(value) for value in BAD_VALUES]
    for value in BAD_VALUES:
        actions.append(lambda value=value: bootstrap.run(value, bounds=(0, 9000), jobs=1))
        actions.append(
            lambda value=value: survey.estimate(Poisson(0.5).draw(few, key(60)), value, bounds=(0, 9000), epsilon=1.0)
        )
    spoken_by = [errors_of(action) for action in actions]
    assert sum(map(bool, spoken_by)) > len(actions) // 2  # most of them did refuse
    for at, text in enumerate(spoken_by):
        assert not leaks(re.sub(r"(?m)^\s.*$", "", text)), at  # the lines of this file that a traceback quotes aside
