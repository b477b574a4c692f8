"""A survey of made-up schools: plan the design, allocate the sample, release one private mean with both its errors."""

import numpy as np

from privamp import survey
from privamp.core.population import Population

rng = np.random.default_rng(7)  # made-up data; the sample and the noise below are drawn from a fresh secret key
level = np.repeat(["E", "M", "H"], [4400, 1000, 750])
bounds = {"E": (0, 1600), "M": (0, 4200), "H": (0, 4200)}  # public, not looked up in the data
enroll = np.array([bounds[at][1] for at in level]) * rng.beta(2, 4, level.size)

plan = survey.plan({"level": level}, size=200, epsilon=1.0, bounds=bounds, strata="level")
print("design                      amplified   sampling   noise   error")
for row in plan.rows:
    errors = f"{row.standard_error_sampling:10.1f} {row.standard_error_noise:7.1f} {row.standard_error:7.1f}"
    print(f"{row.name:26s} {row.amplified_upper:10.3f} {errors}")
print(f"take {plan.recommendation}: {plan.reason}\n")

names, counts = np.unique(level, return_counts=True)
strata = [survey.Stratum(name, int(n), bounds[name][1]) for name, n in zip(names.tolist(), counts, strict=True)]
chosen = survey.allocate(strata, size=200, epsilon=1.0, method="minimax")
sample = chosen.design().draw(Population(level.size, stratum=level))
found = survey.estimate(sample, enroll, "mean", bounds=bounds, epsilon=1.0, stratum=level)
low, high = found.interval()
print(f"mean enrolment {found.value:.0f}, 95% interval {low:.0f} to {high:.0f} (truth: {enroll.mean():.0f})")
print(f"standard error {found.sampling_error:.1f} from sampling, {found.noise_error:.1f} from noise")
print(found.guarantee)
assert found.guarantee.epsilon() <= 1.0
