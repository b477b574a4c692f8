"""privamp: privacy amplification by sampling. Draw, certify, run. Every name below loads when it is used."""

from importlib import import_module
from typing import Any

from .extras import is_installed as _is_installed

__version__ = "0.2.0"

_HOME = {
    "Neighbors": "core.neighbors",
    "Population": "core.population",
    "Profile": "core.profile",
    "Mechanism": "core.mechanism",
    "Change": "core.mechanism",
    "Design": "core.design",
    "Theorem": "core.theorem",
    "Named": "core.identity",
    "register": "core.written",
    "Word": "core.words",
    "Claim": "core.claim",
    "Guarantee": "core.guarantee",
    "Sample": "core.sample",
    "Release": "core.release",
    "Key": "chance.keys",
    "PrivampError": "errors",
    "InvalidInput": "errors",
    "MissingExtra": "errors",
    "NoTheorem": "errors",
    "Infeasible": "errors",
    "BudgetExceeded": "errors",
    "Laplace": "mechanisms.laplace",
    "Gaussian": "mechanisms.gaussian",
    "DiscreteLaplace": "mechanisms.discrete_laplace",
    "DiscreteGaussian": "mechanisms.discrete_gaussian",
    "ExactLaplace": "mechanisms.fixed_point",
    "ExactGaussian": "mechanisms.fixed_point",
    "GeometricCount": "mechanisms.geometric",
    "RandomizedResponse": "mechanisms.randomized_response",
    "NormNoise": "mechanisms.norm_noise",
    "PureDP": "mechanisms.black_box",
    "ApproxDP": "mechanisms.black_box",
    "Joint": "accounting.joint",
    "PureFilter": "accounting.filters",
    "ApproxFilter": "accounting.filters",
    "RenyiFilter": "accounting.filters",
    "GaussianFilter": "accounting.filters",
    "Budget": "accounting.budget",
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
    "PPSClusters": "designs.pps_clusters",
    "SystematicPPS": "designs.systematic_pps",
    "PoissonPPS": "designs.poisson_pps",
    "ConditionalPoisson": "designs.conditional_poisson",
    "TruncatedPoisson": "designs.truncated_poisson",
    "Stratified": "designs.stratified",
    "ImportanceSampling": "designs.importance",
    "Schedule": "core.schedule",
    "Rounds": "schedules.rounds",
    "BallsInBins": "schedules.balls_in_bins",
    "CyclicPoisson": "schedules.cyclic_poisson",
    "shuffling_attack": "accounting.shuffling",
    "Influence": "core.influence",
    "SumAndCount": "mechanisms.sum_and_count",
    "LinearProfile": "rules.profiles",
    "GaussianProfile": "rules.profiles",
    "GeneralProfile": "rules.profiles",
    "Rule": "rules.rule",
    "privacy_constrained": "rules.privacy_constrained",
    "coreset": "rules.coreset",
    "coreset_size": "rules.coreset_size",
    "uniform": "rules.uniform",
    "variance_optimal": "rules.variance_optimal",
    "NormHistogram": "rules.norm_histogram",
    "noise_for_guarantee": "rules.noise_and_size",
    "noise_for_size": "rules.noise_and_size",
    "size_for_noise": "rules.noise_and_size",
    "private_norm_histogram": "kmeans.norm_histogram",
    "PrivateSum": "sums.private_sum",
    "open_table": "queries",
    "Table": "queries",
    "PrivateKMeans": "kmeans.estimator",
    "PrivateMean": "sums.private_mean",
    "PublicScaler": "numerics.public_scaler",
    "amplify": "amplification",
    "compose": "accounting.composition",
    "calibrate": "calibration",
}
_ROOMS = ("bootstrap", "datasets", "kmeans", "sgd", "spec", "sums", "survey", "testing", "verify")
_EXTRAS = ("spark", "torch")  # need more than the core's dependencies, so `from privamp import *` leaves them out
# `from privamp import *` leaves these out where what they need is not installed.
_NEEDS = {"PrivateKMeans": "sklearn", "open_table": "pyarrow", "Table": "pyarrow"}

__all__ = [*sorted(name for name in _HOME if name not in _NEEDS or _is_installed(_NEEDS[name])), "__version__", *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    if name in (*_ROOMS, *_EXTRAS):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_HOME, *_EXTRAS})
