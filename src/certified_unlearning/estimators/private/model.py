"""The common part of differentially private linear models, for classification and regression."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Literal, get_args

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
    NoisyDescent,
    OutputPerturbation,
    embedding_dimension,
)
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.searches import Boosting, GridSearch, PrivateLearner, learner_of
from certified_unlearning.certificate import PrivateCertificate
from certified_unlearning.certificate.base import Stated
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.estimators.linear import LinearModel
from certified_unlearning.estimators.scaling import Array
from certified_unlearning.mechanisms.exact.one_pass.projected_glm import Projection
from certified_unlearning.mechanisms.learners.learner import require_one_of
from certified_unlearning.mechanisms.private.noisy_descent import embedded
from certified_unlearning.mechanisms.private.searches import learn
from certified_unlearning.text import counted, rounded_up
from certified_unlearning.vocabulary import Delta, Relation

Method = Literal["output-perturbation", "noisy-gradient-descent", "embedding"]


@dataclass(repr=False, eq=False)
class PrivateModel(LinearModel):
    """A linear model that keeps no records, and whose noise hides each record that it learned from.

    `fit` may warn that one column dominates the others. This warning is computed from the records, and no noise is
    added. Epsilon does not cover it, so do not publish it.

    Args:
        method: Method by which the model becomes private.
        epsilon: Privacy loss for one record.
        delta: Failure probability of the guarantee for one record: a number strictly between 0 and 1; ``"auto"``, which
            is ``min(1e-6, 1 / (10 n))``; or ``"1/n"``, as in the papers.
        relation: Neighbouring relation of epsilon: ``replace-one`` replaces a record by any other; ``add-remove``
            leaves a record's place empty, and needs half of the noise. Epsilons of the two relations are not
            interchangeable.
        boosting: With a number, one model is learned from each of several chunks of the records, and one of these
            models is selected privately on a separate chunk. A smaller number means more chunks. With more chunks, a
            bad model should be rarer, but smaller chunks reduce accuracy. None: one model is learned from all records.
        strong_convexity: ``lambda`` of output perturbation; None: the value with the best bound.
        steps: Number of descent steps; None: the number of records, at most 1000.
        dimension: Number of columns of an embedding; None: computed by the analysis.
        normalize: Whether every row is divided by its own norm. If so, ``data_norm`` must be None.
        data_norm: Norm to which longer rows are scaled down; then all rows are divided by it.
        fit_intercept: Whether there is an intercept. The ball's radius bounds the intercept, too.
    """

    method: Method = "output-perturbation"
    _: KW_ONLY
    epsilon: float = 1.0
    delta: Delta = "auto"
    relation: Relation = "replace-one"
    radius: float | Sequence[float] = 1.0
    boosting: float | None = None
    strong_convexity: float | None = None
    steps: int | None = None
    dimension: int | None = None
    data_norm: float | None = 1.0

    @abstractmethod
    def _loss(self) -> ScalarLoss:
        """Return the loss, for rows of norm at most 1."""

    def _learn_from(self, plan: PrivateLearner, X: NDArray[Any], labels: NDArray[Any]) -> None:
        """Learn from checked features, and publish."""
        rows = self._rows(X.astype(np.float64, copy=False))
        key = self._noise_key()
        # The matrix does not depend on any record, and may be public.
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
        records = BoundedRecords(whole, torch.as_tensor(labels), loss=loss, row_norm=1.0)
        if projection is not None:
            inside = embedded(projection.matrix, records.rows)
            records = BoundedRecords(inside, records.targets, loss=loss, row_norm=plan.problem.row_norm)
        learned = learn(plan, records, [address(str(key), "noise")])
        weights = learned.weights if projection is None else projection.lift(learned.weights)
        self._store.keep(np.arange(len(rows)))
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
        )

    def _planned(self, n: int) -> PrivateLearner:
        require_one_of(get_args(Method), method=self.method)
        require_one_of(get_args(Relation), relation=self.relation)
        require_positive(epsilon=self.epsilon)
        delta, radii = required_delta(self.delta, n), self._radii()
        problem = LinearProblem(
            n=n,
            features=self.n_features_in_ + bool(self.fit_intercept),
            row_norm=1.0,
            loss=self._loss(),
            radius=radii[0],
            relation=self.relation,
        )
        planner = partial(self._run, delta=delta)
        plan: PrivateLearner
        if self.boosting is not None:
            require_probability(boosting=self.boosting)
            if len(radii) > 1:
                raise ParameterError(
                    "a model can be selected among several radii, or among several parts of the records, but not both: "
                    "give one radius, or boosting = None"
                )
            plan = Boosting.plan(problem, planner, epsilon=float(self.epsilon), beta=self.boosting)
        elif len(radii) > 1:
            plan = GridSearch.plan(problem, radii, planner, epsilon=float(self.epsilon))
        else:
            plan = planner(problem, 1)
        require_met(plan.guarantee, epsilon=self.epsilon, delta=delta)
        return plan

    def _run(self, problem: LinearProblem, runs: int, *, delta: float) -> Learner:
        """Return the plan of one of several runs, which share epsilon and delta."""
        if self.method == "output-perturbation":
            return OutputPerturbation.plan(
                problem, epsilon=self.epsilon, delta=delta, strong_convexity=self.strong_convexity, runs=runs
            )
        if self.method == "embedding":
            problem = self._embedded(problem)
        return NoisyDescent.plan(problem, epsilon=self.epsilon, delta=delta, steps=self.steps, runs=runs)

    def _embedded(self, problem: LinearProblem) -> LinearProblem:
        """Return the problem with rows projected to a few columns.

        The number of columns is the same for every radius in the search.
        """
        if self.dimension is None:
            widest = LinearProblem(**{**vars(problem), "radius": max(self._radii())})
            dimension = embedding_dimension(widest, self.epsilon)
        else:
            require_count(least=1, dimension=self.dimension)
            dimension = self.dimension
        return problem if dimension >= problem.features else problem.embedded(dimension)

    def _radii(self) -> list[float]:
        """Return the radii of the balls that contain the weights.

        With an intercept, the vector of weights is ``sqrt(2)`` times the vector of the coefficients and the intercept.
        So each radius is then multiplied by ``sqrt(2)``.

        Raises:
            ParameterError: ``radius`` is neither a number above 0 nor several such numbers.
        """
        given = [self.radius] if isinstance(self.radius, int | float | np.number) else self.radius
        several = isinstance(given, Sequence) or (isinstance(given, np.ndarray) and given.ndim == 1)
        if not several or isinstance(given, str) or not len(given):
            raise ParameterError(f"radius must be a number above 0, or a list of such numbers, got {self.radius!r}")
        for each in given:
            require_positive(radius=each)
        return [float(each) * (math.sqrt(2) if self.fit_intercept else 1.0) for each in given]

    def _require_short(self, features: Array) -> None:
        """Raise `ParameterError` if no parameter bounds rows.

        An error that depends on the rows would reveal something about them.
        """
        if not self.normalize and self._scaling() is None:
            raise ParameterError(
                "private learning needs a public bound on rows: give data_norm, to which longer rows are scaled down, "
                "or feature_ranges, or normalize=True"
            )

    @property
    def certificate_(self) -> PrivateCertificate:
        """Certificate, which is the same before and after deletions.

        `certificate.write` writes the certificate to a file for ``unlearn verify``.

        Raises:
            AssumptionError: Epsilon is so large (several hundred), or delta so small, that the events omitted by the
                noise sampler would use up all of delta. In this case, nothing is guaranteed.
        """
        self._require_fitted()
        stated: PrivateCertificate = self._certificate
        if stated.extra_delta > stated.delta:
            raise AssumptionError(
                f"epsilon = {stated.epsilon:.6g} is so large, or delta = {stated.delta:.2g} so small, that nothing is "
                f"guaranteed: the events that the noise sampler omits would add {stated.extra_delta:.2g} to delta"
            )
        return stated

    @property
    def radius_(self) -> float:
        """Radius that was used, or that was selected from several; 0 for a model of zeros."""
        self._require_fitted()
        scale = math.sqrt(2) if self.fit_intercept else 1.0
        learners = self._plan.learners
        # Learning from embedded rows uses a ball with twice the radius.
        scale *= 2 if self._certificate.embedded else 1
        if self._certificate.selection != "grid search":
            return float(learners[0].problem.radius / scale)
        return float(learners[self._selected - 1].problem.radius / scale) if self._selected else 0.0

    def epsilon_after(self, deletions: int) -> float:
        """Return the epsilon of the unchanged model after a number of deletions.

        Args:
            deletions: Number of deleted records, at least 1.

        Returns:
            The epsilon between this model and a model that the same algorithm learns after these records were replaced
            by any others (with add-remove: after their places were left empty). This epsilon is valid at the
            certificate's delta plus the probability of the events that the noise sampler omits. If this probability
            would be more than delta, the epsilon is infinite, and nothing is guaranteed.
        """
        self._require_fitted()
        plan, delta = self._plan, self._certificate.delta
        epsilon: float = plan.guarantee.epsilon(delta, records=deletions)
        return epsilon if extra_delta(plan.failure, epsilon) <= delta else math.inf

    def deletions_within(self, epsilon: float) -> int:
        """Return the largest number of deletions whose `epsilon_after` is at most this epsilon."""
        self._require_fitted()
        require_positive(epsilon=epsilon)
        plan, delta = self._plan, self._certificate.delta
        # With more deletions, `epsilon_after` is infinite.
        room = math.log(max(1.0, delta / plan.failure))
        covered = plan.guarantee.deletions(min(epsilon, room), delta) if room else 0
        while covered and not self.epsilon_after(covered) <= epsilon:
            covered -= 1
        return covered

    @property
    def _plan(self) -> PrivateLearner:
        """The plan for learning, as the certificate states it."""
        return learner_of(self._certificate.constants)

    def _stated_of_removed(self) -> Stated:
        deleted = int(self._store.removed.sum())
        stated = self.certificate_.stated()
        # The delta is increased by the probability that the noise sampler omits, which is at most delta if epsilon is
        # finite.
        return stated._replace(
            epsilon=self.epsilon_after(deleted), extra_delta=stated.delta, epsilon_all_published=None, mu=None
        )

    def _remove(self, named: NDArray[Any]) -> bool:
        self._store = self._store.without(self._store.removable(named))
        return False

    def _guaranteed_in_words(self, stated: PrivateCertificate) -> list[str]:
        deleted = 0 if self._store.places is None else int(self._store.removed.sum())
        unchanged = [f"{each.records}: {rounded_up(each.epsilon, 3)}" for each in stated.deletions]
        after = []
        if deleted:
            epsilon = self.epsilon_after(deleted)
            worth = f"epsilon is {rounded_up(epsilon)}" if math.isfinite(epsilon) else "nothing is guaranteed any more"
            after = [f"For the {counted(deleted, 'record')} deleted so far, {worth}."]
        return [
            f"Learned from {counted(stated.n, 'record')} by {stated.mechanism}; {deleted} deleted since, which "
            "changed nothing.",
            f"Guaranteed ({stated.guarantee}): epsilon = {rounded_up(stated.epsilon)} at delta = "
            f"{rounded_up(stated.delta + stated.extra_delta)}, relation {stated.relation}.",
            f"Hidden: {stated.hidden}.",
            f"From: {stated.observers}.",
            f"Epsilon by the number of deleted records: {'; '.join(unchanged)}.",
            *after,
            f"Compared with: {stated.comparator}.",
            "Limits of the guarantee:",
            *(f"- {each}" for each in stated.not_promised),
        ]

    def _saved(self, training_data: bool) -> tuple[dict[str, Any], dict[str, NDArray[Any] | None]]:
        header = {"certificate": self._certificate.model_dump(mode="json"), "selected": self._selected}
        return header, {"weights": self._weights, "removed": self._store.removed if training_data else None}

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(header, arrays)
        self._certificate = PrivateCertificate.model_validate(header["certificate"])
        self._selected = int(header["selected"])
        self._weights = arrays["weights"]
        if "removed" in arrays:
            self._store.keep(np.arange(len(arrays["removed"])))
            # Earlier versions wrote the labels of deleted records into their files.
            self._store = self._store.without(np.flatnonzero(arrays["removed"]))
        if isinstance(self.radius, list):
            self.radius = tuple(self.radius)  # JSON has lists, but no tuples.
