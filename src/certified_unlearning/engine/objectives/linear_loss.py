"""Linear losses ``<x, w>`` with records of their own for every trial: laws stay Gaussian, so all attacks are exact."""

from torch import Tensor

from certified_unlearning.errors import ParameterError


class LinearLossObjective:
    """``f(w) = <mean of the records, w> + (strong_convexity / 2) ||w||^2``; coordinates do not mix.

    All trials must take the same number of steps (the engine orders them by it).

    Args:
        means: Mean of each trial's records, shape ``(trials, d)``.
        n: Number of records.
        strong_convexity: The l2 coefficient lambda.
    """

    def __init__(self, means: Tensor, *, n: int, strong_convexity: float) -> None:
        self.n, self.d = n, means.shape[1]
        self._means = means
        self._strong_convexity = strong_convexity

    def remove(self, count: int) -> None:
        """Do nothing: other records are another objective.

        Raises:
            ParameterError: ``count`` is not 0.
        """
        if count:
            raise ParameterError(f"linear losses hold no removals: give their means instead, got count = {count}")

    def descend(self, weights: Tensor, step_size: float) -> None:
        """Replace ``weights`` (trials, d) by ``weights - step_size * gradient``, in place.

        Raises:
            ParameterError: There are not as many trials as means.
        """
        if weights.shape != self._means.shape:
            raise ParameterError(f"weights must have the shape of the means, {self._means.shape}, got {weights.shape}")
        weights.mul_(1 - step_size * self._strong_convexity).sub_(self._means, alpha=step_size)
