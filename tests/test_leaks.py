"""Nothing that an object says holds a record's value, an id, a weight, a key or the realised size of a sample.

Canaries are planted in ids, values and keys; then every public object is made to speak: repr, str, to_json, pickles
and logs. A public name that has no case here fails the test: give it one, or a reason why it never meets a record.
Errors are in test_leaks_of_errors.py, commands in test_leaks_of_commands.py.
"""

import contextlib
import pickle
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow
import pytest

import privamp
from canaries import MECHANISMS, NAMES, PEOPLE, SECRET, VALUE, VALUES, key, leaks, people, spoken
from privamp import (
    Budget,
    Gaussian,
    ImportanceSampling,
    Laplace,
    LinearProfile,
    Poisson,
    Population,
    PrivateKMeans,
    PrivateMean,
    PrivateSum,
    PureFilter,
    Rounds,
    Stratified,
    WithoutReplacement,
    amplify,
    bootstrap,
    survey,
)
from privamp.adapters.batches import KeyedBatches
from privamp.core.design import Design
from privamp.core.mechanism import Mechanism


def all_objects() -> dict[str, object]:
    found = {}
    for name in privamp.__all__:
        with contextlib.suppress(ImportError):  # a room whose library is not installed
            found[name] = getattr(privamp, name)
    return found


OBJECTS = all_objects()
ROOMS = {"bootstrap", "datasets", "kmeans", "sgd", "spec", "sums", "survey", "testing", "verify", "__version__"}
DESIGNS = sorted(n for n, o in OBJECTS.items() if isinstance(o, type) and issubclass(o, Design) and n != "Design")
ERRORS = {n for n, o in OBJECTS.items() if isinstance(o, type) and issubclass(o, Exception)}
PUBLIC_FACTS = {
    "ApproxFilter": "a limit: public numbers",
    "PublicScaler": "public bounds; what it scales is the caller's",
    "BallsInBins": "public numbers; its draws are samples",
    "Claim": "a mechanism, a design and a relation",
    "CyclicPoisson": "public numbers; its draws are samples",
    "shuffling_attack": "public numbers",
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
    "coreset_size": "sees public numbers only",
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
    holes = [value if k % 3 else None for k, value in enumerate(VALUES)]
    adjusted = survey.adjust(Poisson(0.5).draw(people(), key(8)), holes, bounds=(0, 9000), epsilon=1.0)
    first = survey.pilot(design.draw(people(stratum=stratum), key(9)), VALUES, bounds=(0, 9000), epsilon=1.0)
    told = [first, first.sd, first.release, first.guarantee, first.allocate(50, 1.0)]
    return [found, found.guarantee, ratio, ratio.guarantee, ratio.interval(), adjusted, adjusted.interval(), *told]


def resamples() -> list[object]:
    found = bootstrap.run(VALUES, bounds=(0, 9000), epsilon=1.0, key=key(7), jobs=1)
    return [found, found.plan, found.guarantee]


def tables() -> list[object]:
    frame = pyarrow.table({"person": np.arange(PEOPLE), "x": VALUES})
    table = privamp.open_table(frame, id="person", key=key(8), population="patients").sample(Poisson(0.5))
    question = table.mean("x", (0, 9000))
    found = question.run(epsilon=1.0)
    return [table, question, table.plan([question]), found, found.guarantee, found.interval(), found.details]


def batches() -> list[object]:
    found = KeyedBatches(Rounds(Poisson(0.5), 3), people(), Gaussian(2.0), key=key(11))
    drawn = list(found.take(2))
    assert not [size for size in {batch.size for batch in drawn} if leaks(spoken(found), size)]
    return [found, found.plan, found.guarantee()]


def other_libraries() -> list[object]:
    """Whichever of them are installed; Opacus and torch say nothing of their own besides the batches."""
    objects: list[object] = []
    if find_spec("dp_accounting") is not None:
        from privamp.adapters.dp_accounting import GuaranteeAccountant, GuaranteeEvent

        event = GuaranteeEvent.of(batches_guarantee())
        objects += [event, event.certificate, GuaranteeAccountant().compose(event).ledger]
    if find_spec("opendp") is not None:
        import opendp.prelude as dp

        from privamp.adapters.opendp import Amplified

        dp.enable_features("contrib", "honest-but-curious")
        measurement = Amplified(Laplace(9000.0, 9000.0), Poisson(0.5)).measurement()
        measurement(VALUES.tolist())
        objects += [measurement]
    if find_spec("torch") is not None:
        from privamp.adapters.torch import KeyedBatchSampler

        sampler = KeyedBatchSampler(Rounds(Poisson(0.5), 1), people(), Gaussian(2.0), key=key(13))
        next(iter(sampler))
        objects += [sampler, sampler.guarantee()]
    return objects


def batches_guarantee() -> privamp.Guarantee:
    return KeyedBatches(Rounds(Poisson(0.5), 1), people(), Gaussian(2.0), key=key(12)).guarantee()


SPEAKERS = {
    "Budget": budgets,
    "Guarantee": sample_of_many,
    "Key": lambda: [key(), key(9)],
    "PrivateKMeans": clusters,
    "PrivateMean": means,
    "PrivateSum": sums,
    "Rule": weighted_sample,
    "Sample": sample_of_many,
    "Table": tables,
    "open_table": tables,
    "amplify": sample_of_many,
    "compose": composed,
    "private_norm_histogram": histogram,
    "the survey room": estimates,
    "the bootstrap room": resamples,
    "batches for other trainers": batches,
    "events, measurements and samplers of other libraries": other_libraries,
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
