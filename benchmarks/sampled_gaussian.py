"""1000 steps of the sampled Gaussian (q=0.01, sigma=1, delta=1e-5): ours beside dp-accounting's, in one run."""

import time

from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

from privamp import Gaussian, Poisson, amplify, compose


def timed(run):
    started = time.perf_counter()
    value = run()
    return value, time.perf_counter() - started


def ours():
    return compose(amplify(Gaussian(1.0), Poisson(0.01)), 1000)


def theirs():
    pld = from_gaussian_mechanism(1.0, sampling_prob=0.01, use_connect_dots=True).self_compose(1000)
    return pld.get_epsilon_for_delta(1e-5)


if __name__ == "__main__":
    ours().epsilon(1e-5), theirs()  # both warm
    reference, theirs_s = timed(theirs)
    upper, upper_s = timed(lambda: ours().epsilon(1e-5))
    lower, lower_s = timed(lambda: ours().lower.epsilon(1e-5))
    print(f"epsilon upper {upper:.6f} (dp-accounting {reference:.6f}), above 1.8282 by {upper - 1.8282:.1e}")
    print(f"epsilon lower {lower:.6f}, {1 - lower / upper:.2%} below the upper")
    print(f"time of the upper bound / dp-accounting's: {upper_s / theirs_s:.2f}")
    print(f"time of the lower bound / dp-accounting's upper: {lower_s / theirs_s:.2f}")
    deep = ours()
    print(f"delta at epsilon 8: {deep.lower.delta(8.0):.2e} to {deep.delta(8.0):.2e} (a plain FFT ends at 1e-13)")
