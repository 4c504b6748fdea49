"""The constants of a descent with exact unlearning for a user's own records, fixed before anything is learned.

They depend on the records only through their number at the start. They are part of the run with which every later
state is compared, so no request changes them.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict

from certified_unlearning.accounting.core.checks import require_count, require_non_negative
from certified_unlearning.accounting.core.losses import scores_per_record
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.exact.descent import require_more_than_a_batch
from certified_unlearning.mechanisms.exact.noisy_sgd import NoisySgd
from certified_unlearning.mechanisms.exact.quantized_sgd import QuantizedSgd
from certified_unlearning.mechanisms.exact.subsample_gd import SubsampleGd
from certified_unlearning.mechanisms.exact.trajectory import Descent
from certified_unlearning.mechanisms.learners.duration import SECONDS_OF_A_STEP, Work
from certified_unlearning.mechanisms.learners.learner import require_one_of
from certified_unlearning.vocabulary import ExactMechanism

USUAL_STEPS = 256
"""Default number of steps."""
USUAL_SIGMA = 0.01
"""Default standard deviation of the noise on a coordinate of a mean gradient."""
USUAL_QUANTUM = 0.05
"""Default spacing of the grid to which mean gradients are rounded."""
_USUAL_BATCH = 8
"""Default number of members of a batch, unless a quarter of the records is fewer."""


class ExactPlan(BaseModel):
    """The constants that are fixed before anything is learned.

    Attributes:
        n: Number of records at the start.
        features: Number of columns of a row.
        classes: Number of classes, at least 2.
        mechanism: Name of the mechanism.
        strong_convexity: Strong convexity ``lambda`` of the regulariser, which is part of every record's loss.
        steps: Number of steps ``T``.
        batch_size: Batch size ``m``, always below the number of records.
        step_size: Step size ``eta``.
        radius: Radius of the ball onto which models are projected; None if there is no projection.
        sigma: Standard deviation of the noise on a gradient, for noisy-sgd and accelerated-noisy-sgd; otherwise None.
        quantum: Spacing of the grid, for quantized-sgd; otherwise None.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    n: int
    features: int
    classes: int
    mechanism: ExactMechanism
    strong_convexity: float
    steps: int
    batch_size: int
    step_size: float
    radius: float | None
    sigma: float | None
    quantum: float | None

    @classmethod
    def make(
        cls,
        *,
        n: int,
        features: int,
        classes: int,
        mechanism: ExactMechanism,
        strong_convexity: float,
        steps: int | None = None,
        batch_size: int | Literal["auto"] = "auto",
        step_size: float | None = None,
        radius: float | None = None,
        sigma: float | None = None,
        quantum: float | None = None,
    ) -> Self:
        """Return the plan.

        Arguments that are None get default values.

        Args:
            n: Number of records at the start.
            features: Number of columns of a row.
            classes: Number of classes, at least 2.
            mechanism: Name of the mechanism.
            strong_convexity: Strong convexity ``lambda``, at least 0.
            steps: Number of steps ``T``. None: `USUAL_STEPS`.
            batch_size: Batch size ``m``. ``auto``: the result of `usual_batch`.
            step_size: Step size ``eta``. None: the result of `usual_step_size`.
            radius: Radius of the ball of models. None: there is no projection.
            sigma: Standard deviation of the noise, for noisy mechanisms only. None: `USUAL_SIGMA`.
            quantum: Spacing of the grid, for quantized-sgd only. None: `USUAL_QUANTUM`.

        Raises:
            AssumptionError: ``batch_size`` is not below the number of records.
        """
        require_one_of(get_args(ExactMechanism), mechanism=mechanism)
        require_count(least=1, n=n, features=features)
        require_count(least=2, classes=classes)
        require_non_negative(strong_convexity=strong_convexity)
        settings = descent_of(
            mechanism,
            steps=USUAL_STEPS if steps is None else steps,
            batch_size=usual_batch(n) if batch_size == "auto" else batch_size,
            step_size=usual_step_size(mechanism) if step_size is None else step_size,
            radius=radius,
            sigma=USUAL_SIGMA if sigma is None else sigma,
            quantum=USUAL_QUANTUM if quantum is None else quantum,
        )
        require_more_than_a_batch(n, settings.batch_size)
        require_stable_steps(settings.step_size, strong_convexity)
        return cls(
            n=n,
            features=features,
            classes=classes,
            mechanism=mechanism,
            strong_convexity=strong_convexity,
            steps=settings.steps,
            batch_size=settings.batch_size,
            step_size=settings.step_size,
            radius=settings.radius,
            sigma=getattr(settings, "sigma", None),
            quantum=getattr(settings, "quantum", None),
        )

    @property
    def settings(self) -> Descent:
        """The constants in the mechanism's form."""
        return descent_of(
            self.mechanism,
            steps=self.steps,
            batch_size=self.batch_size,
            step_size=self.step_size,
            radius=self.radius,
            sigma=self.sigma,
            quantum=self.quantum,
        )

    @property
    def work(self) -> Work:
        """The work of learning."""
        return Work(self.steps * SECONDS_OF_A_STEP, self.steps * self.batch_size / self.n)

    @property
    def loss(self) -> Literal["logistic", "softmax"]:
        """The loss of a record."""
        return "logistic" if self.classes == 2 else "softmax"

    @property
    def dimension(self) -> int:
        """Number of weights, ``d``."""
        return self.features * scores_per_record(self.classes)


def usual_batch(n: int) -> int:
    """Return the default size of a batch from ``n`` records: 8, or a quarter of them if that is smaller."""
    return max(1, min(_USUAL_BATCH, n // 4))


def usual_step_size(mechanism: ExactMechanism) -> float:
    """Return the default step size, for rows of norm at most 1 and small batches.

    The mean of iterates tolerates large steps, which improve test accuracy. In accelerated descent, the last iterate is
    the model, and extrapolation adds up the differences between batches. So the steps of accelerated descent are small
    by default.
    """
    return 0.05 if mechanism == "accelerated-noisy-sgd" else 8.0


def require_stable_steps(step_size: float, strong_convexity: float) -> None:
    """Raise `ParameterError` if the regulariser alone makes steps of this size diverge."""
    if step_size * strong_convexity > 2:
        raise ParameterError(
            f"step_size must be at most 2 / lambda = {2 / strong_convexity:g}, or learning diverges, got "
            f"{step_size:g}; lambda = {strong_convexity:g} follows from C and the number of records"
        )


def descent_of(mechanism: ExactMechanism, *, sigma: Any, quantum: Any, **constants: Any) -> Descent:
    """Return the constants of a mechanism, by its name.

    Args:
        mechanism: Name of the mechanism.
        sigma: Standard deviation of the noise; mechanisms without noise ignore it.
        quantum: Spacing of the grid; mechanisms other than quantized-sgd ignore it.
        constants: Arguments of `Descent`.
    """
    own = {name: value for name, value in (("sigma", sigma), ("quantum", quantum)) if name in _OWN[mechanism]}
    return _SETTINGS[mechanism](**constants, **own)


def _accelerated(**constants: Any) -> NoisySgd:
    return NoisySgd(accelerated=True, **constants)


_SETTINGS: Mapping[ExactMechanism, Callable[..., Descent]] = {
    "noisy-sgd": NoisySgd,
    "accelerated-noisy-sgd": _accelerated,
    "quantized-sgd": QuantizedSgd,
    "subsample-gd": SubsampleGd,
}
_OWN: Mapping[ExactMechanism, tuple[str, ...]] = {
    "noisy-sgd": ("sigma",),
    "accelerated-noisy-sgd": ("sigma",),
    "quantized-sgd": ("quantum",),
    "subsample-gd": (),
}
"""The names of the constants that a mechanism has in addition to those of every descent."""
