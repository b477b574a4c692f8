"""Somebody who turns round from round to round, against composed bounds under replace-one.

Multiset samples: n = 10,000, first stage 118, then 200 draws with replacement, sigma = 4, records in [-1, 1], delta at
epsilon 1. Poisson samples: rate .01, delta at the epsilon that the plain attack reaches at 1e-6. Printed: the certified
delta, the plain attack, the turning one, and certified over the larger of the two.
"""

from privamp import (
    Gaussian,
    Guarantee,
    Laplace,
    MultiStage,
    Neighbors,
    Poisson,
    WithoutReplacement,
    WithReplacement,
    amplify,
    compose,
)
from privamp.accounting.adaptive_attack import turning_attack

RO = Neighbors.REPLACE_ONE
NOISE = Gaussian(4.0, 2.0, neighbors=RO)
MULTISETS = {
    "WOR": WithoutReplacement(200, 10_000),
    "WR": WithReplacement(200, 10_000),
    "MUSTow": MultiStage([("wor", 118), ("wr", 200)], 10_000),
    "MUSTww": MultiStage([("wr", 118), ("wr", 200)], 10_000),
}


def line(name: str, one: Guarantee, rounds: int, epsilon: float | None = None) -> None:
    whole = compose(one, rounds)
    assert whole.lower is not None
    at = whole.lower.epsilon(1e-6) if epsilon is None else epsilon
    upper, plain = float(whole.delta(at)), float(whole.lower.delta(at))
    turning = turning_attack(one, rounds, whole.epsilon(1e-9))(at)
    ratio = upper / max(plain, turning)
    print(f"{name:17} certified {upper:.4e}  plain {plain:.4e}  turning {turning:.4e}  ratio {ratio:.3f}", flush=True)


def main() -> None:
    for name, design in MULTISETS.items():
        line(f"{name}, 1000", amplify(NOISE, design), 1000, 1.0)
    for name, noise in (("Poisson, Gaussian", Gaussian(1.0)), ("Poisson, Laplace", Laplace(1.0))):
        line(name, amplify(noise, Poisson(0.01), RO), 100)


if __name__ == "__main__":
    main()
