"""Tree-based private Spider: stationary points of the population's loss. Each record is read once.

Source: Ullah (2024), Algorithm 6 with Theorems 18 and 19, corrected. Gradients are estimated along a binary tree in
pre-order. The root uses a batch. A right child uses a fresh, smaller batch to estimate the *difference* between its own
gradient and its parent's gradient. A left child keeps its parent's estimate. Every step has the same length, so the
positions of two nodes in the tree bound the distance between their points. All batches are disjoint, so each record
enters at most one noisy release, and there is no composition, even for a large tree.

The noise of a node is calibrated by the true distance of the points and by the node's number of records. This number is
rounded down, so it is smaller than printed. The tolerance of Theorem 19 is so large that the algorithm stops at the
first leaf. Here the tolerance is a parameter, and privacy does not depend on it.
"""

import math
from dataclasses import dataclass
from typing import Self

from pydantic import Field

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.accounting.private.guarantee import GaussianPlan, require_met
from certified_unlearning.accounting.private.losses import LinearProblem
from certified_unlearning.accounting.private.plan import (
    NO_PART,
    Calibration,
    PlanConstants,
    RunConstants,
    Words,
    returned,
)
from certified_unlearning.accounting.private.releases import noise_multiplier
from certified_unlearning.accounting.private.spider import BOUNDED_GRADIENTS, SHARE_OF_ROUNDING, StationaryPlan
from certified_unlearning.accounting.residual.rounding import OUTWARD
from certified_unlearning.errors import ParameterError


class TreeConstants(RunConstants):
    """The constants of the tree-based Spider.

    Attributes:
        batch: Number of records of a root.
        depth: Number of levels below a root.
        rounds: Number of trees.
        multiplier: Noise of every release, in units of its sensitivity.
    """

    batch: int = Field(ge=1)
    depth: int = Field(ge=1)
    rounds: int = Field(ge=1)
    multiplier: float = Field(gt=0)


@dataclass(frozen=True, kw_only=True)
class TreeSpider(GaussianPlan, StationaryPlan):
    """The plan of Algorithm 6.

    Attributes:
        problem: Public bounds of the records. The radius is not used, so the loss must have a bounded slope.
        batch: Number of records of a root, ``b``.
        depth: Depth ``D``: the number of levels from the root to the leaves.
        rounds: Number of successive trees, ``T``.
        step: Parameter ``beta``. Every step has length ``beta / (2^(D / 2) H)``.
        tolerance: Tolerance. A leaf whose noisy gradient has at most twice this norm is returned.
        multiplier: Noise multiplier ``z`` of every release, in units of its sensitivity.

    Raises:
        ParameterError: There are too few records, or the loss has no bound on its slope.
    """

    name = "tree-spider"
    run_constants = TreeConstants
    disjoint = True
    words = Words(
        seen="or the points and noisy gradients of all nodes of the trees",
        premises=(
            BOUNDED_GRADIENTS,
            returned(
                "the model is the first leaf whose noisy gradient is short, or a leaf drawn with equal probabilities"
            ),
        ),
        rounding=SHARE_OF_ROUNDING,
    )
    problem: LinearProblem
    batch: int
    depth: int
    rounds: int
    step: float
    tolerance: float
    multiplier: float

    def __post_init__(self) -> None:
        """Check every value."""
        require_count(least=1, batch=self.batch, depth=self.depth, rounds=self.rounds)
        require_positive(step=self.step, tolerance=self.tolerance, multiplier=self.multiplier)
        self._require_bounded_slope("a tree")
        if not self.batch >> self.depth:
            raise ParameterError(
                f"depth = {self.depth} is too large: a batch of {self.batch} records leaves no record for a leaf"
            )
        if self.learned > self.problem.n:
            raise ParameterError(f"{self.rounds} rounds need {self.learned} records, but there are {self.problem.n}")

    def node_batch(self, level: int) -> int:
        """Return the number of records of a right child at a level, ``floor(b / 2^level)``."""
        return self.batch >> level

    @property
    def records_per_round(self) -> int:
        """Number of records of the root and of all right children."""
        return self.batch + sum(self.node_batch(level) << (level - 1) for level in range(1, self.depth + 1))

    @property
    def length(self) -> float:
        """Length of every step."""
        return self.step / (math.pow(2, self.depth / 2) * self.problem.smoothness)

    @property
    def root_sigma(self) -> float:
        """Standard deviation of the noise on a root's gradient."""
        return self._sigma(self.gradient_bound, self.batch)

    def node_sigma(self, level: int, distance: float) -> float:
        """Return the standard deviation of the noise on a right child's difference.

        Args:
            level: Level of the node.
            distance: Distance of the node's point from its parent's point. Distances above `farthest` count as
                `farthest`.
        """
        return self._sigma(self.problem.smoothness * min(distance, self.farthest), self.node_batch(level))

    @property
    def largest_sigma(self) -> float:
        """The largest standard deviation of the noise: that of a leaf whose point is far from its parent's point."""
        return self.node_sigma(self.depth, self.farthest)

    @property
    def learned(self) -> int:
        """Number of records that some node reads."""
        return self.rounds * self.records_per_round

    @property
    def left_over(self) -> int:
        """Number of records that no node reads."""
        return self.problem.n - self.learned

    @property
    def mu(self) -> float:
        """``mu`` of one record, which enters at most one release."""
        return OUTWARD / self.multiplier

    @property
    def releases(self) -> int:
        """Number of releases: the root and all right children of each round."""
        return self.rounds << self.depth

    @property
    def noise_resolution(self) -> float:
        """Largest distance of the noisiest release from the release with exact noise."""
        return self.resolution(self.largest_sigma)

    @property
    def calibration(self) -> Calibration:
        """The noise of the first release, and the number of releases."""
        return Calibration(self.root_sigma, self.releases)

    @classmethod
    def from_constants(cls, constants: PlanConstants) -> Self:
        """Return the plan with these constants and an arbitrary step and tolerance."""
        run = constants.runs_of(TreeConstants)[0]
        problem = constants.problem(records=constants.n)
        return cls(problem=problem, step=NO_PART, tolerance=NO_PART, **run.model_dump())

    @classmethod
    def plan(cls, problem: LinearProblem, *, epsilon: float, delta: float, tolerance: float | None = None) -> Self:
        """Return the (epsilon, delta)-private run with the batch, depth and step of Theorem 19.

        Args:
            problem: Bounds of the records.
            epsilon: Target epsilon, above 0.
            delta: Target delta, strictly between 0 and 1.
            tolerance: Tolerance ``alpha~``; None for half of ``alpha``, the accuracy that the rate states.

        Raises:
            ParameterError: There are too few records for a tree.
        """
        require_positive(epsilon=epsilon)
        n, root = problem.n, math.sqrt(problem.features)
        batch = math.floor(max(math.pow(n, 2 / 3), math.sqrt(n * root / epsilon)))
        depth = 1
        while (depth + 1) << (depth + 2) <= batch:
            depth += 1
        accuracy = math.sqrt(2) * problem.steepest * max(1 / math.cbrt(n), math.sqrt(root / (n * epsilon)))
        per_round = batch + sum((batch >> level) << (level - 1) for level in range(1, depth + 1))
        plan = cls(
            problem=problem,
            batch=batch,
            depth=depth,
            rounds=n // per_round,
            step=accuracy * min(1.0, math.sqrt(batch) * epsilon / root),
            tolerance=accuracy / 2 if tolerance is None else tolerance,
            multiplier=noise_multiplier(epsilon, delta) * OUTWARD,
        )
        require_met(plan.guarantee, epsilon=epsilon, delta=delta)
        return plan

    def _sigma(self, bound: float, records: int) -> float:
        return self.moved(bound, records) * self.multiplier * OUTWARD
