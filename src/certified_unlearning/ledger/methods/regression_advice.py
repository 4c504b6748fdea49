"""Alternatives to a regression model whose predictions are no better than the mean of the targets.

Each alternative is tried before it is named.

Models without noise are fitted on each half of the records and evaluated on the other half. Noise with a standard
deviation ``s`` in each direction of the weights increases the expected squared error of a row ``x`` by ``s^2 |x|^2``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.errors import UnlearningError
from certified_unlearning.mechanisms.refit_plan import USUAL_SIGMA, RefitPlan

GAIN = 0.03
"""Smallest increase of R^2 that counts as better."""
LITTLE = 0.1
"""If R^2 without noise is below this value, the columns hardly predict the label."""
LARGER = (10, 100, 1000, 10_000, 100_000)
"""Factors by which ``C`` is increased in trials. Advice names the smallest factor that is nearly the best."""
LEAST_SPREAD = 0.02
"""If the standard deviation of targets, mapped to [-1, 1], is below this value, their range is far too wide."""


class RegressionTrial(NamedTuple):
    """Records on which models are tried, and the model to improve.

    Attributes:
        rows: Rows of the records, shape ``(records, features)``, with the intercept's constant if there is one.
        targets: Targets from -1 to 1, shape ``(records,)``.
        strong_convexity: Strong convexity ``m`` of the model's objective ``mean loss + m |w|^2 / 2``.
        n: The number of records at the start.
        epsilon: The model's target epsilon.
        delta: The delta of the target.
        of_all: The number of present records, divided by the divisor of the objective's mean loss.
        C: The model's ``C``, as in scikit-learn.
        noise: Upper bound on the standard deviation of the model's noise in any direction of the weights.
    """

    rows: NDArray[np.float64]
    targets: NDArray[np.float64]
    strong_convexity: float
    n: int
    epsilon: float
    delta: float
    of_all: float
    C: float
    noise: float

    def sentences(self, found: float) -> list[str]:
        """Return sentences that say what the problem is, and what helps.

        Args:
            found: The R^2 of the current version on these records.
        """
        spread = float(self.targets.std())
        if spread < LEAST_SPREAD:
            return [
                f"the problem is the range of the label: it is {2 / spread:.0f} times as wide as the label's standard "
                "deviation, and noise and regulariser grow in proportion to this range; in a new `unlearn "
                "init`, this helps: a narrower --range of the label, which must be known beforehand"
            ]
        same, usual = self.expected(1, 0), self.expected(1, USUAL_SIGMA)
        said = list[str]()
        if self.noise > USUAL_SIGMA and usual >= found + GAIN and self._is_possible(1):
            said.append(
                f"the problem is the noise: without it the same model has R^2 {same:.3f} instead of {found:.3f}; in a "
                f"new `unlearn init`, this helps: {self._flags(1)} (R^2 {usual:.3f})"
            )
        larger = {times: self.expected(times, USUAL_SIGMA) for times in LARGER if self._is_possible(times)}
        best = max(larger.values(), default=-np.inf)
        if best >= max(same, found, 0) + GAIN:
            times = next(times for times, expected in larger.items() if expected >= best - GAIN)
            said.append(
                f"the problem is the regulariser: a new `unlearn init` with {self._flags(times)} would give R^2 "
                f"{larger[times]:.3f} instead of {found:.3f}"
            )
        if not said and same < LITTLE:
            said.append(f"these columns hardly predict the label: without noise a linear model has R^2 {same:.3f}")
        return said

    def expected(self, times: float, noise: float) -> float:
        """Return the expected R^2 of a model with this noise and with ``C`` multiplied by ``times``."""
        order = np.argsort(self.targets, kind="stable")
        halves = order[::2], order[1::2]
        squared = 0.0
        for some, others in (halves, halves[::-1]):
            weights = self._minimiser(others, self.strong_convexity / times)
            squared += float(((self.rows[some] @ weights - self.targets[some]) ** 2).sum())
        squared += noise**2 * float((self.rows**2).sum())
        return 1 - squared / float(((self.targets - self.targets.mean()) ** 2).sum())

    def _minimiser(self, some: NDArray[np.int64], strong_convexity: float) -> NDArray[np.float64]:
        rows = self.rows[some]
        strength = strong_convexity * len(rows) / self.of_all
        return np.asarray(
            np.linalg.solve(rows.T @ rows + strength * np.eye(rows.shape[1]), rows.T @ self.targets[some])
        )

    def _is_possible(self, times: float) -> bool:
        """Return whether Newton removal can be planned with ``C`` multiplied by ``times``."""
        try:
            RefitPlan.make(
                n=self.n,
                features=self.rows.shape[1],
                classes=1,
                strong_convexity=self.strong_convexity / times,
                epsilon=self.epsilon,
                delta=self.delta,
                sigma=USUAL_SIGMA,
            )
        except UnlearningError:
            return False
        return True

    def _flags(self, times: float) -> str:
        return f"--mechanism newton-removal --C {times * self.C:.2g} without --sigma"
