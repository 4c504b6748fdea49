"""k-means that removes and inserts records exactly: Lloyd's algorithm on noisy sums and numbers of members."""

import copy
import math
import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import validate_data
from torch import Tensor

from certified_unlearning.accounting.core.checks import require_count, require_probability
from certified_unlearning.accounting.tv.planning import MOST_STEPS, plan_queries
from certified_unlearning.certificate import ExactClustersCertificate
from certified_unlearning.certificate.exact_clusters import CONTRIBUTION
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.estimators.advice import callers_level
from certified_unlearning.estimators.estimator import without_sample_weight
from certified_unlearning.estimators.exact.model import ExactModel
from certified_unlearning.estimators.linear import require_short_rows
from certified_unlearning.estimators.records import RecordStore
from certified_unlearning.estimators.requests import FrameIndex
from certified_unlearning.estimators.scaling import Array
from certified_unlearning.mechanisms.exact.queries.k_means import KMeans
from certified_unlearning.mechanisms.exact.queries.linear_queries import LinearQueries, LinearQuerySettings, QueryRun
from certified_unlearning.text import rounded_up
from certified_unlearning.vocabulary import NoiseSource

GRID = 2.0**-30
"""Rows are rounded to multiples of this.

Sums of up to 2^23 rows of norm 1 are then exact in float64, in any order. So the sums of a state that was edited have
the last bits of a fresh run's.
"""
LONGEST = 1 - 2.0**-40
"""Norm to which longer rows are scaled down, so that no norm is above 1 however it is computed."""
MOST_NOISE = 2.0**23
"""Largest standard deviation of the noise: sums beside it keep thirty bits of a record."""
DROWNED = 0.1
"""Norm of the noise in the centre of an average cluster above which `fit` warns; rows have norm at most 1."""


@dataclass(repr=False, eq=False)
class ExactKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, ExactModel):  # type: ignore[misc]
    """k-means that removes records exactly, with epsilon 0, and can insert new ones.

    It is Lloyd's algorithm. Each step queries the sum and the number of the records that are nearest to each centre,
    with Gaussian noise on both, and moves the centres to the quotients. A request examines one step after the other. A
    random test, which makes the distributions equal, decides whether the step may keep its noisy answers. From the
    first step that fails the test, all steps are recomputed. After any stream of deletions and insertions, centres and
    state together have the distribution of the same algorithm run from scratch on the present records, with the
    constants of the `fit`. This requires that requests are chosen without looking at the centres, and that the state
    stays secret. Differences smaller than the rounding of float64 are ignored.

    The noise is on sums over records, so **many records are needed**: it moves the centre of an average cluster by
    about ``.5 steps sqrt(features) n_clusters / (recompute_probability n)``, where rows have norm at most 1. `fit`
    warns if that distance is above 0.1. With few records, use ``recompute_probability=None``: then there is no noise,
    and each request learns anew.

    The guarantee covers deletions only: it does not protect the remaining records. A failed or interrupted call leaves
    the estimator as it was. Exactness covers one state only: overwrite the file of the previous state when you save.

    Args:
        n_clusters: Number of centres.
        steps: Number of steps, ``T``. The noise grows with it. It and all parameters below stay fixed over all
            requests.
        recompute_probability: Upper bound on the probability that the deletion of one record causes a recomputation of
            steps. The noise is the smallest that ensures this. None: no noise, and every request recomputes all steps
            except the first.
        init: Initial centres. ``mean``: they lie in random directions around the mean of all records, which the first
            step computes with noise. Or an array of shape ``(n_clusters, features)``, in units of ``X``, which must not
            be computed from these records.
        random_state: None: randomness from the operating system, whose seeds are overwritten. A number makes results
            repeatable, but it is a secret: with it and the records anybody can compute the state. Two models that were
            fitted with the same number have the same noise. It cancels in their difference, which then shows the record
            in which their data differ; this needs no knowledge of the number.

    Attributes:
        cluster_centers_: The centres, shape ``(n_clusters, features)``, of rows as the model sees them: after
            ``feature_ranges``, ``data_norm`` or ``normalize``.
        labels_: Number of the nearest centre of each remaining record, in the order of ``remaining_``.
        inertia_: Sum of the squared distances of the remaining records to their nearest centres.

    See Also:
        `ExactLogisticRegression`: The same guarantee for classes.

    Examples:
        >>> from certified_unlearning import ExactKMeans
        >>> X = [[0.0, 0.9], [0.8, 0.1]] * 5000
        >>> model = ExactKMeans(2, random_state=0).fit(X)
        >>> model.insert([[0.1, 0.8]])
        array([10000])
        >>> len(model.unlearn([2, 17]).remaining_)
        9999
        >>> bool(model.predict([[0.1, 0.7]]) == model.predict([[0.0, 0.9]]))
        True
        >>> model.certificate_.epsilon
        0
    """

    n_clusters: int = 8
    _: KW_ONLY
    steps: int = 10
    recompute_probability: float | None = 0.5
    init: Literal["mean"] | ArrayLike = "mean"

    @without_sample_weight
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from records.

        Args:
            X: Features, shape ``(n, features)``; an array, a data frame, or a sparse matrix, whose rows become dense.
                Rows must have norm at most 1, unless ``normalize``, ``feature_ranges`` or ``data_norm`` ensures it.
            y: Ignored, except that the index of a series names the records of an array.

        Returns:
            The fitted estimator. `unlearn` names records by their position in this ``X``, or by its index.

        Raises:
            DataError: A row's norm is above 1, or there are fewer records than centres.
            ParameterError: A parameter is invalid.
            AssumptionError: The noise is larger than any sum of records.
        """
        return super().fit(X, y)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the number of each record's nearest centre, shape ``(records,)``."""
        return self.transform(X).argmin(axis=1)  # type: ignore[no-any-return]

    def transform(self, X: Any) -> Array:
        """Return the distances of records to all centres, shape ``(records, n_clusters)``."""
        self._require_fitted()
        return self._distances(self._seen(self._checked(X)))

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the sum of the squared distances of records to their nearest centres."""
        return -_inertia(self.transform(X))

    @property
    def cluster_centers_(self) -> Array:
        """The centres, shape ``(n_clusters, features)``; a new array each time."""
        self._require_fitted()
        return self._centres.copy()

    @property
    def labels_(self) -> NDArray[np.int64]:
        """Number of the nearest centre of each remaining record.

        Raises:
            DataError: The estimator was saved without its records.
        """
        return self._distances(self._remaining_rows()).argmin(axis=1)  # type: ignore[no-any-return]

    @property
    def inertia_(self) -> float:
        """Sum of the squared distances of the remaining records to their nearest centres.

        Raises:
            DataError: The estimator was saved without its records.
        """
        return _inertia(self._distances(self._remaining_rows()))

    @property
    def _n_features_out(self) -> int:
        """Number of columns that `transform` returns."""
        return len(self._centres)

    def insert(self, X: Any, y: Any = None) -> NDArray[np.int64]:
        """Insert records, in one request.

        Args:
            X: Features, shape ``(records, features)``.
            y: Ignored, except that the index of a series names the records of an array.

        Returns:
            Positions of the inserted records, by which `unlearn` names them; they continue those of the fitted ``X``.
            Labels of a data frame's index can also name them, if the fitted data frame's labels did more than number
            its rows.

        Raises:
            DataError: A row's norm is above 1, or the estimator was saved without its records.
        """
        self._require_records()
        self._erase()
        self._require_same_scaling()
        index = FrameIndex.of(X, y)
        features = self._checked(X)
        self._require_short(features)
        rows, first = torch.as_tensor(self._rows(features)), len(self._method.rows)
        positions = np.arange(first, first + len(rows))
        method = self._method.with_rows(torch.cat([self._method.rows, rows]))
        self._edit(method, [], positions.tolist(), self._store.extended(index, len(rows)))
        return positions

    def check(self) -> None:
        """Recompute every kept step from the previous one and compare; only the owner of the state can do this.

        Raises:
            DataError: A step does not follow from the records and the previous step.
        """
        self._require_records()
        LinearQueries(self._method, self._settings).check_invariants(self._run)

    @property
    def certificate_(self) -> ExactClustersCertificate:
        """The certificate of the current centres; `certificate.write` makes a file for ``unlearn verify``."""
        self._require_fitted()
        return ExactClustersCertificate.of(
            noise_source=self._noise_source,
            d=self._centres.size,
            clusters=len(self._centres),
            start=self._start,
            **asdict(self._settings),
            **self._counts,
        )

    def privacy_report(self) -> str:
        """Return in words what the guarantee means, its numbers, its comparator, and what was not checked."""
        stated = self.certificate_
        return self._report(stated, self._guaranteed_in_words(stated))

    def _cost_in_words(self, stated: ExactClustersCertificate) -> list[str]:
        return [
            f"On average that is at most {rounded_up(stated.steps_again)} of {stated.steps} steps; each of these reads "
            "all remaining records."
        ]

    def _validated(self, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return records, and nothing for labels."""
        X = self._in_form(validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32)))
        self._scaling()  # Its numbers must be valid before anything is done.
        require_count(least=1, n_clusters=self.n_clusters, steps=self.steps)
        least = max(2, self.n_clusters)
        if len(X) < least:
            raise DataError(
                f"X has {len(X)} sample{'s' * (len(X) != 1)}, but k-means needs at least {least}: one for each of the "
                f"n_clusters = {self.n_clusters}, and two"
            )
        return X, np.empty(0)

    def _planned(self, n: int) -> LinearQuerySettings:
        """Return the constants of learning."""
        if self.steps > MOST_STEPS:
            raise ParameterError(f"steps must be at most {MOST_STEPS:,}, got {self.steps}")
        if self.recompute_probability is None:
            return LinearQuerySettings(self.steps, 0.0)
        require_probability(recompute_probability=self.recompute_probability)
        planned = plan_queries(queries=self.steps, bound=CONTRIBUTION, recompute_probability=self.recompute_probability)
        if planned.noise > MOST_NOISE:
            raise AssumptionError(
                f"recompute_probability = {self.recompute_probability} with {self.steps} steps needs noise of standard "
                f"deviation {planned.noise:.3g}, and float64 is too coarse for records beside noise above "
                f"{MOST_NOISE:,.0f}: give a larger probability or fewer steps"
            )
        return LinearQuerySettings(self.steps, planned.noise)

    def _require_law(self) -> None:
        raise AssumptionError(f"{type(self).__name__} predicts no labels, and an audit guesses from predicted labels")

    def _warn_of(self, plan: LinearQuerySettings, X: NDArray[Any]) -> None:
        """Warn the caller of `fit` if noise moves centres too far to be useful."""
        moved = plan.sigma * math.sqrt(X.shape[1]) * self.n_clusters / len(X)
        if moved > DROWNED:
            needed = math.ceil(moved / DROWNED * len(X))
            warnings.warn(
                f"little can be learned from {len(X):,} records: the noise moves the centre of an average cluster by "
                f"about {moved:.2g}, and rows have norm at most 1; give {needed:,} records, fewer steps or clusters, a "
                "larger recompute_probability, or recompute_probability=None for no noise",
                stacklevel=callers_level(),
            )

    def _require_short(self, features: Array) -> None:
        """Raise `DataError` if a row's norm is above 1 and nothing scales it down."""
        if not self.normalize and self._scaling() is None:
            require_short_rows(features, "the bound on computing again needs norms of at most 1")

    def _rows(self, features: Array) -> Array:
        """Return features whose norms were checked as rows, in a new array."""
        rows = self._seen(features.astype(np.float64, copy=False))
        rows = rows * (LONGEST / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), LONGEST))
        # Rows are rounded towards zero, so that no row becomes longer.
        return np.trunc(np.ascontiguousarray(rows) / GRID) * GRID

    def _learn_from(self, plan: LinearQuerySettings, X: NDArray[Any], labels: NDArray[Any]) -> None:
        rows = torch.as_tensor(self._rows(X))
        self._store.keep(np.arange(len(rows)))
        self._noise_source: NoiseSource = "system entropy" if self.random_state is None else "seed"
        self._scaled_by = self._scaling_parameters()
        draws = Draws(self._next_seed())
        directions = draws.normal(plan.steps, self.n_clusters, rows.shape[1])
        directions /= torch.linalg.vector_norm(directions, dim=-1, keepdim=True)
        method = KMeans(rows, self._given_centres(), directions, sigma=plan.sigma, row_norm=1.0)
        run, _ = LinearQueries(method, plan).learn(torch.arange(len(rows)), 1, draws)
        counts = {"n_learned": len(rows), "deleted": 0, "inserted": 0, "requests": 0}
        self._publish(method, plan, run, counts, self._store, [])

    def _given_centres(self) -> Tensor | None:
        """Return the places that ``init`` gives as the model sees rows; None if centres begin around the mean."""
        if isinstance(self.init, str) and self.init == "mean":
            return None
        shape = (self.n_clusters, self.n_features_in_)
        try:
            given = np.asarray(self.init, dtype=np.float64)
            wrong = f"shape {given.shape}" if given.shape != shape else "one that is not finite"
        except (TypeError, ValueError):
            given, wrong = np.empty(0), repr(self.init)
        if given.shape != shape or not np.isfinite(given).all():
            raise ParameterError(f"init must be 'mean', or finite numbers of shape {shape}, got {wrong}")
        return torch.as_tensor(np.ascontiguousarray(self._seen(given)))

    def _distances(self, rows: Array) -> Array:
        return cdist(rows, self._centres)  # type: ignore[no-any-return]

    def _remaining_rows(self) -> Array:
        self._require_records()
        return self._method.rows.numpy()[self._store.remaining]

    def _parameters(self, *, secrets_too: bool) -> dict[str, Any]:
        parameters = super()._parameters(secrets_too=secrets_too)
        if not isinstance(parameters["init"], str):
            parameters["init"] = np.asarray(parameters["init"], dtype=np.float64).tolist()
        return parameters

    def _saved(self, training_data: bool) -> tuple[dict[str, Any], dict[str, NDArray[Any] | None]]:
        self._erase()
        header = {
            "counts": self._counts,
            "noise_source": self._noise_source,
            "settings": asdict(self._settings),
            "start": self._start,
        }
        arrays: dict[str, NDArray[Any] | None] = {"centres": self._centres}
        if training_data:
            header["seed"] = f"{self._seed:x}"
            arrays |= {
                "rows": self._method.rows.numpy(),
                "first": None if self._method.from_mean else self._method.centres.numpy(),
                "directions": self._method.directions.numpy(),
                "records": self._run.records.numpy(),
                # Sums and centres of all steps follow from these.
                "noisy": self._run.noisy.numpy(),
            }
        return header, arrays

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(header, arrays)
        self._counts, self._noise_source = header["counts"], header["noise_source"]
        self._settings, self._start = LinearQuerySettings(**header["settings"]), header["start"]
        self._centres = arrays["centres"]
        self._unerased: list[int] = []
        if "rows" not in arrays:
            return
        tensors = {name: torch.as_tensor(each) for name, each in arrays.items() if name != "frame_index"}
        self._seed, self._scaled_by = int(header["seed"], 16), self._scaling_parameters()
        self._method = KMeans(
            tensors["rows"], tensors.get("first"), tensors["directions"], sigma=self._settings.sigma, row_norm=1.0
        )
        places, left = np.full(len(arrays["rows"]), -1), arrays["records"]
        if not ((left >= 0) & (left < len(places))).all():
            raise ValueError("a record has no row")
        places[left] = left
        self._run = LinearQueries(self._method, self._settings).replayed(tensors["records"], tensors["noisy"])
        self._store.keep(places)

    def _remove(self, named: NDArray[Any]) -> bool:
        self._erase()
        gone = self._store.removable(named)
        try:
            self._edit(self._method, gone.tolist(), [], self._store.without(gone))
        finally:
            self._erase()
        return False

    def _edit(self, method: KMeans, deleted: list[int], inserted: list[int], store: RecordStore) -> None:
        """Carry out a request on a copy of the state, then replace the state in one assignment."""
        run = copy.deepcopy(self._run)
        # The seed was drawn before the request, so an interrupted request that is repeated ends the same way. Otherwise
        # interruptions, which hit long requests more often, would change the distribution.
        LinearQueries(method, self._settings).edit(run, deleted, inserted, Draws(self._seed))
        self._publish(method, self._settings, run, self._counts_after(deleted, inserted), store, deleted)

    def _publish(
        self,
        method: KMeans,
        settings: LinearQuerySettings,
        run: QueryRun,
        counts: dict[str, int],
        store: RecordStore,
        deleted: list[int],
    ) -> None:
        """Set a state, its centres and the seed of the next request, all at once."""
        self.__dict__.update(
            _method=method,
            _settings=settings,
            _run=run,
            _centres=run.models[0, -1].view_as(method.centres).numpy().copy(),
            _start="mean" if method.from_mean else "given",
            _counts=counts,
            _seed=self._next_seed(counts["requests"] + 1),
            _store=store,
            _unerased=deleted,
            # The parameter may have been set after `fit`.
            _noise_source=self._noise_source if self.random_state is None else "seed",
        )

    def _erase(self) -> None:
        """Overwrite rows of removed records: at once, or after an interruption before anything else."""
        if self._unerased:
            self._method.rows[self._unerased] = 0
            self._unerased = []


def _inertia(distances: Array) -> float:
    """Return the sum of the squares of the least distances."""
    return float((distances.min(axis=1) ** 2).sum())
