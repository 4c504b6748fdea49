"""Learning from noisy sums over all records, step by step, and exact unlearning.

Source: Ullah (2024), Algorithms 26 and 27 and Theorem 51, corrected: the ratio of densities is the new density divided
by the old one. Each step queries the sum of all records' contributions at the current model, with noise, and computes
the next model from it. This learner is for methods that use all records at once: federated averaging, k-means, and
gradient descent on full batches.

The noise is on sums, not on means. An edit changes the number of records, and a mean of noisy sums would change with
it. So updates divide by a nominal number that never changes, or by a number that was queried with noise.

`accounting.tv.planning.plan_queries` computes the noise. Exactness needs no bound. But every contribution must be a
deterministic function of the model and the record alone, because an edit computes it again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Protocol

import torch
from torch import Tensor

from certified_unlearning.accounting.core.checks import require_count, require_non_negative
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.reflection import reflection_step
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.exact.invariants import require_close, require_names
from certified_unlearning.mechanisms.exact.work import Work


class QueryMethod(Protocol):
    """A learner that reads records through noisy sums. Anything that it stores besides weights is part of its model."""

    @property
    def dimension(self) -> int:
        """Number of parameters, ``d``."""

    @property
    def answers(self) -> int:
        """Number of entries of each sum, ``q``."""

    def start(self) -> Tensor:
        """Return the first model, shape ``(d,)``. It must not depend on any record."""

    def sums(self, step: int, models: Tensor, records: Tensor) -> Tensor:
        """Return the sum of the records' contributions, ``sum of p_t(w_t; z)``.

        Args:
            step: Step ``t``, counted from 1.
            models: The models, shape ``(k, d)``.
            records: Names of records, which are the same for all trials, shape ``(m,)``, int64.

        Returns:
            The sum for each model, shape ``(k, q)``.
        """

    def updates(self, step: int, models: Tensor, answers: Tensor) -> Tensor:
        """Return the next models, ``U_t(w_t, noisy sum)``, shape ``(k, d)``."""


@dataclass(frozen=True)
class LinearQuerySettings:
    """The constants of a run.

    The constants are the same for all edits.

    Attributes:
        steps: Number of noisy sums, ``T``.
        sigma: Standard deviation of the noise on the sums, per coordinate.
    """

    steps: int
    sigma: float

    def __post_init__(self) -> None:
        """Check every value."""
        require_count(least=1, steps=self.steps)
        require_non_negative(sigma=self.sigma)


@dataclass
class QueryRun:
    """The state: present records, sums, noisy sums and models, for many trials.

    Attributes:
        records: Names of the present records, shape ``(n,)``, int64.
        sums: Sums without noise, shape ``(trials, T, q)``.
        noisy: Noisy sums, shape ``(trials, T, q)``.
        models: The models ``w_1`` to ``w_(T + 1)``, shape ``(trials, T + 1, d)``.
        sigma: Standard deviation of the noise, shape ``()``.
    """

    records: Tensor
    sums: Tensor
    noisy: Tensor
    models: Tensor
    sigma: Tensor

    def tensors(self) -> dict[str, Tensor]:
        """Return the state as tensors, for a file; see `LinearQueries.restore`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class LinearQueries:
    """A learner that can unlearn: a method of linear queries with its settings."""

    def __init__(self, method: QueryMethod, settings: LinearQuerySettings) -> None:
        """Store a method and its settings."""
        self.method = method
        self.settings = settings

    def learn(self, records: Tensor, trials: int, draws: Draws) -> tuple[QueryRun, Work]:
        """Learn from all records.

        In the returned work, ``gradients`` is the number of contributions of single records.

        Args:
            records: Distinct names of the records, shape ``(n,)``, int64.
            trials: Number of independent runs.
            draws: Fresh randomness.

        Raises:
            ParameterError: There are no records, a name is a duplicate, or the run does not fit in memory.
        """
        require_names(records)
        start = self.method.start().to(records.device)
        steps, sigma = self.settings.steps, start.new_tensor(self.settings.sigma)
        try:
            models = start.new_zeros(trials, steps + 1, self.method.dimension)
            sums, noisy = start.new_zeros(2, trials, steps, self.method.answers)
        except (RuntimeError, TypeError) as error:
            raise ParameterError(
                f"the sums and models of {steps:,} steps do not fit in memory: take fewer steps"
            ) from error
        models[:, 0] = start
        run = QueryRun(records.clone(), sums, noisy, models, sigma)
        work = Work.none(trials)
        self._run_from(run, torch.zeros(trials, dtype=torch.int64, device=records.device), draws, work)
        work.iterations_run_again.zero_()
        return run, work

    def delete(self, run: QueryRun, record: int, draws: Draws) -> Work:
        """Delete a record in all trials, and return the work. The state changes in place.

        Raises:
            ParameterError: The record is absent, or it is the only one.
        """
        return self.edit(run, [record], [], draws)

    def insert(self, run: QueryRun, record: int, draws: Draws) -> Work:
        """Insert a record in all trials, and return the work. The state changes in place.

        Raises:
            ParameterError: The record is already present.
        """
        return self.edit(run, [], [record], draws)

    def edit(self, run: QueryRun, deleted: Sequence[int], inserted: Sequence[int], draws: Draws) -> Work:
        """Delete and insert records in all trials, and return the work. The state changes in place.

        Each sum is tested once, with the total change that all deleted and inserted records cause. This is exact, too,
        because two Gaussians are coupled in the same way, whatever the distance between their means.

        Raises:
            ParameterError: A deleted record is absent or named twice, an inserted record is present, or no record would
                remain.
        """
        gone, come = (run.records.new_tensor([*each]) for each in (deleted, inserted))
        leave = torch.isin(run.records, gone)
        if int(leave.sum()) < len({*deleted}):
            missing = next(each for each in deleted if not bool((run.records == each).any()))
            raise ParameterError(f"record {missing} is not among the {len(run.records)} records of the model")
        left = run.records[~leave]
        if present := left[torch.isin(left, come)].tolist():
            raise ParameterError(f"record {present[0]} was learned already: a record is never inserted twice")
        for name, named in (("deleted", deleted), ("inserted", inserted)):
            if len({*named}) < len(named):
                raise ParameterError(f"{name} must not name a record twice, got {[*named]}")
        if not len(left) + len(come):
            raise ParameterError(f"record {deleted[-1]} is the only one left: there is nothing to learn without it")
        run.records = torch.cat([left, come])
        return self._edit(run, gone, come, draws)

    def restore(self, tensors: dict[str, Tensor]) -> QueryRun:
        """Return the state from the tensors that `QueryRun.tensors` returned.

        Raises:
            ParameterError: The state was made with other settings or by another method, or a tensor is missing.
        """
        if missing := {field.name for field in fields(QueryRun)} - tensors.keys():
            raise ParameterError(f"a stored run must have the tensors {', '.join(sorted(missing))}, too")
        run = QueryRun(**tensors)
        trials, steps = len(run.models), self.settings.steps
        if float(run.sigma) != self.settings.sigma or run.noisy.shape[1:2] != (steps,):
            raise ParameterError(
                f"the stored run was learned with sigma = {float(run.sigma)} in {run.noisy.shape[1]} steps, but the "
                f"settings are {self.settings.sigma} and {steps}: an edit must use the settings of learning"
            )
        of_sums, of_models = (trials, steps, self.method.answers), (trials, steps + 1, self.method.dimension)
        for name, expected in (("sums", of_sums), ("noisy", of_sums), ("models", of_models)):
            if tensors[name].shape != expected:
                raise ParameterError(f"{name} must have shape {expected}, got {tuple(tensors[name].shape)}")
        return run

    def replayed(self, records: Tensor, noisy: Tensor) -> QueryRun:
        """Return the state that follows from the present records and the noisy sums.

        Args:
            records: Distinct names of the records, shape ``(n,)``, int64.
            noisy: Noisy sums, shape ``(trials, T, q)``.

        Raises:
            ParameterError: A shape does not match the settings and the method, or a name is a duplicate.
        """
        require_names(records)
        if noisy.shape[1:] != (self.settings.steps, self.method.answers):
            raise ParameterError(
                f"noisy must have shape (trials, {self.settings.steps}, {self.method.answers}), got "
                f"{tuple(noisy.shape)}"
            )
        models = noisy.new_zeros(len(noisy), self.settings.steps + 1, self.method.dimension)
        models[:, 0] = self.method.start()
        run = QueryRun(records, torch.zeros_like(noisy), noisy, models, noisy.new_tensor(self.settings.sigma))
        rows = torch.arange(len(noisy), device=noisy.device)
        for number in range(self.settings.steps):
            run.sums[:, number] = self.method.sums(number + 1, models[:, number], records)
            self._update(run, rows, number)
        return run

    def model(self, run: QueryRun) -> Tensor:
        """Return the last models, shape ``(trials, d)``.

        To select among all models, use `QueryRun.models`.
        """
        return run.models[:, -1]

    def check_invariants(self, run: QueryRun) -> None:
        """Check that there is noise with which learning on a state's records would result in this state.

        Raises:
            DataError: A stored value differs by more than the relative `invariants.TOLERANCE`.
        """
        for number in range(self.settings.steps):
            models, step = run.models[:, number], number + 1
            require_close(f"sums of step {step}", run.sums[:, number], self.method.sums(step, models, run.records))
            updated = self.method.updates(step, models, run.noisy[:, number])
            require_close(f"models after step {step}", run.models[:, number + 1], updated)
        require_close("first models", run.models[:, 0], self.method.start().expand_as(run.models[:, 0]))

    def _edit(self, run: QueryRun, gone: Tensor, come: Tensor, draws: Draws) -> Work:
        """Test the sums of each trial step by step, up to the trial's first rejection.

        Then learn the later steps on the edited records.
        """
        trials = len(run.models)
        work = Work.none(trials)
        rows = torch.arange(trials, device=run.models.device)
        restarts = torch.full_like(rows, self.settings.steps)
        for number in range(self.settings.steps):
            old = run.sums[rows, number]
            new = old
            if len(gone):
                new = new - self.method.sums(number + 1, run.models[rows, number], gone)
            if len(come):
                new = new + self.method.sums(number + 1, run.models[rows, number], come)
            values, accepted = reflection_step(
                run.noisy[rows, number], old, new, self.settings.sigma, draws.uniform(len(rows))
            )
            run.sums[rows, number], run.noisy[rows, number] = new, values
            work.gradients[rows.cpu()] += len(gone) + len(come)
            work.rejection_tests[rows.cpu()] += 1
            rejected = rows[~accepted]
            if len(rejected):
                restarts[rejected] = number + 1
                work.recomputations[rejected.cpu()] = 1
                self._update(run, rejected, number)
            rows = rows[accepted]
            if not len(rows):
                break
        self._run_from(run, restarts, draws, work)
        return work

    def _run_from(self, run: QueryRun, restarts: Tensor, draws: Draws, work: Work) -> None:
        """Run each trial again from its step in ``restarts``, counted from 0.

        A trial whose step is after the last step does not change.
        """
        starts, order = restarts.sort()
        for number in range(int(starts[0]), self.settings.steps):
            rows = order[: int((starts <= number).sum())]
            sums = self.method.sums(number + 1, run.models[rows, number], run.records)
            run.sums[rows, number] = sums
            run.noisy[rows, number] = sums + self.settings.sigma * draws.normal(*sums.shape)
            self._update(run, rows, number)
        again = (self.settings.steps - restarts).cpu()
        work.gradients += len(run.records) * again
        work.iterations_run_again += again

    def _update(self, run: QueryRun, rows: Tensor, number: int) -> None:
        models, answers = run.models[rows, number], run.noisy[rows, number]
        run.models[rows, number + 1] = self.method.updates(number + 1, models, answers)
