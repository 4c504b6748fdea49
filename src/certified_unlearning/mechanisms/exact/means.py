"""Stable means: the mean of a random part of the records, or the mean of all records with noise.

Source: Ullah (dissertation, Johns Hopkins University, 2024), section C.9.1, Claims 11 and 12. These claims show the two
kinds of stability in their simplest form, to which lower bounds reduce. After an edit, value and state have the
distribution of a fresh mean of the edited records, if requests were chosen without looking at values or states. The
size of the part, or the noise, stays the same as in learning, however many records are inserted and deleted later.

An edit changes the value with probability at most ``rho`` in two cases. In the first case, the part contains
``m = rho n`` records. In the second case, the records are in the unit ball, and the mean of all of them has noise of
``sqrt(2 / pi) / (n rho)`` per coordinate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from certified_unlearning.accounting.core.checks import require_count, require_non_negative
from certified_unlearning.engine.exact.alive import Alive
from certified_unlearning.engine.exact.couplings import edited_batches
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.reflection import reflection_step
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.mechanisms.exact.descent import check_batches, edit_ids, require_more_than_a_batch
from certified_unlearning.mechanisms.exact.invariants import require_close
from certified_unlearning.mechanisms.exact.work import Work


@dataclass
class MeanState:
    """The published values, with the state that later edits need, for many trials.

    Attributes:
        alive: The present records.
        values: The published values, shape ``(trials, d)``.
        members: The members of the mean in ascending order, shape ``(trials, m)``, int64; ``m`` is 0 for the mean of
            all records.
        mean: The mean of all records before noise is added, shape ``(d,)``; zeros for the mean of a part of the
            records.
    """

    alive: Alive
    values: Tensor
    members: Tensor
    mean: Tensor

    @property
    def trials(self) -> int:
        """Number of independent means."""
        return len(self.values)

    def tensors(self) -> dict[str, Tensor]:
        """Return all tensors of the state by name.

        Ids are ascending, so their order reveals nothing.
        """
        return {
            "alive": self.alive.ids.sort().values,
            "next_id": torch.tensor(self.alive.next_id),
            "values": self.values,
            "members": self.members,
            "mean": self.mean,
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "MeanState":
        """Return the state from the tensors that `tensors` returned."""
        alive = Alive(tensors["alive"], next_id=int(tensors["next_id"]))
        return cls(alive, *(tensors[name].clone() for name in ("values", "members", "mean")))


class SubsampledMean:
    """The mean of ``m`` records, which are a uniform subset (Subsample-mean).

    If a deleted record is a member, which has probability ``m / n``, another record replaces it. Nothing else changes.
    """

    def __init__(self, rows: Tensor, size: int) -> None:
        """Store the records and ``m``.

        Args:
            rows: All present and future records, shape ``(N, d)``, float64; an id is a position.
            size: Size ``m`` of the part, always below the number of records.

        Raises:
            ParameterError: ``rows`` has another shape, or ``m`` is below 1.
        """
        require_count(least=1, size=size)
        _require_rows(rows)
        self.rows = rows
        self.size = size

    def learn(self, ids: Tensor, draws: Draws, *, trials: int = 1) -> MeanState:
        """Publish means of some records.

        Raises:
            ParameterError: An id is not the position of a row or is a duplicate, or ``trials`` is not at least 1.
            AssumptionError: The number of records is at most the size of a part.
        """
        alive = _alive(self.rows, ids, draws, trials)
        require_more_than_a_batch(len(alive), self.size)
        members = draws.subsets(alive.ids, self.size, trials).sort(dim=-1).values
        return MeanState(alive, self.rows[members].mean(dim=1), members, torch.zeros_like(self.rows[0]))

    def delete(self, state: MeanState, record: int, draws: Draws) -> Work:
        """Delete a record in every trial.

        ``gradients`` of the result counts the rows that were read.

        Raises:
            ParameterError: The record is absent.
            AssumptionError: Too few records would remain.
        """
        return self._edit(state, [record], [], draws)

    def insert(self, state: MeanState, record: int, draws: Draws) -> Work:
        """Insert a record in every trial; see `delete`. Its id must never have been used."""
        return self._edit(state, [], [record], draws)

    def check(self, state: MeanState) -> None:
        """Recompute the means from their members, and compare them.

        Raises:
            DataError: A part has a duplicate or absent record, or a value is not the mean of its part.
        """
        check_batches(state.members, state.alive)
        require_close("means", state.values, self.rows[state.members].mean(dim=1))

    def _edit(self, state: MeanState, removed: Sequence[int], inserted: Sequence[int], draws: Draws) -> Work:
        _require_ids(self.rows, inserted)
        leaving, entering = edit_ids(state.alive, removed, inserted, self.size, draws.device)
        changes = edited_batches(state.members[:, None], state.alive, leaving, entering, draws)
        state.members[changes.trials] = changes.members
        state.values[changes.trials] = self.rows[changes.members].mean(dim=1)
        work = Work.none(state.trials)
        touched = changes.trials.cpu()
        work.gradients[touched] = self.size
        work.recomputations[touched] = 1
        return work


class NoisyMean:
    """The mean of all records, with Gaussian noise (Noisy-mean).

    An edit of a record ``z`` moves the mean by ``|z - mean'| / n``, where ``mean'`` is the mean without ``z``, and
    ``n`` is the number of records with ``z``. The edit keeps the value or reflects it.
    """

    def __init__(self, rows: Tensor, sigma: float) -> None:
        """Store the records and the noise.

        Args:
            rows: All present and future records, shape ``(N, d)``, float64; an id is a position.
            sigma: Standard deviation of the noise on a coordinate, at least 0.

        Raises:
            ParameterError: ``rows`` has another shape, or ``sigma`` is invalid.
        """
        require_non_negative(sigma=sigma)
        _require_rows(rows)
        self.rows = rows
        self.sigma = sigma

    def learn(self, ids: Tensor, draws: Draws, *, trials: int = 1) -> MeanState:
        """Publish noisy means of some records.

        Raises:
            ParameterError: There is no record, an id is not the position of a row or is a duplicate, or ``trials`` is
                not at least 1.
        """
        alive = _alive(self.rows, ids, draws, trials)
        mean = self.rows[alive.ids].mean(dim=0)
        values = mean + self.sigma * draws.normal(trials, len(mean))
        return MeanState(alive, values, torch.zeros(trials, 0, dtype=torch.int64, device=draws.device), mean)

    def delete(self, state: MeanState, record: int, draws: Draws) -> Work:
        """Delete a record in every trial.

        In the result, ``recomputations`` is the number of reflected values.

        Raises:
            ParameterError: The record is absent, or it is the only record.
        """
        if len(state.alive) == 1 and bool((state.alive.ids == record).all()):
            raise ParameterError(f"record {record} is the only one left: there is no mean without it")
        return self._edit(state, [record], [], draws)

    def insert(self, state: MeanState, record: int, draws: Draws) -> Work:
        """Insert a record in every trial; see `delete`. Its id must never have been used."""
        return self._edit(state, [], [record], draws)

    def check(self, state: MeanState) -> None:
        """Recompute the mean, and compare it.

        Raises:
            DataError: The mean differs, or a value is not finite.
        """
        require_close("coordinates of the mean", state.mean, self.rows[state.alive.ids].mean(dim=0))
        if not bool(state.values.isfinite().all()):
            raise DataError("values of a noisy mean must be finite")

    def _edit(self, state: MeanState, removed: Sequence[int], inserted: Sequence[int], draws: Draws) -> Work:
        _require_ids(self.rows, inserted)
        before = len(state.alive)
        state.alive.edit(*(torch.tensor(ids, dtype=torch.int64, device=draws.device) for ids in (removed, inserted)))
        change = self.rows[list(inserted)].sum(dim=0) - self.rows[list(removed)].sum(dim=0)
        mean = (before * state.mean + change) / len(state.alive)
        old, new = state.mean.expand_as(state.values), mean.expand_as(state.values)
        state.values, stayed = reflection_step(state.values, old, new, self.sigma, draws.uniform(state.trials))
        state.mean = mean
        work = Work.none(state.trials)
        work.gradients += len(removed) + len(inserted)
        work.rejection_tests += 1
        work.recomputations += (~stayed).cpu()
        return work


def _require_rows(rows: Tensor) -> None:
    if rows.ndim != 2 or not rows.numel():
        raise ParameterError(f"rows must have shape (N, d), with N and d above 0, got {tuple(rows.shape)}")


def _require_ids(rows: Tensor, ids: Sequence[int]) -> None:
    if ids and max(ids) >= len(rows):
        raise ParameterError(f"an id must be the position of one of the {len(rows)} rows, got {max(ids)}")


def _alive(rows: Tensor, ids: Tensor, draws: Draws, trials: int) -> Alive:
    require_count(least=1, trials=trials)
    alive = Alive(ids.to(draws.device))
    if not len(alive):
        raise ParameterError("there must be records for a mean, got none")
    _require_ids(rows, [alive.next_id - 1])
    return alive
