"""The quality of a model with a different regulariser or different noise, tried on some training records.

Models without noise are fitted on one half of the records and evaluated on the other half, in both directions, so that
overfitting does not look like an improvement. Rows are the rows that the model sees, including the intercept's constant
if there is an intercept.
"""

import warnings
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from certified_unlearning.data.quality import Tally

GAIN = 0.03
"""Smallest increase in balanced accuracy plus AUC that counts as an improvement."""
FIT = 0.05
"""Smallest relative drop in the log loss that counts as a better fit. A far too strong regulariser costs 10 %
or more."""
MOST_RECORDS = 10_000
_LEAST_RECORDS = 500
_NUMBERS = 1 << 23
_DRAWS = 5
_ITERATIONS = 200
_MOST_COLUMNS = 1000

Array = NDArray[np.float64]


class PredictionScores(NamedTuple):
    """Quality of predictions.

    Attributes:
        balanced: Balanced accuracy.
        auc: The area under the curve; one half if a class has no records.
        by_mean: Balanced accuracy of predictions by quotients. Each class's probability is divided by the mean of this
            class's probability over the records, and the class with the largest quotient is predicted. For two classes,
            this moves the threshold away from one half.
        log_loss: Mean of ``-log p(right class)``.
    """

    balanced: float
    auc: float
    by_mean: float
    log_loss: float

    def is_better_than(self, other: "PredictionScores") -> bool:
        """Return whether these scores are better by `GAIN`."""
        return self.balanced + self.auc >= other.balanced + other.auc + GAIN

    def fits_better_than(self, other: "PredictionScores") -> bool:
        """Return whether the log loss is smaller than the other log loss by more than the fraction `FIT`.

        The log loss does not depend on a threshold.
        """
        return self.log_loss < (1 - FIT) * other.log_loss

    def in_words(self) -> str:
        """Return balanced accuracy and AUC."""
        return f"balanced accuracy {self.balanced:.3f}, AUC {self.auc:.3f}"


class Noise(NamedTuple):
    """Noise on weights.

    Attributes:
        sigma: The noise's standard deviation on each weight. If ``step_size`` is given, ``sigma`` is the noise scale of
            each step; in directions in which the objective is curved, less of this noise remains.
        step_size: Size of these steps; None if noise was added to the weights in one go.
    """

    sigma: float
    step_size: float | None = None


def most_records(features: int, classes: int) -> int:
    """Return the largest number of records to try: 10,000, or fewer if the model has many weights."""
    return max(_LEAST_RECORDS, min(MOST_RECORDS, _NUMBERS // (features * (1 if classes == 2 else classes))))


class Trial:
    """Models tried on some records.

    Args:
        rows: Shape ``(n, features)``.
        positions: Class number of each record, counted from 0, shape ``(n,)``.
        classes: Number of classes.
        of_all: The number of present records, divided by the objective's normaliser; 1 unless some records were
            removed.
        shares: Default factor of each class, at most 1. The losses of the class's records are multiplied by it.
    """

    def __init__(
        self,
        rows: NDArray[np.floating],
        positions: NDArray[np.int64],
        classes: int,
        of_all: float,
        shares: Sequence[float] | None = None,
    ) -> None:
        self._rows = rows.astype(np.float64)
        self._positions = positions
        self._classes = classes
        self._of_all = of_all
        self._shares = (1.0,) * classes if shares is None else tuple(shares)
        # Every second record of each class.
        order = np.argsort(positions, kind="stable")
        self._halves = order[::2], order[1::2]
        self._fitted = cache(self._fit)
        self._curvature = cache(self._find_curvature)

    @property
    def is_possible(self) -> bool:
        """Whether both halves have two classes."""
        return all(len(np.unique(self._positions[half])) > 1 for half in self._halves)

    def published(self, weights: NDArray[np.floating]) -> PredictionScores:
        """Return the quality of existing weights, shape ``(scores of a record, features)``."""
        everything = np.arange(len(self._rows))
        return self._worth([(everything, weights.astype(np.float64))])

    def mean_probabilities(self, weights: NDArray[np.floating]) -> Array:
        """Return each class' mean probability over the records, with the given weights."""
        return np.asarray(self._probabilities(self._rows, weights.astype(np.float64)).mean(axis=0))

    @property
    def counts(self) -> list[int]:
        """Number of records of each class."""
        return [int(count) for count in np.bincount(self._positions, minlength=self._classes)]

    def expected(
        self, strong_convexity: float, noise: Noise | None = None, shares: Sequence[float] | None = None
    ) -> PredictionScores:
        """Return the expected quality of a model.

        Args:
            strong_convexity: ``m`` of the objective ``mean loss + m ||w||^2 / 2``.
            noise: Noise on the model's weights.
            shares: Factor of each class, by which the losses of its records are multiplied. By default, the factors of
                the trial are used.
        """
        weighed = self._shares if shares is None else tuple(shares)
        halves = self._fitted(strong_convexity, weighed)
        if noise is None:
            return self._worth(halves)
        draw = np.random.default_rng(0)
        spread = self._spread(strong_convexity, noise, weighed)
        worths = [
            self._worth([(half, weights + draw.standard_normal(weights.shape) @ spread) for half, weights in halves])
            for _ in range(_DRAWS)
        ]
        return PredictionScores(*np.mean(worths, axis=0).tolist())

    def _fit(self, strong_convexity: float, shares: tuple[float, ...]) -> list[tuple[NDArray[np.int64], Array]]:
        """Return each half, together with the weights fitted to the other half."""
        first, second = self._halves
        return [
            (here, self._minimiser(there, strong_convexity, shares))
            for here, there in ((first, second), (second, first))
        ]

    def _spread(self, strong_convexity: float, noise: Noise, shares: tuple[float, ...]) -> Array:
        """Return the matrix that turns standard normal numbers into the noise, shape ``(features, features)``."""
        if noise.step_size is None:
            return noise.sigma * np.eye(self._rows.shape[1])
        curvatures, directions = self._curvature(strong_convexity, shares)
        contractions = 1 - noise.step_size * curvatures
        # The noise that each step adds and later steps contract.
        deviations = noise.sigma * np.sqrt(2 * noise.step_size / (1 - contractions**2))
        return np.asarray(deviations[:, None] * directions.T)

    def _find_curvature(self, strong_convexity: float, shares: tuple[float, ...]) -> tuple[Array, Array]:
        """Return the eigenvalues and eigenvectors of a score's Hessian.

        If there are many columns, the eigenvalues and eigenvectors are those of the Hessian's diagonal.
        """
        hessian = strong_convexity * np.eye(self._rows.shape[1])
        for half, weights in self._fitted(strong_convexity, shares):
            rows = self._rows[half]
            probabilities = self._probabilities(rows, weights)
            counted = np.array(shares)[self._positions[half]]
            curved = rows * (counted * (probabilities * (1 - probabilities)).mean(axis=1))[:, None]
            hessian += self._of_all * (curved.T @ rows) / len(self._rows)
        if len(hessian) > _MOST_COLUMNS:
            return np.diag(hessian).copy(), np.eye(len(hessian))
        return np.linalg.eigh(hessian)

    def _minimiser(self, some: NDArray[np.int64], strong_convexity: float, shares: tuple[float, ...]) -> Array:
        # Imported here, because the ledger's methods import this module but don't need this function.
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(
            C=self._of_all / (strong_convexity * len(some)),
            fit_intercept=False,
            max_iter=_ITERATIONS,
            class_weight={place: shares[place] for place in np.unique(self._positions[some]).tolist()},
        )
        with warnings.catch_warnings():
            # A fit that stops early is still a possible model.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(self._rows[some], self._positions[some])
        if self._classes == 2:
            return np.asarray(model.coef_)
        weights = np.zeros((self._classes, self._rows.shape[1]))
        found = model.coef_ if len(model.coef_) > 1 else np.vstack([-model.coef_, model.coef_]) / 2
        weights[model.classes_] = found
        return weights

    def _worth(self, models: list[tuple[NDArray[np.int64], Array]]) -> PredictionScores:
        plain, by_mean = Tally(self._classes), Tally(self._classes)
        for some, weights in models:
            probabilities = self._probabilities(self._rows[some], weights)
            plain.add(probabilities, self._positions[some])
            divided = probabilities / probabilities.mean(axis=0)
            by_mean.add(probabilities, self._positions[some], divided.argmax(axis=1))
        quality = plain.quality()
        return PredictionScores(
            quality.balanced_accuracy,
            0.5 if quality.auc is None else quality.auc,
            by_mean.quality().balanced_accuracy,
            quality.log_loss,
        )

    def _probabilities(self, rows: Array, weights: Array) -> Array:
        scores = rows @ weights.T
        if self._classes == 2:
            return np.hstack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))
