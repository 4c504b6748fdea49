"""What plans for stationary points have in common: weights have no ball, so bounds hold everywhere.

A record's gradient has norm ``G`` at most, and its difference between two points ``min(H |w - w'|, 2 G)``. The rounding
of gradients may take a share of each sensitivity, which runs keep to.
"""

from certified_unlearning.accounting.private.learners import ROUNDING_SHARE, LinearProblem
from certified_unlearning.accounting.private.releases import mean_sensitivity
from certified_unlearning.accounting.residual.rounding import OUTWARD
from certified_unlearning.errors import ParameterError


class StationaryPlan:
    """A plan for a loss of bounded slope, whatever the weights are."""

    problem: LinearProblem

    def _require_bounded_slope(self, learner: str) -> None:
        """Raise `ParameterError` unless the loss has a bound on its slope."""
        if self.problem.loss.lipschitz is None:
            raise ParameterError(f"{learner} needs a loss of bounded slope, the {self.problem.loss.name} loss has none")

    @property
    def gradient_bound(self) -> float:
        """``G``: the largest norm of a record's gradient, anywhere."""
        return self.problem.steepest

    @property
    def farthest(self) -> float:
        """``2 G / H``: points farther apart have a difference of ``2 G`` at most."""
        return 2 * self.gradient_bound / self.problem.smoothness

    def moved(self, bound: float, records: int) -> float:
        """Return how far one record moves a mean of so many, as computed: rounding adds its share at most."""
        exact = mean_sensitivity(bound, n=records, relation=self.problem.relation)
        return exact * (1 + ROUNDING_SHARE) * OUTWARD
