"""Leaks that a job may have beside its answer: each is planted here and must be found."""

import collections
import functools
import io
import logging
import random
import sys
import warnings
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

from privamp import DiscreteLaplace, Gaussian, Laplace, Poisson, amplify
from privamp.testing import seeded_key, seeded_stream
from privamp.verify import Pair, check_release

PAIR = [Pair("a record is added", np.zeros(4), np.append(np.zeros(4), 0.5))]
STATE = SimpleNamespace(n=0)


def released(x):
    return Laplace(2.0).release(float(np.clip(x, 0, 1).sum()), seeded_stream(1))


def kinds(job, pairs=PAIR, **options):
    return {tally.kind for tally in check_release(job, pairs, **options).tallies if tally.violations}


def returned(make):
    """A job that gives out `make(number of records)` beside a sound release."""

    def job(x):
        released(x)
        return make(len(x))

    return job


class Hidden:
    __slots__ = ("__n",)

    def __init__(self, n):
        self.__n = n


class MyList(list):
    pass


class MyText(str):
    pass


class MyArray(np.ndarray):
    pass


class Telling:
    def __init__(self, n):
        STATE.n = n

    def __repr__(self):
        return f"Telling({STATE.n})"


class Asked:
    def __init__(self, n):
        STATE.n = n
        self.a = 1

    @property
    def size(self):
        return STATE.n


def with_attribute(value, n):
    value.n = n
    return value


def nested(n):
    value = [n]
    for _ in range(30):
        value = [value]
    return value


def made_class(n):
    class Made:
        total = n

    return Made


def long_array(n):
    array = np.zeros(5000)
    array[2500] = n
    return array


def coroutine(n):
    async def later():
        return n

    return later


KEPT = []


def weak(n):
    KEPT.append(with_attribute(MyList(), n))
    return weakref.ref(KEPT[-1])


RESULTS = {
    "a generator": lambda n: (v for v in (1, n)),
    "an iterator": lambda n: iter([n]),
    "a closure": lambda n: lambda: n,
    "a default": lambda n: lambda k=n: k,
    "a partial": lambda n: functools.partial(print, n),
    "a bound method": lambda n: [n].copy,
    "a coroutine function": coroutine,
    "deep inside": nested,
    "a mangled slot": Hidden,
    "an attribute of a list": lambda n: with_attribute(MyList([1]), n),
    "an attribute of a text": lambda n: with_attribute(MyText("a"), n),
    "an attribute of an array": lambda n: with_attribute(np.zeros(2).view(MyArray), n),
    "the order of a dictionary": lambda n: {"a": 1, "b": 2} if n % 2 else {"b": 2, "a": 1},
    "keys that look alike": lambda n: {MyText("a"): 1, with_attribute(MyList(), n).__class__: n, Telling(0): n},
    "a mask": lambda n: np.ma.masked_array([1.0, 2.0], mask=[n % 2 == 1, False]),
    "a long array in a queue": lambda n: collections.deque([long_array(n)]),
    "a class": made_class,
    "the class of an object": lambda n: made_class(n)(),
    "what an object says of itself": Telling,
    "a property": Asked,
    "an error that is returned": lambda n: with_attribute(ValueError(n), 1),
    "the digits of a guarantee": lambda n: amplify(Gaussian(1.0 + 1e-9 * n), Poisson(0.1)),
    "a sample that was revealed": lambda n: Poisson(1.0).draw(n, seeded_key(1)).reveal_secret(),
    "the bytes behind a view": lambda n: memoryview(np.array([n])),
    "a file in memory": lambda n: io.BytesIO(bytes([n])),
    "the state of a generator": random.Random,
    "the state of another": np.random.default_rng,
    "a weak reference": weak,
}


@pytest.mark.parametrize("name", RESULTS)
def test_whatever_a_result_carries_is_read(name):
    make = RESULTS[name]
    assert kinds(returned(make)) == {"result"}
    assert kinds(returned(lambda n: make(4))) == set()


def test_tables_are_read_with_their_types_and_labels():
    pandas = pytest.importorskip("pandas")
    tables = [
        lambda n: pandas.Series([n, 1], index=[0, 0]),
        lambda n: pandas.DataFrame([[n, 1]], columns=["a", "a"]),
        lambda n: pandas.DataFrame({"a": np.array([1], dtype="int32" if n % 2 else "int64")}),
        lambda n: pandas.Series([1], index=pandas.Index([n], name="a")),
    ]
    for make in tables:
        assert kinds(returned(make)) == {"result"}
        assert kinds(returned(lambda n, make=make: make(4))) == set()


def test_series_and_arrow_columns_are_read():
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    makes = [
        lambda n: polars.Series("a", [n]),
        lambda n: polars.DataFrame({"a": [n]}),
        lambda n: arrow.array([*range(50), n, *range(50)]),
        lambda n: arrow.table([arrow.array([n]), arrow.array([1])], names=["a", "a"]),
    ]
    for make in makes:
        assert kinds(returned(make)) == {"result"}
        assert kinds(returned(lambda n, make=make: make(4))) == set()


def test_an_object_that_keeps_its_last_data_set():
    class Job:
        def __call__(self, x):
            self.last = len(x)
            return released(x)

    assert kinds(Job()) == {"result"}


def logged(n, **facts):
    logging.getLogger("elsewhere").warning("done", **facts)


def aloof(n):
    logger = logging.getLogger("aloof")
    logger.propagate = False
    logger.error("%d", n)


def caught(n):
    try:
        raise KeyError(n)
    except KeyError:
        logging.getLogger("elsewhere").exception("odd")


MESSAGES = {
    "a logger of one's own": lambda n: logging.getLogger("elsewhere").info("%d records", n),
    "a logger that passes nothing on": aloof,
    "an extra field": lambda n: logged(n, extra={"records": n}),
    "the error of a log line": caught,
    "the line of a warning": lambda n: warnings.warn_explicit("odd", UserWarning, "job.py", n),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_every_message_is_heard(name):
    def job(x):
        MESSAGES[name](len(x))
        return released(x)

    level = logging.getLogger().level
    assert kinds(job) == {"messages"}
    assert logging.getLogger().level == level


def raising(error):
    raise error


def noted(n):
    error = ValueError("a")
    error.add_note(str(n))
    raise error


def by_line(n):
    if n % 2:
        raise ValueError("a")
    raise ValueError("a")


def in_the_end(n):
    try:
        raise ValueError("a")
    finally:
        raise KeyError("b" * n)


ERRORS = {
    "a note": noted,
    "a group": lambda n: raising(ExceptionGroup("a", [ValueError(n)])),
    "an attribute": lambda n: raising(with_attribute(ValueError("a"), n)),
    "an exit": sys.exit,
    "the line": by_line,
    "an error in finally": in_the_end,
}


@pytest.mark.parametrize("name", ERRORS)
def test_whatever_an_error_carries_is_read(name):
    def job(x):
        released(x)
        ERRORS[name](len(x))

    assert kinds(job) == {"errors"}


def test_a_mechanism_that_refuses_the_value_of_one_run():
    """Half a count is near enough, and refused: that it is tells of the record."""

    def job(x):
        total = float(x.sum())
        return DiscreteLaplace(2.0).release(int(total) if total.is_integer() else total, seeded_stream(1))

    assert "errors" in kinds(job)


def test_an_answer_of_another_type():
    """The second run is given the answer of the first, whose type the record may have decided."""

    def job(x):
        total = x.sum() if x.any() else int(x.sum())
        return DiscreteLaplace(2.0).release(total if x.any() else np.asarray(total), seeded_stream(1))

    assert "plan" in kinds(job, [Pair("a record is added", np.zeros(4), np.append(np.zeros(4), 1.0))])


def test_a_job_that_changes_its_input_changes_a_copy():
    data = np.full(4, 0.5)

    def job(x):
        answer = released(x)
        x[...] = 0.0
        return answer

    check_release(job, [Pair("a record is added", data, np.append(data, 0.5))])
    assert np.all(data == 0.5)
