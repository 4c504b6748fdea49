"""What audits need to know about a linear model: its objective, its noise, and the distributions of its weights."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from numpy.typing import NDArray

from certified_unlearning.estimators.scaling import Array


class Laws(NamedTuple):
    """Weights of independent trials; each array has shape ``(trials, d)``.

    Attributes:
        before: Weights of models after learning.
        unlearned: Weights of these models after a removal.
        comparator: Weights drawn from the certificate's comparator.
    """

    before: Array
    unlearned: Array
    comparator: Array


@dataclass(frozen=True, kw_only=True)
class PublicObjective:
    """The objective ``sum_i c_i loss(x_i.w + b, t_i) + strength (|w|^2 + b^2) / 2``, and the published weights' noise.

    Attributes:
        loss: Loss of a score and a target: ``log(1 + exp(-t score))``, or half of the squared difference.
        strength: Strength of the regulariser.
        targets: Function that maps labels to ``t``: -1 and 1 for two classes; for regression, numbers in [-1, 1].
        seen: Function that scales features as the model does.
        intercept: Whether there is an intercept.
        intercept_regularised: Whether the intercept is regularised.
        class_weights: Class weights ``c`` for the targets -1 and 1.
        noise: Standard deviation of the noise on each weight. With ``by_curvature``, it is the factor in the covariance
            ``noise^2 n H^-1``, where ``H`` is the Hessian of the objective.
        by_curvature: Whether every step added noise. In this case, weights vary most in directions in which the
            objective is flat.
        unit: Factor by which a regression's published weights are multiplied.
        middle: Offset that is added to a regression's published intercept.
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
