"""The same release under four designs of equal size: compare epsilon at one delta, never eta alone."""

from privamp import Gaussian, MultiStage, Neighbors, Poisson, WithoutReplacement, WithReplacement, amplify

n, m, delta = 1000, 400, 1e-6
relation = Neighbors.REPLACE_ONE
designs = {
    "without replacement": WithoutReplacement(m, n),
    "Poisson": Poisson(m / n),
    "with replacement": WithReplacement(m, n),
    "two stages, wor 500 then wr": MultiStage([("wor", 500), ("wr", m)], n),
    "two stages, wr 500 then wr": MultiStage([("wr", 500), ("wr", m)], n),
}
print(f"{'design':28s} {'chance to be drawn':>18s} {'epsilon at 1e-6':>24s}")
found = {}
for name, design in designs.items():
    # one record moves the sum by 1/2 when added, so by 1 when replaced: the same data, two relations
    noise = Gaussian(1.0, 0.5) if isinstance(design, Poisson) else Gaussian(1.0, neighbors=relation)
    guarantee = amplify(noise, design, relation)
    found[name] = guarantee.lower.epsilon(delta), guarantee.epsilon(delta)
    eta = design.appearances().eta
    print(f"{name:28s} {eta:18.4f}   between {found[name][0]:6.3f} and {found[name][1]:6.3f}")
print("Fewer distinct records, more copies of each: the last rows look best by eta and are worst by epsilon.")
assert found["without replacement"][1] < found["with replacement"][0]
assert found["with replacement"][0] < found["two stages, wr 500 then wr"][0]
