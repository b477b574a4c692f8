"""Records, noises and samplers that the tests of sums share."""

import numpy as np

IDEAL = "idealised real arithmetic"


def data(n=300, d=3, seed=0):
    random = np.random.default_rng(seed)
    return random.gamma(0.7, 0.4, size=(n, d)) * random.choice([-1, 1], (n, d), p=[0.2, 0.8])


X = data()
NOISES = [("laplace", 0.0), ("norm", 0.0), ("gaussian", 1e-6)]
SAMPLERS = [
    {"sampler": None},
    {"sampler": "uniform", "sample_size": 100, "population": 300},
    {"sampler": "privacy-constrained", "sample_size": 100, "population": 300},
]
