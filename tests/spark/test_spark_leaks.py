"""What the objects and plans of a job on Spark say: nothing of ids, values, weights, the key or the sample's size."""

import contextlib
import json
import pickle
import re
import traceback
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privamp import ExactLaplace, InvalidInput, Key, Laplace, Poisson, PrivateKMeans, PrivateSum, Stratified
from privamp import spark as room
from privamp.chance.keys import build
from privamp.spark import draw, estimate_strata, fit, release, sample

VALUE, NAME, N = 2.73519173, "canary-id-", 1993
SPOKEN_TO = {"SparkSample", "draw", "estimate_strata", "fit", "release", "sample", "session"}
SECRETS: list[str] = ["2.735191", NAME]


def fresh_key() -> Key:
    """A key whose secret is a canary from now on."""
    secret = np.random.default_rng().bytes(32)
    SECRETS.extend([secret.hex(), secret.decode("latin-1")])
    return build(secret)


def spoken(thing: Any) -> str:
    words = [repr(thing), str(thing)]
    if hasattr(thing, "to_json"):
        words.append(json.dumps(thing.to_json()))
    with contextlib.suppress(Exception):  # to refuse is fine
        words.append(pickle.dumps(thing).decode("latin-1"))
    return "\n".join(words)


def leaks(text: str, *numbers: int) -> list[str]:
    shown = [str(n) for n in numbers if re.search(rf"(?<![\d.]){n}(?![\d.])", text.replace(",", ""))]
    return shown + [canary for canary in SECRETS if canary in text]


@pytest.fixture(scope="module")
def rows(spark: Any) -> Any:
    made = np.random.default_rng(7)
    x = made.uniform(-2.9, 2.9, N)
    x[::5] = VALUE
    names = [f"{NAME}{i}" for i in range(N)]
    return spark.createDataFrame(pa.table({"uid": names, "a": x, "stratum": np.repeat(["e", "w"], [1000, N - 1000])}))


def test_every_public_name_is_spoken_to() -> None:
    assert set(room.__all__) == SPOKEN_TO


def test_nothing_of_a_draw_is_said(rows: Any, capsys: pytest.CaptureFixture[str]) -> None:
    design, key = Stratified({"e": Poisson(0.5), "w": Poisson(0.25)}), fresh_key()
    kept = sample(rows, design, id="uid", key=key, trust_ids=True)
    size = kept.count()
    kept.explain(extended=True)
    assert leaks(capsys.readouterr().out + spoken(kept), size) == []
    drawn = draw(rows, design, id="uid", key=key, round=1, trust_ids=True)
    found = estimate_strata(drawn, "a", ExactLaplace(scale=1.0, sensitivity=3.0))
    for thing in (drawn, drawn.ledger, drawn.guarantee(), found, *found.values()):
        assert leaks(spoken(thing), size, N) == [], type(thing)


def test_nothing_of_a_job_is_said(rows: Any) -> None:
    asked = PrivateSum(bounds=3.0, epsilon=1.0, sampler=Poisson(0.5))
    answer = release(asked, rows, ["a"], id="uid", key=fresh_key(), trust_ids=True)
    model = PrivateKMeans(n_clusters=2, epsilon=5.0, radius=3.0, n_iter=2, sample_size=400)
    fitted = fit(model, rows, ["a"], id="uid", key=fresh_key())
    for thing in (asked, answer, answer.guarantee, fitted, fitted.guarantee_):
        assert leaks(spoken(thing), N) == [], type(thing)


def test_errors_do_not_quote_records(rows: Any) -> None:
    outside = PrivateSum(bounds=3.0, epsilon=1.0, sampler=Poisson(0.5))
    for attempt in (
        lambda: sample(rows.union(rows), Poisson(0.5), id="uid", key=fresh_key()),
        lambda: release(outside, rows, ["stratum"], id="uid", key=fresh_key(), trust_ids=True),
        lambda: draw(rows, Poisson(0.5), id="a", key=fresh_key()),
        lambda: draw(rows, Poisson(0.5), id="uid", key=fresh_key(), trust_ids=True).release_sum(
            Laplace(scale=1.0),  # type: ignore[arg-type]
            ["a"],
        ),
    ):
        with pytest.raises(InvalidInput) as caught:
            attempt()
        assert leaks("".join(traceback.format_exception(caught.value))) == []
