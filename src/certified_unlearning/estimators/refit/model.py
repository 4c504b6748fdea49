"""A model whose removals are certified against an exact refit: what classifiers and ridge regression share."""

import copy
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from certified_unlearning.accounting.residual.rounding import block_rows
from certified_unlearning.certificate import ResidualCertificate
from certified_unlearning.certificate import residual as certificates
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.normal_numbers import normal_numbers
from certified_unlearning.engine.objectives import sparse
from certified_unlearning.estimators.linear import LinearModel
from certified_unlearning.estimators.objective import Laws
from certified_unlearning.estimators.records import writeable
from certified_unlearning.estimators.refit import secrets
from certified_unlearning.estimators.scaling import Array, dense
from certified_unlearning.mechanisms.newton.one_vs_rest import OneVsRest
from certified_unlearning.mechanisms.newton_removal import NewtonRemoval
from certified_unlearning.mechanisms.refit_plan import Counts, RefitPlan
from certified_unlearning.mechanisms.refits import requests as refits
from certified_unlearning.text import counted, noun_of, rounded_up
from certified_unlearning.vocabulary import Delta, NoiseSource, Reading


@dataclass(repr=False, eq=False)
class RefitModel(LinearModel):
    """Keeps the minimiser secret, publishes it with Gaussian noise, and takes records out of it.

    Args:
        epsilon: The target for the model published last, requests fixed in advance. `certificate_` also states that for
            all releases together, which holds for adaptive requests, too.
        delta: Of the target: a number strictly between 0 and 1; or ``"auto"``, which is ``min(1e-6, 1 / (10 n))``; or
            ``"1/n"``, as in the papers.
        sigma: Standard deviation of the noise on the published weights.
        records_between_reads: Data are read again for the request with which more records than this were removed
            since they were read last. None: planned. It has no effect where every request reads them.
    """

    epsilon: float = 1.0
    delta: Delta = "auto"
    _: KW_ONLY
    sigma: float = 1e-3
    records_between_reads: int | None = None

    def _asked(self) -> dict[str, Any]:
        """Return what `RefitPlan.make` takes of parameters, and of the form of rows."""
        names = ("epsilon", "delta", "sigma", "records_between_reads")
        return {name: getattr(self, name) for name in names} | {"sparse": self._fits_sparse_rows}

    def _in_form(self, X: Any) -> Any:
        """Return checked features, sparse ones without duplicates; as an array where zeros become other numbers."""
        scaling = self._scaling()
        stays_sparse = issparse(X) and (scaling is None or scaling.keeps_zeros)
        return sparse.canonical(X) if stays_sparse else dense(X)

    def _learn_from(self, plan: RefitPlan, X: NDArray[Any], labels: NDArray[Any]) -> None:
        rows = self._rows(X.astype(np.float64, copy=False)) if issparse(X) else self._dense_rows(plan, X)
        labels = labels.astype(np.float64 if plan.classes <= 2 else np.int64)
        self._model: Any = self._learned(plan, rows, labels)
        self._plan, self._counts = plan, Counts()
        self._class_sizes = self._class_sizes_of(labels)
        self._store.keep(np.arange(plan.n), rows, labels)
        self._noise_source: NoiseSource = "system entropy"
        self.__dict__.update(self._released(self._model.weights, 0))

    @staticmethod
    def _learned(plan: RefitPlan, rows: Any, labels: NDArray[Any]) -> Any:
        """Return the model of these rows, learned from nothing."""
        if plan.one_vs_rest:
            return OneVsRest(plan).fit(rows, labels)
        if plan.removes_by_newton:
            return NewtonRemoval(plan).fit(rows, labels)
        return refits.learned(plan, rows, labels)

    def _dense_rows(self, plan: RefitPlan, X: NDArray[Any]) -> NDArray[Any]:
        # Where rows are wide or many, float32 numbers stay such. Whatever is done to rows is done in float64, piece by
        # piece: the bounds know how long a row is to 1.1e-6 only, of which the last rounding takes 6e-8.
        rows = np.empty((len(X), self._columns), np.float32 if X.dtype == np.float32 and plan.by_passes else np.float64)
        size = block_rows(self._columns)
        for start in range(0, len(X), size):
            some = slice(start, start + size)
            rows[some] = self._rows(X[some].astype(np.float64, copy=False))
        return rows

    def _remove(self, named: NDArray[Any]) -> bool:
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
        # From nothing, as a reading does: the minimiser on what is left, to a part of the budget.
        exact = self._learned(self._plan, unlearned._store.rows, unlearned._store.labels)

        def drawn(weights: Array, name: str) -> Array:
            numbers = normal_numbers(trials * len(weights), address(noise, name))
            return weights + self._plan.sigma * numbers.reshape(trials, -1)

        return Laws(
            drawn(self._model.weights, "before"),
            drawn(unlearned._model.weights, "unlearned"),
            drawn(exact.weights, "comparator"),
        )

    def _without(self, gone_rows: Any, gone_labels: NDArray[Any]) -> tuple[Any, Reading]:
        """Return the model without some records, whose rows are zero by now, and whether data were read."""
        plan, rows, labels, since = self._plan, self._store.rows, self._store.labels, self._counts.since_read
        if not plan.removes_by_newton and not plan.one_vs_rest:
            gone, after = (gone_rows, gone_labels), since + len(gone_labels)
            return refits.without(plan, self._model, gone, rows, labels, since_read=after)
        if issparse(gone_rows) and plan.removes_by_newton:
            gone_rows = gone_rows.toarray()  # Some rows, of few columns: there is no Hessian of more.
        mechanism = OneVsRest(plan) if plan.one_vs_rest else NewtonRemoval(plan)
        return mechanism.remove(self._model, gone_rows, gone_labels, rows, labels, since_read=since)

    def _released(self, weights: Array, release: int) -> dict[str, Any]:
        """Return published weights, with fresh noise, and where the noise came from."""
        key, source = None, self._noise_source
        if self.random_state is not None:
            # A number gives the same key every time.
            key, source = address(str(self._noise_key()), "release", release), "seed"
        return {"_weights": weights + self._plan.sigma * normal_numbers(len(weights), key), "_noise_source": source}

    def _make_writeable(self) -> None:
        """Take private copies of those arrays that a removal writes to, where they are read-only."""
        self._store.make_writeable()
        if self._plan.removes_by_newton:
            for each in secrets.parts(self._model, self._plan):
                each.curvature.matrix = writeable(each.curvature.matrix)

    @property
    def certificate_(self) -> ResidualCertificate:
        """Certificate of the model as it is now; `certificate.write` makes a file for ``unlearn verify``.

        It holds no digest of the data: one of all records would have to be made anew by reading them all.
        """
        self._require_fitted()
        return certificates.of(self._plan, self._counts, noise_source=self._noise_source)

    def _guaranteed_in_words(self, stated: ResidualCertificate) -> list[str]:
        counts = self._counts
        read = counted(counts.scheduled, "time") + " as planned"
        if counts.unscheduled:
            read += f", {counted(counts.unscheduled, 'time')} earlier, which depends on the data"
        if counts.passes:
            read += f". For {counted(counts.passes, 'other')} they were read to correct the weights"
        of_all = stated.epsilon_all_releases
        return [
            f"Learned from {stated.n} {noun_of(stated.n, 'record')}; {counts.removed} removed since, in "
            f"{counted(counts.requests, 'request')}. For these, data were read again {read}.",
            f"Guaranteed ({stated.guarantee}, by {stated.mechanism}): epsilon = {rounded_up(stated.epsilon)} at "
            f"delta = {rounded_up(stated.delta)}, adjacency {stated.adjacency}, of the model published last, "
            "requests fixed in advance.",
            f"For somebody who kept all {counted(stated.releases, 'release')}, and for adaptive requests, epsilon "
            f"is {'so large that it says nothing' if of_all is None else rounded_up(of_all)}.",
            f"Compared with: {stated.comparator}.",
            "Not promised:",
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
        """Set records and the secret state from a file."""
        labels, removed = arrays["training_labels"], arrays["removed"]
        rows = _rows_of(arrays, (self._plan.n, self._plan.features))
        self._store.keep(np.where(removed, -1, np.arange(len(labels))), rows, labels)
        self._class_sizes = self._class_sizes_of(labels[~removed])
        self._model = secrets.restored(self._plan, header, arrays)


def _arrays_of(rows: Any) -> dict[str, NDArray[Any] | None]:
    """Return what a file keeps of rows: an array, or the three of a sparse matrix."""
    if not issparse(rows):
        return {"training_rows": rows}
    return {"training_entries": rows.data, "training_columns": rows.indices, "training_ends": rows.indptr}


def _rows_of(arrays: Mapping[str, NDArray[Any]], shape: tuple[int, int]) -> Any:
    """Return the rows that a file keeps.

    Raises:
        ValueError: The arrays are no sparse matrix.
    """
    if "training_rows" in arrays:
        return arrays["training_rows"]
    parts = arrays["training_entries"], arrays["training_columns"], arrays["training_ends"]
    return sparse.canonical(csr_array(parts, shape=shape))
