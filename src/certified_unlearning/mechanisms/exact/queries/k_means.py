"""Lloyd's k-means for records with a known largest norm: it chooses the first centres and handles empty clusters.

`lloyd` contains the algorithm of the source. This module adds two rules. Both depend only on noisy answers, as linear
queries require. The first query finds the mean of all records. If a cluster has a small noisy number of members, its
centre moves next to the centre of the fullest cluster.
"""

import torch
from torch import Tensor

from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.exact.balls import project
from certified_unlearning.mechanisms.exact.queries.lloyd import Lloyd

BESIDE = 2.0**-10
"""Distance between the centre of a cluster and the other centres that are placed next to it to divide the cluster.

Each of these centres then gets the records in its direction, however small the distance is.
"""
EMPTY = 3.0
"""A cluster counts as empty if its noisy number of members is below this many standard deviations of the noise.
"""


class KMeans(Lloyd):
    """Lloyd's algorithm that starts around the noisy mean.

    The centre of an empty cluster is placed next to the centre of the fullest cluster.
    """

    def __init__(
        self, rows: Tensor, centres: Tensor | None, directions: Tensor, *, sigma: float, row_norm: float
    ) -> None:
        """Store the records, the initial centres and public directions.

        Args:
            rows: Rows, including those of future records, shape ``(n, features)``, float64.
            centres: Initial centres, chosen without looking at the records, shape ``(clusters, features)``. None: the
                first query counts all records as one cluster, and all centres are placed next to the mean of this
                cluster.
            directions: Rows of norm 1, drawn without looking at the records, shape ``(steps, clusters, features)``.
                Every cluster has a direction for each step. If a cluster is empty, its centre is placed in this
                direction from another centre.
            sigma: Standard deviation of the noise on the answers.
            row_norm: Upper bound on the norms of rows, known without looking at the records.

        Raises:
            ParameterError: Shapes do not match.
            AssumptionError: The norm of a row exceeds ``row_norm``.
        """
        begin = torch.zeros_like(directions[0]) if centres is None else centres
        if begin.shape != directions.shape[1:]:
            raise ParameterError(
                "centres and directions must have the same numbers of clusters and features, got "
                f"{tuple(begin.shape)} and {tuple(directions.shape[1:])}"
            )
        super().__init__(rows, begin, row_norm=row_norm)
        self.directions = directions
        self.from_mean = centres is None
        self.sigma = sigma

    def with_rows(self, rows: Tensor) -> "KMeans":
        """Return the same method for other records."""
        given = None if self.from_mean else self.centres
        return KMeans(rows, given, self.directions, sigma=self.sigma, row_norm=self.row_norm)

    def updates(self, step: int, models: Tensor, answers: Tensor) -> Tensor:
        """Return the next models; see `QueryMethod.updates`."""
        members = answers[:, self.dimension :]
        centres = super().updates(step, models, answers).view(-1, *self.centres.shape)
        # All rows are in this ball, and so are their means.
        centres = project(centres, self.row_norm)
        fullest, empty = members.argmax(dim=1), members < max(1.0, EMPTY * self.sigma)
        if step == 1 and self.from_mean:
            # All centres were equal. So the first one was nearest to all records.
            fullest, empty = torch.zeros_like(fullest), torch.ones_like(empty)
        trials = torch.arange(len(centres), device=centres.device)
        beside = centres[trials, fullest][:, None] + BESIDE * self.directions[step - 1]
        return torch.where(empty[..., None], beside, centres).flatten(1)
