"""Ridge regression by Langevin unlearning."""

import math
from collections.abc import Mapping
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from certified_unlearning.accounting.core.losses import ridge_radius
from certified_unlearning.accounting.core.scale import QUICK_CONDITION, score_noise
from certified_unlearning.engine.devices import pick_device
from certified_unlearning.errors import ParameterError
from certified_unlearning.estimators.advice import ADVISED, GOOD, Strength, warn_if_drowned, warn_if_slow
from certified_unlearning.estimators.linear import without_sample_weight
from certified_unlearning.estimators.ridge.regressor import LinearRegressor
from certified_unlearning.estimators.unlearning_model import LangevinModel
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from certified_unlearning.mechanisms.learners.learner import require_one_of
from certified_unlearning.vocabulary import Delta, DType

SPREAD_EVENLY = 1 / math.sqrt(3)
"""Standard deviation of targets that are spread evenly over [-1, 1]: of as much noise R^2 is lower by 1."""

STRONGEST = 1e9
"""Largest ``alpha / n``."""


class LangevinRidge(LinearRegressor, LangevinModel):
    """Ridge regression by noisy projected gradient descent, which can unlearn with an (epsilon, delta) certificate.

    It works as `LangevinLogisticRegression` does, with all records in every step, and is compared with the same thing:
    *the same noisy algorithm on the data after the removals*. No secret state is kept. `CertifiedRidge` needs far less
    noise for a promise of another kind, which says nothing towards the records that stay.

    The objective is that of scikit-learn's ``Ridge``, ``sum_i (x_i.w - y_i)^2 + alpha |w|^2``, but that the intercept
    is in the regulariser, which draws it to the middle of ``target_range``. Targets are clipped to that range and
    mapped to [-1, 1]. With strong convexity ``m = alpha / n`` (half of it with an intercept) the minimiser's norm is
    then at most ``R = 1 / (2 sqrt(m))``, or ``1 / (1 + m)`` where ``m`` is above 1: whatever the records are, it lies
    in the ball of that radius, on which every step projects. A record's gradient, ``(x.w - y) x``, has no bound
    elsewhere; in the ball it is at most ``R + 1``. So a weak regulariser costs noise twice: by what one record can do
    to the minimiser, and by the size of the ball. ``alpha / n`` of 0.3 is a good first choice for some hundred records,
    0.01 for some ten thousand; `fit` warns where there would be little but noise. ``alpha = 0``, linear regression, is
    refused: then there is no ball.

    Args:
        epsilon: The target after every `unlearn`.
        delta: Of the target: a number strictly between 0 and 1; or ``"auto"``, which is ``min(1e-6, 1 / (10 n))``; or
            ``"1/n"``, as in the papers.
        sigma: Noise scale: a step adds noise of standard deviation ``sqrt(2 step_size) sigma`` to the weights, of
            targets in [-1, 1]. None: the least with which ``steps`` steps unlearn ``records`` records.
        steps: Steps that unlearning ``records`` records at once shall take. Not together with ``sigma``. With neither,
            as many as it takes for what was learned to fade by a factor ``e``.
        alpha: Strength of the regulariser, as in scikit-learn; above 0.
        target_range: The pair ``(low, high)`` between which targets lie: known without these records. Others are
            clipped. Needed.
        records: How many records ``steps`` steps shall be able to unlearn at once. Any number can be unlearned
            later, by more steps or fewer.
        accountant: ``shifted`` (exact on quadratics), ``lsi`` (the paper's) or ``lsi-tight``. Each holds for projected
            steps.
        adjacency: What retraining is compared with: on data where a removed record's loss is 0 (``zero-out``:
            scikit-learn's objective with the same ``alpha`` on the remaining records), where another record stands in
            its place (``replace``), or on the mean over the remaining records (``remove``).
        normalize: Whether every row is divided by its own norm. Otherwise a row longer than 1 is an error, unless one
            of the next two makes it shorter.
        feature_ranges: Public bounds of the features, as in `LangevinLogisticRegression`.
        data_norm: A public norm, as in `LangevinLogisticRegression`.
        fit_intercept: Whether there is an intercept, which is regularised. Without, 0 is mapped to 0.
        random_state: None: noise from the operating system's entropy, which is not kept. A number makes results
            repeatable, but it is a secret: anybody who knows it, or tries all 2^32, can subtract the noise. Two models
            that were fitted with the same number have the same noise, and it cancels in their difference, which then
            shows the record in which their data differ; nobody needs to know the number for that.
        device: ``auto``, ``cpu`` or ``cuda``.
        dtype: ``float32``, or ``float64`` where rounding would take more than a tenth of epsilon; or ``float64``.

    Attributes:
        removals_: What was unlearned: records and steps of each request.
        remaining_: Positions in the fitted ``X`` of the records that are left.
        n_features_in_: Number of features.
        feature_names_in_: Their names, if ``X`` was a data frame.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: Delta = "auto",
        *,
        sigma: float | None = None,
        steps: int | None = None,
        alpha: float = 1.0,
        target_range: tuple[float, float] | None = None,
        records: int = 1,
        accountant: str = "shifted",
        adjacency: str = "zero-out",
        normalize: bool = False,
        feature_ranges: ArrayLike | None = None,
        data_norm: float | None = None,
        fit_intercept: bool = True,
        random_state: int | np.random.RandomState | None = None,
        device: str = "cpu",
        dtype: str = "float32",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.sigma = sigma
        self.steps = steps
        self.alpha = alpha
        self.target_range = target_range
        self.records = records
        self.accountant = accountant
        self.adjacency = adjacency
        self.normalize = normalize
        self.feature_ranges = feature_ranges
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.device = device
        self.dtype = dtype

    @without_sample_weight
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from records.

        There is no ``sample_weight``: a weight of its own would change how much a record can move the model.

        Args:
            X: Features, shape ``(n, features)``; an array, a data frame, or a sparse matrix, whose rows become dense.
                Rows have norm at most 1, unless ``normalize``, ``feature_ranges`` or ``data_norm`` see to it.
            y: Targets, shape ``(n,)``, in the units of ``target_range``.

        Returns:
            The fitted estimator. `unlearn` names records by their position in this ``X``, or by its index.

        Raises:
            DataError: A row is longer than 1 (the message names the longest), or there is only one, or sparse rows do
                not fit in memory.
            ParameterError: A parameter makes no sense.
            AssumptionError: The noise would drown in rounding.
            InfeasibleError: The target cannot be met.
        """
        with self._all_or_nothing():
            X, targets = self._validated(X, y)
            require_one_of(get_args(DType), dtype=self.dtype)
            learner = self._planned(len(X), X.shape[1] + self.fit_intercept)
            self._warn_if_drowned(learner, stacklevel=5)
            if pick_device(self.device).type == "cpu":
                self._warn_if_slow(learner, X)
            self._begin(learner)
            self._learn_from(X, targets)
        return self

    def _planned(self, n: int, features: int) -> LangevinLearner:
        regularisation = self._regularisation(n)
        if self.alpha > STRONGEST * n:
            raise ParameterError(
                f"alpha must be at most {STRONGEST:g} n = {STRONGEST * n:g}, got {self.alpha!r}: nothing would be "
                f"learned, for no weight could be above {1 / STRONGEST:g} of what targets span"
            )
        return LangevinLearner.plan(
            n=n,
            features=features,
            classes=1,
            regularisation=regularisation,
            epsilon=self.epsilon,
            delta=self.delta,
            sigma=self.sigma,
            steps=self.steps,
            records=self.records,
            accountant=self.accountant,
            adjacency=self.adjacency,
            dtype=self.dtype,
            target_range=self._range(),
        )

    def _warn_if_drowned(self, learner: LangevinLearner, *, stacklevel: int) -> None:
        """Warn whoever called `fit` if a plan's noise in predictions is larger than what there is to learn."""
        n, features = learner.n, learner.features

        def noise_and_score(plan: LangevinLearner) -> tuple[float, float]:
            problem = plan.exact_problem
            score = min(SPREAD_EVENLY, ridge_radius(problem.strong_convexity))
            return score_noise(problem, sigma=plan.sigma), score

        def relative_noise(alpha: float) -> float:
            noise, score = noise_and_score(clone(self).set_params(alpha=alpha)._planned(n, features))
            return noise / score

        noise, score = noise_and_score(learner)
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
            noise=noise,
            score=score,
            trouble="with target_range mapped to [-1, 1] the noise in a prediction has a standard deviation of up to "
            f"{noise:.3g}, and what can be learned of targets spread evenly there has one of {score:.3g}",
            relative_noise=relative_noise,
            stacklevel=stacklevel,
        )

    def _warn_if_slow(self, learner: LangevinLearner, X: NDArray[Any]) -> None:
        n = len(X)
        quick = n / QUICK_CONDITION
        warn_if_slow(
            learner,
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
