"""Services that learn by gradient descent on linear losses of one coordinate: the test bed with exact attacks.

Records are numbers, databases have shape ``(interactions, n)``, and models have shape ``(interactions,)``. Coordinates
of linear losses do not mix, so the engine runs `COLUMNS` interactions as the coordinates of one trial. This makes tens
of thousands of interactions cheap.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.deletion.planning import DeletionPlan
from certified_unlearning.engine import randomness
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.langevin import starting_weights
from certified_unlearning.mechanisms.noisy_gradient_deletion import NoisyGradientDeletion, noisy_descent
from certified_unlearning.papers.forget_unlearning.services.interaction import Array, Key, Request

COLUMNS = 500
"""The number of interactions in one trial of the engine."""


class LinearLossObjective:
    """The objective ``f(w) = <mean of the records, w> + (strong_convexity / 2) ||w||^2``, whose coordinates do not mix.

    All trials must take the same number of steps, because the engine orders trials by this number.

    Args:
        means: The mean of each trial's records, shape ``(trials, d)``.
        n: The number of records.
        strong_convexity: The l2 coefficient lambda.
    """

    def __init__(self, means: Tensor, *, n: int, strong_convexity: float) -> None:
        self.n, self.d = n, means.shape[1]
        self._means = means
        self._strong_convexity = strong_convexity

    def remove(self, count: int) -> None:
        """Require that ``count`` is 0, because a removal would change the means, and with them the objective.

        Raises:
            ParameterError: ``count`` is not 0.
        """
        if count:
            raise ParameterError(f"linear losses cannot remove records, got count = {count}; use new means instead")

    def descend(self, weights: Tensor, step_size: float) -> None:
        """Replace ``weights`` (trials, d) by ``weights - step_size * gradient``, in place.

        Raises:
            ParameterError: The shapes of the weights and the means differ.
        """
        if weights.shape != self._means.shape:
            raise ParameterError(f"weights must have the shape of the means, {self._means.shape}, got {weights.shape}")
        weights.mul_(1 - step_size * self._strong_convexity).sub_(self._means, alpha=step_size)


@dataclass(frozen=True)
class NoisyGradientService:
    """Noisy gradient descent with learning and deletion budgets (`noisy_gradient_deletion.NoisyGradientDeletion`)."""

    plan: DeletionPlan

    def learn(self, databases: Array, key: Key) -> Array:
        """Learn from the Gaussian start."""
        mechanism = NoisyGradientDeletion(self.plan)
        return _unpacked(mechanism.learn(_losses(databases, self.plan.problem), _keys(key, databases)), databases)

    def answer(self, databases: Array, request: Request, model: Array, key: Key) -> Array:
        """Continue from the published model on the new data."""
        after = request.applied_to(databases)
        losses = _losses(after, self.plan.problem)
        weights = NoisyGradientDeletion(self.plan).delete(losses, _packed(model), _keys(key, after))
        return _unpacked(weights, after)


@dataclass(frozen=True)
class RetrainingService(NoisyGradientService):
    """A service that learns anew at every request, so that deletion equals retraining."""

    def answer(self, databases: Array, request: Request, model: Array, key: Key) -> Array:
        """Learn on the new data, independently of the old model."""
        return self.learn(request.applied_to(databases), key)


@dataclass(frozen=True)
class LangevinService:
    """Langevin unlearning (Chien, Wang, Chen, Li 2024), with a Gaussian start and noisy gradient steps.

    Attributes:
        problem: The constants of the problem.
        sigma: The noise scale.
        learning_steps: The number ``T`` of learning steps.
        unlearning_steps: The number ``K`` of steps for every request.
    """

    problem: Problem
    sigma: float
    learning_steps: int
    unlearning_steps: int

    def learn(self, databases: Array, key: Key) -> Array:
        """Learn from a Gaussian start with mean 0 and variance ``2 sigma^2 / m``."""
        like = _packed(np.zeros(len(databases)))
        weights = starting_weights(
            _keys((*key, "start"), databases),
            [self.sigma] * len(like),
            mean=0.0,
            strong_convexity=self.problem.strong_convexity,
            like=like,
        )
        return self._descend(databases, weights, key, self.learning_steps)

    def answer(self, databases: Array, request: Request, model: Array, key: Key) -> Array:
        """Continue from the published model on the new data."""
        return self._descend(request.applied_to(databases), _packed(model), key, self.unlearning_steps)

    def _descend(self, databases: Array, weights: Tensor, key: Key, steps: int) -> Array:
        after = noisy_descent(
            _losses(databases, self.problem),
            weights,
            _keys(key, databases),
            steps=steps,
            sigma=self.sigma,
            step_size=self.problem.step_size,
        )
        return _unpacked(after, databases)


@dataclass(frozen=True)
class PublishedStateService:
    """Descent-to-Delete (Neel, Roth, Sharifi-Malvajerdi 2021), Theorem 28, which continues from the published weights.

    Attributes:
        problem: The constants of the problem, with Descent-to-Delete's step size.
        sigma: The standard deviation of the published noise.
        learning_steps: The number of learning steps, from 0.
        steps: The number of steps for every request.
    """

    problem: Problem
    sigma: float
    learning_steps: int
    steps: int

    def learn(self, databases: Array, key: Key) -> Array:
        """Descend from 0, and add noise."""
        return self.noisy(self.descend(databases, np.zeros(len(databases)), self.learning_steps), key)

    def answer(self, databases: Array, request: Request, model: Array, key: Key) -> Array:
        """Descend from the published model on the new data, and add noise."""
        return self.noisy(self.descend(request.applied_to(databases), model, self.steps), key)

    def descend(self, databases: Array, model: Array, steps: int) -> Array:
        """Return the models after noiseless steps."""
        weights, losses = _packed(model), _losses(databases, self.problem)
        unused = [0] * len(weights)
        after = noisy_descent(losses, weights, unused, steps=steps, sigma=0.0, step_size=self.problem.step_size)
        return _unpacked(after, databases)

    def noisy(self, model: Array, key: Key) -> Array:
        """Return models with the noise of publication."""
        like = _packed(model)
        return _unpacked(like + self.sigma * randomness.normal_rows(_keys(key, model), like), model)


class SecretStateModel(NamedTuple):
    """A model of Descent-to-Delete with secret state: the secret weights and the published ones."""

    secret: Array
    published: Array


@dataclass(frozen=True)
class SecretStateService:
    """Descent-to-Delete, Theorem 9, which continues from noiseless weights that it keeps secret."""

    descent: PublishedStateService

    def learn(self, databases: Array, key: Key) -> SecretStateModel:
        """Descend from 0; publish with noise."""
        return self._published(
            self.descent.descend(databases, np.zeros(len(databases)), self.descent.learning_steps), key
        )

    def answer(self, databases: Array, request: Request, model: SecretStateModel, key: Key) -> SecretStateModel:
        """Descend from the secret weights on the new data; publish with noise."""
        after = request.applied_to(databases)
        return self._published(self.descent.descend(after, model.secret, self.descent.steps), key)

    def _published(self, secret: Array, key: Key) -> SecretStateModel:
        return SecretStateModel(secret, self.descent.noisy(secret, key))


@dataclass(frozen=True)
class ConstantService:
    """A service that always returns the same model.

    A deletion by this service is perfect, but the service does not satisfy any definition of unlearning that compares a
    service with retraining.

    Attributes:
        models: A function that returns a copy of the model for each interaction, given the number of interactions.
    """

    models: Callable[[int], Any] = np.zeros

    def learn(self, databases: Array, key: Key) -> Any:
        """Return the model."""
        return self.models(len(databases))

    def answer(self, databases: Array, request: Request, model: Any, key: Key) -> Any:
        """Return the model."""
        return self.models(len(databases))


def published(model: SecretStateModel) -> Array:
    """Return the model without its secret state."""
    return model.published


def _losses(databases: Array, problem: Problem) -> LinearLossObjective:
    means = _packed(databases.mean(axis=1))
    return LinearLossObjective(means, n=problem.n, strong_convexity=problem.strong_convexity)


def _keys(key: Key, interactions: Array) -> list[int]:
    rows = -(-len(interactions) // COLUMNS)
    return [randomness.address(*key, row) for row in range(rows)]


def _packed(values: Array) -> Tensor:
    """Return the numbers, of which there is one for each interaction, arranged in rows of `COLUMNS` numbers.

    The last row is padded with zeros.
    """
    filled = np.zeros(-(-len(values) // COLUMNS) * COLUMNS)
    filled[: len(values)] = values
    return torch.from_numpy(filled.reshape(-1, COLUMNS))


def _unpacked(weights: Tensor, interactions: Array) -> Array:
    numbers: Array = weights.numpy().reshape(-1)[: len(interactions)]
    return numbers
