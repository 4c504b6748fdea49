"""The common part of models whose removals are certified by comparison with an exact refit."""

import copy
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from certified_unlearning.accounting.residual.rounding import block_rows
from certified_unlearning.certificate import ResidualCertificate
from certified_unlearning.certificate import residual as certificates
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.normal_numbers import normal_numbers
from certified_unlearning.engine.objectives import sparse
from certified_unlearning.estimators.estimator import without_sample_weight
from certified_unlearning.estimators.linear import LinearModel, require_short_rows
from certified_unlearning.estimators.objective import Laws
from certified_unlearning.estimators.records import writeable
from certified_unlearning.estimators.refit import secrets
from certified_unlearning.estimators.refit.public import (
    PublicRows,
    checked_features,
    checked_length,
    require_both,
    require_private,
)
from certified_unlearning.estimators.scaling import Array, dense
from certified_unlearning.mechanisms.certified_refit import minimiser, objective_of
from certified_unlearning.mechanisms.newton.one_vs_rest import OneVsRest
from certified_unlearning.mechanisms.newton.public import public_curvature
from certified_unlearning.mechanisms.newton_removal import NewtonRemoval
from certified_unlearning.mechanisms.refit_plan import Counts, RefitPlan
from certified_unlearning.mechanisms.refits import requests as refits
from certified_unlearning.text import counted, noun_of, rounded_up
from certified_unlearning.vocabulary import Delta, NoiseSource, Reading


@dataclass(repr=False, eq=False)
class RefitModel(LinearModel):
    """A linear model that keeps its minimiser secret, publishes it with Gaussian noise, and removes records from it.

    Args:
        epsilon: Target epsilon for the last published model, with requests fixed in advance. `certificate_` also states
            the epsilon of all releases together. This epsilon is valid for adaptive requests, too.
        delta: Failure probability of the guarantee: a number strictly between 0 and 1; ``"auto"``, which is
            ``min(1e-6, 1 / (10 n))``; or ``"1/n"``, as in the papers.
        sigma: Standard deviation of the noise on the published weights.
        records_between_reads: Number of records that may be removed without reading the data again. The request that
            exceeds this number reads the data. None: the number is planned. The number has no effect if the model is
            learned anew for every request.
    """

    epsilon: float = 1.0
    delta: Delta = "auto"
    _: KW_ONLY
    sigma: float = 1e-3
    records_between_reads: int | None = None

    @abstractmethod
    def _public_labels(self, public_y: NDArray[Any]) -> NDArray[Any]:
        """Return the classes or targets of public rows in the learners' form.

        Raises:
            DataError: A public row has a class that no record has.
        """

    @without_sample_weight
    def fit(self, X: Any, y: Any, *, public_X: Any = None, public_y: Any = None) -> Self:
        """Learn from records and, optionally, public rows.

        There is no ``sample_weight``, because an individual weight would change how much a record can move the model.

        Public rows are part of the objective, like records, but are never removed: no request can name them, and the
        certificate compares with a refit that includes the same public rows. ``n`` always counts records and public
        rows, so ``C`` and ``alpha`` have the same meaning as in a scikit-learn model that is fitted to all rows. Public
        rows are scaled with the same parameters as records. Public rows change neither the scaling nor the list of
        classes. With public rows, the objective may be curved in every direction, whatever the records are. In this
        case, the budget is larger (``public_curvature`` in the certificate), and more records can be removed before the
        data are read again.

        Args:
            X: Features of records, shape ``(records, features)``: an array, a data frame, or a sparse matrix. Rows must
                have norm at most 1, unless ``normalize``, ``feature_ranges`` or ``data_norm`` ensures this.
            y: Classes of records, of any type; for regression, targets in the units of ``target_range``.
            public_X: Rows that nobody will ask to remove, shape ``(public rows, features)``, in the same form as ``X``.
                Their norms must meet the same bound as those of the records. With public rows, float32 rows are stored
                as float64. A private record among the public rows has no guarantee.
            public_y: Classes or targets of public rows. Each class must also occur among the records.

        Returns:
            The fitted estimator. `unlearn` names records by their position in this ``X``, or by their labels in the
            index of ``X``.

        Raises:
            DataError: A row's norm is above 1 (the message names the longest row). There are too few classes or
                records. The columns of public rows differ from those of the records. A public row has a class that no
                record has. Only one of ``X`` and ``public_X`` is sparse.
            ParameterError: A parameter is invalid, or ``public_X`` was given without ``public_y``.
            AssumptionError: The noise would be lost in rounding, or float64 is not precise enough for the noise or the
                regulariser.
            InfeasibleError: The target cannot be met, or a solver did not become accurate enough for its budget.
        """
        with self._all_or_nothing():
            require_both(public_X, public_y)
            self._given_public = None if public_X is None else (public_X, public_y)
            super().fit(X, y)
            del self._given_public, self._public
        return self

    def _validated(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        # This calls the method of the other base class.
        features, labels = super()._validated(X, y)  # type: ignore[safe-super]
        self._public: PublicRows | None = None
        if self._given_public is None:
            return features, labels
        public_X, public_y = self._given_public
        # The curvature of public rows must be that of the rows learned from, bit for bit; in float32, the rows would
        # differ.
        own = self._in_form(checked_features(public_X, X, features=self.n_features_in_)).astype(np.float64, copy=False)
        if not self.normalize and self._scaling() is None:
            require_short_rows(own, self._NEEDS_SHORT_ROWS, "public_X")
        self._public = PublicRows(own, self._public_labels(checked_length(public_y, own.shape[0])))
        return self._public.after(features, labels)

    def _guaranteed_by_public_rows(
        self, n: int, strong_convexity: float, classes: int, class_weights: tuple[float, ...] | None = None
    ) -> dict[str, Any]:
        """Return the arguments of `RefitPlan.make` that depend on public rows; empty without public rows."""
        public: PublicRows | None = getattr(self, "_public", None)  # The attribute exists only while `fit` runs.
        if public is None:
            return {}
        curvature = public_curvature(
            self._rows(public.features),
            public.labels.astype(np.float64),
            n=n,
            strong_convexity=strong_convexity,
            classes=classes,
            class_weights=class_weights,
        )
        return {"public_records": public.count, "public_curvature": curvature}

    def _asked(self) -> dict[str, Any]:
        """Return the arguments of `RefitPlan.make` that depend on parameters and on the form of rows."""
        names = ("epsilon", "delta", "sigma", "records_between_reads")
        return {name: getattr(self, name) for name in names} | {"sparse": self._fits_sparse_rows}

    def _in_form(self, X: Any) -> Any:
        """Return checked features as a sparse matrix without duplicates, or as an array.

        An array is returned if the rows are dense, or if scaling makes them dense.
        """
        scaling = self._scaling()
        stays_sparse = issparse(X) and (scaling is None or scaling.keeps_zeros)
        return sparse.canonical(X) if stays_sparse else dense(X)

    def _learn_from(self, plan: RefitPlan, X: NDArray[Any], labels: NDArray[Any]) -> None:
        rows = self._rows(X.astype(np.float64, copy=False)) if issparse(X) else self._dense_rows(plan, X)
        labels = labels.astype(np.float64 if plan.classes <= 2 else np.int64)
        self._model: Any = self._learned(plan, rows, labels)
        self._plan, self._counts = plan, Counts()
        self._class_sizes = self._class_sizes_of(labels[: plan.private_records])
        self._store.keep(np.arange(plan.private_records), rows, labels)  # Public rows come last, and have no place.
        self._noise_source: NoiseSource = "system entropy"
        self.__dict__.update(self._released(self._model.weights, 0))

    @staticmethod
    def _learned(plan: RefitPlan, rows: Any, labels: NDArray[Any]) -> Any:
        """Return the model that is learned from these rows from scratch."""
        if plan.one_vs_rest:
            return OneVsRest(plan).fit(rows, labels)
        if plan.removes_by_newton:
            return NewtonRemoval(plan).fit(rows, labels)
        return refits.learned(plan, rows, labels)

    def _dense_rows(self, plan: RefitPlan, X: NDArray[Any]) -> NDArray[Any]:
        # If rows are wide or many, float32 numbers stay float32. Rows are transformed in float64, piece by piece. The
        # bounds allow an error of 1.1e-6 in a row's norm, and the last rounding uses 6e-8 of it.
        rows = np.empty((len(X), self._columns), np.float32 if X.dtype == np.float32 and plan.by_passes else np.float64)
        size = block_rows(self._columns)
        for start in range(0, len(X), size):
            some = slice(start, start + size)
            rows[some] = self._rows(X[some].astype(np.float64, copy=False))
        return rows

    def _remove(self, named: NDArray[Any]) -> bool:
        require_private(named, records=self._plan.private_records, public_rows=self._plan.public_records)
        gone = self._store.removable(named)
        self._make_writeable()

        def carry_on(gone_rows: NDArray[Any], gone_labels: NDArray[Any]) -> dict[str, Any]:
            model, reading = self._without(gone_rows, gone_labels)
            counts = self._counts.after(len(gone), reading)
            return {
                "_model": model,
                "_counts": counts,
                "_class_sizes": self._class_sizes - self._class_sizes_of(gone_labels),
                **self._released(model.weights, counts.requests),
            }

        self._remove_in_place(gone, carry_on)
        return not self._class_sizes.all()

    def _noise_of_weights(self) -> tuple[float, bool]:
        return self._plan.sigma, False

    def _laws(self, gone: NDArray[np.int64], trials: int) -> Laws:
        unlearned, noise = copy.deepcopy(self), str(self._noise_key())
        unlearned.unlearn(gone)
        # The distance of a fit from the minimiser may be as large as the budget, and so may that of the audited model.
        # The comparator must be exact.
        exact = self._minimiser(unlearned._store.rows, unlearned._store.labels)

        def drawn(weights: Array, name: str) -> Array:
            numbers = normal_numbers(trials * len(weights), address(noise, name))
            return weights + self._plan.sigma * numbers.reshape(trials, -1)

        return Laws(
            drawn(self._model.weights, "before"),
            drawn(unlearned._model.weights, "unlearned"),
            drawn(exact, "comparator"),
        )

    def _minimiser(self, rows: Any, labels: NDArray[Any]) -> Array:
        """Return the exact minimiser on the remaining records, computed from scratch."""
        fitted = self._learned(self._plan, rows, labels)
        if not self._plan.one_vs_rest:
            return minimiser(self._plan, objective_of(self._plan, rows, labels), fitted.weights)
        of_one = self._plan.of_one_class()
        starts = fitted.weights.reshape(self._plan.classes, -1)
        objectives = (objective_of(of_one, rows, labels, positive) for positive in range(len(starts)))
        return np.concatenate([minimiser(of_one, each, start) for each, start in zip(objectives, starts, strict=True)])

    def _secret(self) -> Self:
        model = copy.copy(self)
        model._weights = self._model.weights
        return model

    def _without(self, gone_rows: Any, gone_labels: NDArray[Any]) -> tuple[Any, Reading]:
        """Return the model without some records, and whether data were read.

        The rows of these records are already zero.
        """
        plan, rows, labels, since = self._plan, self._store.rows, self._store.labels, self._counts.since_read
        if not plan.removes_by_newton and not plan.one_vs_rest:
            gone, after = (gone_rows, gone_labels), since + len(gone_labels)
            return refits.without(plan, self._model, gone, rows, labels, since_read=after)
        if issparse(gone_rows) and plan.removes_by_newton:
            gone_rows = gone_rows.toarray()  # There are few columns here: with more, there is no Hessian.
        mechanism = OneVsRest(plan) if plan.one_vs_rest else NewtonRemoval(plan)
        return mechanism.remove(self._model, gone_rows, gone_labels, rows, labels, since_read=since)

    def _released(self, weights: Array, release: int) -> dict[str, Any]:
        """Return the weights to publish, with fresh noise, and the source of the noise."""
        key, source = None, self._noise_source
        if self.random_state is not None:
            # A number as ``random_state`` gives the same key every time.
            key, source = address(str(self._noise_key()), "release", release), "seed"
        return {"_weights": weights + self._plan.sigma * normal_numbers(len(weights), key), "_noise_source": source}

    def _make_writeable(self) -> None:
        """Copy the arrays that a removal changes, if they are read-only."""
        self._store.make_writeable()
        if self._plan.removes_by_newton:
            for each in secrets.parts(self._model, self._plan):
                each.curvature.matrix = writeable(each.curvature.matrix)

    @property
    def certificate_(self) -> ResidualCertificate:
        """Certificate of the current model; `certificate.write` writes it to a file for ``unlearn verify``.

        It contains no digest of the data, because recomputing a digest would require reading all records.
        """
        self._require_fitted()
        return certificates.of(self._plan, self._counts, noise_source=self._noise_source)

    def _guaranteed_in_words(self, stated: ResidualCertificate) -> list[str]:
        counts = self._counts
        read = counted(counts.scheduled, "time") + " as planned"
        if counts.unscheduled:
            read += f", and {counted(counts.unscheduled, 'time')} earlier than planned, which depends on the data"
        if counts.passes:
            read += f". For {counted(counts.passes, 'other request')}, data were read to correct the weights"
        private = stated.n - stated.public_records
        learned_from = f"{private} {noun_of(private, 'record')}"
        if stated.public_records:
            learned_from += (
                f" and {counted(stated.public_records, 'public row')}, which nobody will ask to remove (n = "
                f"{stated.n} counts both; at most {private - 1} of the {private} can be removed)"
            )
        of_all = stated.epsilon_all_releases
        return [
            f"Learned from {learned_from}; {counts.removed} removed since, in "
            f"{counted(counts.requests, 'request')}. For these requests, data were read again {read}.",
            f"Guaranteed ({stated.guarantee}, by {stated.mechanism}): epsilon = {rounded_up(stated.epsilon)} at "
            f"delta = {rounded_up(stated.delta)}, adjacency {stated.adjacency}. This holds for the model published "
            "last, if requests are fixed in advance.",
            f"For somebody who kept all {counted(stated.releases, 'release')}, and for adaptive requests, epsilon "
            f"is {'so large that it says nothing' if of_all is None else rounded_up(of_all)}.",
            f"Compared with: {stated.comparator}.",
            "Limits of the guarantee:",
            *(f"- {each}" for each in stated.not_promised),
        ]

    def _saved(self, training_data: bool) -> tuple[dict[str, Any], dict[str, NDArray[Any] | None]]:
        header: dict[str, Any] = {
            "plan": self._plan.model_dump(mode="json"),
            "counts": vars(self._counts),
            "noise_source": self._noise_source,
        }
        arrays: dict[str, NDArray[Any] | None] = {"weights": self._weights}
        if training_data:
            store = self._store
            more, secret = secrets.stored(self._model, self._plan)
            header |= more
            arrays |= {
                **_arrays_of(store.rows),
                "training_labels": store.labels,
                "removed": store.removed,
                **secret,
            }
        return header, arrays

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(header, arrays)
        self._plan = RefitPlan.model_validate(header["plan"])
        self._counts = Counts(**header["counts"])
        self._noise_source = header["noise_source"]
        self._weights = arrays["weights"]
        if "training_labels" in arrays:
            self._restore_secret(header, arrays)

    def _restore_secret(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Set the records and the secret state from a file."""
        labels, removed = arrays["training_labels"], arrays["removed"]
        rows = _rows_of(arrays, (self._plan.n, self._plan.features))
        self._store.keep(np.where(removed, -1, np.arange(len(removed))), rows, labels)
        self._class_sizes = self._class_sizes_of(labels[: len(removed)][~removed])
        self._model = secrets.restored(self._plan, header, arrays)


def _arrays_of(rows: Any) -> dict[str, NDArray[Any] | None]:
    """Return the arrays that a file stores for rows: one array, or the three arrays of a sparse matrix."""
    if not issparse(rows):
        return {"training_rows": rows}
    return {"training_entries": rows.data, "training_columns": rows.indices, "training_ends": rows.indptr}


def _rows_of(arrays: Mapping[str, NDArray[Any]], shape: tuple[int, int]) -> Any:
    """Return the rows that a file stores.

    Raises:
        ValueError: The arrays do not form a sparse matrix.
    """
    if "training_rows" in arrays:
        return arrays["training_rows"]
    parts = arrays["training_entries"], arrays["training_columns"], arrays["training_ends"]
    return sparse.canonical(csr_array(parts, shape=shape))
