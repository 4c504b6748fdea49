"""A quadratic loss, for which trials are exactly Gaussian after every step; tests compare with it."""

from torch import Tensor


class QuadraticObjective:
    """``f(w) = (1/n) sum_i (1/2) (w - r_i)' diag(curvature) (w - r_i)``.

    Its smallest curvature is ``m``, and its largest is ``L``.

    Args:
        records: Records ``r_i``, shape ``(n, d)``.
        curvature: Curvature in each coordinate, shape ``(d,)``.
        replacements: Replacements of removed records: their indices ``(s,)`` and new rows ``(s, d)``.
    """

    def __init__(
        self, records: Tensor, curvature: Tensor, *, replacements: tuple[Tensor, Tensor] | None = None
    ) -> None:
        self._records = records
        self._curvature = curvature
        self._replacements = replacements
        self.n, self.d = records.shape
        self.mean = records.mean(dim=0)

    def remove(self, count: int) -> None:
        """Change the objective to that of the data after the first ``count`` replacements."""
        records = self._records
        if self._replacements is not None:
            indices, rows = self._replacements
            records = records.index_copy(0, indices[:count], rows[:count])
        self.mean = records.mean(dim=0)

    def descend(self, weights: Tensor, step_size: float) -> None:
        """Replace ``weights`` (trials, d) by ``weights - step_size * gradient``, in place."""
        weights.sub_(step_size * self._curvature * (weights - self.mean))
