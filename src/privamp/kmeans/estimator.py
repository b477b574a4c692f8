"""PrivateKMeans: differentially private k-means.

One importance sample is drawn and a fixed plan of noisy Lloyd steps is run on it; the plan is composed inside the
sample and amplified once. Before that, a noisy first look at all the data, paid for as well, sets the noise for the
target sample size and selects the columns that are worth their noise. Derivation and figures: docs/kmeans.md.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..chance.keys import Key, given_key
from ..chance.seeds import key_of_seed
from ..core.guarantee import Guarantee
from ..core.ledger import BudgetLike
from ..core.release import Release, renamed
from ..core.several_fits import OneOfSeveral
from ..extras import missing
from ..numerics import rounding
from ..numerics.log_domain import FloatArray
from .ball import chunks, lengths, measured
from .fit import Fitted, Request, run
from .nearest import nearest
from .tables import table_of
from .threads import ThreadPool

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError as error:
    raise missing(error, "PrivateKMeans") from None


class PrivateKMeans(OneOfSeveral, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Differentially private k-means under add/remove of one record.

    Parameters ---------- n_clusters : how many centres. epsilon : the whole budget of a fit. No default: it must be
    chosen. delta : 0 with norm noise (pure privacy), above 0 with Gaussian noise. sampler : "privacy-constrained",
    "coreset", "uniform", or None for all records. sample_size : expected size of the sample; None chooses it from the
    noise of the whole data. noise : "norm" (pure) or "gaussian". radius : public bound on the distance of records from
    `center`; farther ones are projected onto the ball, none is dropped. "private" estimates it from the budget. No
    default: it must be chosen. center : public centre of the ball; None is the origin, "private" estimates it from the
    budget. bounds : instead of both, the public range of the columns: (lowest, highest) for all, one such pair per
    column, or a
        number r for rows no longer than r. The ball is then the smallest around that range.
    n_iter : the most Lloyd steps; fewer when another step would add more noise than it removes error (`n_iter_`).
    init : "spread", "ball", or public points, one row per centre.
    random_state : for tests only, inside `privamp.testing.seeds_allowed()`.
    n_jobs : threads; None for every core.
    first_look : share of epsilon spent on the first look; less where a private ball finds too few records to count.
    progress : called as progress(step, steps, centres) after every step, with released centres.

    Attributes
    ----------
    cluster_centers_ : the released centres, in the units of the data.
    guarantee_ : the `Guarantee` of everything above.
    result_ : the `Release`: centres, the noise in them, the guarantee, and the numbers below as its details.
    counts_ : noisy numbers of records per centre in the last step.
    n_records_, sample_size_ : noisy size of the data and expected size of the sample.
    n_iter_, radius_, center_ : what was used. With 0 steps the noise allows only one centre, the overall mean.
    columns_used_ : the columns in which centres differ, by their place. In all others, which vary too little for their
        noise, every centre is at the released overall mean.
    budget_ : what was released, its epsilon and its delta, in the order it was spent.

    There is no `labels_`: which records were in the sample, and where they went, is secret. `predict` gives the nearest
    released centre of any records; `fit_predict` is `fit` and then `predict`. `predict`, `transform`, `score` and
    `losses` describe the records given to them: their results are NOT PRIVATE for those.

    >>> import numpy as np
    >>> from privamp import PrivateKMeans
    >>> points = np.concatenate([np.full((3000, 2), -1.0), np.full((3000, 2), 1.0)])
    >>> model = PrivateKMeans(n_clusters=2, epsilon=2.0, radius=2.0).fit(points)
    >>> model.cluster_centers_.shape, model.guarantee_.epsilon()
    ((2, 2), 2.0)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        epsilon: float | None = None,
        delta: float = 0,
        sampler: str | None = "privacy-constrained",
        sample_size: float | None = None,
        noise: str = "norm",
        radius: float | str | None = None,
        center: ArrayLike | str | None = None,
        n_iter: int = 10,
        init: ArrayLike | str = "spread",
        random_state: Any = None,
        n_jobs: int | None = None,
        first_look: float = 0.05,
        progress: Callable[[int, int, FloatArray], None] | None = None,
        bounds: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.sampler = sampler
        self.sample_size = sample_size
        self.noise = noise
        self.radius = radius
        self.center = center
        self.n_iter = n_iter
        self.init = init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.first_look = first_look
        self.progress = progress
        self.bounds = bounds

    def fit(
        self, X: Any, y: Any = None, *, key: Key | None = None, budget: BudgetLike | None = None
    ) -> "PrivateKMeans":
        """Release centres of X, charged to `budget` if given, before any record is read. `y` is ignored."""
        X = self._records(X, reset=True)
        request, key = Request.of(self, X.shape[1]), self._key() if key is None else given_key(key)
        with ThreadPool(self.n_jobs) as pool, request.paid(key, budget) as done:
            fitted, guarantee = run(request, X, key, pool, self.progress)
            done(guarantee)
        return self._adopt(fitted, self._among_others(guarantee, charged=budget is not None))

    def _adopt(self, fitted: Fitted, guarantee: Guarantee) -> "PrivateKMeans":
        """Become the estimator of a fit, made here or on a cluster."""
        self._fitted, self.guarantee_ = fitted, guarantee
        self.cluster_centers_ = fitted.centres
        self.counts_ = fitted.counts
        self.n_records_ = fitted.records
        self.sample_size_ = fitted.sample_size
        self.n_iter_ = fitted.steps
        self.columns_used_ = fitted.columns
        self.radius_, self.center_ = fitted.ball.radius, fitted.ball.center
        self.budget_ = fitted.budget
        self.result_ = self._released(fitted, guarantee)
        return self

    def _released(self, fitted: Fitted, guarantee: Guarantee) -> Release:
        """The centres as a `Release`; their sampling error is unknown, because the assignment of records is secret."""
        names = tuple(f"centre {at + 1}" for at in range(len(fitted.centres)))
        details = {
            "columns": [str(name) for name in getattr(self, "feature_names_in_", ())],
            "counts": fitted.counts,
            "records": fitted.records,
            "sample_size": fitted.sample_size,
            "steps": self.n_iter_,
            "radius": fitted.ball.radius,
            "center": fitted.ball.center,
            "columns_used": fitted.columns,
            "spent": fitted.budget,
            "epsilon": fitted.epsilon,
            "delta": fitted.delta,
        }
        errors = fitted.noise_error[:, None], None
        return Release(fitted.centres, *errors, guarantee, self.noise, names=names, details=details)

    @property
    def privacy_(self) -> Guarantee:
        """The old name of `guarantee_`."""
        renamed("privacy_", "guarantee_")
        return self.guarantee_

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> NDArray[np.intp]:
        """`fit(X, key=…, budget=…)`, then `predict(X)`: the nearest released centre of each record."""
        return self.fit(X, **kwargs).predict(X)

    def predict(self, X: Any) -> NDArray[np.intp]:
        """The nearest released centre of every row."""
        check_is_fitted(self)
        X = self._records(X, reset=False)
        ball, points = self._fitted.ball, self._points()
        labels = np.empty(len(X), dtype=np.intp)

        def part(span: slice) -> None:
            for rows in chunks(span, X.shape[1]):
                labels[rows] = nearest(ball.unit(X[rows]), points, lengths(ball, X[rows]))

        with ThreadPool(self.n_jobs) as pool:
            pool.map(part, pool.spans(len(X)))
        return labels

    def transform(self, X: Any) -> FloatArray:
        """Distances of every row to the centres, shape (rows, n_clusters)."""
        check_is_fitted(self)
        from sklearn.metrics.pairwise import euclidean_distances

        X = self._records(X, reset=False)
        return np.asarray(self.radius_ * euclidean_distances(self._fitted.ball.unit(X), self._points()))

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the k-means cost of X, as in scikit-learn: a diagnostic, NOT PRIVATE."""
        return -float(np.sum(np.min(self.transform(X), axis=1) ** 2))

    def losses(self, X: Any) -> FloatArray:
        """The personal epsilon (at `delta`) of every row: what it could lose by taking part, never above `epsilon`."""
        check_is_fitted(self)
        X = self._records(X, reset=False)
        with ThreadPool(self.n_jobs) as pool:
            found = measured(self._fitted.ball, X, pool)
        personal = self._fitted.rule.losses_of_norms(np.minimum(found, 1.0))
        spent = rounding.number_up(self._fitted.epsilon - self._fitted.left)
        return np.minimum(spent + personal, self._fitted.epsilon)

    def __sklearn_tags__(self) -> Any:
        """Missing and infinite entries are no error: an error would leak information."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def labels_(self) -> NDArray[np.intp]:
        """Not there: where the records of the sample went is secret."""
        raise AttributeError(
            "PrivateKMeans has no labels_: where the records of its sample went is secret; use predict(X)"
        )

    @property
    def _n_features_out(self) -> int:
        return int(self.cluster_centers_.shape[0])

    def _key(self) -> Key:
        if self.random_state is None:
            return Key.generate()
        if isinstance(self.random_state, np.random.RandomState):
            return key_of_seed(int(self.random_state.randint(2**31)))
        return key_of_seed(self.random_state)

    def _records(self, X: Any, *, reset: bool) -> NDArray[Any]:
        """A table of numbers, not copied where it is one; scikit-learn looks at names and number of columns only."""
        table = table_of(X)
        validate_data(self, X if hasattr(X, "columns") else table, reset=reset, skip_check_array=True)
        return table

    def _points(self) -> FloatArray:
        """The centres about the ball's own, in units of its radius."""
        return np.asarray((self.cluster_centers_ - self.center_) / self.radius_)
