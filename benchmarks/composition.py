"""Four compositions beside dp-accounting, in one run: epsilon from both sides, and processor time as a ratio.

At rate 1e-8 dp-accounting's upper epsilon is below an exact attack (one step with a large loss, in 40 digits:
tests/accounting/test_many_rare_steps.py), so ours is the larger one there.

pip install privamp[pld] && python benchmarks/composition.py
"""

import time
from collections.abc import Callable

import numpy as np
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism, from_mixture_gaussian_mechanism

from privamp import Gaussian, Guarantee, Poisson, amplify, compose
from privamp.core.guarantee import Lower, Part
from privamp.core.multiplicity import Multiplicity
from privamp.core.neighbors import Neighbors

AR = Neighbors.ADD_REMOVE


def sampled(rate: float, sigma: float, steps: int) -> Callable[[], Guarantee]:
    return lambda: compose(amplify(Gaussian(sigma), Poisson(rate)), steps)


def six_components() -> Guarantee:
    """A person with 5 records, each kept with probability .0064: the shift is Binomial(5, .0064)."""
    pair = Gaussian(1.0).mixture(AR, Multiplicity.binomial(5, 0.0064))
    upper, lower = pair.rounded_up(), pair.rounded_down()
    one = Guarantee(AR, upper, lambda: (), (), (Part(upper, lower),), Lower(lower))
    return compose(one, 781)


def theirs(rate: float, sigma: float, steps: int, *, upper: bool, delta: float) -> float:
    pld = from_gaussian_mechanism(sigma, pessimistic_estimate=upper, sampling_prob=rate, use_connect_dots=upper)
    return float(pld.self_compose(steps).get_epsilon_for_delta(delta))


def their_mixture(*, upper: bool, delta: float) -> float:
    weights = np.exp(Multiplicity.binomial(5, 0.0064).log_p)
    pld = from_mixture_gaussian_mechanism(
        1.0, range(6), [1.0 - weights.sum(), *weights], pessimistic_estimate=upper, use_connect_dots=upper
    )
    return float(pld.self_compose(781).get_epsilon_for_delta(delta))


SETTINGS = (
    ("rate .01, sigma 1, 1000 steps", sampled(0.01, 1.0, 1000), (0.01, 1.0, 1000), 1e-5),
    ("rate 1e-5, sigma .7, 1e5 steps", sampled(1e-5, 0.7, 10**5), (1e-5, 0.7, 10**5), 1e-6),
    ("rate 1e-8, sigma .3, 1e6 steps", sampled(1e-8, 0.3, 10**6), (1e-8, 0.3, 10**6), 1e-8),
    ("mixture of 6 components, 781 steps", six_components, None, 1e-6),
)


def timed(call: Callable[[], float]) -> tuple[float, float]:
    start = time.process_time()
    value = call()
    return value, time.process_time() - start


def main() -> None:
    sampled(0.1, 1.0, 3)().epsilon(1e-5)  # imports
    theirs(0.1, 1.0, 3, upper=True, delta=1e-5)
    for name, ours, numbers, delta in SETTINGS:
        high, high_s = timed(lambda: ours().epsilon(delta))  # noqa: B023
        low, low_s = timed(lambda: ours().lower.epsilon(delta))  # noqa: B023
        other = []
        for upper in (True, False):
            if numbers:
                other.append(timed(lambda: theirs(*numbers, upper=upper, delta=delta)))  # noqa: B023
            else:
                other.append(timed(lambda: their_mixture(upper=upper, delta=delta)))  # noqa: B023
        (their_high, their_high_s), (their_low, their_low_s) = other
        print(f"{name}, delta {delta:g}")
        print(f"  privamp        [{low:.6g}, {high:.6g}]")
        print(f"  dp-accounting  [{their_low:.6g}, {their_high:.6g}]")
        print(f"  our time / theirs: upper {high_s / their_high_s:.2f}, lower {low_s / their_low_s:.2f}", flush=True)


if __name__ == "__main__":
    main()
