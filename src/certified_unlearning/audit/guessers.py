"""Guessers infer from the published numbers which canaries were learned.

Guessers affect power, but never validity. A guess is a function of the published numbers and of `Known`. It returns a
score for every canary: the larger the score, the more likely the canary was learned. The guess never gets the model
itself, because the model's secret state identifies the canaries.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge

from certified_unlearning.audit.canaries import Array, Known
from certified_unlearning.errors import ParameterError
from certified_unlearning.estimators.objective import PublicObjective

Published = Mapping[str, NDArray[Any]]
Guess = Callable[[Published, Known], Array]
PATH = 8
"""Largest difference between the number of iterations at a point of a solver's path and the number at which the solver
stops. The published weights are compared with the weights at every point of the path."""
WINDOW = 6
"""Number of steps of a solver's path before, and also after, the point that is nearest to the published weights.

The guess treats differences of weights along the steps around the nearest point of the solver's path as noise.
"""
UNKNOWN_NOISE = 1e-4
"""Assumed variance of the error of a solver that adds no noise, divided by the mean variance of the canaries'
effects."""
POLISHED = 3
"""Number of Newton steps after a solver has ended.

The steps make the last digits exact.
"""
PAIRS = 4
"""Number of pairs of models that the guesser learns. One model of a pair learns half of the canaries, and the other
model learns the other half."""


def from_weights(objective: PublicObjective, known: Known, path: Sequence[Array] = ()) -> Guess:
    """Return the guess from published weights of a linear model: the best linear estimate from the canaries' effects.

    The effect of a canary is the change that it causes in the weights. At a minimiser of the objective, this is about
    ``-H^-1`` times the canary's gradient. The published weights differ from a reference by the effects of the members
    and by noise. The guess is the linear estimate of membership with the smallest mean squared error. The candidates
    for the reference are the minimiser without canaries, the minimiser with a part of every canary, and the points of
    the solver's path. The reference is the candidate that is nearest to the published weights.

    Args:
        objective: The objective that the model minimises.
        known: Everything that the guesser knows. All runs use the same guess.
        path: Arrays of shape ``(d,)``: the weights of a solver that learns without canaries, after increasing numbers
            of iterations.
    """
    share = known.members / len(known.rows)
    without, partly = (_Linearised.of(objective, known, part) for part in (0.0, share))
    away = without.effects.sum(axis=1) * share
    candidates = np.stack([partly.at, without.at, *path])
    steps = np.diff(candidates[2:], axis=0)

    def guess(published: Published, known: Known) -> Array:
        weights = published_weights(published, objective)
        nearest = int(np.linalg.norm(candidates - weights, axis=1).argmin())
        if nearest == 0:
            return partly.estimate(weights - partly.at)
        # The difference between a stopped solver and the nearest point of its path is mostly along the path.
        unknown = steps[max(0, nearest - 2 - WINDOW) : nearest - 2 + WINDOW] if nearest > 1 else steps[:0]
        return without.estimate(weights - candidates[nearest] - away, unknown)

    return guess


def published_weights(published: Published, objective: PublicObjective) -> Array:
    """Return the published weights of a linear model, on the scale of its objective.

    If there is an intercept, it is the last entry.
    """
    weights = np.asarray(published["coef_"], dtype=np.float64).ravel() / objective.unit
    if not objective.intercept:
        return weights
    intercept = np.asarray(published["intercept_"], dtype=np.float64).ravel()
    return np.append(weights, (intercept - objective.middle) / objective.unit)


@dataclass(frozen=True, eq=False)
class _Linearised:
    """A linear model's weights as a function of the members, in linear approximation near a minimiser.

    Attributes:
        at: The minimiser, shape ``(d,)``.
        effects: The change of the weights that each canary causes, shape ``(d, m)``.
        covariance: Covariance of the weights for randomly drawn members, including noise, shape ``(d, d)``.
    """

    at: Array
    effects: Array
    covariance: Array

    @classmethod
    def of(cls, objective: PublicObjective, known: Known, part: float) -> "_Linearised":
        """Return the approximation at the minimiser of an objective in which each canary has the weight ``part``.

        The records that stay have their full weight.
        """
        rows, targets = _with_intercept(objective, known.X), objective.targets(known.y)
        canaries, labels = _with_intercept(objective, known.rows), objective.targets(known.labels)
        weights, shares = (np.where(each > 0, *objective.class_weights[::-1]) for each in (targets, labels))
        counted = known.copies * shares
        rows, targets = np.concatenate([rows, canaries]), np.concatenate([targets, labels])
        weights = np.concatenate([weights, part * counted])
        at = _minimiser(objective, rows, targets, weights)
        slope, curvature = _derivatives(objective, rows @ at, targets)
        regulariser = np.full(rows.shape[1], objective.strength)
        if objective.intercept and not objective.intercept_regularised:
            regulariser[-1] = 0.0
        hessian = (rows * (curvature * weights)[:, None]).T @ rows + np.diag(regulariser)
        effects = -np.linalg.solve(hessian, canaries.T) * (counted * slope[len(known.X) :])
        share = known.members / len(known.rows)
        spread = share * (1 - share) * effects @ effects.T
        unit = np.eye(len(hessian))
        if objective.noise:
            n = len(known.X) + known.members * known.copies
            noise = objective.noise**2 * (n * np.linalg.inv(hessian) if objective.by_curvature else unit)
        else:
            noise = UNKNOWN_NOISE * np.trace(spread) / len(spread) * unit
        return cls(at, effects, spread + noise)

    def estimate(self, moved: Array, unknown: Array | None = None) -> Array:
        """Return a score for each canary: the larger the score, the more likely the canary is a member.

        Args:
            moved: The difference of the weights from their expectation, shape ``(d,)``.
            unknown: Steps along which a difference counts as noise, shape ``(steps, d)``.
        """
        covariance = self.covariance if unknown is None else self.covariance + unknown.T @ unknown
        scores: Array = np.linalg.solve(covariance, self.effects).T @ moved
        return scores


def from_scores(scores: Array, is_in: NDArray[np.bool_]) -> Guess:
    """Return a function that guesses from a model's scores of the canaries, by a likelihood ratio of two Gaussians.

    A score says how much a model prefers a canary's own label. As in likelihood-ratio attacks (Carlini et al. 2022),
    the guesser learns its own models. They show which scores canaries have if they were learned, and if they were not.

    Args:
        scores: Scores of the canaries under the guesser's own models, shape ``(models, m)``.
        is_in: Whether each model learned each canary, shape ``(models, m)``; both values must occur for every canary.
    """
    inside, outside = (np.ma.masked_array(scores, mask) for mask in (~is_in, is_in))
    means = [np.asarray(each.mean(axis=0)) for each in (inside, outside)]
    variance = (np.asarray(inside.var(axis=0)) + np.asarray(outside.var(axis=0))) / 2
    # A few models estimate a variance poorly.
    variance = (variance + np.median(variance)) / 2
    variance = np.where(variance > 0, variance, 1.0)

    def guess(published: Published, known: Known) -> Array:
        found = np.asarray(published["scores"], dtype=np.float64)
        ratio: Array = (found - (means[0] + means[1]) / 2) * (means[0] - means[1]) / variance
        return ratio

    return guess


def guess_by_scores(learned: Callable[[Array, NDArray[Any]], Array], known: Known, rng: np.random.Generator) -> Guess:
    """Return the guess from scores.

    The guesser learns models from halves of the canaries.

    Args:
        learned: Function that learns a model from records and labels, and returns its scores of the canaries.
        known: Everything that the guesser knows.
        rng: Generator that draws the halves.
    """
    scores, is_in = [], []
    for _ in range(PAIRS):
        half = rng.permutation(len(known.rows)) < len(known.rows) // 2
        for chosen in (half, ~half):
            X, y, _ = known.with_canaries(np.flatnonzero(chosen))
            scores.append(learned(X, y))
            is_in.append(chosen)
    return from_scores(np.stack(scores), np.stack(is_in))


def scores_of(model: Any, known: Known) -> Array:
    """Return how much a model prefers each canary's own label.

    For a classifier, this is the log-odds of the label, or the value of the decision function. For a regressor, it is
    the prediction, with the opposite sign if the target is below the middle of all targets.

    Raises:
        ParameterError: The model has none of the prediction methods that are known here.
    """
    if hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(known.rows), dtype=np.float64)
        own = probabilities[np.arange(len(known.rows)), np.searchsorted(model.classes_, known.labels)]
        tiny = np.finfo(np.float64).tiny
        odds: Array = np.log(np.maximum(own, tiny)) - np.log(np.maximum(1 - own, tiny))
        return odds
    if hasattr(model, "decision_function"):
        values = np.asarray(model.decision_function(known.rows), dtype=np.float64)
        if values.ndim == 1:
            return np.where(known.labels == model.classes_[1], values, -values)
        found: Array = values[np.arange(len(values)), np.searchsorted(model.classes_, known.labels)]
        return found
    if hasattr(model, "predict"):
        middle = (known.y.min() + known.y.max()) / 2
        signed: Array = np.asarray(model.predict(known.rows), dtype=np.float64) * np.sign(known.labels - middle)
        return signed
    raise ParameterError(
        f"{type(model).__name__} has no method for predictions that a guesser can use: give the functions `publish`, "
        "which returns the published part of a model as a dict of arrays, and `guess`, which returns a score for each "
        "canary"
    )


def objective_of(model: Any) -> PublicObjective | None:
    """Return the objective of a linear model of this package or of scikit-learn; None if its objective is not known."""
    if hasattr(model, "_public_objective"):
        own: PublicObjective | None = model._public_objective()
        return own
    if isinstance(model, LogisticRegression) and len(model.classes_) == 2 and hasattr(model, "C"):
        plain = model.penalty in ("l2", "deprecated") and not model.l1_ratio and model.class_weight is None
        if plain and np.isfinite(model.C):
            return PublicObjective(
                loss="logistic",
                strength=1 / model.C,
                targets=lambda labels: np.where(np.asarray(labels) == model.classes_[1], 1.0, -1.0),
                seen=lambda X: X,
                intercept=model.fit_intercept,
                intercept_regularised=model.solver == "liblinear",
            )
    if isinstance(model, Ridge) and np.ndim(model.alpha) == 0 and np.ndim(model.intercept_) == 0:
        return PublicObjective(
            loss="squared",
            strength=float(model.alpha),
            targets=lambda y: np.asarray(y, dtype=np.float64),
            seen=lambda X: X,
            intercept=model.fit_intercept,
            intercept_regularised=False,
        )
    return None


def path_of(model: Any, known: Known) -> list[Array]:
    """Return a scikit-learn model's weights after each iteration near the one at which its solver stops.

    A solver stops before it reaches the minimum. The remaining distance is larger than the distance by which a canary
    moves the weights. Let the same solver learn without canaries. Its weights after about the same number of iterations
    are nearest to the stopped weights.

    Args:
        model: A model that learned without canaries.
        known: Everything that the guesser knows.
    """
    if not isinstance(model, LogisticRegression) or model.solver == "liblinear":
        return []
    end, found = int(np.max(model.n_iter_)), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for iterations in range(max(1, end - PATH), end + PATH + 1):
            stopped = clone(model).set_params(max_iter=iterations, tol=0.0, warm_start=False).fit(known.X, known.y)
            found.append(np.append(stopped.coef_.ravel(), stopped.intercept_ if model.fit_intercept else []))
            if int(np.max(stopped.n_iter_)) < iterations:
                break
    return found


def refitted(objective: PublicObjective, X: Array, y: NDArray[Any]) -> tuple[Array, float]:
    """Return the minimiser of an objective that regularises all weights, and a bound on its error.

    The error is the distance from the exact minimiser.

    Args:
        objective: The objective.
        X: Records, shape ``(n, features)``.
        y: Classes or targets of the records, shape ``(n,)``.
    """
    rows, targets = _with_intercept(objective, X), objective.targets(y)
    counted = np.where(targets > 0, *objective.class_weights[::-1])
    at = _minimiser(objective, rows, targets, counted)
    for _ in range(POLISHED):
        slope, curvature = _derivatives(objective, rows @ at, targets)
        gradient = rows.T @ (counted * slope) + objective.strength * at
        hessian = (rows * (curvature * counted)[:, None]).T @ rows + objective.strength * np.eye(rows.shape[1])
        at = at - np.linalg.solve(hessian, gradient)
    slope, _ = _derivatives(objective, rows @ at, targets)
    gradient = rows.T @ (counted * slope) + objective.strength * at
    return at, float(np.linalg.norm(gradient)) / objective.strength


def _with_intercept(objective: PublicObjective, X: Array) -> Array:
    """Return rows as the model sees them, with a column of ones if the model has an intercept."""
    rows = objective.seen(X)
    return np.column_stack([rows, np.ones(len(rows))]) if objective.intercept else rows


def _derivatives(objective: PublicObjective, scores: Array, targets: Array) -> tuple[Array, Array]:
    """Return the first and the second derivative of each record's loss with respect to its score."""
    if objective.loss == "squared":
        return scores - targets, np.ones_like(scores)
    wrong = expit(-targets * scores)
    return -targets * wrong, wrong * (1 - wrong)


def _minimiser(objective: PublicObjective, rows: Array, targets: Array, weights: Array) -> Array:
    """Return the weights that minimise the objective on these rows, computed by scikit-learn."""
    free = objective.intercept and not objective.intercept_regularised
    inputs = rows[:, :-1] if free else rows
    if objective.loss == "squared":
        ridge = Ridge(alpha=objective.strength, fit_intercept=free, solver="cholesky")
        ridge.fit(inputs, targets, sample_weight=weights)
        return np.append(ridge.coef_, ridge.intercept_ if free else [])
    solver = LogisticRegression(
        C=1 / objective.strength, fit_intercept=free, solver="newton-cholesky", tol=1e-10, max_iter=1000
    )
    # More precision is of no use: published weights have noise, or their solver stopped earlier.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = solver.fit(inputs, targets, sample_weight=weights)
    return np.append(fitted.coef_.ravel(), fitted.intercept_ if free else [])
