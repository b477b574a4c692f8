"""Balls in bins: our interval beside PLD_accounting's (where installed) and beside Poisson sampling, in one run.

    pip install PLD_accounting && python benchmarks/balls_in_bins.py

Prints, for each setting, epsilon from below and above at delta and the processor time; the time of the other software
as a multiple of ours. Poisson sampling at rate 1/rounds for as many rounds is what balls in bins replaces.
"""

import time
from collections.abc import Callable

from privamp import BallsInBins, Gaussian, Poisson, Rounds, amplify

SETTINGS = (  # sigma, rounds, epochs, delta
    (1.0, 100, 1, 1e-6),
    (1.0, 100, 1, 1e-5),
    (2.0, 10, 1, 1e-6),
    (1.0, 10_000, 1, 1e-6),
    (2.0, 100, 100, 1e-6),
)


def timed(call: Callable[[], tuple[float, float]]) -> tuple[float, float, float]:
    start = time.process_time()
    low, high = call()
    return low, high, time.process_time() - start


def ours(sigma: float, rounds: int, epochs: int, delta: float) -> tuple[float, float]:
    guarantee = amplify(Gaussian(sigma), BallsInBins(rounds, epochs))
    return guarantee.lower.epsilon(delta), guarantee.epsilon(delta)


def theirs(sigma: float, rounds: int, epochs: int, delta: float) -> tuple[float, float]:
    from PLD_accounting import gaussian_allocation_epsilon_range

    high, low = gaussian_allocation_epsilon_range(delta=delta, sigma=sigma, num_steps=rounds, num_epochs=epochs)
    return float(low), float(high)


def main() -> None:
    try:
        import PLD_accounting  # noqa: F401

        has_other = True
    except ImportError:
        has_other = False
        print("PLD_accounting is not installed; printing ours alone")
    ours(1.0, 3, 1, 1e-6)  # imports
    for setting in SETTINGS:
        sigma, rounds, epochs, delta = setting
        low, high, seconds = timed(lambda: ours(*setting))  # noqa: B023
        print(f"sigma={sigma:g} rounds={rounds} epochs={epochs} delta={delta:g}")
        print(f"  privamp         [{low:.6f}, {high:.6f}]  width {high - low:.1e}  {seconds:.2f} s")
        if has_other and rounds * epochs <= 1000:  # more takes it minutes
            other_low, other_high, other_seconds = timed(lambda: theirs(*setting))  # noqa: B023
            ratio = other_seconds / seconds
            width = other_high - other_low
            print(
                f"  PLD_accounting  [{other_low:.6f}, {other_high:.6f}]  width {width:.1e}  {ratio:.1f} times as long"
            )
        poisson = amplify(Gaussian(sigma), Rounds(Poisson(1.0 / rounds), rounds * epochs))
        print(f"  Poisson at most  {poisson.epsilon(delta):.6f}", flush=True)


if __name__ == "__main__":
    main()
