"""Lloyd's k-means as linear queries.

Source: Ullah (2024), Algorithm 29, corrected. The mean of a cluster is a ratio, so the number of its members is also
queried with noise. Without noise, this number would reveal records.
"""

import math

import torch
from torch import Tensor

from certified_unlearning.errors import AssumptionError, ParameterError

MOST_NUMBERS = 10_000_000
"""Largest number of distances in memory at once.

If there are more distances, the records are summed in blocks.
"""


class Lloyd:
    """Lloyd's algorithm: each step queries, for every centre, the sum and the number of the records nearest to it.

    Each centre moves to its noisy sum divided by its noisy number of records. A model is the sequence of all centres.
    An answer consists of the clusters' sums and then their numbers of members.
    """

    def __init__(self, rows: Tensor, centres: Tensor, *, row_norm: float) -> None:
        """Store the records and the initial centres.

        Args:
            rows: Rows, including those of future records, shape ``(n, features)``, float64.
            centres: Initial centres, chosen without looking at the records, shape ``(clusters, features)``.
            row_norm: Upper bound on the norms of rows, known without looking at the records.

        Raises:
            ParameterError: Shapes do not match.
            AssumptionError: The norm of a row exceeds ``row_norm``.
        """
        if rows.ndim != 2 or centres.ndim != 2 or rows.shape[1] != centres.shape[1]:
            raise ParameterError(
                "rows and centres must have the same number of features, shapes (n, features) and (clusters, "
                f"features), got {tuple(rows.shape)} and {tuple(centres.shape)}"
            )
        longest = float(torch.linalg.vector_norm(rows, dim=1).max())
        if not longest <= row_norm:
            raise AssumptionError(f"no row may be longer than row_norm = {row_norm}, got length {longest:.6g}")
        self.rows = rows
        self.centres = centres
        self.row_norm = row_norm

    @property
    def dimension(self) -> int:
        """Number of parameters, ``clusters x features``."""
        return self.centres.numel()

    @property
    def answers(self) -> int:
        """Number of entries of each sum, ``clusters x (features + 1)``."""
        return self.dimension + len(self.centres)

    @property
    def bound(self) -> float:
        """``B``, the largest norm of one record's contribution.

        In the sum of a cluster, the contribution of a record is the record itself. In the number of members, the
        contribution is 1.
        """
        return math.hypot(self.row_norm, 1.0)

    def start(self) -> Tensor:
        """Return the first centres."""
        return self.centres.flatten()

    def sums(self, step: int, models: Tensor, records: Tensor) -> Tensor:
        """Return clusters' sums and numbers of members; see `QueryMethod.sums`."""
        total = models.new_zeros(len(models), self.answers)
        for some in torch.split(records, max(1, MOST_NUMBERS // (len(models) * len(self.centres)))):
            total += self._sums(models.view(len(models), *self.centres.shape), self.rows[some])
        return total

    def _sums(self, centres: Tensor, rows: Tensor) -> Tensor:
        # This does not use products of matrices, because a record's nearest centre must not depend on the other records
        # of a query.
        distances = torch.cdist(rows, centres, compute_mode="donot_use_mm_for_euclid_dist")
        nearest = distances.min(dim=-1).indices  # The first in a tie, as by `argmin`, which is five times slower.
        clusters = len(self.centres)
        if len(centres) == 1:  # A product of matrices is several times slower.
            sums = rows.new_zeros(clusters, rows.shape[1]).index_add_(0, nearest[0], rows)
            return torch.cat([sums.flatten(), nearest[0].bincount(minlength=clusters).to(rows.dtype)])[None]
        members = torch.nn.functional.one_hot(nearest, clusters).to(rows.dtype)
        return torch.cat([(members.transpose(1, 2) @ rows).flatten(1), members.sum(dim=1)], dim=1)

    def updates(self, step: int, models: Tensor, answers: Tensor) -> Tensor:
        """Return noisy sums divided by noisy numbers of members (at least 1); see `QueryMethod.updates`."""
        clusters, features = self.centres.shape
        sums, members = answers[:, : self.dimension], answers[:, self.dimension :]
        centres = sums.reshape(-1, clusters, features) / members.clamp(min=1.0)[:, :, None]
        return centres.flatten(1)
