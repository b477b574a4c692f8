"""privamp: privacy amplification by sampling. Draw, certify, run. Every name below loads when it is used."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Neighbors": "core.neighbors",
    "Population": "core.population",
    "Profile": "core.profile",
    "Mechanism": "core.mechanism",
    "Change": "core.mechanism",
    "Design": "core.design",
    "Theorem": "core.theorem",
    "Guarantee": "core.guarantee",
    "Sample": "core.sample",
    "Key": "chance.keys",
    "PrivampError": "errors",
    "InvalidInput": "errors",
    "NoTheorem": "errors",
    "Infeasible": "errors",
    "BudgetExceeded": "errors",
    "Laplace": "mechanisms.laplace",
    "Gaussian": "mechanisms.gaussian",
    "DiscreteLaplace": "mechanisms.discrete_laplace",
    "DiscreteGaussian": "mechanisms.discrete_gaussian",
    "GeometricCount": "mechanisms.geometric",
    "RandomizedResponse": "mechanisms.randomized_response",
    "NormNoise": "mechanisms.norm_noise",
    "PureDP": "mechanisms.black_box",
    "ApproxDP": "mechanisms.black_box",
    "Joint": "accounting.joint",
    "Poisson": "designs.poisson",
    "WithoutReplacement": "designs.simple_random",
    "WithReplacement": "designs.with_replacement",
    "MultiStage": "designs.multistage",
    "RandomSize": "designs.random_size",
    "Proportional": "designs.proportional",
    "SharedRate": "designs.shared_rate",
    "Systematic": "designs.systematic",
    "ClusterSampling": "designs.cluster",
    "ClusterPPS": "designs.cluster_pps",
    "PoissonPPS": "designs.poisson_pps",
    "ConditionalPoisson": "designs.conditional_poisson",
    "Stratified": "designs.stratified",
    "amplify": "amplification",
    "compose": "accounting.composition",
    "calibrate": "calibration",
}
_ROOMS = ("spec", "survey", "testing", "verify")

__all__ = [*sorted(_HOME), "__version__", *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
