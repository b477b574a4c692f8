"""The same question to privamp and to other libraries, in one run: epsilon, seconds, and seconds over privamp's.

    python benchmarks/peers.py            # asks every library that is installed

Each answer is computed once, after a small question to privamp and the imports of the others. What is not installed is
left out: dp-accounting, prv_accountant, autodp, PLD_accounting, Opacus.
"""

import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

from privamp import BallsInBins, Gaussian, Neighbors, Poisson, TruncatedPoisson, WithoutReplacement, amplify, compose
from privamp.adapters.moved_gaussians import MovedGaussians

AR, RO, DELTA = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE, 1e-6
MOVES, CHANCES = (0.0, 1.0, 2.0), (0.81, 0.18, 0.01)


def ours(make: Callable[[], Any]) -> dict[str, Callable[[], str]]:
    """The bound, and the attack where there is one, each from nothing."""
    return {
        "privamp": lambda: f"{make().epsilon(DELTA):.5f}",
        "privamp, attack": lambda: f"{lower.epsilon(DELTA):.5f}" if (lower := make().lower) else "none",
    }


def event(relation: str, event: Any, *, renyi: bool = False) -> Callable[[], str]:
    def ask() -> str:
        from dp_accounting import NeighboringRelation
        from dp_accounting.pld import PLDAccountant
        from dp_accounting.rdp import RdpAccountant

        kind = NeighboringRelation[relation]
        accountant = RdpAccountant(neighboring_relation=kind) if renyi else PLDAccountant(kind)
        return f"{accountant.compose(event()).get_epsilon(DELTA):.5f}"

    return ask


def dp() -> Any:
    from dp_accounting import dp_event

    return dp_event


def sampled() -> Any:
    return dp().SelfComposedDpEvent(dp().PoissonSampledDpEvent(0.01, dp().GaussianDpEvent(1.0)), 1000)


def prv() -> str:
    from prv_accountant.dpsgd import DPSGDAccountant

    accountant = DPSGDAccountant(1.0, 0.01, max_steps=1000, eps_error=0.01, delta_error=1e-9)
    low, _, high = accountant.compute_epsilon(delta=DELTA, num_steps=1000)
    return f"{high:.5f} (from below {low:.5f})"


def opacus() -> str:
    from opacus.accountants import PRVAccountant

    accountant = PRVAccountant()
    accountant.history = [(1.0, 0.01, 1000)]
    return f"{accountant.get_epsilon(DELTA):.5f}"


def autodp() -> str:
    from autodp import mechanism_zoo, transformer_zoo

    step = transformer_zoo.AmplificationBySampling(PoissonSampling=True)(
        mechanism_zoo.ExactGaussianMechanism(1.0), 0.01, improved_bound_flag=True
    )
    return f"{transformer_zoo.Composition()([step], [1000]).get_approxDP(DELTA):.5f}"


def allocation() -> str:
    from PLD_accounting import gaussian_allocation_epsilon_range

    high, low = gaussian_allocation_epsilon_range(delta=DELTA, sigma=1.0, num_steps=100)
    return f"{high:.5f} (from below {low:.5f})"


JOBS: dict[str, dict[str, Callable[[], str]]] = {
    "sampled Gaussian: rate 0.01, sigma 1, 1000 steps": {
        **ours(lambda: compose(amplify(Gaussian(1.0), Poisson(0.01)), 1000)),
        "dp-accounting, PLD": event("ADD_OR_REMOVE_ONE", sampled),
        "dp-accounting, RDP": event("ADD_OR_REMOVE_ONE", sampled, renyi=True),
        "prv_accountant": prv,
        "Opacus, PRV": opacus,
        "autodp, RDP": autodp,
    },
    "100 of 1000 without replacement, sigma 1, replace-one": {
        **ours(lambda: amplify(Gaussian(1.0), WithoutReplacement(100, 1000), RO)),
        "dp-accounting, RDP": event(
            "REPLACE_ONE",
            lambda: dp().SampledWithoutReplacementDpEvent(1000, 100, dp().GaussianDpEvent(1.0)),
            renyi=True,
        ),
    },
    "truncated Poisson: n 1000, rate 0.1, at most 120, sigma 4, 100 steps": {
        **ours(lambda: compose(amplify(Gaussian(4.0), TruncatedPoisson(0.1, 120, 999, 1001)), 100)),
        "dp-accounting, PLD": event(
            "ADD_OR_REMOVE_ONE",
            lambda: dp().SelfComposedDpEvent(dp().TruncatedSubsampledGaussianDpEvent(1000, 0.1, 120, 4.0), 100),
        ),
    },
    "mixture of three Gaussians, once": {
        **ours(lambda: amplify(MovedGaussians(1.0, MOVES, CHANCES), Poisson(1.0), AR)),
        "dp-accounting, PLD": event(
            "ADD_OR_REMOVE_ONE", lambda: dp().MixtureOfGaussiansDpEvent(1.0, list(MOVES), list(CHANCES))
        ),
    },
    "balls in bins: 100 rounds, sigma 1": {
        **ours(lambda: amplify(Gaussian(1.0), BallsInBins(100))),
        "PLD_accounting": allocation,
    },
}


def warm_up() -> None:
    compose(amplify(Gaussian(5.0), Poisson(0.1)), 3).epsilon(DELTA)
    for name in ("dp_accounting.pld", "dp_accounting.rdp", "prv_accountant.dpsgd", "autodp.transformer_zoo",
                 "PLD_accounting", "opacus.accountants"):  # fmt: skip
        with suppress(ModuleNotFoundError):
            import_module(name)


def main() -> None:
    warnings.simplefilter("ignore")
    warm_up()
    for job, libraries in JOBS.items():
        print(f"{job}, delta {DELTA:g}")
        first = None
        for library, ask in libraries.items():
            started = time.perf_counter()
            try:
                answer = ask()
            except ModuleNotFoundError as error:
                print(f"  {library:20} not installed ({error.name})")
                continue
            seconds = time.perf_counter() - started
            first = first or seconds
            print(f"  {library:20} epsilon {answer:34} {seconds:8.2f} s  {seconds / first:8.1f}")


if __name__ == "__main__":
    main()
