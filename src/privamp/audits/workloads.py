"""Audits of every shipped job, run end to end through its public interface, against its own guarantee.

Every run takes a fresh key, so the draw, the noise and the ledger are those of a real release. The data are the worst
known: all other records at 0, the changed one as far out as allowed. The attacker knows everything but whether it was
there, and scores what was published: by the likelihood ratio where it can be written down, else by a number that grows
with it.
"""

import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..accounting.budget import Budget
from ..accounting.filters import PureFilter
from ..core.guarantee import Guarantee
from ..core.population import Population
from ..core.release import Release
from ..designs.poisson import Poisson
from ..designs.simple_random import WithoutReplacement
from ..designs.stratified import Stratified
from ..mechanisms.fixed_point import ExactLaplace
from ..numerics.log_domain import FloatArray
from ..sums.private_mean import PrivateMean
from ..sums.private_sum import PrivateSum
from .audit import Audit

Once = Callable[[bool], tuple[Any, Guarantee]]  # (is the record there?) -> (what the attacker scores, the guarantee)
EPSILON, DELTA = 2.0, 1e-2  # small enough to be certified by few runs, large enough to be seen in few
SLOW, QUICK = 1200, 5000  # runs of each world: of jobs that take about 10 ms, and about 2 ms


def _audit(name: str, what: str, once: Once, delta: float = 0.0, trials: int = SLOW) -> Audit:
    """An audit whose claim is the guarantee of one of its own runs; a run gives one number, the score."""
    _, guarantee = once(True)

    def run(there: bool, runs: int) -> FloatArray:
        return np.array([np.ravel(once(there)[0])[0] for _ in range(runs)], dtype=np.float64)[:, None]

    return Audit(name, what, guarantee.epsilon(delta), run, delta, lambda rows: rows[:, 0], trials)


def _last(records: int, value: float, there: bool) -> FloatArray:
    """All at 0 but the last, which is there or not (add/remove)."""
    x = np.zeros((records if there else records - 1, 1))
    if there:
        x[-1] = value
    return x


def private_sum() -> Audit:
    """The exact path with Laplace noise."""
    job = PrivateSum(bounds=1.0, scale=0.5)

    def once(there: bool) -> tuple[Any, Guarantee]:
        found = job.release(_last(3, 1.0, there))
        return found.value, found.guarantee

    return _audit("private sum", "PrivateSum, exact Laplace noise", once, trials=QUICK)


def private_sum_gaussian() -> Audit:
    """The exact path with Gaussian noise."""
    job = PrivateSum(bounds=1.0, scale=1.0, noise="gaussian", delta=DELTA)

    def once(there: bool) -> tuple[Any, Guarantee]:
        found = job.release(_last(3, 1.0, there))
        return found.value, found.guarantee

    return _audit("private sum, gaussian", "PrivateSum, exact Gaussian noise", once, DELTA, QUICK)


def private_sum_norm() -> Audit:
    """Norm noise in three dimensions; the score is its likelihood ratio."""
    job, far = PrivateSum(bounds=1.0, scale=0.5, noise="norm"), np.array([1.0, 0.0, 0.0])

    def once(there: bool) -> tuple[Any, Guarantee]:
        found = job.release(np.vstack([np.zeros((2, 3)), far])[: 3 if there else 2])
        return np.linalg.norm(found.value) - np.linalg.norm(found.value - far), found.guarantee

    return _audit("private sum, norm noise", "PrivateSum of 3 columns, norm noise", once, trials=QUICK)


def private_mean() -> Audit:
    """A mean over secretly many records: two released numbers, sum and count."""
    job, records = PrivateMean(bounds=1.0, scale=0.6), 20

    def once(there: bool) -> tuple[Any, Guarantee]:
        found = job.release(_last(records, 1.0, there))
        return _mean_score(found, records - 1, job.count_share), found.guarantee

    return _audit("private mean", "PrivateMean, number of records secret", once, trials=QUICK)


def _mean_score(found: Release, others: int, share: float) -> float:
    """The likelihood ratio up to its scale: the sum moves by 1, the entry that counts by `share`."""
    count = float(found.count or 1.0)
    total, counted = float(np.ravel(found.value)[0]) * max(count, 1.0), share * (count - others)
    return abs(total) - abs(total - 1.0) + abs(counted) - abs(counted - share)


def importance_sum() -> Audit:
    """Privacy-constrained weights: the far record is kept more often than others, and weighs less."""
    job = PrivateSum(bounds=1.0, epsilon=EPSILON, scale=0.8, sampler="privacy-constrained")

    def once(there: bool) -> tuple[Any, Guarantee]:
        found = job.release(_last(3, 1.0, there))
        return found.value, found.guarantee

    return _audit("importance-sampled sum", "PrivateSum, privacy-constrained sample, a far record", once, trials=QUICK)


def uniform_sum() -> Audit:
    """A sum from a Poisson sample, in which all records have the same weight."""
    job = PrivateSum(bounds=1.0, scale=0.7, sampler=Poisson(0.6))

    def once(there: bool) -> tuple[Any, Guarantee]:
        found = job.release(_last(3, 1.0, there))
        return found.value, found.guarantee

    return _audit("uniformly sampled sum", "PrivateSum, Poisson sample", once, trials=QUICK)


def kmeans() -> Audit:
    """One step around one centre, on all records; the changed one is as far out as it may be."""
    return _kmeans("k-means", "PrivateKMeans, k = 1, all records", None, 0.7, 1.0)


def kmeans_sampled() -> Audit:
    """The others at the radius, where they are always drawn: else their draw hides more than the noise does."""
    return _kmeans("k-means, sampled", "PrivateKMeans, k = 1, importance sample", "privacy-constrained", 1.0, 0.5)


def _kmeans(name: str, what: str, sampler: str | None, others_at: float, record_at: float) -> Audit:
    """The score is the likelihood ratio of the sum and the count when the record was drawn."""
    from ..kmeans.estimator import PrivateKMeans

    others = np.repeat([[others_at], [-others_at]], 100, axis=0)
    everybody = np.vstack([others, [[record_at]]])

    def once(there: bool) -> tuple[Any, Guarantee]:
        job = PrivateKMeans(1, EPSILON, radius=1.0, n_iter=1, init=[[0.0]], n_jobs=1, sampler=sampler)
        job.fit(everybody if there else others)
        (step,) = job._fitted.plan.mechanisms  # public, as the rule is
        b_sum, b_count = step.sums.scale, step.counts.scale  # type: ignore[attr-defined]
        weight = float(job._fitted.rule.weights_of_norms(np.array([record_at]))[0])
        count = float(job.counts_[0])
        total, more = float(job.cluster_centers_[0, 0]) * count, count - len(others)
        score = (abs(total) - abs(total - weight * record_at)) / b_sum + (abs(more) - abs(more - weight)) / b_count
        return score, job.guarantee_

    return _audit(name, what, once, trials=1600)


def survey_stratified() -> Audit:
    """A stratified mean: one record of the thin stratum moves from the lower to the upper bound."""
    from ..survey import estimate

    design = Stratified([("few", WithoutReplacement(2, 4)), ("many", WithoutReplacement(3, 4))])
    stratum = np.array(["few"] * 4 + ["many"] * 4)

    def once(there: bool) -> tuple[Any, Guarantee]:
        values = np.zeros(8)
        values[0] = float(there)
        sample = design.draw(Population(8, stratum=stratum))
        found = estimate(sample, values, bounds=(0, 1), epsilon=EPSILON, stratum=stratum, sd="range")
        return found.value, found.guarantee

    return _audit("survey, stratified", "estimate of a mean in two strata", once, trials=3000)


def survey_simple() -> Audit:
    """A mean with a private variance beside it; the value alone is scored, the variance says little more."""
    from ..survey import estimate

    design = WithoutReplacement(3, 4)

    def once(there: bool) -> tuple[Any, Guarantee]:
        values = np.zeros(4)
        values[0] = float(there)
        found = estimate(design.draw(Population(4)), values, bounds=(0, 1), epsilon=EPSILON)
        return found.value, found.guarantee

    return _audit("survey, simple", "estimate of a mean with a private variance", once, trials=QUICK)


def survey_gaussian() -> Audit:
    """A Poisson total with Gaussian noise; the others in the middle of the bounds, where their draw hides nothing."""
    from ..survey import estimate

    design = Poisson(0.6)

    def once(there: bool) -> tuple[Any, Guarantee]:
        values = 0.5 + _last(3, 0.5, there)[:, 0]
        sample = design.draw(Population(values.size))
        options: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "noise": "gaussian", "sd": "range"}
        found = estimate(sample, values, "total", bounds=(0, 1), population=3, **options)
        return found.value, found.guarantee

    return _audit("survey, gaussian", "estimate of a Poisson total, Gaussian noise", once, DELTA, QUICK)


def bootstrap_mean() -> Audit:
    """Subsampled means; their average, from which all the rest is computed."""
    from ..bootstrap import run

    def once(there: bool) -> tuple[Any, Guarantee]:
        values = np.full(6, 0.5)
        values[0] = float(there)
        options: dict[str, Any] = {"resamples": 2, "size": 5, "jobs": 1}
        found = run(values, bounds=(0, 1), epsilon=EPSILON, delta=DELTA, **options)
        return found.value, found.guarantee

    return _audit("bootstrap mean", "bootstrap.run, two subsamples", once, DELTA, QUICK)


def gradient_descent() -> Audit:
    """Three steps of a line through the origin; the last parameter is the sum of all noisy gradients."""
    from ..sgd import PrivateLinear

    model = PrivateLinear(Poisson(0.7), steps=3, sigma=1.2, population=3, intercept=False, learning_rate=1.0)

    def once(there: bool) -> tuple[Any, Guarantee]:
        x = _last(3, 1.0, there)
        model.fit(x, -1000.0 * x[:, 0])  # the residual is above the clip wherever the noise leads
        return -model.coef_, model.guarantee_

    return _audit("gradient descent", "PrivateLinear, 3 Poisson steps", once, DELTA, QUICK)


def neural_network() -> Audit:
    """One weight under the torch engine, with importance sampling."""
    import torch

    from ..torch import PrivacyEngine

    def once(there: bool) -> tuple[Any, Guarantee]:
        x = torch.tensor(_last(3, 1.0, there), dtype=torch.float32)
        model = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.zeros_(model.weight)
        options: dict[str, Any] = {"sample_rate": 0.7, "steps": 3, "noise_multiplier": 1.2, "max_grad_norm": 1.0}
        engine = PrivacyEngine()
        engine.make_private(
            module=model, optimizer=torch.optim.SGD(model.parameters(), lr=1.0), criterion=torch.nn.MSELoss(),
            data_loader=torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, -1000.0 * x)),
            population=3, sampler="importance", **options,
        )  # fmt: skip
        engine.train()
        return -float(model.weight.detach()), engine.guarantee()

    return _audit("neural network", "torch PrivacyEngine, 3 importance-sampled steps", once, DELTA)


def many_queries() -> Audit:
    """Four queries on one sample, chosen one after the other within a filter."""
    design, noise = Poisson(0.5), ExactLaplace(1.5)

    def once(there: bool) -> tuple[Any, Guarantee]:
        rows = np.ones(1 if there else 0)
        sample = design.draw(Population(rows.size)).limit(PureFilter(4 / noise.scale + 1e-6))
        answers = np.array([sample.release(noise, noise.sum_of(rows)) for _ in range(4)])
        return (np.abs(answers) - np.abs(answers - 1.0)).sum(), sample.guarantee()

    return _audit("many queries", "four Laplace answers from one Poisson sample, through a filter", once, trials=QUICK)


def budgeted_sum() -> Audit:
    """A sum that is charged to a budget on disk before its noise is drawn."""
    job = PrivateSum(bounds=1.0, epsilon=EPSILON)

    def run(there: bool, runs: int) -> FloatArray:
        with tempfile.TemporaryDirectory() as folder:
            budget = Budget.create(Path(folder) / "budget.db", population="records", epsilon=(EPSILON + 1e-6) * runs)
            found = [job.release(_last(3, 1.0, there), budget=budget) for _ in range(runs)]
        return np.array([np.ravel(each.value)[0] for each in found])[:, None]

    claimed = job.release(_last(3, 1.0, True)).guarantee.epsilon()
    what = "PrivateSum charged to a budget"
    return Audit("budgeted sum", what, claimed, run, score=lambda rows: rows[:, 0], trials=SLOW)


WORKLOADS = (
    private_sum,
    private_sum_gaussian,
    private_sum_norm,
    private_mean,
    importance_sum,
    uniform_sum,
    kmeans,
    kmeans_sampled,
    survey_stratified,
    survey_simple,
    survey_gaussian,
    bootstrap_mean,
    gradient_descent,
    *((neural_network,) if find_spec("torch") else ()),
    many_queries,
    budgeted_sum,
)
