"""Four compositions beside dp-accounting, in one run: epsilon from both sides, and processor time as a ratio.

At rate 1e-8 dp-accounting's upper epsilon is below the truth, so ours is the larger one there: the benchmark prints
beside it what the event "exactly one step has a large loss" alone reaches, in 40 digits. Its delta is part of delta.

pip install privamp[pld] mpmath && python benchmarks/composition.py
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
RARE = (1e-8, 0.3, 10**6)


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


def one_large_loss(rate: str, sigma: str, steps: int, epsilon: float, large: float = 0.5) -> float:
    """delta of the event that exactly one step has a loss above `large`, whatever the others do, in 40 digits."""
    from mpmath import exp, log, mp, mpf, ncdf

    with mp.workdps(40):
        q, s = mpf(rate), mpf(sigma)

        def tails(loss):  # type: ignore[no-untyped-def]
            """Probabilities of a larger loss, with the record and without it."""
            x = s * s * log((exp(loss) - 1 + q) / q) + mpf(1) / 2
            return (1 - q) * ncdf(-x / s) + q * ncdf(-(x - 1) / s), ncdf(-x / s)

        with_record, without = tails(mpf(large))
        left = mpf(epsilon) - (steps - 1) * log((1 - with_record) / (1 - without))
        p, p_without = tails(left)
        return float(steps * (1 - with_record) ** (steps - 1) * (p - exp(left) * p_without))


def epsilon_of_one_large_loss(rate: str, sigma: str, steps: int, delta: float) -> float:
    """Where that event's delta comes down to the one asked for: a lower bound on epsilon."""
    low, high = 0.5, 20.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if one_large_loss(rate, sigma, steps, middle) > delta else (low, middle)
    return low


SETTINGS = (
    ("rate .01, sigma 1, 1000 steps", sampled(0.01, 1.0, 1000), (0.01, 1.0, 1000), 1e-5),
    ("rate 1e-5, sigma .7, 1e5 steps", sampled(1e-5, 0.7, 10**5), (1e-5, 0.7, 10**5), 1e-6),
    ("rate 1e-8, sigma .3, 1e6 steps", sampled(1e-8, 0.3, 10**6), RARE, 1e-8),
    ("mixture of 6 components, 781 steps", six_components, None, 1e-6),
)


def timed(call: Callable[[], float]) -> tuple[float, float]:
    """The answer, and the shorter time of two calls; of one if it takes seconds."""
    times: list[float] = []
    while len(times) < 2 and sum(times) < 3.0:
        start = time.process_time()
        value = call()
        times.append(time.process_time() - start)
    return value, min(times)


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
        if numbers == RARE:
            reached = one_large_loss("1e-8", "0.3", RARE[2], their_high)
            least = epsilon_of_one_large_loss("1e-8", "0.3", RARE[2], delta)
            print(f"  40 digits      epsilon is at least {least:.6g}; at theirs delta is at least {reached:.5g}")
        print(f"  our time / theirs: upper {high_s / their_high_s:.2f}, lower {low_s / their_low_s:.2f}", flush=True)


if __name__ == "__main__":
    main()
