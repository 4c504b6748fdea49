"""Lloyd's k-means for records about which nothing is known but the largest norm: where it begins, and empty clusters.

`lloyd` has the algorithm of the source. Two things are added here, both functions of noisy answers alone, as linear
queries allow: the first query finds the mean of all records, and a cluster whose noisy number of members is small moves
to where most records are.
"""

import torch
from torch import Tensor

from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.exact.balls import project
from certified_unlearning.mechanisms.exact.queries.lloyd import Lloyd

BESIDE = 2.0**-10
"""Distance from a centre at which others are placed to divide its cluster.

Each of them then takes the records that lie in its direction, however small the distance is.
"""
EMPTY = 3.0
"""Number of standard deviations of the noise below which a noisy number of members counts as none."""


class KMeans(Lloyd):
    """Lloyd's algorithm that begins around the noisy mean, and places centres of empty clusters beside the fullest."""

    def __init__(
        self, rows: Tensor, centres: Tensor | None, directions: Tensor, *, sigma: float, row_norm: float
    ) -> None:
        """Take the records, the initial centres and public directions.

        Args:
            rows: Shape ``(n, features)``, float64, including those of future records.
            centres: Shape ``(clusters, features)``: chosen without looking at the records. None: the first query counts
                all records as one cluster, and all centres are placed beside its mean.
            directions: Shape ``(steps, clusters, features)``: rows of norm 1, drawn without looking at the records. In
                each step, a centre is placed in its direction beside another.
            sigma: Standard deviation of the noise of the answers.
            row_norm: Largest norm of a row, known without looking at the records.

        Raises:
            ParameterError: Shapes do not fit.
            AssumptionError: A row's norm is larger.
        """
        begin = torch.zeros_like(directions[0]) if centres is None else centres
        if begin.shape != directions.shape[1:]:
            raise ParameterError(
                f"centres and directions must have as many clusters and features, got {tuple(begin.shape)} and "
                f"{tuple(directions.shape[1:])}"
            )
        super().__init__(rows, begin, row_norm=row_norm)
        self.directions = directions
        self.from_mean = centres is None
        self.sigma = sigma

    def with_rows(self, rows: Tensor) -> "KMeans":
        """Return the same method of other records."""
        given = None if self.from_mean else self.centres
        return KMeans(rows, given, self.directions, sigma=self.sigma, row_norm=self.row_norm)

    def updates(self, step: int, models: Tensor, answers: Tensor) -> Tensor:
        """Return the next models; see `QueryMethod.updates`."""
        members = answers[:, self.dimension :]
        centres = super().updates(step, models, answers).view(-1, *self.centres.shape)
        # Rows lie in this ball, and so do their means.
        centres = project(centres, self.row_norm)
        fullest, empty = members.argmax(dim=1), members < max(1.0, EMPTY * self.sigma)
        if step == 1 and self.from_mean:
            # All centres were equal, and of equal distances the first is the least.
            fullest, empty = torch.zeros_like(fullest), torch.ones_like(empty)
        trials = torch.arange(len(centres), device=centres.device)
        beside = centres[trials, fullest][:, None] + BESIDE * self.directions[step - 1]
        return torch.where(empty[..., None], beside, centres).flatten(1)
