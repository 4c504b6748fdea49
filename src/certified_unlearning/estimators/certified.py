"""Logistic and softmax regression whose removals are certified against an exact refit."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import ValidationError

from certified_unlearning.accounting.core.losses import regularisation_of
from certified_unlearning.certificate import ResidualCertificate
from certified_unlearning.certificate import residual as certificates
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.normal_numbers import normal_numbers
from certified_unlearning.errors import DataError
from certified_unlearning.estimators import storage
from certified_unlearning.estimators.class_weights import ClassWeights
from certified_unlearning.estimators.classifier import LinearClassifier, without_sample_weight
from certified_unlearning.estimators.requests import distinct, require_removable, warn_of_an_empty_class
from certified_unlearning.estimators.scaling import Array
from certified_unlearning.mechanisms.certified_refit import Fitted, objective_of, refit
from certified_unlearning.mechanisms.newton_removal import Curvature, Model, NewtonRemoval
from certified_unlearning.mechanisms.refit_plan import Counts, RefitPlan
from certified_unlearning.text import counted, rounded_up
from certified_unlearning.vocabulary import NoiseSource, Reading


class CertifiedLogisticRegression(LinearClassifier):
    """Logistic regression, binary or multinomial, that unlearns records in a millisecond or less, whatever ``n`` is.

    It keeps the minimiser secret and publishes it with Gaussian noise. A removal takes one Newton step that reads the
    removed records only, and bounds how far that leaves it from an exact refit on the remaining records; where the
    bound meets its budget, the data are read again, in a pass or two. With three classes or more, and with more than
    5000 features, every removal is such a refit, which starts from the old weights.

    The certificate compares with an *exact refit plus the same noise*: it promises nothing towards the records that
    stay. `LangevinLogisticRegression` compares two noisy algorithms. The objective is scikit-learn's with the same
    ``C`` (see `LinearClassifier` on the intercept). Its strong convexity is about ``1 / (C n)``: ``C n`` of 30 to 100
    is a good first choice.

    A failed or interrupted call leaves the estimator as it was, but for the time of the next one. Removals work in
    place, so a copy must be a deep one.

    Args:
        epsilon: The target for the model published last, requests fixed in advance. `certificate_` also states that for
            all releases together, which holds for adaptive requests, too.
        delta: Of the target: a number strictly between 0 and 1, or ``"1/n"``.
        sigma: Standard deviation of the noise on the published weights (scikit-learn's times ``sqrt(2)``, with an
            intercept). The more, the more records leave before data are read again.
        C: Inverse strength of the regulariser, as in scikit-learn.
        class_weight: Public weights of the classes' losses, ``{label: weight}``, as in scikit-learn; 1 where a class is
            not named. The largest multiplies ``C``, with all that follows from it. ``"balanced"`` is refused: it is
            counted from the labels, which tells of removed records.
        normalize: Whether every row is divided by its own norm. Otherwise a row longer than 1 is an error, unless one
            of the next two makes it shorter.
        feature_ranges: Public bounds of the features: a pair ``(low, high)`` for all, or one for each, shape
            ``(features, 2)``. Values outside are clipped, the ranges are mapped to [-1, 1], and rows are then divided
            by ``sqrt(features)``, or by their own norm if ``normalize``, or by ``data_norm``. What is known of such
            data in general, *not* the smallest and largest values of these: that would tell of removed records, which
            the certificate excludes.
        data_norm: A public number, not taken from the data either: rows longer than it are scaled down to it, then all
            are divided by it. With ``feature_ranges``, of the rows that these make. Not together with ``normalize``.
        fit_intercept: Whether there is an intercept, which is regularised.
        random_state: None: noise from the operating system's entropy, which is not kept. A number makes results
            repeatable, but whoever knows it can subtract the noise.
        records_between_reads: Data are read again for the request with which more records than this were removed
            since they were read last. None: planned from ``n``, ``C``, ``sigma``, epsilon and delta.
        strict_timing: Whether a bound that holds for all data plans that number, so that the time of reading tells
            nothing of the records. Otherwise data may have to be read earlier, which the certificate then says.
        downdate: Whether a removal takes its records out of the Hessian, which costs ``O(S d^2)`` for ``S`` records
            and lets more of them leave before data are read again. None: up to 1000 features.

    Attributes:
        classes_: The classes, sorted.
        n_features_in_: Number of features.
        feature_names_in_: Their names, if ``X`` was a data frame.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | Literal["1/n"] = "1/n",
        *,
        sigma: float = 1e-3,
        C: float = 1.0,
        class_weight: Mapping[Any, float] | None = None,
        normalize: bool = False,
        feature_ranges: ArrayLike | None = None,
        data_norm: float | None = None,
        fit_intercept: bool = True,
        random_state: int | np.random.RandomState | None = None,
        records_between_reads: int | None = None,
        strict_timing: bool = False,
        downdate: bool | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.sigma = sigma
        self.C = C
        self.class_weight = class_weight
        self.normalize = normalize
        self.feature_ranges = feature_ranges
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.records_between_reads = records_between_reads
        self.strict_timing = strict_timing
        self.downdate = downdate

    @without_sample_weight
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from records.

        There is no ``sample_weight``: a weight of its own would change how much a record can move the model.

        Args:
            X: Features, shape ``(n, features)``; an array, a data frame, or a sparse matrix, whose rows become dense.
                Rows have norm at most 1, unless ``normalize``, ``feature_ranges`` or ``data_norm`` see to it.
            y: Classes, shape ``(n,)``, of any type.

        Returns:
            The fitted estimator. `unlearn` names records by their position in this ``X``, or by its index.

        Raises:
            DataError: A row is longer than 1 (the message names the longest), or there is only one class, or sparse
                rows do not fit in memory as dense ones.
            ParameterError: A parameter makes no sense.
            AssumptionError: float64 is too coarse for the noise or the regulariser.
            InfeasibleError: The solver did not reach the budget.
        """
        with self._all_or_nothing():
            X, classes, labels = self._validated(X, y)
            sizes = self._sizes(X, classes)
            plan = self._planned(**sizes)
            self._warn_if_drowned(plan, **sizes, stacklevel=5)
            # Whatever is done to rows is done in float64: the bounds know how long a row is to 1.1e-6 only.
            rows = self._rows(X.astype(np.float64, copy=False))
            labels = labels.astype(np.float64 if len(classes) == 2 else np.int64)
            self._model: Model | Fitted = (
                NewtonRemoval(plan).fit(rows, labels)
                if plan.removes_by_newton
                else refit(plan, objective_of(plan, rows, labels))
            )
            self.classes_ = classes
            self._plan, self._counts = plan, Counts()
            self._training_rows, self._training_labels = rows, labels
            self._removed = np.zeros(plan.n, dtype=bool)
            self._class_sizes = np.unique(labels, return_counts=True)[1]
            self._noise_source: NoiseSource = "system entropy"
            self.__dict__.update(self._released(self._model.weights, 0))
        return self

    def unlearn(self, indices: ArrayLike | None = None, *, index: Any = None) -> Self:
        """Remove records from the model, and from what it keeps of its training data.

        A request that names no record changes nothing: no new weights are published, and nothing is counted.

        Args:
            indices: Positions of the records in the ``X`` that was fitted, all different, none removed before; or a
                mask with one truth value for each of them.
            index: Labels of the records in the index of the data frame that was fitted, instead; all records that have
                one of them, as in pandas' ``drop``.

        Returns:
            The estimator, with a new ``certificate_``. When an error is raised it is as it was before, but for the
            warning that a class has lost its last record: then the removal is done.

        Raises:
            ParameterError: An index is none, or appears twice, or was removed before, or no record would be left, or
                it is not clear which records are meant.
            DataError: The estimator was saved without its training data.
            InfeasibleError: The solver did not reach the budget.
        """
        self._require_fitted()
        rows, counts = self._training_rows, self._counts
        if rows is None:
            raise DataError("this estimator was saved without its training data: it can predict, but not unlearn")
        named = self._named(indices, index, self._plan.n)
        if not len(named):
            return self
        gone = self._present(named)
        gone_rows, gone_labels = rows[gone], self._training_labels[gone]
        try:
            # In place, for a copy would take longer than all the rest; an interruption puts them back.
            rows[gone] = 0
            self._removed[gone] = True
            model, reading = self._without(gone_rows, gone_labels)
            counts_after = counts.after(len(gone), reading)
            sizes = self._class_sizes - self._sizes_of(gone_labels)
            self.__dict__.update(
                _model=model,
                _counts=counts_after,
                _class_sizes=sizes,
                **self._released(model.weights, counts_after.requests),
            )
        except BaseException:
            if self._counts is counts:
                rows[gone], self._removed[gone] = gone_rows, False
            raise
        self._forget_labels(gone)
        if not sizes.all():
            warn_of_an_empty_class()
        return self

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
                f"Learned from {stated.n} records; {counts.removed} removed since, in "
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

    def _planned(self, n: int, features: int, classes: int, weights: ClassWeights) -> RefitPlan:
        return RefitPlan.make(
            n=n,
            features=features,
            classes=classes,
            strong_convexity=n * regularisation_of(C=self.C * weights.largest, n=n, intercept=self.fit_intercept),
            epsilon=self.epsilon,
            delta=self.delta,
            sigma=self.sigma,
            strict=self.strict_timing,
            records_between_reads=self.records_between_reads,
            downdate=self.downdate,
            class_weights=weights.shares,
        )

    def _planned_noise(self, plan: Any) -> tuple[float, float]:
        return plan.sigma, plan.strong_convexity

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an estimator that `save` wrote.

        Raises:
            DataError: The file is missing, damaged, or holds something else.
        """
        header, arrays = storage.read(path, cls.__name__)
        try:
            estimator = cls._from_file(header, arrays)
            estimator._plan = RefitPlan.model_validate(header["plan"])
            estimator._counts = Counts(**header["counts"])
            estimator._noise_source = header["noise_source"]
            estimator._weights = arrays["weights"]
            for name in ("training_rows", "training_labels", "removed"):
                setattr(estimator, f"_{name}", arrays.get(name))
            if "training_rows" in arrays:
                estimator._restore(header, arrays)
        except (KeyError, TypeError, ValueError, ValidationError) as error:
            raise storage.no_estimator(path, error) from error
        return estimator

    def _restore(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Set the secret state from a file."""
        kept = self._training_labels[~self._removed]
        self._class_sizes = self._sizes_of(kept)
        self._model = Fitted(arrays["secret"], header["residual"])
        if self._plan.removes_by_newton:
            matrix, factor = np.asfortranarray(arrays["matrix"]), np.asfortranarray(arrays["factor"])
            self._model = Model(*self._model, Curvature(arrays["at"], matrix, factor, *header["curvature"]))

    def _present(self, indices: Any) -> NDArray[np.int64]:
        """Return row numbers of records that are left, in order."""
        wanted = distinct(indices, self._plan.n)
        require_removable(wanted, self._removed[wanted], left=self._plan.n - self._counts.removed)
        return wanted

    def _without(self, gone_rows: Array, gone_labels: NDArray[Any]) -> tuple[Model | Fitted, Reading]:
        """Return the model without some records, whose rows are zero by now, and whether data were read."""
        plan, rows, labels = self._plan, self._training_rows, self._training_labels
        if isinstance(self._model, Fitted):
            return refit(plan, objective_of(plan, rows, labels), self._model.weights), "scheduled"
        since = self._counts.since_read
        return NewtonRemoval(plan).remove(self._model, gone_rows, gone_labels, rows, labels, since_read=since)

    def _released(self, weights: Array, release: int) -> dict[str, Any]:
        """Return published weights, with fresh noise, and where the noise came from."""
        key, source = None, self._noise_source
        if self.random_state is not None:
            # A number gives the same key every time.
            key, source = address(str(self._noise_key()), "release", release), "seed"
        return {"_weights": weights + self._plan.sigma * normal_numbers(len(weights), key), "_noise_source": source}

    def _sizes_of(self, labels: NDArray[Any]) -> NDArray[np.int64]:
        """Return how many of some labels are each class'."""
        numbers = (labels > 0).astype(np.int64) if len(self.classes_) == 2 else labels
        return np.bincount(numbers, minlength=len(self.classes_))

    @property
    def _dtype(self) -> str:
        return "float64"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_plan")


def _or_none(epsilon: float | None) -> str:
    return "so large that it says nothing" if epsilon is None else rounded_up(epsilon)
