"""Guessers infer from what is published which canaries were learned; they affect power, but never validity.

A guess is a function of what is published and of `Known`. It returns a score for every canary: the larger the score,
the more likely the canary was learned. It never gets the model itself, whose secret state identifies the canaries.
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
"""How many iterations before and after the usual end of a solver its path is compared with."""
WINDOW = 6
"""How many steps of the path before and after that point are not trusted."""
UNKNOWN_NOISE = 1e-4
"""The share of the canaries' effects by which a reference of a solver without noise may be off."""
POLISHED = 3
"""Newton's steps after a solver's end, to the last digits."""
PAIRS = 4
"""Pairs of models that the guesser learns itself: one from half of the canaries, one from the others."""


def from_weights(objective: PublicObjective, known: Known, path: Sequence[Array] = ()) -> Guess:
    """Return the guess by published weights of a linear model: the best linear one for the effects of canaries.

    The effect of a canary is about ``-H^-1`` times its gradient, at a minimiser of the objective. What is published
    differs from a reference by the effects of members and by noise; the guess is the linear estimate of membership
    with the least mean squared error. The reference is whichever is nearest to what is published: the minimiser
    without canaries, the one with all of them in part, or a point of the solver's path.

    Args:
        objective: What the model minimises.
        known: What the guesser knows; the guess made serves all runs.
        path: Weights of a solver without canaries after more and more iterations.
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
        # How far a stopped solver is from the nearest point of its path is mostly along the path.
        unknown = steps[max(0, nearest - 2 - WINDOW) : nearest - 2 + WINDOW] if nearest > 1 else steps[:0]
        return without.estimate(weights - candidates[nearest] - away, unknown)

    return guess


def published_weights(published: Published, objective: PublicObjective) -> Array:
    """Return published weights of a linear model, its intercept's at the end, as its objective has them."""
    weights = np.asarray(published["coef_"], dtype=np.float64).ravel() / objective.unit
    if not objective.intercept:
        return weights
    intercept = np.asarray(published["intercept_"], dtype=np.float64).ravel()
    return np.append(weights, (intercept - objective.middle) / objective.unit)


@dataclass(frozen=True, eq=False)
class _Linearised:
    """How weights of a linear model follow from which canaries are members, near a minimiser.

    Attributes:
        at: The minimiser.
        effects: What each canary moves weights by, shape ``(d, m)``.
        covariance: Covariance of weights, where members are drawn at random, noise included.
    """

    at: Array
    effects: Array
    covariance: Array

    @classmethod
    def of(cls, objective: PublicObjective, known: Known, part: float) -> "_Linearised":
        """Return it for canaries of which each counts for a part of a record, besides all records that stay."""
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
        """Return how likely each canary is a member, by how far weights are from where they are expected.

        Args:
            moved: The difference.
            unknown: Steps along which it may be anything, shape ``(steps, d)``.
        """
        covariance = self.covariance if unknown is None else self.covariance + unknown.T @ unknown
        scores: Array = np.linalg.solve(covariance, self.effects).T @ moved
        return scores


def from_scores(scores: Array, is_in: NDArray[np.bool_]) -> Guess:
    """Return the guess by how much a model prefers each canary's own label: the likelihood ratio of two Gaussians.

    As in likelihood-ratio attacks (Carlini et al. 2022), models of the guesser's own say what scores a canary has that
    was learned, and one that was not.

    Args:
        scores: Scores of canaries by such models, shape ``(models, m)``.
        is_in: Whether each of these models learned each canary; both occur for every canary.
    """
    inside, outside = (np.ma.masked_array(scores, mask) for mask in (~is_in, is_in))
    means = [np.asarray(each.mean(axis=0)) for each in (inside, outside)]
    variance = (np.asarray(inside.var(axis=0)) + np.asarray(outside.var(axis=0))) / 2
    # A few models give a poor estimate of a variance.
    variance = (variance + np.median(variance)) / 2
    variance = np.where(variance > 0, variance, 1.0)

    def guess(published: Published, known: Known) -> Array:
        found = np.asarray(published["scores"], dtype=np.float64)
        ratio: Array = (found - (means[0] + means[1]) / 2) * (means[0] - means[1]) / variance
        return ratio

    return guess


def guess_by_scores(learned: Callable[[Array, NDArray[Any]], Array], known: Known, rng: np.random.Generator) -> Guess:
    """Return the guess by scores, for which models are learned from halves of the canaries.

    Args:
        learned: Returns the canaries' scores by a model that learned from records and labels.
        known: What the guesser knows.
        rng: Draws the halves.
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
    """Return how much a model prefers each canary's own label: log-odds; for targets, the signed prediction.

    Raises:
        ParameterError: The model says nothing of records.
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
        f"{type(model).__name__} has no predictions that a guesser knows to read: give publish, which returns what is "
        "handed out of a model as a dict of arrays, and guess, which returns a score for each canary"
    )


def objective_of(model: Any) -> PublicObjective | None:
    """Return the objective of a linear model of this package, or of scikit-learn; None where none is known."""
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
    """Return weights of a scikit-learn model after some iterations of its solver, around its end.

    A solver stops before the minimum, farther from it than a canary moves it. Where it stopped is nearest to where the
    same solver is, without canaries, after about as many iterations.

    Args:
        model: Learned without canaries.
        known: What the guesser knows.
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
    """Return the minimiser of an objective whose weights are all regularised, and how far it can be from the true one.

    Args:
        objective: The objective.
        X: Records.
        y: Their classes or targets.
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
    """Return rows as the model sees them, with a column of ones where it has an intercept."""
    rows = objective.seen(X)
    return np.column_stack([rows, np.ones(len(rows))]) if objective.intercept else rows


def _derivatives(objective: PublicObjective, scores: Array, targets: Array) -> tuple[Array, Array]:
    """Return the first and the second derivative of each record's loss by its score."""
    if objective.loss == "squared":
        return scores - targets, np.ones_like(scores)
    wrong = expit(-targets * scores)
    return -targets * wrong, wrong * (1 - wrong)


def _minimiser(objective: PublicObjective, rows: Array, targets: Array, weights: Array) -> Array:
    """Return the weights that minimise the objective on these rows, by scikit-learn."""
    free = objective.intercept and not objective.intercept_regularised
    inputs = rows[:, :-1] if free else rows
    if objective.loss == "squared":
        ridge = Ridge(alpha=objective.strength, fit_intercept=free, solver="cholesky")
        ridge.fit(inputs, targets, sample_weight=weights)
        return np.append(ridge.coef_, ridge.intercept_ if free else [])
    solver = LogisticRegression(
        C=1 / objective.strength, fit_intercept=free, solver="newton-cholesky", tol=1e-10, max_iter=1000
    )
    # Precision beyond the tolerance is of no use: what is published has noise, or stopped earlier.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = solver.fit(inputs, targets, sample_weight=weights)
    return np.append(fitted.coef_.ravel(), fitted.intercept_ if free else [])
