"""Turning round from round to round: above the plain attack, below every certified number, and only where it may."""

import pytest

from privamp import ApproxDP, Gaussian, InvalidInput, Neighbors, Poisson, WithoutReplacement, amplify, compose
from privamp.accounting.adaptive_attack import turning_attack
from privamp.core.certificate import disagreements

RO = Neighbors.REPLACE_ONE
ONE = amplify(Gaussian(1.0), WithoutReplacement(10, 1000), RO)


def test_turning_gains_over_the_plain_attack_and_stays_below_the_certified_number():
    many = compose(ONE, 30)
    at = many.lower.epsilon(1e-5)
    found = turning_attack(ONE, 30, many.epsilon(1e-9))(at)
    assert 1.0005e-5 < found < many.delta(at)


def test_one_round_gains_nothing():
    found, reach = turning_attack(ONE, 1, 4.0), 4.0
    for epsilon in (0.0, 0.3, 1.0):
        assert 0.99 * ONE.lower.delta(epsilon) <= found(epsilon) <= ONE.lower.delta(epsilon)
    assert found(reach + 0.1) == 0.0


def test_a_symmetric_pair_is_composed_plainly():
    one = amplify(Gaussian(1.0), Poisson(0.1), RO)
    many = compose(one, 10)
    assert turning_attack(one, 10, 12.0)(1.0) == pytest.approx(many.lower.delta(1.0), rel=3e-3)  # the grid


@pytest.mark.parametrize(
    ("guarantee", "match"),
    [
        (amplify(Gaussian(1.0), Poisson(0.1)), "replace-one"),
        (compose(ONE, 2), "one round"),
        (amplify(ApproxDP(0.5, 1e-6, neighbors=RO), WithoutReplacement(10, 1000), RO), "attack"),
    ],
)
def test_what_has_no_order_to_turn_is_refused(guarantee, match):
    with pytest.raises(InvalidInput, match=match):
        turning_attack(guarantee, 3, 2.0)


def test_a_certificate_from_before_the_hint_still_holds():
    many = compose(ONE, 3)
    assert "adaptive=True" in many.because[-1]
    content = many.to_json(epsilon=1.0)["certificate"]
    old = dict(content, because=[line.partition("; compose(")[0] for line in content["because"]])
    assert not [line for line in disagreements({"certificate": old}, many) if "digest" not in line]
    none = dict(old, because=old["because"][:-1])
    assert any("does not name" in line for line in disagreements({"certificate": none}, many))
