"""Audited methods: how each method learns and unlearns, what it publishes, and what it claims."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from certified_unlearning.audit.canaries import Array, Known
from certified_unlearning.audit.claims import Claim
from certified_unlearning.audit.guessers import (
    Guess,
    Published,
    from_weights,
    guess_by_scores,
    objective_of,
    path_of,
    scores_of,
)
from certified_unlearning.errors import AssumptionError, ParameterError

Learn = Callable[[Array, NDArray[Any]], Any]
"""A function that takes records and labels, and returns a model."""
Unlearn = Callable[[Any, Array, NDArray[Any], NDArray[np.int64]], Any]
"""A function that takes a model, its records and labels, and positions. It returns the model without the records at
these positions."""


class AuditedMethod(Protocol):
    """A method that learns and unlearns, and whose claim is audited."""

    @property
    def name(self) -> str:
        """Name of the method in reports."""

    @property
    def certified(self) -> bool:
        """Whether a certificate states the claim."""

    @property
    def assumed(self) -> tuple[str, ...]:
        """The assumptions of the audit, in sentences without full stops."""

    @property
    def long_rows(self) -> Callable[[Array], Array] | None:
        """Function that scales directions to canaries of the largest allowed norm; None if no guarantee bounds rows."""

    @property
    def target_range(self) -> tuple[float, float] | None:
        """Range of targets in the guarantee; None for classes, or if no guarantee bounds targets."""

    @abstractmethod
    def learn(self, X: Array, y: NDArray[Any]) -> Any:
        """Return a model that learned from records."""

    @abstractmethod
    def unlearn(self, model: Any, X: Array, y: NDArray[Any], gone: NDArray[np.int64]) -> Any:
        """Return the model without the records at the positions ``gone``."""

    @abstractmethod
    def published(self, model: Any, known: Known) -> Published:
        """Return copies of what a model publishes."""

    @abstractmethod
    def claim(self, model: Any) -> Claim:
        """Return the claim about a model from which records were removed."""

    @abstractmethod
    def guess(self, known: Known, rng: np.random.Generator) -> Guess:
        """Return the guess.

        The guess is made before members are drawn, so it cannot depend on them.
        """


@dataclass
class OwnEstimator:
    """An estimator of this package, with its own mechanism, constants and certificate.

    Attributes:
        estimator: The estimator. Every run uses a clone of it.
        request_size: Number of records that one request removes; None if one request removes all records.
    """

    estimator: Any
    request_size: int | None = None
    certified: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check that the theorem applies to the estimator, and that noise is drawn anew in every run.

        Raises:
            AssumptionError: The certificate does not state closeness of distributions.
            ParameterError: The estimator has a seed.
        """
        self.estimator._require_law()
        if self.estimator.random_state is not None:
            raise ParameterError(
                f"random_state of {self.name} must be None for an audit, got {self.estimator.random_state!r}: with a "
                "seed every run has the same noise"
            )

    @property
    def name(self) -> str:
        """Name of the method in reports."""
        return type(self.estimator).__name__

    @property
    def assumed(self) -> tuple[str, ...]:
        """The assumptions of the audit, in sentences without full stops."""
        return (
            "the comparator's law does not depend on which canaries were drawn: according to the source code, noise, "
            "steps and places follow from counts and parameters",
        )

    def long_rows(self, directions: Array) -> Array:
        """Return rows in these directions, with the largest norm that the guarantee allows."""
        rows: Array = self.estimator._long_rows(directions)
        return rows

    @property
    def target_range(self) -> tuple[float, float] | None:
        """The range of targets in the guarantee; None for classes."""
        found: tuple[float, float] | None = self.estimator._range()
        return found

    def learn(self, X: Array, y: NDArray[Any]) -> Any:
        """Return a model that learned from records."""
        return clone(self.estimator).fit(X, y)

    def unlearn(self, model: Any, X: Array, y: NDArray[Any], gone: NDArray[np.int64]) -> Any:
        """Return the model without the records at the positions ``gone``."""
        size = len(gone) if self.request_size is None else self.request_size
        for start in range(0, len(gone), size):
            model.unlearn(gone[start : start + size])
        return model

    def published(self, model: Any, known: Known) -> Published:
        """Return the weights.

        If no guesser can use the weights, return the canaries' scores instead.
        """
        if objective_of(model) is None:
            return {"scores": scores_of(model, known)}
        return _weights_of(model)

    def claim(self, model: Any) -> Claim:
        """Return the certificate's claim about all removed records together."""
        return Claim.of(model._stated_of_removed())

    def guess(self, known: Known, rng: np.random.Generator) -> Guess:
        """Return the guess from weights if the model minimises a known objective; otherwise, the guess from scores."""
        # This uses as many records as every run, because constants follow from the number of records.
        X, y, _ = known.with_canaries(np.arange(known.members))
        objective = objective_of(self.learn(X, y))
        if objective is not None:
            return from_weights(objective, known)
        return guess_by_scores(lambda X, y: scores_of(self.learn(X, y), known), known, rng)


@dataclass
class GivenMethod:
    """A method that is given as functions, such as the training and fine-tuning of a network.

    Attributes:
        learns: Function that returns a model that learned from records.
        unlearns: Function that returns the model without some of these records.
        publishes: Function that returns the published part of a model. If None, the weights of a model with a known
            objective are published, and scores of the canaries otherwise.
        claims: The claim about the model.
        name: Name of the method in reports.
    """

    learns: Learn
    unlearns: Unlearn
    publishes: Callable[[Any], Published] | None = None
    claims: Claim = field(default_factory=Claim)
    name: str = "the given method"
    certified: ClassVar[bool] = False
    long_rows: ClassVar[None] = None
    target_range: ClassVar[None] = None

    @property
    def assumed(self) -> tuple[str, ...]:
        """The assumptions of the audit, in sentences without full stops."""
        return (
            "the law of a model that never saw the canaries does not depend on which canaries were drawn: nothing "
            "that stays, such as a scaler, a vocabulary or a step size, was measured on them",
            "every run has its own randomness",
        )

    def learn(self, X: Array, y: NDArray[Any]) -> Any:
        """Return a model that learned from records."""
        return self.learns(X, y)

    def unlearn(self, model: Any, X: Array, y: NDArray[Any], gone: NDArray[np.int64]) -> Any:
        """Return the model without the records at the positions ``gone``."""
        unlearned = self.unlearns(model, X, y, gone)
        if unlearned is None:
            raise ParameterError("the function `unlearn` must return the model without the records, got None")
        return unlearned

    def published(self, model: Any, known: Known) -> Published:
        """Return the published part of the model."""
        if self.publishes is not None:
            return {name: np.array(values) for name, values in self.publishes(model).items()}
        if objective_of(model) is None:
            return {"scores": scores_of(model, known)}
        return _weights_of(model)

    def claim(self, model: Any) -> Claim:
        """Return the given claim."""
        return self.claims

    def guess(self, known: Known, rng: np.random.Generator) -> Guess:
        """Return the guess from weights for linear models of scikit-learn; otherwise, the guess from scores.

        Raises:
            ParameterError: ``publish`` was given, so the meaning of the published numbers is unknown.
        """
        if self.publishes is not None:
            raise ParameterError(
                "`publish` was given without `guess`: also give a function `guess`, which reads what `publish` returns"
            )
        without = self.learn(known.X, known.y)
        objective = objective_of(without)
        if objective is not None:
            return from_weights(objective, known, path_of(without, known))
        return guess_by_scores(lambda X, y: scores_of(self.learn(X, y), known), known, rng)


def method_of(
    estimator: Any,
    *,
    learn: Learn | None,
    unlearn: Unlearn | None,
    publish: Callable[[Any], Published] | None,
    claim: Claim | None,
    request_size: int | None,
) -> AuditedMethod:
    """Return an estimator or functions as an `AuditedMethod`.

    An `AuditedMethod` is returned unchanged.

    Raises:
        ParameterError: A function to learn or to unlearn is missing, or the arguments contradict each other.
        AssumptionError: The theorem does not apply to the estimator.
    """
    if estimator is None:
        if learn is None or unlearn is None:
            raise ParameterError("give an estimator, or both functions `learn` and `unlearn`")
        return GivenMethod(learn, unlearn, publish, claim or Claim())
    if hasattr(estimator, "published"):
        method: AuditedMethod = estimator
        return method
    if isinstance(estimator, Pipeline):
        raise AssumptionError(
            "a pipeline cannot be audited as an estimator, because its earlier steps may learn from the canaries "
            "without unlearning them, and the comparator's law may then depend on which canaries were drawn: fit the "
            "earlier steps without canaries and give the last step, with the X that they return; or give the functions "
            "`learn` and `unlearn`, so that the audit covers the whole pipeline"
        )
    if learn is not None:
        raise ParameterError("give either an estimator or the function `learn`, not both")
    if hasattr(estimator, "_require_law"):
        if any(each is not None for each in (unlearn, publish, claim)):
            raise ParameterError(
                f"{type(estimator).__name__} has its own unlearn, certificate and published weights: leave out the "
                "arguments `unlearn`, `publish` and `claim`"
            )
        return OwnEstimator(estimator, request_size)
    if unlearn is None:
        raise ParameterError(
            f"{type(estimator).__name__} cannot unlearn: give a function `unlearn(model, X, y, gone)`, where X and y "
            "are all records that the model learned from, and gone has the positions of the records to remove; the "
            "function returns the model without these records"
        )
    return GivenMethod(
        lambda X, y: clone(estimator).fit(X, y), unlearn, publish, claim or Claim(), type(estimator).__name__
    )


def _weights_of(model: Any) -> Published:
    return {name: np.array(getattr(model, name)) for name in ("coef_", "intercept_")}
