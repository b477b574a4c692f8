"""A mean with its standard error and 95% interval, private, by a subsampling bootstrap of made-up incomes."""

import numpy as np

from privamp import bootstrap

incomes = np.random.default_rng(1).lognormal(size=1000)  # made-up data; draws and noise come from a fresh secret key
found = bootstrap.run(incomes, "mean", bounds=(0, 20), epsilon=1.0, delta=1e-6)  # the bounds are public

low, high = found.interval(0.95)
print(f"mean {found.value:.3f}, 95% interval {low:.3f} to {high:.3f} (of the data themselves: {incomes.mean():.3f})")
print(f"standard error {found.standard_error:.3f}; {found.noise_error:.3f} of it is noise for privacy")
for budget, what in found.spent:
    print(f"{budget}: {what}")
print(found.guarantee)
assert found.guarantee.delta(1.0) <= 1e-6

# Resamples that share a subset (bag of little bootstraps) compose inside it, then the subset amplifies them once.
plan = bootstrap.Procedure("little", population=1000, sizes=(100, 50), groups=80, each=2)
print(f"little bootstrap: {plan.groups} subsets of {plan.sizes[0]}, {plan.each} resamples of {plan.size} each")
