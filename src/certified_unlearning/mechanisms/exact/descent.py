"""Mini-batch descent with exact unlearning: the engine that noisy, quantized and plain descent share.

An edit examines, in order, the iterations whose batch it changes. Each iteration keeps its direction if a test allows
it. At the first iteration whose test fails, the direction changes, and the following iterations are run again on the
edited records. Source: Ullah (dissertation, Johns Hopkins University, 2024), chapter 4 and appendix C, Algorithms 9, 10
and 19 to 24, corrected.

Exact unlearning means that the whole trajectory has the same distribution as a trajectory that was learned on the
edited records alone. Up to rounding (`ExactDescent.refresh`), this holds for requests that were chosen without looking
at models, states and randomness. Exactness needs gradients that are sums over single records, but neither convexity nor
a bound on gradients.
"""

from collections.abc import Mapping, Sequence
from typing import Generic

import torch
from torch import Tensor

from certified_unlearning.accounting.core.checks import require_count
from certified_unlearning.engine.exact.alive import Alive
from certified_unlearning.engine.exact.couplings import BatchChanges, edited_batches
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import RecordGradients
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.mechanisms.exact.invariants import TOLERANCE, require_close
from certified_unlearning.mechanisms.exact.trajectory import Descent, SettingsT, Trajectory
from certified_unlearning.mechanisms.exact.work import Work


class ExactDescent(Generic[SettingsT]):
    """A learner and editor of trajectories, for many trials at once.

    Attributes:
        settings: The constants.
        records: The records. Rows may be added to them, and an id is the position of a row.
        from_batches: Whether an edit computes each changed gradient from all members of its batch, which needs ``m``
            gradients of records. Otherwise, it updates the gradient by the difference. If True, an edit reads no row of
            a removed record, so these rows may already be erased. Also, the last bits of a gradient do not reveal that
            the gradient changed.
    """

    def __init__(self, settings: SettingsT, records: RecordGradients, *, from_batches: bool = False) -> None:
        """Store constants and records.

        The constructor computes nothing.
        """
        self.settings = settings
        self.records = records
        self.from_batches = from_batches

    def learn(self, ids: Tensor, draws: Draws, *, trials: int = 1) -> Trajectory[SettingsT]:
        """Run all iterations on some records.

        Args:
            ids: Ids of the records, shape ``(n,)``.
            draws: Fresh randomness; the trajectory is stored on its device.
            trials: Number of independent runs.

        Raises:
            ParameterError: An id is not the position of a row or is a duplicate, or ``trials`` is not at least 1.
            AssumptionError: The number of records is at most the batch size.
        """
        require_count(least=1, trials=trials)
        alive = Alive(ids.to(draws.device))
        require_rows(self.records, alive.next_id)
        require_more_than_a_batch(len(alive), self.settings.batch_size)
        state = Trajectory.start(self.settings, alive, trials, self.records.dimension, draws.device)
        self._run(state, torch.zeros(trials, dtype=torch.int64, device=draws.device), draws)
        return state

    def delete(self, state: Trajectory[SettingsT], record: int, draws: Draws) -> Work:
        """Delete a record, in every trial; see `edit`."""
        return self.edit(state, [record], [], draws)

    def insert(self, state: Trajectory[SettingsT], record: int, draws: Draws) -> Work:
        """Insert a record, in every trial; see `edit`."""
        return self.edit(state, [], [record], draws)

    def edit(self, state: Trajectory[SettingsT], removed: Sequence[int], inserted: Sequence[int], draws: Draws) -> Work:
        """Delete some records and insert others in one request, in every trial.

        Args:
            state: The trajectory, which is changed in place.
            removed: Ids of present records.
            inserted: Ids that were never used, in ascending order. Their rows are already in the records.
            draws: Fresh randomness, never used before.

        Returns:
            The work of the edit. The work reveals when a record was used; a trajectory does not reveal this after the
            edit. So the work must not be kept together with a trajectory.

        Raises:
            ParameterError: A removed id is absent, or an inserted id is not new or has no row.
            AssumptionError: Too few records would remain, or the trajectory was learned with other constants.
        """
        leaving, entering = self._edit_alive(state, removed, inserted, draws.device)
        changes = edited_batches(state.batches, state.alive, leaving, entering, draws)
        work = Work.none(state.trials)
        starts = self._examine(state, changes, draws, work)
        self._run_again(state, starts, draws, work)
        return work

    def check(self, state: Trajectory[SettingsT], *, tolerance: float = TOLERANCE) -> None:
        """Recompute every iteration of a trajectory from the previous one, and compare the results.

        Args:
            state: The trajectory between edits.
            tolerance: Largest accepted error, as a multiple of the largest number of the iteration, or of 1 if that is
                larger. Gradients are updated by differences, so rounding adds up over edits.

        Raises:
            AssumptionError: The trajectory was learned with other constants, or there are too few records.
            DataError: A batch has a duplicate or absent record, or an iteration does not follow from the previous one.
        """
        require_same_settings(state.settings, self.settings)
        require_more_than_a_batch(len(state.alive), self.settings.batch_size)
        check_batches(state.batches, state.alive)
        if bool(state.weights[:, 0].any()):
            raise DataError("weights of iteration 1 must be 0, where every run starts")
        for step in range(self.settings.steps):
            points, gradients = self._computed(state, step)
            require_close(f"gradients of iteration {step + 1}", state.gradients[:, step], gradients, tolerance)
            directions = self.settings.directions(state.gradients[:, step], state.randomness[:, step])
            moved = self.settings.moved(points, directions)
            require_close(f"weights after iteration {step + 1}", state.weights[:, step + 1], moved, tolerance)

    def refresh(self, state: Trajectory[SettingsT]) -> None:
        """Recompute all gradients of a trajectory.

        This needs ``T m`` gradients of records per trial. Unless `from_batches` is set, an edit updates a gradient by
        the difference, which needs two gradients of records. So the last bits of an updated gradient reveal the update,
        and rounding adds up. `refresh` removes both effects. It changes no iterate.
        """
        require_same_settings(state.settings, self.settings)
        for step in range(self.settings.steps):
            state.gradients[:, step] = self._computed(state, step)[1]

    def restored(self, tensors: Mapping[str, Tensor]) -> Trajectory[SettingsT]:
        """Return the trajectory with these `Trajectory.least_tensors`.

        This needs ``T m`` gradients of records per trial. Iterates and gradients follow from the batches, the kept
        randomness and the records, up to rounding.
        """
        batches, randomness = tensors["batches"], tensors["randomness"]
        alive = Alive(tensors["alive"], next_id=int(tensors["next_id"]))
        state = Trajectory.start(self.settings, alive, len(batches), self.records.dimension, batches.device)
        state.batches.copy_(batches)
        state.randomness.copy_(randomness)
        for step in range(self.settings.steps):
            points, gradients = self._computed(state, step)
            state.gradients[:, step] = gradients
            directions = self.settings.directions(gradients, randomness[:, step])
            state.weights[:, step + 1] = self.settings.moved(points, directions)
        return state

    def _computed(self, state: Trajectory[SettingsT], step: int) -> tuple[Tensor, Tensor]:
        """Return an iteration's point and gradient in every trial, computed from its batch."""
        trials = torch.arange(state.trials, device=state.batches.device)
        points = state.points(trials, torch.full_like(trials, step))
        return points, self.records.sums(points, state.batches[:, step]) / self.settings.batch_size

    def _edit_alive(
        self, state: Trajectory[SettingsT], removed: Sequence[int], inserted: Sequence[int], device: torch.device
    ) -> tuple[Tensor, Tensor]:
        """Edit the ids and return them as tensors.

        An impossible request is refused before any change.
        """
        require_same_settings(state.settings, self.settings)
        require_rows(self.records, max(inserted, default=-1) + 1)
        return edit_ids(state.alive, removed, inserted, self.settings.batch_size, device)

    def _examine(self, state: Trajectory[SettingsT], changes: BatchChanges, draws: Draws, work: Work) -> Tensor:
        """Test the changed iterations of every trial in order, up to the first rejection in the trial.

        Returns:
            The iteration from which each trial must be run again, shape ``(trials,)``; ``T`` if no test failed.
        """
        settings = self.settings
        starts = torch.full((state.trials,), settings.steps, device=state.batches.device)
        rejected = torch.zeros_like(starts, dtype=torch.bool)
        # The changes are sorted by trial. The rank of a change is its distance from the first change of the trial.
        ranks = torch.arange(len(changes.trials), device=starts.device)
        ranks -= torch.searchsorted(changes.trials, changes.trials)
        for rank in range(int(ranks.max()) + 1 if len(ranks) else 0):
            now = ((ranks == rank) & ~rejected[changes.trials]).nonzero()[:, 0]
            if not len(now):
                break
            trials, steps = changes.trials[now], changes.steps[now]
            points, old = state.points(trials, steps), state.gradients[trials, steps]
            if self.from_batches:
                new = self.records.sums(points, changes.members[now]) / settings.batch_size
                work.gradients[trials.cpu()] += settings.batch_size
            else:
                won = self.records.sums(points, changes.entering[now])
                new = old + (won - self.records.sums(points, changes.leaving[now])) / settings.batch_size
                work.gradients[trials.cpu()] += 2 * changes.changed[now].cpu()
            randomness, stayed = settings.couple(state.randomness[trials, steps], old, new, draws)
            state.batches[trials, steps] = changes.members[now]
            state.gradients[trials, steps] = new
            state.randomness[trials, steps] = randomness
            out, out_at = trials[~stayed], steps[~stayed]
            directions = settings.directions(new[~stayed], randomness[~stayed])
            state.weights[out, out_at + 1] = settings.moved(points[~stayed], directions)
            rejected[out], starts[out] = True, out_at + 1
            work.rejection_tests[trials.cpu()] += 1
        work.recomputations += rejected.cpu()
        return starts

    def _run_again(self, state: Trajectory[SettingsT], starts: Tensor, draws: Draws, work: Work) -> None:
        """Run every trial again from its iteration in ``starts``, and count the work."""
        again = (self.settings.steps - starts).cpu()
        work.iterations_run_again += again
        work.gradients += again * self.settings.batch_size
        self._run(state, starts, draws)

    def _run(self, state: Trajectory[SettingsT], starts: Tensor, draws: Draws) -> None:
        """Run iterations of all trials together, with fresh batches and noise, each trial from its own start."""
        settings = self.settings
        rows = (starts < settings.steps).nonzero()[:, 0]
        if not len(rows):
            return
        first = int(starts.min())
        batches = draws.subsets(state.alive.ids, settings.batch_size, len(rows), settings.steps - first)
        batches = batches.sort(dim=-1).values
        for step in range(first, settings.steps):
            running = starts[rows] <= step
            trials, batch = rows[running], batches[running, step - first]
            points = state.points(trials, torch.full_like(trials, step))
            gradients = self.records.sums(points, batch) / settings.batch_size
            randomness = settings.randomness(gradients, draws)
            state.batches[trials, step] = batch
            state.gradients[trials, step] = gradients
            state.randomness[trials, step] = randomness
            state.weights[trials, step + 1] = settings.moved(points, settings.directions(gradients, randomness))


def edit_ids(
    alive: Alive, removed: Sequence[int], inserted: Sequence[int], batch_size: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Edit the ids, and return both lists of ids as tensors.

    Raises:
        ParameterError: A removed id is absent, or an inserted id is not new.
        AssumptionError: The number of remaining records would be at most the batch size.
    """
    require_more_than_a_batch(len(alive) - len(removed) + len(inserted), batch_size)
    leaving, entering = (torch.tensor(ids, dtype=torch.int64, device=device) for ids in (removed, inserted))
    alive.edit(leaving, entering)
    return leaving, entering


def require_same_settings(learned_with: Descent, given: Descent) -> None:
    """Raise `AssumptionError` unless a trajectory is edited with the constants with which it was learned."""
    if learned_with != given:
        raise AssumptionError(
            f"the trajectory was learned with {learned_with}; no edit may change these constants, got {given}"
        )


def require_more_than_a_batch(n: int, batch_size: int) -> None:
    """Raise `AssumptionError` unless there are more records than batch members, so that a member can be replaced."""
    if batch_size > n - 1:
        raise AssumptionError(
            f"batch_size must be below the number of records, even after a request, got {batch_size} with n = {n}"
        )


def require_rows(records: RecordGradients, rows: int) -> None:
    """Raise `ParameterError` if there are fewer records than ``rows``."""
    if rows > len(records):
        raise ParameterError(f"an id must be the position of one of the {len(records)} rows, got {rows - 1}")


def check_batches(batches: Tensor, alive: Alive) -> None:
    """Raise `DataError` unless the members of every batch are present and distinct, in ascending order."""
    if bool((batches.diff(dim=-1) <= 0).any()):
        raise DataError("members of a batch must be distinct and in ascending order")
    if bool((alive.positions(batches) < 0).any()):
        raise DataError("a batch contains a record that is not present")
