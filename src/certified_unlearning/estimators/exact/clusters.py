"""k-means that removes and inserts records exactly: Lloyd's algorithm with noisy sums and counts for each cluster."""

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
"""Rows are rounded to multiples of this number.

Sums of up to 2^23 rows of norm 1 are then exact in float64, in any order. So the sums of an edited state agree with
those of a fresh run in all bits.
"""
LONGEST = 1 - 2.0**-40
"""Norm to which longer rows are scaled down. With this norm, no method of computing a norm gives a result above 1."""
MOST_NOISE = 2.0**23
"""Largest standard deviation of the noise. With this noise, sums still contain thirty bits of a record."""
DROWNED = 0.1
"""`fit` warns if the noise in the centre of an average cluster has a larger norm than this; rows have norm at most
1.
"""


@dataclass(repr=False, eq=False)
class ExactKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, ExactModel):  # type: ignore[misc]
    """k-means that removes records exactly, with epsilon 0, and can insert new ones.

    The algorithm is Lloyd's. For each centre, a step computes the sum and the number of the records nearest to the
    centre, with Gaussian noise on both. It then moves the centre to the quotient of the two. A request examines the
    steps one after another. For each step, a random test decides whether the step may keep its noisy sums and counts.
    This test makes the distributions below equal. From the first step that fails the test, all steps are recomputed.
    After any stream of deletions and insertions, centres and state together have the distribution of the same algorithm
    run from scratch on the present records, with the constants of the `fit`. This equality requires that requests are
    chosen without looking at the centres, and that the state stays secret. Differences smaller than the rounding of
    float64 are ignored.

    The noise is added to sums over records, so **many records are needed**. If rows have norm at most 1, the noise
    moves the centre of an average cluster by about ``.5 steps sqrt(features) n_clusters / (recompute_probability n)``.
    `fit` warns if this distance is above 0.1. With few records, use ``recompute_probability=None``: then there is no
    noise, and every request recomputes the steps.

    The guarantee covers deletions only. It does not protect the remaining records. A failed or interrupted call does
    not change the estimator. Exactness covers a single state, but not several states together. So overwrite the file of
    the previous state when you save.

    Args:
        n_clusters: Number of centres.
        steps: Number of steps, ``T``. More steps need more noise. This and all parameters below stay fixed over all
            requests.
        recompute_probability: Upper bound on the probability that the deletion of one record causes a recomputation of
            steps. The noise is the smallest that ensures this. None: no noise, and every request recomputes all steps
            except the first.
        init: Initial centres. ``mean``: the centres lie in random directions around the mean of all records, which the
            first step computes with noise. Alternatively, an array of shape ``(n_clusters, features)``, in the units of
            ``X``; it must not be computed from these records.
        random_state: None: random numbers come from the operating system, and their seeds are overwritten. A number
            makes results repeatable, but it is a secret: anybody who has it and the records can compute the state. Two
            models that were fitted with the same number have the same noise. The noise cancels in their difference,
            which then shows the record in which their data differ, even to somebody who does not know the number.

    Attributes:
        cluster_centers_: Centres, shape ``(n_clusters, features)``, in the space of rows after ``feature_ranges``,
            ``data_norm`` or ``normalize``.
        labels_: Index of the centre nearest to each remaining record, in the order of ``remaining_``.
        inertia_: Sum of the squared distances of the remaining records to their nearest centres.

    See Also:
        `ExactLogisticRegression`: The same guarantee for classification.

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
            X: Features, shape ``(n, features)``: an array, a data frame, or a sparse matrix, whose rows become dense.
                Rows must have norm at most 1, unless ``normalize``, ``feature_ranges`` or ``data_norm`` ensures this.
            y: Ignored, with one exception: if ``X`` is an array and ``y`` a series, the index of ``y`` names the
                records.

        Returns:
            The fitted estimator. `unlearn` names records by their position in this ``X``, or by their labels in the
            index of ``X``.

        Raises:
            DataError: A row's norm is above 1, or there are fewer records than centres.
            ParameterError: A parameter is invalid.
            AssumptionError: The noise is larger than any sum of records could be.
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
        """Return the negative sum of the squared distances of records to their nearest centres."""
        return -_inertia(self.transform(X))

    @property
    def cluster_centers_(self) -> Array:
        """The centres, shape ``(n_clusters, features)``; a new array each time."""
        self._require_fitted()
        return self._centres.copy()

    @property
    def labels_(self) -> NDArray[np.int64]:
        """Index of the centre nearest to each remaining record.

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
        """Number of columns of the result of `transform`."""
        return len(self._centres)

    def insert(self, X: Any, y: Any = None) -> NDArray[np.int64]:
        """Insert records in one request.

        Args:
            X: Features, shape ``(records, features)``.
            y: Ignored, with one exception: if ``X`` is an array and ``y`` a series, the index of ``y`` names the
                records.

        Returns:
            Positions of the inserted records, by which `unlearn` names them. They continue the positions of the fitted
            ``X``. The index labels of a data frame can also name the inserted records, unless the index of the fitted
            data frame only numbered its rows.

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
        """Recompute every stored step from the previous one, and compare; only the owner of the state can do this.

        Raises:
            DataError: A step is not the result of the records and the previous step.
        """
        self._require_records()
        LinearQueries(self._method, self._settings).check_invariants(self._run)

    @property
    def certificate_(self) -> ExactClustersCertificate:
        """Certificate of the current centres; `certificate.write` writes it to a file for ``unlearn verify``."""
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
        """Describe in words what the guarantee means, its numbers, its comparator, and what was not checked."""
        stated = self.certificate_
        return self._report(stated, self._guaranteed_in_words(stated))

    def _cost_in_words(self, stated: ExactClustersCertificate) -> list[str]:
        return [
            f"On average that is at most {rounded_up(stated.steps_again)} of {stated.steps} steps; each of these reads "
            "all remaining records."
        ]

    def _validated(self, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the records, and an empty array instead of labels."""
        X = self._in_form(validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32)))
        self._scaling()  # This checks the numbers of the scaling before anything is done.
        require_count(least=1, n_clusters=self.n_clusters, steps=self.steps)
        least = max(2, self.n_clusters)
        if len(X) < least:
            raise DataError(
                f"X has {len(X)} sample{'s' * (len(X) != 1)}, but k-means needs at least {least}: one for each of the "
                f"n_clusters = {self.n_clusters}, and two in any case"
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
                f"deviation {planned.noise:.3g}; with noise above {MOST_NOISE:,.0f}, the records would be lost in "
                "rounding, so give a larger probability or fewer steps"
            )
        return LinearQuerySettings(self.steps, planned.noise)

    def _require_law(self) -> None:
        raise AssumptionError(f"{type(self).__name__} predicts no labels, and an audit guesses from predicted labels")

    def _warn_of(self, plan: LinearQuerySettings, X: NDArray[Any]) -> None:
        """Warn the caller of `fit` if noise moves centres so far that they are useless."""
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
        """Raise `DataError` if a row's norm is above 1 and no parameter scales the row down."""
        if not self.normalize and self._scaling() is None:
            require_short_rows(features, "the bound on recomputations needs norms of at most 1")

    def _rows(self, features: Array) -> Array:
        """Convert features to rows, in a new array; the norms must have been checked before."""
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
        """Return the centres given by ``init``, scaled like rows; None if initial centres are around the mean."""
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
                # The sums and centres of all steps are computed from these tensors.
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
        # The seed was drawn before the request, so an interrupted request gives the same result when it is repeated.
        # Otherwise, interruptions would change the distribution, because they are more likely in long requests.
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
            # ``random_state`` may have been set after `fit`.
            _noise_source=self._noise_source if self.random_state is None else "seed",
        )

    def _erase(self) -> None:
        """Overwrite the rows of removed records; after an interruption, the next call does this first."""
        if self._unerased:
            self._method.rows[self._unerased] = 0
            self._unerased = []


def _inertia(distances: Array) -> float:
    """Return the sum of the squares of the smallest distances."""
    return float((distances.min(axis=1) ** 2).sum())
