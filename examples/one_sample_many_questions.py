"""Ten questions to ONE sample compose inside the sample; amplifying each and adding up is false."""

import numpy as np

from privamp import Gaussian, Joint, Key, Poisson, PureDP, amplify, compose

question, design = PureDP(0.5), Poisson(0.1)
one = amplify(question, design).epsilon()
truth = amplify(Joint([question] * 10), design).epsilon()
fresh = compose(amplify(question, design), 10).epsilon()
print(f"one question                       {one:.4f}")
print(f"ten questions, one sample          {truth:.4f}")
print(f"ten questions, ten fresh samples   {fresh:.4f}")
print(f"amplify and add, for one sample    {10 * one:.4f}   <- FALSE")
assert round(truth, 4) == 2.7563
assert round(10 * one, 4) == 0.6285

# The ledger of a sample does this by itself: whatever is asked of it is composed inside.
values = np.linspace(-1.0, 1.0, 5_000)
sample = design.draw(5_000, Key.generate())
for power in (1, 2, 3):
    answer = sample.release(Gaussian(sigma=5.0), values**power)
    spent = sample.guarantee().epsilon(1e-6)
    print(f"sum of x^{power} over the sample, noisy: {answer:7.1f}   spent so far: epsilon {spent:.4f} at delta 1e-6")
