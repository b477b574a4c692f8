"""One trainer, four designs: the same noise hides a record best where it cannot be drawn twice."""

import numpy as np

from privamp import MultiStage, Poisson, WithoutReplacement, WithReplacement
from privamp.sgd import PrivateLogistic

n, m, delta = 5000, 250, 1e-6
rng = np.random.default_rng(0)
X = rng.normal(size=(n, 3))
y = (X @ [1.5, -1.0, 0.5] + rng.logistic(size=n) > 0).astype(int)

designs = {
    "Poisson": Poisson(m / n),
    "without replacement": WithoutReplacement(m, population=n),
    "with replacement": WithReplacement(m, population=n),
    "two stages": MultiStage([("wor", 500), ("wr", m)], population=n),
}
spent = {}
for name, design in designs.items():
    model = PrivateLogistic(design, clip=1.0, steps=50, sigma=8.0, learning_rate=2.0, population=n, average=True)
    model.fit(X, y)
    spent[name] = model.guarantee_.epsilon(delta)
    right = np.mean(model.predict(X) == y)
    whom = model.guarantee_.neighbors
    print(f"{name:20s} accuracy {right:.3f}, epsilon {spent[name]:.3f} at delta {delta:g} ({whom})")
assert list(spent.values()) == sorted(spent.values())
