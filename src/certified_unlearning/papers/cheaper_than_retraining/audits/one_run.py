"""One-run audits of the systems in the experiment `cost`, and of common practices without a certificate.

The weights of a linear model can be computed from its scores on a few rows. Therefore, the weights of every system
count as published. The last column of every row, including the canaries, is 1, for the intercept.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from certified_unlearning.audit import AuditResult, Claim, Known, audit
from certified_unlearning.audit.canaries import Array, orthogonal_directions
from certified_unlearning.audit.guessers import Guess, Published, from_weights, guess_by_scores, path_of
from certified_unlearning.engine.randomness import generator
from certified_unlearning.estimators import ExactLogisticRegression
from certified_unlearning.estimators.objective import PublicObjective
from certified_unlearning.papers.cheaper_than_retraining.audits.names import CERTIFIED, EXACT
from certified_unlearning.papers.cheaper_than_retraining.audits.sweep import Audits
from certified_unlearning.papers.cheaper_than_retraining.counting import Readings
from certified_unlearning.papers.cheaper_than_retraining.systems import (
    MADE,
    RETRAINED,
    Indices,
    NewtonRefit,
    Promise,
    Refit,
    System,
    Unlearning,
)
from certified_unlearning.papers.cheaper_than_retraining.tables import Remaining, Table, synthetic

_NO_GUARANTEE = Promise("none", "nothing", "nobody", adaptive=False)


class Kept(Refit):
    """scikit-learn's model without any change: the request is ignored."""

    def forget(self, gone: Indices, left: Remaining) -> None:
        """Do nothing."""

    def promise(self) -> Promise:
        """Return the promise that guarantees nothing."""
        return _NO_GUARANTEE


class Steps(NewtonRefit):
    """A few steps of descent from the current weights, each with the largest step size that descent allows."""

    def __init__(self, table: Table, sweep: Audits, readings: Readings) -> None:
        super().__init__(table, sweep, readings)
        self._steps = sweep.steps

    def forget(self, gone: Indices, left: Remaining) -> None:
        """Take the steps."""
        weights, strong_convexity = self._model.coef_[0], 1 / self.sweep.strength
        step_size = 1 / (np.max(np.sum(self.table.rows**2, axis=1)) / 4 + strong_convexity)
        for _ in range(self._steps):
            weights = weights - step_size * self._gradient(weights, gone, left)
        self._model.coef_ = weights[None]

    def promise(self) -> Promise:
        """Return the promise that guarantees nothing."""
        return _NO_GUARANTEE

    @abstractmethod
    def _gradient(self, weights: Array, gone: Indices, left: Remaining) -> Array:
        """Return the gradient of the function that the steps decrease."""


class FineTuning(Steps):
    """Descent on the mean loss of the remaining records."""

    def _gradient(self, weights: Array, gone: Indices, left: Remaining) -> Array:
        return _mean_gradient(weights, left.rows, left.labels, len(left.rows)) + weights / self.sweep.strength


class GradientAscent(Steps):
    """Ascent on the removed records' part of the mean loss."""

    def _gradient(self, weights: Array, gone: Indices, left: Remaining) -> Array:
        return -_mean_gradient(weights, self.table.rows[gone], self.table.labels[gone], self.table.n)


class ExactSteps(Unlearning):
    """Exact unlearning by noisy SGD: a request recomputes all steps from the first one that fails a random test."""

    def _made(self) -> Any:
        return ExactLogisticRegression(C=self.strength, random_state=self.sweep.seed)

    def promise(self) -> Promise:
        """Return the guarantee."""
        return RETRAINED


SYSTEMS: dict[str, Callable[[Table, Any, Readings], System]] = {
    **MADE,
    "nothing": Kept,
    "fine-tuning": FineTuning,
    "gradient-ascent": GradientAscent,
    "exact-steps": ExactSteps,
}
BY_SCORES = ("sgd", "sisa", "exact-steps", "langevin-minibatch")
"""Systems that end away from the minimiser. For these systems, the adversary guesses better with models of its own."""


@dataclass
class AuditedSystem:
    """A system in the form that an audit needs.

    Every model has its own noise, which follows from the seed of the audit.

    Attributes:
        name: The name of the system.
        asked: The constants of the system.
        seeds: A generator that draws a seed for each model.
    """

    name: str
    asked: Audits
    seeds: np.random.Generator
    assumed: ClassVar[tuple[str, ...]] = (
        "the comparator's law does not depend on which canaries were drawn: constants follow from counts alone",
    )
    long_rows: ClassVar[None] = None
    target_range: ClassVar[None] = None
    certified: bool = field(init=False)

    def __post_init__(self) -> None:
        """Store whether the system has a certificate."""
        self.certified = self.name in CERTIFIED

    def learn(self, X: Array, y: NDArray[Any]) -> tuple[System, Remaining]:
        """Return the fitted system and the records that it has not removed."""
        table = Table("canaries", X.copy(), y.copy(), X[:1], y[:1])
        seed = int(self.seeds.integers(2**32))
        system = SYSTEMS[self.name](table, self.asked.model_copy(update={"seed": seed}), Readings())
        system.fit()
        return system, Remaining(X.copy(), y.copy())

    def unlearn(
        self, model: tuple[System, Remaining], X: Array, y: NDArray[Any], gone: Indices
    ) -> tuple[System, Remaining]:
        """Answer one request for all of these records."""
        system, left = model
        left.remove(gone)
        system.forget(gone, left)
        return model

    def published(self, model: tuple[System, Remaining], known: Known) -> Published:
        """Return the weights, and the score of each canary times its label."""
        weights = _weights(model[0], known.rows.shape[1] - 1)
        return {"coef_": weights[None], "scores": known.labels * (known.rows @ weights)}

    def claim(self, model: tuple[System, Remaining]) -> Claim:
        """Return the certificate's claim; for a system without one, the claim is equality with retraining."""
        system, _ = model
        return Claim.of(system._certificate.stated()) if self.name in CERTIFIED else Claim()  # type: ignore[attr-defined]

    def guess(self, known: Known, rng: np.random.Generator) -> Guess:
        """Return the adversary's guess, from the weights or from the scores of the adversary's own models."""
        if self.name in BY_SCORES:
            return guess_by_scores(lambda X, y: self._scores(X, y, known), known, rng)
        X, y, _ = known.with_canaries(np.arange(known.members))
        fitted: Any = self.learn(X, y)[0]
        noise, by_curvature, path = 0.0, False, []
        if self.certified:
            stated = fitted._estimator._public_objective()
            noise, by_curvature = stated.noise, stated.by_curvature
        else:
            path = path_of(fitted._made().fit(known.X, known.y), known)
        objective = PublicObjective(
            loss="logistic",
            strength=len(X) / self.asked.strength,
            targets=lambda labels: np.asarray(labels, dtype=np.float64),
            seen=lambda rows: rows,
            intercept=False,
            noise=noise,
            by_curvature=by_curvature,
        )
        return from_weights(objective, known, path)

    def _scores(self, X: Array, y: NDArray[Any], known: Known) -> Array:
        return np.asarray(self.published(self.learn(X, y), known)["scores"])


def audited(name: str, n: int, sweep: Audits) -> AuditResult:
    """Audit a system in one run on ``n`` synthetic records.

    If the system refuses this number of records, its error is raised.
    """
    address = (sweep.seed, "audit", name, n)
    rng = generator(*address, "canaries")
    stay = synthetic("isotropic", n=n, features=sweep.features, seed=sweep.seed)
    rows = np.ones((sweep.canaries, sweep.features + 1))
    rows[:, :-1] = orthogonal_directions(sweep.canaries, sweep.features, rng)
    labels = rng.choice([-1.0, 1.0], size=sweep.canaries)
    return audit(
        AuditedSystem(name, sweep, generator(*address, "noise")),
        stay.rows,
        stay.labels,
        canaries=(rows, labels),
        copies=sweep.copies if name in CERTIFIED or name in EXACT else 1,
        alpha=sweep.alpha,
        random_state=rng,
    )


def _mean_gradient(weights: Array, rows: Array, labels: Array, n: int) -> Array:
    gradient: Array = -(labels * expit(-labels * (rows @ weights))) @ rows / n
    return gradient


def _weights(system: System, features: int) -> Array:
    """Return the weights and intercept of a linear model, computed from the model's scores.

    The intercept is the score of the zero vector. Each weight is the score of a unit vector minus the intercept.
    """
    intercept, *others = system.scores(np.vstack([np.zeros(features), np.eye(features)]))
    return np.append(np.asarray(others) - intercept, intercept)
