"""Ridge regression by Langevin unlearning."""

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.accounting.core.losses import ridge_radius
from certified_unlearning.accounting.core.scale import QUICK_CONDITION, score_noise
from certified_unlearning.errors import ParameterError
from certified_unlearning.estimators.advice import ADVISED, GOOD, Strength, warn_if_drowned, warn_if_slow
from certified_unlearning.estimators.descent.model import LangevinModel
from certified_unlearning.estimators.regressor import RidgeRegressor
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner

SPREAD_EVENLY = 1 / math.sqrt(3)
"""Standard deviation of targets that are spread evenly over [-1, 1]; noise of this size lowers R^2 by 1."""

STRONGEST = 1e9
"""Largest value of ``alpha / n``."""


@dataclass(repr=False, eq=False)
class LangevinRidge(LangevinModel, RidgeRegressor):
    """Ridge regression by noisy projected gradient descent that can unlearn with an (epsilon, delta) certificate.

    It works like `LangevinLogisticRegression`, with all records in every step. As with that estimator, the guarantee is
    a comparison with *the same noisy algorithm on the data after the removals*. It keeps no secret state.
    `CertifiedRidge` needs far less noise, but its guarantee is of a different kind: it does not protect the remaining
    records.

    The objective is that of scikit-learn's ``Ridge``, ``sum_i (x_i.w - y_i)^2 + alpha |w|^2``. Unlike in ``Ridge``, the
    intercept is regularised, which pulls it towards the middle of ``target_range``. Targets are clipped to that range
    and mapped to [-1, 1]. The strong convexity is ``m = alpha / n``, or half of that with an intercept. The minimiser's
    norm is then at most ``R = 1 / (2 sqrt(m))``, or ``1 / (1 + m)`` if ``m`` is above 1. So, for any records, the
    minimiser is in the ball of radius ``R``, and every step projects onto this ball. The gradient of a record, ``(x.w -
    y) x``, is unbounded outside the ball. Inside the ball, its norm is at most ``R + 1``. A weak regulariser therefore
    requires more noise for two reasons: one record can move the minimiser further, and the ball is larger. ``alpha /
    n`` of 0.3 is a good first choice for hundreds of records, and 0.01 for tens of thousands. `fit` warns if the result
    would be little more than noise. ``alpha = 0`` (linear regression) is refused, because there would be no ball.

    Args:
        sigma: Noise scale, for targets in [-1, 1]: the noise that a step adds to the weights has standard deviation
            ``sqrt(2 step_size) sigma``. None: the smallest scale at which ``steps`` steps unlearn ``records`` records.
        accountant: Accountant: ``shifted`` (exact on quadratics), ``lsi`` (the paper's) or ``lsi-tight``. All three are
            valid for projected steps.

    See Also:
        `CertifiedRidge`: Needs far less noise, compares with an exact refit, and keeps a secret state.
        `LangevinLogisticRegression`: The same for classification.

    Examples:
        >>> from certified_unlearning import LangevinRidge
        >>> X, y = [[0.0, 1.0], [1.0, 0.2]] * 50, [1.0, 4.0] * 50
        >>> model = LangevinRidge(epsilon=1, alpha=30, target_range=(0, 5), normalize=True).fit(X, y)
        >>> len(model.unlearn([2, 17]).remaining_)
        98
        >>> model.certificate_.epsilon <= 1
        True
    """

    def _planned(self, n: int) -> LangevinLearner:
        regularisation = self._regularisation(n)
        if self.alpha > STRONGEST * n:
            raise ParameterError(
                f"alpha must be at most {STRONGEST:g} n = {STRONGEST * n:g}, got {self.alpha!r}: nothing would be "
                f"learned, because no weight could be above {1 / STRONGEST:g} of the targets' range"
            )
        return LangevinLearner.plan(
            n=n,
            features=self._columns,
            classes=1,
            regularisation=regularisation,
            target_range=self._range(),
            **self._asked(),
        )

    def _warn_of(self, plan: LangevinLearner, X: NDArray[Any]) -> None:
        """Warn the caller of `fit` if a plan's noise in predictions is larger than the spread of the targets."""
        n = plan.n

        def noise_and_score(plan: LangevinLearner) -> tuple[float, float]:
            problem = plan.exact_problem
            score = min(SPREAD_EVENLY, ridge_radius(problem.strong_convexity))
            return score_noise(problem, sigma=plan.sigma), score

        warn_if_drowned(
            Strength(
                "alpha",
                self.alpha,
                [n / each for each in ADVISED],
                lambda alpha: f"alpha / n = {alpha / n:.3g}",
                noises=(GOOD,),
            ),
            epsilon=self.epsilon,
            sigma=self.sigma,
            plan=plan,
            planned=lambda alpha: copy.copy(self).set_params(alpha=alpha)._planned(n),
            noise_and_score=noise_and_score,
            trouble="with target_range mapped to [-1, 1], the standard deviation of the noise in a prediction is up to "
            "{noise:.3g}, but the standard deviation of predictions without noise is at most {score:.3g} if targets "
            "are spread evenly",
        )
        super()._warn_of(plan, X)

    def _warn_if_slow(self, plan: LangevinLearner, X: NDArray[Any]) -> None:
        n = len(X)
        quick = n / QUICK_CONDITION
        warn_if_slow(
            plan,
            X,
            given=f"alpha = {self.alpha:.3g} (alpha / n = {self.alpha / n:.2g})",
            quicker=f"alpha / n of 0.01 to 0.1, such as alpha = {quick:.3g}," if quick > self.alpha else None,
            instead="CertifiedRidge needs no large alpha",
        )

    def _drawn_labels(self, generator: np.random.Generator, records: int) -> NDArray[np.float64]:
        return generator.uniform(-1, 1, size=records)

    @classmethod
    def _read_learner(cls, stated: Mapping[str, Any]) -> LangevinLearner:
        return LangevinLearner.model_validate(stated)
