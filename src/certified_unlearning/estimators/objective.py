"""What audits of a linear model use: the objective that it minimises, its noise, and its weights' laws."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from numpy.typing import NDArray

from certified_unlearning.estimators.scaling import Array


class Laws(NamedTuple):
    """Weights of independent trials, each of shape ``(trials, d)``.

    Attributes:
        before: Weights of models that learned.
        unlearned: Their weights after a removal.
        comparator: Weights of the certificate's comparator.
    """

    before: Array
    unlearned: Array
    comparator: Array


@dataclass(frozen=True, kw_only=True)
class PublicObjective:
    """``sum_i c_i loss(x_i.w + b, t_i) + strength (|w|^2 + b^2) / 2``, and the noise on published ``w`` and ``b``.

    Attributes:
        loss: Loss of a score and a target: ``log(1 + exp(-t score))``, or half of the squared difference.
        strength: Strength of the regulariser.
        targets: Returns -1 and 1 for the labels of two classes; for regression, targets in [-1, 1].
        seen: Returns features as the model sees them.
        intercept: Whether there is an intercept.
        intercept_regularised: Whether it is regularised.
        class_weights: ``c`` for the targets -1 and 1.
        noise: Standard deviation of each weight; or, with ``by_curvature``, the factor in the covariance
            ``noise^2 n H^-1``, where ``H`` is the Hessian of the objective.
        by_curvature: Whether every step added noise, so that weights vary most where the objective is flat.
        unit: Factor of a regression's published weights.
        middle: Offset of their intercept.
    """

    loss: Literal["logistic", "squared"]
    strength: float
    targets: Callable[[Any], Array]
    seen: Callable[[NDArray[Any]], Array]
    intercept: bool
    intercept_regularised: bool = True
    class_weights: tuple[float, float] = (1.0, 1.0)
    noise: float = 0.0
    by_curvature: bool = False
    unit: float = 1.0
    middle: float = 0.0
