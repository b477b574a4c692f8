"""The setting of MUST section 4.1: n = 1000 records, m = 400 drawn, b = 500 in the stage between; Laplace or Gaussian.

The paper's numbers are those of its Theorem 4 and Table 2, delta' = sum_u p_u delta_u(eps) at
eps' = log(1 + eta (e^eps - 1)); `printed_bound` is that theorem. `amplify` may use a better one.
"""

from typing import Final

from ...core.design import Design
from ...core.mechanism import Mechanism
from ...core.neighbors import Neighbors
from ...core.profile import Profile
from ...designs.multistage import MultiStage
from ...designs.simple_random import WithoutReplacement
from ...designs.with_replacement import WithReplacement
from ...errors import NoTheorem
from ...mechanisms.gaussian import Gaussian
from ...mechanisms.laplace import Laplace
from ...numerics.log_domain import log_mix

MUST = "Zhao, Zhou & Liu, MULTistage Sampling Technique (MUST)"
RO: Final = Neighbors.REPLACE_ONE

N, M, B = 1000, 400, 500
DESIGNS: Final[dict[str, Design]] = {
    "WOR": WithoutReplacement(M, N),
    "WR": WithReplacement(M, N),
    "MUSTow": MultiStage((("wor", B), ("wr", M)), N),
    "MUSTww": MultiStage((("wr", B), ("wr", M)), N),
}
MECHANISMS = ("Laplace", "Gaussian")

# Okabe and Ito's colour-blind safe palette, with a dash pattern each for prints without colour.
LOOKS: Final = {
    "WOR": ("#0072B2", "-"),
    "WR": ("#D55E00", "--"),
    "MUSTow": ("#009E73", "-."),
    "MUSTww": ("#A2347F", ":"),
}

_PRINTED_THEOREMS = ("Simple random sampling", "With replacement", "Multi-stage sampling, Theorem A")


def mechanism(kind: str, ratio: float) -> Mechanism:
    """Noise of scale 1 on a value of replace-one sensitivity `ratio` (the paper's Delta/sigma)."""
    if kind == "Laplace":
        return Laplace(scale=1.0, sensitivity=ratio, neighbors=RO)
    return Gaussian(sigma=1.0, sensitivity=ratio, neighbors=RO)


def printed_bound(design: Design, base: Mechanism) -> Profile:
    """The profile by the theorem that the paper prints for this design."""
    for theorem in design.theorems:
        if theorem.name in _PRINTED_THEOREMS and theorem.gives == RO.kind:
            return theorem.bound(design, base, RO)
    raise NoTheorem(f"none of the paper's theorems applies to {design}: {', '.join(_PRINTED_THEOREMS)}")


def amplified(design: Design, epsilon: float) -> float:
    """eps' = log(1 + eta (e^eps - 1)), with the design's own eta."""
    return float(log_mix(design.appearances().eta, epsilon))
