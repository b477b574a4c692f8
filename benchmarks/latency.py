"""How long the first number takes: every case in a fresh process that has imported the library and computed nothing.

    python benchmarks/latency.py                     all cases, the least of five
    python benchmarks/latency.py --only cluster      those whose name contains a word
    python benchmarks/latency.py --repeats 1 --slow  one repeat, and only what is above its target

One thread on one core. A process is forked for every repeat, so that nothing is kept from one case to the next: what is
imported at first use and every table count. Targets in milliseconds: 50 for one release, 1,000 for a composition, 5,000
for a calibration of a chain, and 1,000 for any other calibration.
"""

import argparse
import os
import platform
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import numpy as np  # noqa: E402

from privamp import Design, Neighbors, NoTheorem, amplify, calibrate, compose, spec  # noqa: E402
from privamp.sgd.descent import Descent  # noqa: E402
from privamp.torch.plan import Plan, calibrated  # noqa: E402

AR, RO = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
DELTA = 1e-6
RELEASE, COMPOSITION, CHAIN, NOISE = 50.0, 1000.0, 5000.0, 1000.0  # targets, milliseconds
LONGEST = 120  # seconds of one repeat
clock = time.perf_counter

DESIGNS = (
    "poisson:rate=0.01",
    "wor:size=100,population=1000",
    "wr:size=100,population=1000",
    "wr:size=400,population=1000",
    "wr:size=2000,population=60000",
    "multistage:wor=118,wr=200,population=10000",
    "multistage:wor=500,wr=400,population=1000",
    "multistage:wr=20,wr=30,population=100",
    "multistage:wr=500,wr=400,population=1000",
    "multistage:wr=3000,wr=2000,population=60000",
    "multistage:wor=500,wr=400,wr=300,population=1000",
    "random-size:low=10,high=90,population=1000",
    "random-size-law:chances=10=0.5+20=0.5,population=100",
    "random-size-normal:mean=50,sd=10,population=1000",
    "proportional:rate=0.1,rounding=random",
    "proportional:rate=0.1,rounding=floor,at_most=200",
    "shared-rate:size=100,at_least=1000,strata=3",
    "systematic:step=10",
    "systematic:step=10,order=slots,max_slot=5",
    "cluster:chosen=5,clusters=50,max_size=4",
    "cluster:chosen=5,clusters=50,max_size=4,second_rate=0.3",
    "cluster:chosen=5,clusters=50,max_size=4,second_size=2,min_size=2",
    "cluster-pps:probabilities=0.2+0.3+0.5,max_size=4",
    "cluster-by-size:clusters=50,max_size=4,min_size=2",
    "pps-clusters:sizes=10+20+30+40,chosen=2,take=3",
    "systematic-pps:sizes=10+20+30+40,chosen=2,max_size=3",
    "poisson-pps:high=0.4,low=0.1",
    "proportional-pps:size=10,low=1,high=5,at_least=1000",
    "conditional-poisson:size=10,population=100,low=1,high=3",
    "class-rates:rates=common=0.01+rare=0.2",
    "capped-poisson:rate=0.1,most=120",
    "capped-poisson:rate=0.1,most=120,at_least=900,at_most=1100",
    "capped-poisson:rate=0.1,most=120,at_least=1000,at_most=1000",
    "stratified:shops=[poisson:rate=0.1],mines=[wor:size=5,population=50]",
    "stratified:shops=[wor:size=5,population=50],mines=[wor:size=10,population=50]",
    "importance:rule=privacy-constrained,epsilon=1,radius=4,scale=10,column=age+income",
    "importance:rule=uniform,rate=0.1,radius=4,scale=10",
    "importance:rule=uniform,rate=0.1,radius=4,sigma=10",
    "importance:rule=variance-optimal,kappa=0.1,radius=4,scale=10",
    "importance:rule=coreset,share=0.5,size=100,population=1000,mean_squared_norm=1,radius=4,scale=10",
)
MECHANISMS = ("gaussian:sigma=2", "laplace:scale=2", "pure:epsilon=1", "approx:epsilon=1,delta=1e-7")
RULES = {"scale": "exact-laplace:scale=10,sensitivity=4", "sigma": "exact-gaussian:sigma=10,sensitivity=4"}

# design, mechanism, rounds
COMPOSITIONS = (
    ("poisson:rate=0.01", "gaussian:sigma=1", 1000),
    ("poisson:rate=0.1", "laplace:scale=4", 100),
    ("poisson:rate=0.1", "pure:epsilon=0.5", 1000),
    ("wor:size=100,population=1000", "gaussian:sigma=4", 100),
    ("wor:size=256,population=60000", "gaussian:sigma=2", 1000),
    ("wr:size=100,population=1000", "gaussian:sigma=4", 100),
    ("wr:size=400,population=1000", "gaussian:sigma=4", 100),
    ("wr:size=256,population=60000", "gaussian:sigma=2", 1000),
    ("multistage:wor=118,wr=200,population=10000", "gaussian:sigma=4", 100),
    ("multistage:wor=500,wr=400,population=1000", "gaussian:sigma=4", 100),
    ("multistage:wor=500,wr=400,population=1000", "laplace:scale=4", 100),
    ("multistage:wr=20,wr=30,population=100", "gaussian:sigma=4", 100),
    ("multistage:wr=500,wr=400,population=1000", "gaussian:sigma=4", 100),
    ("multistage:wr=500,wr=400,population=1000", "laplace:scale=4", 100),
    ("multistage:wr=3000,wr=2000,population=60000", "gaussian:sigma=4", 1000),
    ("capped-poisson:rate=0.1,most=120,at_least=900,at_most=1100", "gaussian:sigma=4", 100),
    ("capped-poisson:rate=0.1,most=120,at_least=1000,at_most=1000", "gaussian:sigma=4", 1000),
    ("cluster:chosen=5,clusters=50,max_size=4", "gaussian:sigma=8", 100),
    ("cluster:chosen=5,clusters=50,max_size=4,second_rate=0.3", "gaussian:sigma=8", 100),
    ("stratified:shops=[wor:size=5,population=50],mines=[wor:size=10,population=50]", "gaussian:sigma=4", 100),
    ("balls-in-bins:rounds=100,epochs=10", "gaussian:sigma=1", 1),
    ("balls-in-bins:rounds=1000", "gaussian:sigma=1", 1),
    ("cyclic-poisson:rate=0.01,bands=4,steps=1000", "gaussian:sigma=1", 1),
    ("rounds:steps=1000,design=poisson:rate=0.01", "gaussian:sigma=1", 1),
)

# design, kind of noise, rounds, epsilon, delta
CALIBRATIONS = (
    ("poisson:rate=0.01", "gaussian:sigma=?", 1, 1.0, 1e-6),
    ("poisson:rate=0.01", "gaussian:sigma=?", 1000, 1.0, 1e-6),
    ("poisson:rate=0.01", "laplace:scale=?", 1, 1.0, 0.0),
    ("poisson:rate=0.1", "laplace:scale=?", 100, 1.0, 1e-6),
    ("poisson:rate=?", "gaussian:sigma=1", 1000, 1.0, 1e-6),
    ("wor:size=100,population=1000", "gaussian:sigma=?", 1, 1.0, 1e-6),
    ("wor:size=100,population=1000", "gaussian:sigma=?", 1000, 1.0, 1e-6),
    ("wr:size=100,population=1000", "gaussian:sigma=?", 1, 1.0, 1e-6),
    ("wr:size=100,population=1000", "gaussian:sigma=?", 100, 1.0, 1e-6),
    ("wr:size=400,population=1000", "gaussian:sigma=?", 1000, 1.0, 1e-6),
    ("multistage:wor=500,wr=400,population=1000", "gaussian:sigma=?", 1, 1.0, 1e-6),
    ("multistage:wor=500,wr=400,population=1000", "gaussian:sigma=?", 100, 1.0, 1e-6),
    ("multistage:wr=500,wr=400,population=1000", "gaussian:sigma=?", 1, 1.0, 1e-6),
    ("multistage:wr=500,wr=400,population=1000", "gaussian:sigma=?", 100, 1.0, 1e-6),
    ("multistage:wr=20,wr=30,population=100", "gaussian:sigma=?", 100, 1.0, 1e-6),
    ("multistage:wr=500,wr=400,population=1000", "laplace:scale=?", 1, 1.0, 0.0),
    ("capped-poisson:rate=0.1,most=120,at_least=1000,at_most=1000", "gaussian:sigma=?", 1, 1.0, 1e-6),
)
TRAINING = ((0.5, 3), (1.0, 3), (0.5, 1000), (1.0, 1000), (4.0, 1000))  # epsilon, steps at batches of 256 of 60,000


@dataclass(frozen=True)
class Case:
    """A number, and how long it may take."""

    group: str
    what: str
    target: float
    work: Callable[[], object]


def noise(text: str, neighbors: Neighbors) -> object:
    return spec.mechanism(text, neighbors.per_record if neighbors.scope == "anywhere" else RO)


def mechanisms_for(design: str) -> tuple[str, ...]:
    if not design.startswith("importance"):
        return MECHANISMS
    return (RULES["sigma" if "sigma" in design else "scale"],)


def relations_of(design: Design) -> list[Neighbors]:
    """Both relations, and the narrower scopes that a theorem of the design is about."""
    scopes = {theorem.scope for theorem in design.theorems} - {"anywhere"}
    return [AR, RO, *(Neighbors("replace-one", scope=scope) for scope in sorted(scopes))]


def releases() -> Iterator[Case]:
    """Every design, each kind of noise under every relation that has a theorem."""
    for text in DESIGNS:
        for mechanism in mechanisms_for(text):
            for relation in relations_of(spec.design(text)):
                work = released(text, mechanism, relation)
                yield Case("one release", f"{text} {mechanism} {relation}", RELEASE, work)


def released(text: str, mechanism: str, relation: Neighbors) -> Callable[[], object]:
    def work() -> object:
        guarantee = amplify(noise(mechanism, relation), spec.design(text), relation)
        return guarantee.epsilon() if mechanism.startswith("pure") else guarantee.epsilon(DELTA)

    return work


def compositions() -> Iterator[Case]:
    for text, mechanism, rounds in COMPOSITIONS:

        def work(text: str = text, mechanism: str = mechanism, rounds: int = rounds) -> object:
            design = spec.design_or_schedule(text)
            return compose(amplify(noise(mechanism, design.natural), design), rounds).epsilon(DELTA)

        times = f" {rounds} rounds" if rounds > 1 else ""
        yield Case("composition", f"{text} {mechanism}{times}", COMPOSITION, work)


def calibrations() -> Iterator[Case]:
    for text, mechanism, rounds, epsilon, delta in CALIBRATIONS:

        def work(
            text: str = text, mechanism: str = mechanism, rounds: int = rounds, epsilon: float = epsilon,
            delta: float = delta,
        ) -> object:  # fmt: skip
            design = spec.design_with_unknown(text)
            known = not isinstance(design, tuple)
            found = spec.mechanism_with_unknown(mechanism, design.natural if known else AR)
            return calibrate(
                found[1] if known else found, design if known else design[1],
                epsilon=epsilon, delta=delta, steps=rounds,
            )  # fmt: skip

        target = CHAIN if text.startswith("multistage") else NOISE
        yield Case("calibration", f"{text} {mechanism} {rounds} rounds, epsilon {epsilon:g}", target, work)


def trainings() -> Iterator[Case]:
    rate = 256 / 60000
    for epsilon, steps in TRAINING:

        def planned(epsilon: float = epsilon, steps: int = steps) -> object:
            found = calibrated("uniform", rate, steps, epsilon, 1e-5)
            plan = Plan(sampler="uniform", steps=steps, noise_multiplier=found, clip=1.0, population=60000, rate=rate)
            return plan.guarantee().epsilon(1e-5)

        def descended(epsilon: float = epsilon, steps: int = steps) -> object:
            design = spec.design("wor:size=256,population=60000")
            return Descent(design=design, steps=steps, epsilon=epsilon, delta=1e-5).mechanism()

        what = f"{steps} steps, epsilon {epsilon:g}"
        yield Case("training", f"privamp.torch, Poisson, {what}, and its epsilon", NOISE, planned)
        yield Case("training", f"privamp.sgd, fixed size, {what}", NOISE, descended)
    for schedule in ("balls-in-bins:rounds=234,epochs=5", "cyclic-poisson:rate=0.00427,bands=4,steps=1000"):

        def scheduled(schedule: str = schedule) -> object:
            design = spec.design_or_schedule(schedule)
            return calibrated(design, None, design.steps, 1.0, 1e-5)

        yield Case("training", f"privamp.torch, {schedule}, epsilon 1", NOISE, scheduled)


def in_a_child(case: Case) -> float | None:
    """Milliseconds of one run in a fresh process; None when no theorem covers it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(LONGEST)
        signal.signal(signal.SIGALRM, lambda *_: (os.write(writer, b"inf"), os._exit(0)))
        os.write(writer, run(case).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return float(text) if text else None


def run(case: Case) -> str:
    warnings.simplefilter("ignore")
    began = clock()
    try:
        case.work()
    except NoTheorem:
        return ""
    except Exception as error:
        print(f"{case.what}: {error}", file=sys.stderr)
        return ""
    return repr((clock() - began) * 1e3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose group or name contains this")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--slow", action="store_true", help="print only what is above its target")
    parser.add_argument(
        "--processor", action="store_true", help="processor time instead of wall time: on a busy machine"
    )
    asked = parser.parse_args()
    global clock
    clock = time.process_time if asked.processor else time.perf_counter
    cases = [*releases(), *compositions(), *calibrations(), *trainings()]
    print(f"one core ({platform.machine()}), Python {platform.python_version()}, NumPy {np.__version__}\n")
    print("| what | first number, ms | target | |\n|---|---|---|---|")
    counts: dict[str, list[bool]] = {}
    for case in cases:
        if asked.only not in f"{case.group}: {case.what}":
            continue
        first = in_a_child(case)
        if first is None:
            continue
        more = [in_a_child(case) for _ in range(asked.repeats - 1)]
        best = min(first, *(ms for ms in more if ms is not None)) if more else first
        counts.setdefault(case.group, []).append(best <= case.target)
        if best > case.target or not asked.slow:
            mark = "" if best <= case.target else "above"
            print(f"| {case.what} | {best:.0f} | {case.target:.0f} | {mark} |", flush=True)
    print()
    for group, met in counts.items():
        print(f"{group}: {sum(met)} of {len(met)} within the target")


if __name__ == "__main__":
    main()
