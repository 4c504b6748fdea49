"""Likelihood-ratio attacks on single records with many models: the usual measure of what unlearning leaves behind.

Each model learns from half of the attacked records, drawn at random, and unlearns them. So about half of the models
unlearned a given record, and the others never saw it. The models are split into two groups. From the first group, two
Gaussians are fitted for each record: one to the confidences of the models that unlearned the record, and one to those
of the models that never saw it. (A confidence says how sure a model is of the record's label.) The second group is
attacked with the ratio of the two densities (Carlini et al. 2022; on unlearning, Hayes et al. 2024, U-LiRA). No model
is in both groups.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_X_y

from certified_unlearning.accounting.auditing.roc import LEAST_MODELS, Roc
from certified_unlearning.accounting.core.checks import require_count, require_probability
from certified_unlearning.audit.attack_result import AttackedRecords, AttackResult
from certified_unlearning.audit.canaries import Array, Known
from certified_unlearning.audit.guessers import scores_of
from certified_unlearning.audit.methods import AuditedMethod, Learn, Unlearn, method_of
from certified_unlearning.errors import DataError, ParameterError

Confidence = Callable[[Any, Array, NDArray[Any]], ArrayLike]
"""A function that takes a model, records and their labels, and returns a number for each record."""
SHARED = 32
"""Smallest number of models of each kind that every record must have, so that each record gets its own variances.

Each record has two kinds of models: models that unlearned the record, and models that never saw the record. If a record
has fewer models of a kind, the Gaussians of all records share variances, as in Carlini et al. (2022).
"""
LEAST = 4 * LEAST_MODELS
"""Smallest number of models in both groups together."""


def likelihood_ratio_attack(
    estimator: Any = None,
    X: Any = None,
    y: Any = None,
    *,
    learn: Learn | None = None,
    unlearn: Unlearn | None = None,
    confidence: Confidence | None = None,
    records: int | ArrayLike = 50,
    models: int = 128,
    attacked: float = 0.5,
    request_size: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> AttackResult:
    """Attack single records with many models. Each model unlearned half of the records and never saw the other half.

    The same attack on the models before they unlearn shows how much there was to forget. An attack gives no bound: an
    attack that finds nothing proves nothing.

    Args:
        estimator: An estimator of this package, or a scikit-learn estimator together with ``unlearn``. None: ``learn``
            and ``unlearn`` are given.
        X: Records, shape ``(n, features)``.
        y: Classes or targets of the records, shape ``(n,)``.
        learn: Function that learns a model, as in `audit`.
        unlearn: Function that unlearns records, as in `audit`.
        confidence: ``confidence(model, X, y)`` returns how sure a model is of each record's label, computed from the
            published part of the model. The numbers, such as log-odds of the label, must be approximately Gaussian
            across models. None: log-odds for classifiers, predictions for regressors.
        records: Number of attacked records, which are drawn at random, or their positions in ``X``. Every model learns
            from all other records and from half of the attacked ones.
        models: Number of models that learn and unlearn. At least a hundred are needed to learn much about a single
            record.
        attacked: Share of the models that is attacked; the Gaussians are fitted to the other models.
        request_size: Number of records that each request removes from an estimator of this package. None: one request
            removes all records.
        random_state: Seed for drawing the attacked records and those that each model learns. If the estimator's
            ``random_state`` is None, the seed also draws a seed for each model. ``learn`` and ``unlearn`` use their own
            randomness. None: the seed comes from the operating system.

    Returns:
        The result. Printing it shows a report without the secret list of records.

    Raises:
        ParameterError: A number is out of its range, or a function to learn or to unlearn is missing.
        DataError: A position is outside ``X``, or confidences are not finite.
        AssumptionError: An assumption of `audit` does not hold.
    """
    if X is None or y is None:
        raise ParameterError("give X and y: the attack needs records and labels")
    require_count(least=LEAST, models=models)
    require_probability(attacked=attacked)
    if request_size is not None:
        require_count(least=1, request_size=request_size)
    method = method_of(estimator, learn=learn, unlearn=unlearn, publish=None, claim=None, request_size=request_size)
    X, y = check_X_y(X, y, dtype=np.float64)
    rng = np.random.default_rng(random_state)
    positions = _positions(records, len(X), rng)
    members = len(positions) // 2
    known = Known(np.delete(X, positions, axis=0), np.delete(y, positions), X[positions], y[positions], 1, members)
    runs = _Models(method, _learn_of(estimator, method, rng), known, confidence)
    drawn = _drawn(models, _fitted(models, attacked), len(positions), rng)
    before, after = (np.stack(each) for each in zip(*(runs.one(each) for each in drawn), strict=True))
    unlearned = np.zeros(after.shape, dtype=bool)
    np.put_along_axis(unlearned, np.stack(drawn), values=True, axis=1)
    return _result(after, unlearned, before, attacked=attacked, method=method.name, positions=positions)


def attack_scores(
    scores: ArrayLike,
    unlearned: ArrayLike,
    before: ArrayLike | None = None,
    *,
    attacked: float = 0.5,
    method: str = "the given models",
) -> AttackResult:
    """Attack single records, given the confidences of models that were trained elsewhere.

    The models may be neural networks, for example.

    Args:
        scores: Confidence of each model in each record's label, such as the log-odds, shape ``(models, records)``. The
            models must be independent of each other.
        unlearned: Whether each model learned and unlearned each record, shape ``(models, records)``. False: the model
            never saw the record. For each record, both values must occur among the first models and among the last.
        before: Confidences before the removal, shape ``(models, records)``. They show how much there was to forget.
        attacked: Share of the models that is attacked. These are the last models; the Gaussians are fitted to the first
            ones.
        method: Name of the method in reports.

    Returns:
        The result; the number of a record is its column in ``scores``.

    Raises:
        DataError: Shapes differ, numbers are not finite, or there are too few models.
        ParameterError: ``attacked`` is not between 0 and 1.
    """
    require_probability(attacked=attacked)
    found, was_unlearned = np.asarray(scores, dtype=np.float64), np.asarray(unlearned)
    if found.ndim != 2 or len(found) < LEAST or found.shape[1] < 1:
        raise DataError(
            f"scores must have the shape (models, records) with at least {LEAST} models, got shape {found.shape}"
        )
    if was_unlearned.dtype != np.bool_ or was_unlearned.shape != found.shape:
        raise DataError(
            f"`unlearned` must hold True or False for each of the scores, so its shape must be {found.shape}; got "
            f"shape {was_unlearned.shape} and type {was_unlearned.dtype}"
        )
    earlier = None if before is None else np.asarray(before, dtype=np.float64)
    if earlier is not None and earlier.shape != found.shape:
        raise DataError(f"`before` must have the same shape as `scores`, {found.shape}, got {earlier.shape}")
    for name, each in (("scores", found), ("before", earlier)):
        if each is not None and not np.isfinite(each).all():
            raise DataError(f"`{name}` must hold finite numbers, got {each[~np.isfinite(each)][0]}")
    positions = np.arange(found.shape[1])
    return _result(found, was_unlearned, earlier, attacked=attacked, method=method, positions=positions)


@dataclass
class _Models:
    """A factory of models that learn half of the attacked records and then unlearn them."""

    method: AuditedMethod
    learn: Learn
    known: Known
    confidence: Confidence | None

    def one(self, drawn: NDArray[np.int64]) -> tuple[Array, Array]:
        """Return the confidences of a model that learns and unlearns drawn records, before and after the removal."""
        X, y, gone = self.known.with_canaries(drawn)
        model = self.learn(X, y)
        before = self._confidences(model)
        return before, self._confidences(self.method.unlearn(model, X, y, gone))

    def _confidences(self, model: Any) -> Array:
        rows, labels = self.known.rows, self.known.labels
        if self.confidence is None:
            unknown = np.setdiff1d(labels, self.known.y).tolist() if hasattr(model, "classes_") else []
            if unknown:
                raise DataError(
                    f"attacked records have the class {unknown[0]!r}, which no other record of y has, so the list of "
                    "classes would reveal which of them were learned"
                )
            return scores_of(model, self.known)
        # The function gets copies, because the next model may learn from the same records.
        found = np.asarray(self.confidence(model, rows.copy(), labels.copy()), dtype=np.float64)
        if found.shape != (len(rows),) or not np.isfinite(found).all():
            raise DataError(
                f"confidence must return a finite number for each of the {len(rows)} records, got shape {found.shape}"
                + ("" if np.isfinite(found).all() else f" with {found[~np.isfinite(found)][0]}")
            )
        return found


def _learn_of(estimator: Any, method: AuditedMethod, rng: np.random.Generator) -> Learn:
    """Return the function that learns a model.

    An estimator whose ``random_state`` is None gets a new seed for each model.
    """
    parameters = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    if parameters.get("random_state", 0) is not None:
        return method.learn

    def learn(X: Array, y: NDArray[Any]) -> Any:
        return clone(estimator).set_params(random_state=int(rng.integers(2**31))).fit(X, y)

    return learn


def _fitted(models: int, attacked: float) -> int:
    """Return the number of models that are not attacked.

    These are the first models.
    """
    return min(max(round(models * (1 - attacked)), LEAST // 2), models - LEAST_MODELS)


def _drawn(models: int, fitted: int, records: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Return the positions of the records that each model learns and unlearns, in a random order.

    Among the models that are not attacked, every second model learns the half of the records that the previous model
    does not learn. So for each record, there are enough of these models that learn the record, and enough of these
    models that do not learn it. The attacked models are independent of each other, as the intervals assume.
    """
    half = records // 2
    orders = [rng.permutation(records) for _ in range(models)]
    for model in range(1, fitted, 2):
        orders[model] = np.roll(orders[model - 1], -half)
    return [each[:half] for each in orders]


def _positions(records: int | ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the positions of the attacked records.

    Raises:
        ParameterError: There are fewer than two positions, or so many that no other record is left.
        DataError: A position is outside ``X``, or occurs twice.
    """
    many = len(np.atleast_1d(np.asarray(records))) if not np.isscalar(records) else records
    if not isinstance(many, int | np.integer) or not 2 <= many < n:
        raise ParameterError(
            f"the number of attacked records must be from 2 to {n - 1}, because X has {n} records and some of them "
            f"must stay; got {many!r}"
        )
    if np.isscalar(records):
        return np.sort(rng.permutation(n)[: int(many)])
    positions = np.asarray(records)
    if positions.dtype.kind not in "iu" or positions.ndim != 1 or positions.min() < 0 or positions.max() >= n:
        raise DataError(f"`records` must hold positions from 0 to {n - 1} in X, got {positions.tolist()[:3]}, ...")
    values, times = np.unique(positions, return_counts=True)
    if times.max() > 1:
        raise DataError(f"record {values[times.argmax()]} is named twice")
    return positions.astype(np.int64)


def _result(
    scores: Array,
    unlearned: NDArray[np.bool_],
    before: Array | None,
    *,
    attacked: float,
    method: str,
    positions: NDArray[np.int64],
) -> AttackResult:
    """Return the result of attacking the last models. The Gaussians are fitted to the first models."""
    fitted = _fitted(len(scores), attacked)
    ratios, separations = _attack(scores, unlearned, fitted)
    here = unlearned[fitted:]
    control = None if before is None else Roc(_attack(before, unlearned, fitted)[0], here)
    return AttackResult(
        method=method,
        models=len(here),
        fitted=fitted,
        records=len(positions),
        after=Roc(ratios, here),
        before=control,
        secret=AttackedRecords(positions, separations, ratios, here),
    )


def _attack(scores: Array, unlearned: NDArray[np.bool_], fitted: int) -> tuple[Array, Array]:
    """Return the attacked models' log-likelihood ratios, and the distance between the two Gaussians of each record."""
    found, seen = scores[:fitted], unlearned[:fitted]
    (mean, variance), (other_mean, other_variance) = (_gaussians(found, kind) for kind in (seen, ~seen))
    fewest = min(seen.sum(axis=0).min(), (~seen).sum(axis=0).min())
    if fewest < SHARED:
        variance, other_variance = (np.full_like(each, each.mean()) for each in (variance, other_variance))
    # Models without randomness can have equal confidences. Then only the means distinguish the two kinds of models.
    least = np.finfo(np.float64).tiny + np.finfo(np.float64).eps * (mean**2 + other_mean**2)
    variance, other_variance = np.maximum(variance, least), np.maximum(other_variance, least)
    attacked = scores[fitted:]
    ratios = ((attacked - other_mean) ** 2 / other_variance - (attacked - mean) ** 2 / variance) / 2
    separations = np.abs(mean - other_mean) / np.sqrt((variance + other_variance) / 2)
    return ratios + np.log(other_variance / variance) / 2, separations


def _gaussians(scores: Array, kind: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return the mean and the variance of each record's scores under the models of one kind.

    Raises:
        DataError: A record has fewer than two models of this kind.
    """
    models = kind.sum(axis=0)
    if models.min() < 2:
        raise DataError(
            "each record needs two models that unlearned it, and two that never saw it, among the "
            f"{len(scores)} models that are not attacked: give more models, or a smaller value of `attacked`"
        )
    mean = np.where(kind, scores, 0.0).sum(axis=0) / models
    return mean, np.where(kind, (scores - mean) ** 2, 0.0).sum(axis=0) / (models - 1)
