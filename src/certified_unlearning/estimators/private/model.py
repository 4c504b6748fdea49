"""A differentially private linear model: what the classifier and the regressor share."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from certified_unlearning.accounting.core.checks import (
    require_count,
    require_positive,
    require_probability,
    required_delta,
)
from certified_unlearning.accounting.private.guarantee import extra_delta, require_met
from certified_unlearning.accounting.private.learners import (
    Learner,
    LinearProblem,
    NoisyDescent,
    OutputPerturbation,
    embedding_dimension,
)
from certified_unlearning.accounting.private.losses import ScalarLoss
from certified_unlearning.accounting.private.searches import Boosting, GridSearch, PrivateLearner, learner_of
from certified_unlearning.certificate import PrivateCertificate
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.estimators import storage
from certified_unlearning.estimators.linear import LinearModel
from certified_unlearning.estimators.requests import distinct, require_removable
from certified_unlearning.estimators.scaling import Array
from certified_unlearning.mechanisms.exact.one_pass.projected_glm import Projection
from certified_unlearning.mechanisms.learners.learner import require_one_of
from certified_unlearning.mechanisms.private.noisy_descent import embedded
from certified_unlearning.mechanisms.private.searches import learn
from certified_unlearning.text import counted, rounded_up
from certified_unlearning.vocabulary import Relation

Method = Literal["output-perturbation", "noisy-gradient-descent", "embedding"]


class PrivateModel(LinearModel):
    """Learns with noise that hides each record, and keeps none of them.

    A warning of `fit` that one column drowns the others is computed from the records without noise: epsilon does not
    cover it, and it is not for publication.

    Subclasses have the parameters ``method``, ``epsilon``, ``delta``, ``relation``, ``radius``, ``boosting``,
    ``strong_convexity``, ``steps`` and ``dimension``, and those of `LinearModel`.
    """

    _removed: Any  # Which records were deleted; None where that was not saved.

    @abstractmethod
    def _loss(self) -> ScalarLoss:
        """Return the loss, of rows of norm at most 1."""

    @abstractmethod
    def _quality_in_words(self, X: Any, y: Any) -> list[str]:
        """Return what a report says of the predictions on some records; nothing if there are none."""

    def _learn_from(self, features: Array, targets: NDArray[Any]) -> None:
        """Learn from checked features and targets, and publish."""
        require_one_of(get_args(Method), method=self.method)
        require_one_of(get_args(Relation), relation=self.relation)
        rows = self._rows(features)
        plan = self._planned(len(rows), rows.shape[1])
        self._warn_if_a_column_drowns(features)
        key = self._noise_key()
        # A matrix that no record was looked at for; it may be known to everybody.
        projection = (
            Projection.draw(
                dimension=plan.problem.features,
                features=rows.shape[1],
                draws=Draws(address(str(key), "projection")),
            )
            if self.method == "embedding" and plan.problem.features < rows.shape[1]
            else None
        )
        loss, whole = self._loss(), torch.as_tensor(rows)
        records = BoundedRecords(whole, torch.as_tensor(targets), loss=loss, row_norm=1.0)
        if projection is not None:
            inside = embedded(projection.matrix, records.rows)
            records = BoundedRecords(inside, records.targets, loss=loss, row_norm=plan.problem.row_norm)
        learned = learn(plan, records, [address(str(key), "noise")])
        weights = learned.weights if projection is None else projection.lift(learned.weights)
        self.__dict__.update(
            _weights=weights[0].numpy(),
            _selected=int(learned.selected[0]),
            _certificate=PrivateCertificate.of(
                plan,
                delta=required_delta(self.delta, len(rows)),
                features=rows.shape[1],
                row_norm=1.0,
                noise_source="system entropy" if self.random_state is None else "seed",
            ),
            _removed=np.zeros(len(rows), dtype=bool),
        )

    def _planned(self, n: int, features: int) -> PrivateLearner:
        """Return the plan for so many records and columns of a row."""
        require_positive(epsilon=self.epsilon)
        delta, radii = required_delta(self.delta, n), self._radii()
        problem = LinearProblem(
            n=n, features=features, row_norm=1.0, loss=self._loss(), radius=radii[0], relation=self.relation
        )
        planner = partial(self._run, delta=delta)
        plan: PrivateLearner
        if self.boosting is not None:
            require_probability(boosting=self.boosting)
            if len(radii) > 1:
                raise ParameterError(
                    "one model is selected among several radii, or among several parts of the records: give one "
                    "radius, or boosting = None"
                )
            plan = Boosting.plan(problem, planner, epsilon=float(self.epsilon), beta=self.boosting)
        elif len(radii) > 1:
            plan = GridSearch.plan(problem, radii, planner, epsilon=float(self.epsilon))
        else:
            plan = planner(problem, 1)
        require_met(plan.guarantee, epsilon=self.epsilon, delta=delta)
        return plan

    def _run(self, problem: LinearProblem, runs: int, *, delta: float) -> Learner:
        """Return the plan of one run, so many of which share epsilon and delta."""
        if self.method == "output-perturbation":
            return OutputPerturbation.plan(
                problem, epsilon=self.epsilon, delta=delta, strong_convexity=self.strong_convexity, runs=runs
            )
        if self.method == "embedding":
            problem = self._embedded(problem)
        return NoisyDescent.plan(problem, epsilon=self.epsilon, delta=delta, steps=self.steps, runs=runs)

    def _embedded(self, problem: LinearProblem) -> LinearProblem:
        """Return the problem in few columns, which are as many for every radius that is searched."""
        if self.dimension is None:
            widest = LinearProblem(**{**vars(problem), "radius": max(self._radii())})
            dimension = embedding_dimension(widest, self.epsilon)
        else:
            require_count(least=1, dimension=self.dimension)
            dimension = self.dimension
        return problem if dimension >= problem.features else problem.embedded(dimension)

    def _radii(self) -> list[float]:
        """Return the radii, of weights of rows: those of an intercept are longer.

        Raises:
            ParameterError: ``radius`` is neither a number above 0 nor several.
        """
        given = [self.radius] if isinstance(self.radius, int | float | np.number) else self.radius
        several = isinstance(given, Sequence) or (isinstance(given, np.ndarray) and given.ndim == 1)
        if not several or isinstance(given, str) or not len(given):
            raise ParameterError(f"radius must be a number above 0, or a list of some, got {self.radius!r}")
        for each in given:
            require_positive(radius=each)  # type: ignore[arg-type]
        return [float(each) * (math.sqrt(2) if self.fit_intercept else 1.0) for each in given]

    def _require_short(self, features: Array) -> None:
        """Raise `ParameterError` where nothing bounds rows: an error that depends on them would tell of them."""
        if not self.normalize and self._scaling() is None:
            raise ParameterError(
                "private learning needs a public bound on rows: give data_norm, to which longer rows are scaled down, "
                "or feature_ranges, or normalize=True"
            )

    @property
    def certificate_(self) -> PrivateCertificate:
        """Certificate of the model, deletions or not; `certificate.write` makes a file for ``unlearn verify``.

        Raises:
            AssumptionError: Epsilon is so large, of several hundred, or delta so small, that what the sampler of noise
                leaves out would take all of delta: then nothing is guaranteed.
        """
        self._require_fitted()
        stated: PrivateCertificate = self._certificate
        if stated.extra_delta > stated.delta:
            raise AssumptionError(
                f"epsilon = {stated.epsilon:.6g} is so large, or delta = {stated.delta:.2g} so small, that nothing is "
                f"guaranteed: what the sampler of noise leaves out would add {stated.extra_delta:.2g} to delta"
            )
        return stated

    @property
    def radius_(self) -> float:
        """The radius that was used; of several, the one that was selected: 0 for a model of zeros."""
        self._require_fitted()
        scale = math.sqrt(2) if self.fit_intercept else 1.0
        learners = self._plan.learners
        # Embedded rows are learned from in a ball of twice the radius.
        scale *= 2 if self._certificate.embedded else 1
        if self._certificate.selection != "grid search":
            return float(learners[0].problem.radius / scale)
        return float(learners[self._selected - 1].problem.radius / scale) if self._selected else 0.0

    @property
    def remaining_(self) -> NDArray[np.int64]:
        """Positions in the fitted ``X`` of the records that are left; made anew every time."""
        self._require_fitted()
        return np.flatnonzero(~self._removed)

    def epsilon_after(self, deletions: int) -> float:
        """Return what the unchanged model is worth when so many records are deleted.

        Args:
            deletions: How many, at least 1.

        Returns:
            The epsilon, at the certificate's delta and what the sampler of noise leaves out besides, which is no more
            than delta, between this model and one that the same algorithm learns with these records replaced by any
            others; under add-remove, with their places left empty. Infinite where that would be more than delta: then
            nothing is guaranteed.
        """
        self._require_fitted()
        plan, delta = self._plan, self._certificate.delta
        epsilon: float = plan.guarantee.epsilon(delta, records=deletions)
        return epsilon if extra_delta(plan.failure, epsilon) <= delta else math.inf

    def deletions_within(self, epsilon: float) -> int:
        """Return how many deleted records the unchanged model covers: those whose `epsilon_after` is at most this."""
        self._require_fitted()
        require_positive(epsilon=epsilon)
        plan, delta = self._plan, self._certificate.delta
        # Beyond, `epsilon_after` is infinite.
        room = math.log(max(1.0, delta / plan.failure))
        covered = plan.guarantee.deletions(min(epsilon, room), delta) if room else 0
        while covered and not self.epsilon_after(covered) <= epsilon:
            covered -= 1
        return covered

    @property
    def _plan(self) -> PrivateLearner:
        """What was run, as its certificate tells."""
        return learner_of(self._certificate.constants)

    def _remove(self, indices: Any) -> bool:
        wanted = distinct(indices, len(self._removed))
        require_removable(wanted, self._removed[wanted], left=int((~self._removed).sum()))
        removed = self._removed.copy()
        removed[wanted] = True
        self.__dict__.update(_removed=removed, _frame_index=self._index_without(wanted))
        return False

    @property
    def _fitted_records(self) -> int:
        return len(self._removed)

    @property
    def _training_rows(self) -> Any:
        """Which records were deleted: nothing else is kept of them; None where that was not saved."""
        return self._removed

    @property
    def _dtype(self) -> str:
        return "float64"

    def privacy_report(self, X: Any = None, y: Any = None) -> str:
        """Return in words what is guaranteed, compared with what, and what was not checked.

        Args:
            X: Records to measure the predictions on, whose numbers no guarantee covers. None: nothing is measured.
            y: Their true classes or targets.
        """
        stated = self.certificate_
        deleted = 0 if self._removed is None else int(self._removed.sum())
        unchanged = [f"{each.records}: {rounded_up(each.epsilon, 3)}" for each in stated.deletions]
        after = []
        if deleted:
            epsilon = self.epsilon_after(deleted)
            worth = f"epsilon is {rounded_up(epsilon)}" if math.isfinite(epsilon) else "nothing is guaranteed any more"
            after = [f"For the {counted(deleted, 'record')} deleted so far, {worth}."]
        return "\n".join(
            [
                f"Learned from {counted(stated.n, 'record')} by {stated.mechanism}; {deleted} deleted since, which "
                "changed nothing.",
                f"Guaranteed ({stated.guarantee}): epsilon = {rounded_up(stated.epsilon)} at delta = "
                f"{rounded_up(stated.delta + stated.extra_delta)}, relation {stated.relation}.",
                f"Hidden: {stated.hidden}.",
                f"From: {stated.observers}.",
                f"Epsilon by the number of deleted records: {'; '.join(unchanged)}.",
                *after,
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

        Args:
            path: The file.
            training_data: Whether the seed and the positions of deleted records go along; no record ever does. Without
                them it can predict and show its certificate: the file to hand out.

        Raises:
            ParameterError: ``random_state`` is a generator, which JSON cannot hold.
            StorageError: The file cannot be written.
        """
        self._require_fitted()
        header = {
            **self._described(),
            "parameters": self._parameters(secrets_too=training_data),
            "certificate": self._certificate.model_dump(mode="json"),
            "selected": self._selected,
        }
        arrays: dict[str, NDArray[Any] | None] = {"weights": self._weights}
        if training_data and self._removed is not None:
            index, labels = self._described_index()
            header |= index
            arrays |= labels | {"removed": self._removed}
        storage.write(path, header, arrays)

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        self._certificate = PrivateCertificate.model_validate(header["certificate"])
        self._selected = int(header["selected"])
        self._weights = arrays["weights"]
        self._removed = arrays.get("removed")
        if self._removed is not None:
            # Earlier versions wrote the labels of deleted records into their files.
            self._frame_index = self._index_without(np.flatnonzero(self._removed))

    @classmethod
    def _from_file(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        estimator = super()._from_file(header, arrays)
        if isinstance(estimator.radius, list):
            estimator.radius = tuple(estimator.radius)  # JSON knows lists only.
        return estimator

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_weights")
