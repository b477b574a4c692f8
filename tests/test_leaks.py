"""Nothing shown to anybody holds a record's value, an id, a weight, a key or the realised size of a sample.

Canaries are planted in ids, values and keys; then every public object and every command is made to speak: repr, str,
to_json, pickles, logs, errors with their tracebacks, text, JSON and HTML. A public name or a command that has no case
here fails the test: give it one, or a reason why it never meets a record.
"""

import contextlib
import json
import pickle
import re
import struct
import traceback
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import privamp
from privamp import (
    Budget,
    Gaussian,
    ImportanceSampling,
    Key,
    Laplace,
    LinearProfile,
    Poisson,
    Population,
    PrivateKMeans,
    PrivateMean,
    PrivateSum,
    PureFilter,
    Stratified,
    WithoutReplacement,
    amplify,
    bootstrap,
    survey,
)
from privamp.cli.application import app
from privamp.core.design import Design
from privamp.core.mechanism import Mechanism

VALUE, ID, SECRET = 7351.9173, "canary-id-", bytes(range(0xC0, 0xE0))
PEOPLE = 3001
VALUES = np.random.default_rng(5).uniform(0.0, 9000.0, PEOPLE)
VALUES[::7] = VALUE
NAMES = [f"{ID}{i}" for i in range(PEOPLE)]
FORBIDDEN = [
    "7351.9", "7,351.9", ID, SECRET.hex(), repr(SECRET)[2:-1], SECRET.decode("latin-1"),
    struct.pack("<d", VALUE).decode("latin-1"), struct.pack("<f", VALUE).decode("latin-1"),
]  # fmt: skip


def leaks(text: str, *numbers: float) -> list[str]:
    """Canaries in the text, and numbers (a size, a weight) that stand in it as a word of their own."""
    words = [str(int(n)) if n == int(n) else repr(float(n)) for n in numbers]
    found = [word for word in words if re.search(rf"(?<![\d.]){re.escape(word)}(?![\d.])", text.replace(",", ""))]
    return found + [canary for canary in FORBIDDEN if canary in text]


def spoken(thing: object, *, may_be_pickled: bool = True) -> str:
    """All that an object says of itself."""
    words = [repr(thing), str(thing), f"{thing}"]
    if hasattr(thing, "to_json"):
        with contextlib.suppress(TypeError, privamp.PrivampError):
            words.append(json.dumps(thing.to_json(delta=1e-6)))
        with contextlib.suppress(TypeError, privamp.PrivampError):
            words.append(json.dumps(thing.to_json()))
    if may_be_pickled:
        with contextlib.suppress(Exception):  # many refuse, which is fine
            words.append(pickle.dumps(thing).decode("latin-1"))
    return "\n".join(words)


def key(number: int = 0) -> Key:
    """A key whose secret is known here, a fresh one for every number."""
    return Key.from_bytes(SECRET).subkey("leaks", number) if number else Key.from_bytes(SECRET)


def people(**columns: object) -> Population:
    return Population(NAMES, **columns)


def all_objects() -> dict[str, object]:
    found = {}
    for name in privamp.__all__:
        with contextlib.suppress(ImportError):  # a room whose library is not installed
            found[name] = getattr(privamp, name)
    return found


OBJECTS = all_objects()
ROOMS = {"bootstrap", "kmeans", "sgd", "spec", "sums", "survey", "testing", "verify", "__version__"}
DESIGNS = sorted(n for n, o in OBJECTS.items() if isinstance(o, type) and issubclass(o, Design) and n != "Design")
ERRORS = {n for n, o in OBJECTS.items() if isinstance(o, type) and issubclass(o, Exception)}
MECHANISMS = {
    "ApproxDP": (1.0, 1e-6),
    "DiscreteGaussian": (2.0,),
    "DiscreteLaplace": (2.0,),
    "ExactGaussian": (2.0,),
    "ExactLaplace": (2.0,),
    "Gaussian": (2.0,),
    "GeometricCount": (1.0,),
    "Joint": ([Laplace(1.0), Laplace(2.0)],),
    "Laplace": (2.0,),
    "NormNoise": (2.0, 1),
    "PureDP": (1.0,),
    "RandomizedResponse": (1.0, 3),
    "SumAndCount": (Laplace(1.0), Laplace(1.0)),
}
PUBLIC_FACTS = {
    "ApproxFilter": "a limit: public numbers",
    "PublicScaler": "public bounds; what it scales is the caller's",
    "BallsInBins": "public numbers; its draws are samples",
    "Claim": "a mechanism, a design and a relation",
    "CyclicPoisson": "public numbers; its draws are samples",
    "Rounds": "public numbers; its draws are samples",
    "Schedule": "abstract",
    "Change": "a multiplicity, a weight and a norm, for asking about profiles",
    "Design": "abstract",
    "Named": "the name and the version of a function",
    "Word": "the name and the keys of a spec string",
    "register": "takes a class",
    "GaussianFilter": "a limit: public numbers",
    "GaussianProfile": "public numbers of a noise",
    "GeneralProfile": "public numbers of a noise",
    "Influence": "public numbers of a noise",
    "LinearProfile": "public numbers of a noise",
    "Mechanism": "abstract",
    "Neighbors": "a relation",
    "NormHistogram": "norms that are public or were released privately",
    "Profile": "a curve of a mechanism",
    "PureFilter": "a limit: public numbers",
    "RenyiFilter": "a limit: public numbers",
    "Theorem": "a statement and its source",
    "calibrate": "sees mechanisms and designs only",
    "coreset": "sees public numbers of a noise only",
    "noise_for_guarantee": "sees public norms only",
    "noise_for_size": "sees public norms only",
    "privacy_constrained": "sees public numbers of a noise only",
    "size_for_noise": "sees public norms only",
    "uniform": "sees public numbers of a noise only",
    "variance_optimal": "sees public norms only",
}


def sample_of_many() -> list[object]:
    sample = Poisson(0.5).draw(people(), key())
    sample.release(Gaussian(100.0, 9000.0), VALUES)
    return [sample, sample.ledger, sample.guarantee(), sample.reveal_secret(), amplify(Laplace(2.0), sample.design)]


def weighted_sample() -> list[object]:
    rule = privamp.privacy_constrained(LinearProfile(Laplace(2.0, 1.0).influence), 1.0, radius=1.0)
    design = ImportanceSampling(rule)
    sample = design.draw(people(x=VALUES / 9000.0), key())
    return [rule, design, sample]


def sums() -> list[object]:
    job = PrivateSum(bounds=9000.0, epsilon=1.0, sampler="privacy-constrained", scale=9500.0)
    found = job.release(VALUES, key(1))
    return [job, found, found.guarantee]


def means() -> list[object]:
    job = PrivateMean(bounds=9000.0, epsilon=1.0, sampler=Poisson(0.5))
    found = job.release(VALUES, key(2))
    return [job, found, found.guarantee]


def clusters() -> list[object]:
    job = PrivateKMeans(2, 1.0, radius=9000.0, n_jobs=1).fit(VALUES[:, None])
    return [job, job.guarantee_, job._fitted, job.get_params()]


def budgets(folder: Path) -> list[object]:
    budget = Budget.create(folder / "b.db", population="patients", epsilon=5.0)
    sample = Poisson(0.5).draw(people(), key(3)).limit(PureFilter(1.0)).charge(budget, note="a question")
    sample.release(Laplace(9000.0, 9000.0), VALUES)
    with budget.reserve(amplify(Laplace(2.0), Poisson(0.1))) as reserved:
        pass
    return [budget, budget.status(), budget.log(), sample.ledger, reserved]


def histogram() -> list[object]:
    return list(privamp.private_norm_histogram(VALUES, radius=9000.0, epsilon=1.0))


def composed() -> list[object]:
    sample = Poisson(0.4).draw(people(), key(4))
    sample.release(Gaussian(9000.0, 9000.0), VALUES)
    return [privamp.compose(sample.guarantee().fresh(), 3)]


def estimates() -> list[object]:
    stratum = np.where(np.arange(PEOPLE) % 3, "a", "b")
    sizes = {name: int(np.sum(stratum == name)) for name in "ab"}
    design = Stratified({name: WithoutReplacement(n // 2, n) for name, n in sizes.items()})
    sample = design.draw(people(stratum=stratum), key(5))
    found = survey.estimate(sample, VALUES, bounds=(0, 9000), epsilon=1.0, stratum=stratum)
    ratio = survey.estimate(Poisson(0.5).draw(people(), key(6)), VALUES, bounds=(0, 9000), epsilon=1.0)
    return [found, found.guarantee, ratio, ratio.guarantee, ratio.interval()]


def resamples() -> list[object]:
    found = bootstrap.run(VALUES, bounds=(0, 9000), epsilon=1.0, key=key(7), jobs=1)
    return [found, found.plan, found.guarantee]


SPEAKERS = {
    "Budget": budgets,
    "Guarantee": sample_of_many,
    "Key": lambda: [key(), key(9)],
    "PrivateKMeans": clusters,
    "PrivateMean": means,
    "PrivateSum": sums,
    "Rule": weighted_sample,
    "Sample": sample_of_many,
    "amplify": sample_of_many,
    "compose": composed,
    "private_norm_histogram": histogram,
    "the survey room": estimates,
    "the bootstrap room": resamples,
}


def test_every_public_name_has_a_case_or_a_reason():
    known = {*DESIGNS, *ERRORS, *MECHANISMS, *PUBLIC_FACTS, *SPEAKERS, *ROOMS, "Population"}
    known |= {"Release"}  # what the jobs above give
    assert not set(privamp.__all__) - known
    mechanisms = {n for n, o in OBJECTS.items() if isinstance(o, type) and issubclass(o, Mechanism)}
    assert mechanisms - {"Mechanism"} == set(MECHANISMS)


def test_the_search_finds_what_was_planted():
    """Negative control: each kind of canary, in each kind of place."""
    assert leaks(f"a mean of {VALUE}")
    assert leaks(spoken({"id": NAMES[3]}))
    assert leaks(pickle.dumps(VALUES).decode("latin-1"))
    assert leaks(SECRET.hex())
    assert leaks("a sample of 1,507 people", 1507)
    assert leaks("weights [1.25, 2.5]", 2.5)
    assert not leaks("epsilon 0.1507 of 15070", 1507)


@pytest.mark.parametrize("name", SPEAKERS)
def test_objects_keep_secrets(name, tmp_path, caplog):
    with caplog.at_level("DEBUG"):
        speaker = SPEAKERS[name]
        objects = speaker(tmp_path) if speaker is budgets else speaker()
    drawn = next((o for o in objects if type(o).__name__ == "Drawn"), None)
    numbers = [drawn.positions.size] if drawn is not None else []
    for thing in objects:
        found = leaks(spoken(thing, may_be_pickled=thing is not drawn), *numbers)
        assert not found, (type(thing), found)
    assert not leaks(caplog.text, *numbers)


def test_weights_and_sizes_of_an_importance_sample_are_not_shown(caplog):
    with caplog.at_level("DEBUG"):
        objects = weighted_sample()
    drawn = objects[-1].reveal_secret()
    for thing in objects:
        assert not leaks(spoken(thing), drawn.positions.size, *drawn.weights[:50])
    assert not leaks(caplog.text, drawn.positions.size, *drawn.weights[:50])


@pytest.mark.parametrize("name", DESIGNS)
def test_designs_and_samples_keep_secrets(name, caplog):
    """A design by its own small cases, with canaries for ids."""
    for at, (design, population) in enumerate(getattr(privamp, name).small_cases()):
        population = Population.of(population)
        who = Population(NAMES[: population.size], **population.columns)
        with caplog.at_level("DEBUG"):
            sample = design.draw(who, key(1000 + at))
        for thing in (design, sample, sample.ledger):
            assert not leaks(spoken(thing))
        assert not leaks(spoken(who, may_be_pickled=False))  # its ids are what a population holds
        if at == 5:
            break
    assert not leaks(caplog.text)


def errors_of(action) -> str:
    try:
        action()
    except Exception:
        return traceback.format_exc()
    return ""


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


def leaves(command, path=()) -> list[tuple[str, ...]]:
    if hasattr(command, "commands"):
        return [leaf for name, part in command.commands.items() for leaf in leaves(part, (*path, name))]
    return [path]


TAKES_NO_RECORDS = {
    ("amplify",), ("compare",), ("calibrate",), ("weights",), ("reproduce",), ("demo",), ("budget", "create"),
    ("budget", "show"), ("budget", "log"), ("budget", "cancel"), ("budget", "head"), ("budget", "verify"),
    ("budget", "backup"),
    ("budget", "rotate-key"), ("budget", "migrate"), ("audit", "designs"), ("audit", "release"), ("audit", "workloads"),
    ("audit", "mistakes"), ("audit", "records"), ("verify",),
}  # fmt: skip
POPULATION = ("--population", "people.csv")
RECORDS = {
    ("survey", "plan"): [[*POPULATION, "--size", "60", "--value", "value", "--bounds", "0:9000", "--epsilon", "1"]],
    ("survey", "draw"): [
        [*POPULATION, "--id", "id", "--design", "poisson:rate=0.5", "--out", "drawn.csv"],
        [*POPULATION, "--id", "value", "--design", "poisson:rate=0.5", "--out", "bad.csv"],
        [*POPULATION, "--id", "mixed", "--design", "poisson:rate=0.5", "--out", "bad.csv"],
    ],
    ("survey", "estimate"): [
        [*POPULATION, "--size", "60", "--value", "value", "--bounds", "0:9000", "--epsilon", "1"],
        [*POPULATION, "--size", "60", "--value", "mixed", "--bounds", "0:9000", "--epsilon", "1"],
        [*POPULATION, "--size", "60", "--value", "id", "--bounds", "0:9000", "--epsilon", "1"],
    ],
    ("bootstrap",): [
        ["people.csv", "--column", "value", "--bounds", "0:9000", "--report", "b.html"],
        ["people.csv", "--column", "mixed", "--bounds", "0:9000"],
        ["people.csv", "--column", "id", "--bounds", "0:9000"],
    ],
    ("kmeans",): [
        [
            "people.csv", "--k", "2", "--epsilon", "1", "--radius", "9000", "--columns", "value", "--out", "c.csv",
            "--report", "k.html", "--overwrite",
        ],
        ["people.csv", "--k", "2", "--epsilon", "1", "--radius", "9000", "--columns", "mixed", "--out", "d.csv"],
    ],
    ("train",): [
        ["--data", "people.csv", "--model", "logistic", "--epsilon", "1", "--delta", "1e-5", "--population", "400"],
        ["--data", "people.csv", "--model", "mlp", "--epsilon", "1", "--delta", "1e-5"],
    ],
    ("sample",): [
        ["people.csv", "--id", "id", "--design", "poisson:rate=0.5", "--key-file", "s.key", "--out", "s.parquet"],
        ["people.csv", "--id", "value", "--design", "poisson:rate=0.5", "--key-file", "s.key", "--out", "t.parquet"],
        ["people.csv", "--id", "mixed", "--design", "poisson:rate=0.5", "--key-file", "s.key", "--out", "t.parquet"],
    ],
}  # fmt: skip


def test_every_command_has_a_case_or_takes_no_records():
    assert set(leaves(typer.main.get_command(app))) == {*TAKES_NO_RECORDS, *RECORDS}


@pytest.mark.parametrize("command", RECORDS, ids=" ".join)
def test_commands_keep_secrets(command, tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    rows = [f"{name},{value!r},{value!r}x" for name, value in zip(NAMES, VALUES.tolist(), strict=True)]
    Path("people.csv").write_text("\n".join(["id,value,mixed", *rows]) + "\n")
    key_file = Path("s.key")
    key_file.touch(0o600)
    key_file.write_text(SECRET.hex() + "\n")
    for arguments in RECORDS[command]:
        for more in ([], ["--json"]):
            for left in (*Path().glob("drawn.csv"), *Path().glob("s.parquet")):
                left.unlink()
            with caplog.at_level("DEBUG"):
                result = CliRunner().invoke(app, [*command, *arguments, *more])
            assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
            size = len(Path("drawn.csv").read_text().splitlines()) - 1 if Path("drawn.csv").exists() else 0
            shown = result.output + caplog.text + "".join(page.read_text() for page in Path().glob("*.html"))
            assert not leaks(shown, *[size] * bool(size)), result.output
