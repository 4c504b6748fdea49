"""A model whose removals are certified against an exact refit: what classifiers and ridge regression share."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.certificate import ResidualCertificate
from certified_unlearning.certificate import residual as certificates
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.normal_numbers import normal_numbers
from certified_unlearning.errors import DataError
from certified_unlearning.estimators import storage
from certified_unlearning.estimators.linear import LinearModel, writeable
from certified_unlearning.estimators.requests import distinct, require_removable
from certified_unlearning.estimators.scaling import Array
from certified_unlearning.mechanisms.certified_refit import Fitted, objective_of, refit
from certified_unlearning.mechanisms.newton_removal import Curvature, Model, NewtonRemoval
from certified_unlearning.mechanisms.refit_plan import Counts, RefitPlan
from certified_unlearning.text import counted, noun_of, rounded_up
from certified_unlearning.vocabulary import NoiseSource, Reading


class CertifiedModel(LinearModel):
    """Keeps the minimiser secret, publishes it with Gaussian noise, and takes records out of it."""

    _model: Model | Fitted

    @abstractmethod
    def _quality_in_words(self, X: Any, y: Any) -> list[str]:
        """Return what a report says of the predictions on some records; nothing if there are none."""

    @property
    def _fitted_records(self) -> int:
        return self._plan.n

    def _remove(self, indices: Any) -> bool:
        gone, counts = self._present(indices), self._counts
        self._make_writeable()
        rows, labels = self._training_rows, self._training_labels
        gone_rows, gone_labels, names = rows[gone], labels[gone], self._labels_at(gone)
        try:
            # In place, for a copy would take longer than all the rest; an interruption puts them back.
            rows[gone], labels[gone] = 0, 0
            self._removed[gone] = True
            self._label(gone, None)
            model, reading = self._without(gone_rows, gone_labels)
            counts_after = counts.after(len(gone), reading)
            self.__dict__.update(
                _model=model,
                _counts=counts_after,
                **self._after(gone_labels),
                **self._released(model.weights, counts_after.requests),
            )
        except BaseException:
            if self._counts is counts:
                rows[gone], labels[gone], self._removed[gone] = gone_rows, gone_labels, False
                self._label(gone, names)
            raise
        return self._has_an_empty_class()

    @property
    def remaining_(self) -> NDArray[np.int64]:
        """Positions in the fitted ``X`` of the records that are left; made anew every time."""
        self._require_fitted()
        if self._removed is None:
            raise DataError("this estimator was saved without its training data, which say which records are left")
        return np.flatnonzero(~self._removed)

    @property
    def certificate_(self) -> ResidualCertificate:
        """Certificate of the model as it is now; `certificate.write` makes a file for ``unlearn verify``.

        It holds no digest of the data: one of all records would have to be made anew by reading them all.
        """
        self._require_fitted()
        return certificates.of(self._plan, self._counts, noise_source=self._noise_source)

    def privacy_report(self, X: Any = None, y: Any = None) -> str:
        """Return in words what is guaranteed, compared with what, and what was not checked.

        Args:
            X: Records to measure the predictions on, whose numbers no guarantee covers. None: nothing is measured.
            y: Their true classes.
        """
        stated, counts = self.certificate_, self._counts
        read = counted(counts.scheduled, "time") + " as planned"
        if counts.unscheduled:
            read += f", {counted(counts.unscheduled, 'time')} earlier, which depends on the data"
        return "\n".join(
            [
                f"Learned from {stated.n} {noun_of(stated.n, 'record')}; {counts.removed} removed since, in "
                f"{counted(counts.requests, 'request')}. For these, data were read again {read}.",
                f"Guaranteed ({stated.guarantee}, by {stated.mechanism}): epsilon = {rounded_up(stated.epsilon)} at "
                f"delta = {rounded_up(stated.delta)}, adjacency {stated.adjacency}, of the model published last, "
                "requests fixed in advance.",
                f"For somebody who kept all {counted(stated.releases, 'release')}, and for adaptive requests, epsilon "
                f"is {_or_none(stated.epsilon_all_releases)}.",
                f"Compared with: {stated.comparator}.",
                "Not promised:",
                *(f"- {each}" for each in stated.not_promised),
                "Assumed, not checked:",
                *(f"- {each.statement}: {each.by}" for each in stated.assumptions if each.status == "assumed"),
                *self._scaling_in_words(),
                *self._quality_in_words(X, y),
            ]
        )

    def save(self, path: str | Path, *, training_data: bool = True) -> None:
        """Write the estimator as one safetensors file, its parameters as JSON in the header. No pickle.

        Files of earlier states still hold what was removed since: delete them.

        Args:
            path: The file.
            training_data: Whether everything goes along that the loaded estimator needs to unlearn: the training
                records that are left, their labels in a data frame's index, the secret state, the seed. Without, it can
                predict and show its certificate: the file to hand out.

        Raises:
            ParameterError: ``random_state`` is a generator, which JSON cannot hold.
            StorageError: The file cannot be written.
        """
        self._require_fitted()
        header: dict[str, Any] = {
            **self._described(),
            "parameters": self._parameters(secrets_too=training_data),
            "plan": self._plan.model_dump(mode="json"),
            "counts": vars(self._counts),
            "noise_source": self._noise_source,
        }
        arrays: dict[str, NDArray[Any] | None] = {"weights": self._weights}
        if training_data and self._training_rows is not None:
            model = self._model
            index, labels = self._described_index()
            header |= {"residual": model.residual, **index}
            arrays |= labels | {
                "training_rows": self._training_rows,
                "training_labels": self._training_labels,
                "removed": self._removed,
                "secret": model.weights,
            }
            if isinstance(model, Model):
                curvature = model.curvature
                header["curvature"] = [curvature.error, curvature.not_downdated, curvature.usable]
                arrays |= {"at": curvature.at, "matrix": curvature.matrix, "factor": curvature.factor}
        storage.write(path, header, arrays)

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        self._plan = RefitPlan.model_validate(header["plan"])
        self._counts = Counts(**header["counts"])
        self._noise_source: NoiseSource = header["noise_source"]
        self._weights = arrays["weights"]
        for name in ("training_rows", "training_labels", "removed"):
            setattr(self, f"_{name}", arrays.get(name))
        if "training_rows" in arrays:
            self._restore_secret(header, arrays)

    def _restore_secret(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Set the secret state from a file."""
        self._model = Fitted(arrays["secret"], header["residual"])
        if self._plan.removes_by_newton:
            matrix, factor = np.asfortranarray(arrays["matrix"]), np.asfortranarray(arrays["factor"])
            self._model = Model(*self._model, Curvature(arrays["at"], matrix, factor, *header["curvature"]))

    def _make_writeable(self) -> None:
        """Take private copies of those arrays that a removal writes to, where they are read-only."""
        for name in ("_training_rows", "_training_labels", "_removed"):
            setattr(self, name, writeable(getattr(self, name)))
        if isinstance(self._model, Model):
            self._model.curvature.matrix = writeable(self._model.curvature.matrix)

    def _learned(self, plan: RefitPlan, rows: Array, labels: NDArray[Any]) -> None:
        """Learn from checked rows, and publish."""
        self._model = (
            NewtonRemoval(plan).fit(rows, labels)
            if plan.removes_by_newton
            else refit(plan, objective_of(plan, rows, labels))
        )
        self._plan, self._counts = plan, Counts()
        self._training_rows, self._training_labels = rows, labels
        self._removed = np.zeros(plan.n, dtype=bool)
        self._noise_source = "system entropy"
        self.__dict__.update(self._released(self._model.weights, 0))

    def _after(self, gone_labels: NDArray[Any]) -> dict[str, Any]:
        """Return what else a removal changes."""
        return {}

    def _present(self, indices: Any) -> NDArray[np.int64]:
        """Return row numbers of records that are left, in order."""
        wanted = distinct(indices, self._plan.n)
        require_removable(wanted, self._removed[wanted], left=self._plan.n - self._counts.removed)
        return wanted

    def _without(self, gone_rows: Array, gone_labels: NDArray[Any]) -> tuple[Model | Fitted, Reading]:
        """Return the model without some records, whose rows are zero by now, and whether data were read."""
        plan, rows, labels = self._plan, self._training_rows, self._training_labels
        if isinstance(self._model, Fitted):
            return refit(plan, objective_of(plan, rows, labels)), "scheduled"
        since = self._counts.since_read
        return NewtonRemoval(plan).remove(self._model, gone_rows, gone_labels, rows, labels, since_read=since)

    def _released(self, weights: Array, release: int) -> dict[str, Any]:
        """Return published weights, with fresh noise, and where the noise came from."""
        key, source = None, self._noise_source
        if self.random_state is not None:
            # A number gives the same key every time.
            key, source = address(str(self._noise_key()), "release", release), "seed"
        return {"_weights": weights + self._plan.sigma * normal_numbers(len(weights), key), "_noise_source": source}

    @property
    def _dtype(self) -> str:
        return "float64"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_plan")


def _or_none(epsilon: float | None) -> str:
    return "so large that it says nothing" if epsilon is None else rounded_up(epsilon)
