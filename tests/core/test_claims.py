"""A guarantee is data: it compares, pickles, and travels as a certificate that others recompute."""

import copy
import json
import pickle

import guarantee_cases as cases
import numpy as np
import pytest

from privamp import (
    Gaussian,
    GaussianFilter,
    Guarantee,
    InvalidInput,
    Joint,
    Laplace,
    LinearProfile,
    Neighbors,
    Poisson,
    PrivateSum,
    PureDP,
    PureFilter,
    RenyiFilter,
    WithoutReplacement,
    amplify,
    compose,
    privacy_constrained,
)
from privamp.core.certificate import _digest, disagreements
from privamp.core.claim import Claim
from privamp.core.written import read_back, register, written
from privamp.testing import seeded_key

AR = Neighbors.ADD_REMOVE


@pytest.mark.parametrize("name", cases.DESIGNS)
def test_every_design_is_data(name):
    design = cases.DESIGNS[name]
    assert read_back(json.loads(json.dumps(written(design)))) == design
    assert pickle.loads(pickle.dumps(design)) == design
    assert hash(read_back(written(design))) == hash(design)


@pytest.mark.parametrize("name", cases.MECHANISMS)
def test_every_mechanism_is_data(name):
    mechanism = cases.MECHANISMS[name](AR)
    assert read_back(json.loads(json.dumps(written(mechanism)))) == mechanism
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism


def test_equal_claims_are_equal_guarantees():
    one, other = amplify(Gaussian(1.0), Poisson(0.01)), amplify(Gaussian(1.0), Poisson(0.01))
    assert one == other
    assert hash(one) == hash(other)
    assert one != amplify(Gaussian(1.0), Poisson(0.02))
    assert one != compose(one, 2)


def test_a_list_and_a_count_are_the_same_composition():
    listed = compose([amplify(Gaussian(1.0), Poisson(0.01)) for _ in range(40)])
    counted = compose(amplify(Gaussian(1.0), Poisson(0.01)), 40)
    assert listed == counted
    assert len(listed.parts) == 1
    assert listed.epsilon(1e-6) == counted.epsilon(1e-6)


def test_numbers_survive_pickling_and_copying():
    whole = compose([compose(amplify(Gaussian(1.0), Poisson(0.01)), 3), amplify(Laplace(3.0), Poisson(0.1))])
    again = pickle.loads(pickle.dumps(whole))
    assert again == whole
    assert again.delta(0.5) == whole.delta(0.5)
    assert copy.deepcopy(whole) == whole == copy.copy(whole)


def test_an_estimate_carries_its_guarantee_through_a_pickle():
    total = PrivateSum(bounds=1.0, epsilon=1.0).release([[1.0]] * 10, key=seeded_key(1))
    again = pickle.loads(pickle.dumps(total))
    assert again.guarantee.epsilon() == total.guarantee.epsilon()
    assert again.guarantee.assumes == total.guarantee.assumes


GUARANTEES = {
    "one": lambda: amplify(Gaussian(1.0), Poisson(0.01)),
    "pure": lambda: amplify(PureDP(1.0), WithoutReplacement(10, 100)),
    "joint": lambda: amplify(Joint([PureDP(0.5)] * 10), Poisson(0.1)),
    "many": lambda: compose(amplify(Gaussian(2.0), Poisson(0.01)), 100),
    "two kinds": lambda: compose([amplify(Gaussian(2.0), Poisson(0.01)), amplify(Laplace(2.0), Poisson(0.1))]),
    "persons": lambda: amplify(PureDP(0.5), Poisson(0.1), AR.for_person(3)),
}


@pytest.mark.parametrize("make", GUARANTEES.values(), ids=GUARANTEES)
def test_a_certificate_is_recomputed(make):
    guarantee = make()
    text = json.dumps(guarantee.to_json(epsilon=0.5))
    assert Guarantee.from_json(text) == guarantee
    assert disagreements(json.loads(text), make()) == []
    assert json.loads(text)["certificate"]["privamp"]


def changed(data, path, value, resign):
    data = copy.deepcopy(data)
    inside = data["certificate"]
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value
    if resign:
        content = {name: part for name, part in data["certificate"].items() if name != "digest"}
        data["certificate"]["digest"] = _digest(content)
    return data


FORGERIES = {
    "a smaller delta": (("numbers", "delta_upper"), 1e-12),
    "a larger attack": (("numbers", "delta_lower"), 0.5),
    "another rate": (("claims", 0, "design", "with", "rate"), 0.001),
    "more noise": (("claims", 0, "mechanism", "with", "sigma"), 2.0),
    "another theorem": (("because",), ["Folklore"]),
    "no assumption": (("assumes",), []),
    "fewer steps": (("claims", 0, "times"), 1),
}


@pytest.mark.parametrize("resign", [False, True], ids=["old digest", "new digest"])
@pytest.mark.parametrize("what", FORGERIES)
def test_a_changed_certificate_is_caught(what, resign):
    data = compose(amplify(Gaussian(1.0), Poisson(0.01)), 2).to_json(epsilon=0.5)
    path, value = FORGERIES[what]
    with pytest.raises(InvalidInput, match="does not hold"):
        Guarantee.from_json(changed(data, path, value, resign))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("neighbors", "replace-one"),
        ("steps", 1),
        ("scope", "within stratum"),
        ("records_per_person", 5),
        ("assumes", []),
        ("because", ["Folklore"]),
        ("private", False),
    ],
)
def test_the_answer_around_a_certificate_says_the_same(name, value):
    data = compose(amplify(Gaussian(1.0), Poisson(0.01)), 2).to_json(epsilon=0.5)
    with pytest.raises(InvalidInput, match=f"does not hold.*{name}"):
        Guarantee.from_json(data | {name: value})


UNASKED = {
    "a pair that nothing is computed for": {"epsilon": 0.001, "delta": 1e-9},
    "a delta without its epsilon": {"delta_upper": 1e-12},
    "a delta at no number": {"epsilon": None, "delta_upper": 1e-12},
    "a pure epsilon beside a delta": {"delta": 1e-6, "delta_upper": 0.0, "epsilon_upper": 2.181694109248498},
    "a text": {"epsilon": "1.0", "delta_upper": 0.0},
    "a truth": {"delta": True, "epsilon_upper": 0.0},
    "another name": {"epsilon": 1.0, "delta_upper": 0.00020712148602336332, "epsilon_total": 0.01},
    "another spelling": {"Epsilon_upper": 0.01, "delta": 1e-6, "epsilon_upper": 2.181694109248498},
    "nothing": {},
    "another currency": {"rho": 0.001},
}


@pytest.mark.parametrize("name", UNASKED)
def test_a_number_that_nothing_is_computed_for_is_not_confirmed(name):
    content = dict(amplify(Gaussian(1.0), Poisson(0.1)).to_json(epsilon=1.0)["certificate"])
    content["numbers"] = UNASKED[name]
    content["digest"] = _digest({part: value for part, value in content.items() if part != "digest"})
    with pytest.raises(InvalidInput, match="does not hold"):
        Guarantee.from_json(content)


def test_numbers_around_a_certificate_are_asked_for_too():
    answer = amplify(Gaussian(1.0), Poisson(0.1)).to_json(delta=1e-6)
    assert Guarantee.from_json(answer)
    assert Guarantee.from_json({"certificate": answer["certificate"]})
    del answer["epsilon_upper"]
    with pytest.raises(InvalidInput, match="without delta_upper"):
        Guarantee.from_json(answer | {"epsilon": 0.01})


def test_a_name_that_stands_twice_is_refused():
    """Readers differ in which one they take."""
    text = json.dumps(amplify(Gaussian(1.0), Poisson(0.1)).to_json(delta=1e-6))
    assert Guarantee.from_json(text)
    with pytest.raises(InvalidInput, match="appears twice"):
        Guarantee.from_json(text.replace('"epsilon_upper": ', '"epsilon_upper": 0.001, "epsilon_upper": '))


def test_a_certificate_of_a_test_is_not_called_private():
    sample = Poisson(0.5).draw(10, seeded_key(92031)).declare([Laplace(1.0)])
    data = sample.guarantee().to_json()
    assert Guarantee.from_json(data).draws == sample.guarantee().draws
    with pytest.raises(InvalidInput, match="private is stated as True"):
        Guarantee.from_json(data | {"private": True})


def test_every_changed_character_of_the_content_is_noticed():
    data = amplify(Laplace(1.0), Poisson(0.25)).to_json()
    text = json.dumps(data["certificate"])
    for place in range(0, len(text), 7):
        if not text[place].isalnum():
            continue
        forged = text[:place] + ("1" if text[place] != "1" else "2") + text[place + 1 :]
        with pytest.raises(InvalidInput):
            Guarantee.from_json(forged)


@pytest.mark.parametrize("text", ["", "[]", "{}", "not json", '{"certificate": 3}', '{"format": 1}'])
def test_what_is_no_certificate_is_said(text):
    with pytest.raises(InvalidInput, match="certificate"):
        Guarantee.from_json(text)


def test_an_unknown_format_is_refused():
    data = amplify(Laplace(1.0), Poisson(0.25)).to_json()
    with pytest.raises(InvalidInput, match="format 2"):
        Guarantee.from_json(changed(data, ("format",), 2, True))


def test_a_function_cannot_be_recomputed_and_the_certificate_says_so():
    with pytest.raises(InvalidInput, match="cannot be written as JSON"):
        Claim(PureDP(1.0), lambda: None, AR).to_json()
    own = LinearProfile(lambda rows: 0.5 + 0.0 * np.asarray(rows)[:, 0])
    rule = privacy_constrained(own, 1.0).guarantee()
    assert rule.to_json()["certificate"]["claims"] is None
    with pytest.raises(InvalidInput, match="cannot be recomputed"):
        Guarantee.from_json(rule.to_json())
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(rule)


@pytest.mark.parametrize(
    "make",
    [
        lambda: privacy_constrained(LinearProfile.of(Laplace(2.0)), 1.0, radius=1.0).guarantee(),
        lambda: PureFilter(1.0).guarantee(),
        lambda: GaussianFilter.within(1.0, 1e-6).guarantee(),
        lambda: RenyiFilter(20.0, 2.0, 1e-6).guarantee(),
    ],
    ids=["rule", "pure", "gdp", "renyi"],
)
def test_what_certifies_itself_is_data_too(make):
    one = make()
    again = pickle.loads(pickle.dumps(one))
    assert again == one == make()
    assert again.delta(0.5) == one.delta(0.5)
    assert again.because == one.because
    asked = {"delta": 1e-6}
    data = json.loads(json.dumps(one.to_json(**asked)))
    assert Guarantee.from_json(data) == one
    data["certificate"]["claims"][0]["mechanism"]["with"] |= {"epsilon": 0.5, "mu": 0.01}
    with pytest.raises(InvalidInput):
        Guarantee.from_json(data)


def test_a_claim_without_a_design_needs_something_that_certifies_itself():
    data = amplify(PureDP(1.0), Poisson(0.5)).to_json()
    data["certificate"]["claims"][0]["design"] = None
    with pytest.raises(InvalidInput, match="a guarantee of its own"):
        Guarantee.from_json(data)


def test_a_strangers_class_is_named_and_registered():
    data = {"is": "somebody.else:Design", "with": {}}
    with pytest.raises(InvalidInput, match=r"somebody\.else:Design"):
        read_back(data)
    with pytest.raises(InvalidInput, match="frozen dataclass"):
        register(int)


def test_only_frozen_dataclasses_of_privamp_are_read():
    for name in ("core.sample.Sample", "errors.InvalidInput", "core.log.logger", "no.such.Thing", "chance.keys.Key"):
        with pytest.raises(InvalidInput):
            read_back({"is": name, "with": {}})
