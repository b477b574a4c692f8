"""Five hundred guarantees, one per design, mechanism and relation: what the library says today, to the last digit.

`python tests/guarantees/guarantee_cases.py` writes the table `saved.csv` anew. Do that only for an intended change,
and list it under "Guarantees changed" in CHANGELOG.md.
"""

import csv
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from privamp import (
    ApproxDP,
    ClusterPPS,
    ClusterSampling,
    ConditionalPoisson,
    DiscreteGaussian,
    DiscreteLaplace,
    ExactGaussian,
    ExactLaplace,
    Gaussian,
    GaussianProfile,
    GeometricCount,
    ImportanceSampling,
    Joint,
    Laplace,
    LinearProfile,
    MultiStage,
    Neighbors,
    NormNoise,
    Poisson,
    PoissonPPS,
    PrivampError,
    Proportional,
    PureDP,
    RandomizedResponse,
    RandomSize,
    SharedRate,
    Stratified,
    Systematic,
    TruncatedPoisson,
    WithoutReplacement,
    WithReplacement,
    amplify,
    compose,
    privacy_constrained,
    uniform,
)
from privamp.designs.cluster_by_size import ClusterBySize
from privamp.designs.proportional_pps import ProportionalPPS

SAVED = Path(__file__).with_name("saved.csv")
DELTA = 1e-6  # of the roots
Near = Callable[[str, str, Callable], str | None]  # case, column, log delta: the saved root if it is one, else None
AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
RELATIONS = {
    "add-remove": AR,
    "replace-one": RO,
    "add-remove, 3 records": AR.for_person(3),
    "replace-one, 3 records": RO.for_person(3),
    "replace-one within stratum": Neighbors("replace-one", scope="within stratum"),
    "replace-one within cluster": Neighbors("replace-one", scope="within cluster"),
}
DESIGNS = {
    "poisson .01": Poisson(0.01),
    "poisson .5": Poisson(0.5),
    "poisson 1": Poisson(1.0),
    "wor 100 of 1000": WithoutReplacement(100, 1000),
    "wor 3 of 4": WithoutReplacement(3, 4),
    "wr 100 of 1000": WithReplacement(100, 1000),
    "wr 3 of 4": WithReplacement(3, 4),
    "wor then wr": MultiStage((("wor", 118), ("wr", 200)), 10_000),
    "wr then wr": MultiStage((("wr", 20), ("wr", 30)), 100),
    "random size": RandomSize.uniform(1, 20, 50),
    "proportional .1": Proportional(0.1),
    "proportional floor": Proportional(0.1, rounding="floor", at_most=200),
    "shared rate": SharedRate(20, 200, 3),
    "systematic random": Systematic(5),
    "systematic slots": Systematic(5, "slots", 3),
    "clusters": ClusterSampling(5, 50, 4),
    "clusters, poisson": ClusterSampling(5, 50, 4, Poisson(0.3)),
    "clusters, fixed": ClusterSampling(5, 50, 4, 2, 2),
    "cluster pps": ClusterPPS((0.5, 0.3, 0.2), 3),
    "cluster by size": ClusterBySize(4, 5, 2),
    "poisson pps": PoissonPPS(0.4, 0.1),
    "truncated poisson": TruncatedPoisson(0.1, 30, 100, 400),
    "truncated poisson, n public": TruncatedPoisson(0.1, 30, 200, 200),
    "poisson by class": PoissonPPS.by_class({"common": 0.05, "rare": 0.4}),
    "proportional pps": ProportionalPPS(5.0, 1.0, 3.0, 100),
    "conditional poisson": ConditionalPoisson(10, 100, 1.0, 3.0),
    "stratified": Stratified({"a": Poisson(0.1), "b": WithoutReplacement(10, 50)}),
    "stratified wor": Stratified({"a": WithoutReplacement(5, 50), "b": WithoutReplacement(10, 50)}),
    "importance, pure": ImportanceSampling(
        privacy_constrained(LinearProfile.of(Laplace(2.0)), 1.0, radius=1.0, max_weight=50.0)
    ),
    "importance, uniform": ImportanceSampling(uniform(GaussianProfile.of(Gaussian(2.0)), rate=0.4, radius=1.0)),
}
MECHANISMS = {
    "pure .5": lambda n: PureDP(0.5, neighbors=n),
    "pure 3": lambda n: PureDP(3.0, neighbors=n),
    "approx": lambda n: ApproxDP(0.5, 1e-6, neighbors=n),
    "laplace": lambda n: Laplace(2.0, neighbors=n),
    "gaussian": lambda n: Gaussian(2.0, neighbors=n),
    "discrete laplace": lambda n: DiscreteLaplace(2.0, neighbors=n),
    "discrete gaussian": lambda n: DiscreteGaussian(2.0, neighbors=n),
    "exact laplace": lambda n: ExactLaplace(2.0),
    "exact gaussian": lambda n: ExactGaussian(2.0),
    "norm noise": lambda n: NormNoise(2.0, 3, neighbors=n),
    "randomised response": lambda n: RandomizedResponse(1.0),
    "geometric": lambda n: GeometricCount(0.5, neighbors=n),
    "joint pure": lambda n: Joint([PureDP(0.2, neighbors=n)] * 3),
    "joint gaussian": lambda n: Joint([Gaussian(4.0, neighbors=n)] * 5),
}
# Where a program is solved for every row, mechanisms that are not pure: two each, and those with an exact theorem.
BY_PROGRAM = {
    "clusters": ("approx", "discrete gaussian", "gaussian", "joint gaussian"),
    "clusters, poisson": ("approx", "gaussian"),
    "clusters, fixed": ("approx", "gaussian"),
    "cluster pps": ("approx", "discrete gaussian", "gaussian", "joint gaussian"),
}
NOT_PURE = ("approx", "gaussian", "discrete gaussian", "exact gaussian", "joint gaussian")
COMPOSED = ("poisson .01", "wor 100 of 1000", "wr 100 of 1000", "wor then wr", "clusters", "stratified wor")
ONCE = ("stratified wor",)  # its 100 steps: composed as those of the others from the curve of one step
FEW = ("pure .5", "laplace", "gaussian", "approx")
COLUMNS = (
    "case",
    "epsilon",
    "epsilon(1e-6)",
    "delta(.5)",
    "delta(2)",
    "lower epsilon(1e-6)",
    "lower delta(.5)",
    "because",
)


def guarantees(names: tuple[str, ...] | None = None, *, quick: bool = False) -> Iterator[tuple[str, object]]:
    """(case, guarantee) for everything that has a theorem; `quick` leaves out rounds that say what others say."""
    for design, relation, mechanism in _combinations(names):
        neighbors = RELATIONS[relation]
        try:
            stated = MECHANISMS[mechanism](neighbors.per_record if neighbors.scope == "anywhere" else RO)
            one = amplify(stated, DESIGNS[design], neighbors)
        except PrivampError:
            continue
        yield f"{design} | {mechanism} | {relation}", one
        once = quick and (design in ONCE or is_of_a_wider_scope(design, relation))
        if design in COMPOSED and mechanism in FEW and neighbors.records == 1 and not once:
            yield f"{design} | {mechanism} | {relation} | 100 steps", compose(one, 100)


def _combinations(names: tuple[str, ...] | None) -> Iterator[tuple[str, str, str]]:
    for design in names or DESIGNS:
        for relation in RELATIONS:
            for mechanism in MECHANISMS:
                if ("3 records" not in relation or mechanism in FEW) and not _is_long(design, relation, mechanism):
                    yield design, relation, mechanism


def _is_long(design: str, relation: str, mechanism: str) -> bool:
    if design not in BY_PROGRAM or mechanism not in NOT_PURE:
        return False
    return mechanism not in BY_PROGRAM[design] or ("3 records" in relation and mechanism == "approx")


def is_of_a_wider_scope(design: str, relation: str) -> bool:
    """Whether no theorem of the design is about just this scope: then its row is that of replace-one."""
    scope = RELATIONS[relation].scope
    return scope != "anywhere" and all(theorem.scope != scope for theorem in DESIGNS[design].theorems)


def row(case: str, guarantee, *, near: Near | None = None) -> list[str | None]:
    """The numbers of a case.

    With `near`, the quick way: a saved root is confirmed by the curve on both sides of it instead of being sought, and
    roots that follow from the curve of another row are left out (None).
    """
    lower = guarantee.lower
    skips = near is not None and is_of_a_wider_scope(*(case.split(" | ")[i] for i in (0, 2)))

    def root(side, column: str) -> str | None:
        if skips or side is None:
            return None if skips else ""
        curve = guarantee.upper if side is guarantee else side.profile
        kept = near(case, column, curve.log_delta) if near else None
        return repr(float(side.epsilon(DELTA))) if kept is None else kept

    return [
        case,
        repr(float(guarantee.epsilon())),
        root(guarantee, "epsilon(1e-6)"),
        *(repr(float(x)) for x in guarantee.delta(np.array([0.5, 2.0]))),
        root(lower, "lower epsilon(1e-6)"),
        repr(float(lower.delta(0.5))) if lower else "",
        " + ".join(guarantee.because),
    ]


def table(names: tuple[str, ...] | None = None, *, near: Near | None = None) -> list[list[str | None]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [row(case, guarantee, near=near) for case, guarantee in guarantees(names, quick=near is not None)]


def main() -> None:
    with SAVED.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(table())


if __name__ == "__main__":
    main()
