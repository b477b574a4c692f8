"""Draw a sample, release a count from it, and read what the release has cost."""

import numpy as np

from privamp import DiscreteLaplace, Key, Poisson, Population

people = 20_000
owns_a_bicycle = (np.arange(people) % 3 == 0).astype(np.int64)  # one row per record, each 0 or 1

design = Poisson(rate=0.05)
sample = design.draw(Population(people, label="survey 2024"), Key.generate())
print(sample)  # what was drawn is secret, even in print

noisy = sample.release(DiscreteLaplace(scale=2), owns_a_bicycle)
estimate = noisy / design.rate  # divide by the public rate, never by the realised size
print(f"noisy count in the sample {noisy}, estimate for everybody {estimate:,.0f}")

guarantee = sample.guarantee()
print(guarantee)
for reason in guarantee.because:
    print("  because", reason)
for assumption in guarantee.assumes:
    print("  assumes", assumption)

assert abs(guarantee.epsilon() - 0.0319) < 1e-3  # 0.5-DP on the sample is log(1 + 0.05(e^0.5 - 1)) on everybody
assert guarantee.lower.epsilon() <= guarantee.epsilon()
