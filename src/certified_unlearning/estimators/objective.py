"""What audits of a linear model look at: the objective that it minimises, its noise, and its weights' laws."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from numpy.typing import NDArray

from certified_unlearning.estimators.scaling import Array


class Laws(NamedTuple):
    """Weights of independent trials, each of shape ``(trials, d)``.

    Attributes:
        before: Of models that learned.
        unlearned: Of these after a removal.
        comparator: Of what the certificate compares with.
    """

    before: Array
    unlearned: Array
    comparator: Array


@dataclass(frozen=True, kw_only=True)
class PublicObjective:
    """``sum_i c_i loss(x_i.w + b, t_i) + strength (|w|^2 + b^2) / 2``, and the noise on published ``w`` and ``b``.

    Attributes:
        loss: Of a score and a target: ``log(1 + exp(-t score))``, or half of the squared difference.
        strength: Of the regulariser.
        targets: Returns -1 and 1 for the labels of two classes; for regression, targets in [-1, 1].
        seen: Returns features as the model sees them.
        intercept: Whether there is one.
        intercept_regularised: Whether it is in the regulariser.
        class_weights: ``c`` of the targets -1 and 1.
        noise: Standard deviation of each weight; or, ``by_curvature``, what the covariance ``noise^2 n H^-1`` has, with
            ``H`` the Hessian of the objective.
        by_curvature: Whether noise was in every step, and weights vary most where the objective is flat.
        unit: What published weights of a regression are multiples of.
        middle: What is added to their intercept.
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
