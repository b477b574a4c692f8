"""A private sum and mean of vectors: all records, then a sample in which everybody keeps the same promise."""

import numpy as np

from privamp import NormHistogram, PrivateMean, PrivateSum

# 50,000 people, three expenses each, most of them small; 100 in all is a public bound that few exceed.
random = np.random.default_rng(1)
expenses = random.gamma(0.6, 12.0, size=(50_000, 3))

total = PrivateSum(bounds=100.0, epsilon=0.5).release(expenses)
print("sum of all records      ", np.round(total.value), f"+- {total.noise_error:.0f} by noise")
assert total.guarantee.epsilon() <= 0.5
assert not any("idealised" in words for words in total.guarantee.assumes)  # exact noise, no floats where it matters

# A sample is faster, never more private at the same noise. Last year's report says how large expenses are.
last_year = NormHistogram(norms=[10, 20, 40, 60, 100], counts=[14_000, 15_000, 16_000, 4_000, 1_000])
sampled = PrivateSum(
    bounds=100.0,
    epsilon=0.5,
    sampler="privacy-constrained",
    sample_size=4_000,
    norms=last_year,
    error_share=0.2,  # part of the budget says how large the sampling error is
)
estimate = sampled.release(expenses)
print("sum by importance sample", np.round(estimate.value), f"+- {estimate.noise_error:.0f} by noise,")
print("                         +-", np.round(estimate.sampling_error), "by sampling (a private estimate)")
assert estimate.guarantee.epsilon() <= 0.5

# How many people there are may be secret, too: then the mean counts them, with noise.
mean = PrivateMean(bounds=100.0, epsilon=0.5).release(expenses)
print(
    "mean, number unknown    ",
    np.round(mean.value, 2),
    f"+- {np.max(mean.noise_error):.3f}, about {mean.count:.0f} people",
)

# Gaussian noise pays for the l2 norm, and for delta; it is exact as well.
smooth = PrivateMean(bounds=60.0, epsilon=0.5, delta=1e-6, noise="gaussian", population=50_000).release(expenses)
print("mean, Gaussian noise    ", np.round(smooth.value, 2), f"+- {smooth.noise_error:.3f}")
print("because:", "; ".join(estimate.guarantee.because))
