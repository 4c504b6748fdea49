"""Mini-batch Langevin unlearning: noisy gradient descent on one mini-batch after another, in learning and unlearning.

Records are dealt into batches once (`engine.minibatch`). A removed record's loss becomes 0, or another record takes its
place. Unlearning continues the cycle of batches. Only the noisy weights are kept, so there is no secret state.

Source: the dynamics are those of Chien, Wang, Chen, Li, *Certified machine unlearning via noisy stochastic gradient
descent* (NeurIPS 2024). The accounting is that of `accounting.cyclic`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from certified_unlearning.accounting import assumptions
from certified_unlearning.accounting.core.curves import Cycle, Schedule
from certified_unlearning.accounting.cyclic.accountants import CYCLIC
from certified_unlearning.accounting.cyclic.planning import least_steps_after
from certified_unlearning.accounting.streams import Stream
from certified_unlearning.engine.phase import DescentPhase
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.mechanisms import langevin
from certified_unlearning.mechanisms.batch import TrialBatch
from certified_unlearning.mechanisms.mechanism import Mechanism
from certified_unlearning.mechanisms.run import ProblemConstants, Request, Run

if TYPE_CHECKING:
    from torch import Tensor


def start(batch: TrialBatch, like: "Tensor") -> "Tensor":
    """Return the origin for every trial."""
    return like.new_zeros(len(batch.runs) * batch.trials, like.shape[1])


def learning_phase(batch: TrialBatch, measure_at: Sequence[int] = ()) -> DescentPhase:
    """Return the phase that learns one model for each trial of each run, beginning with the cycle's first batch."""
    return replace(langevin.learning_phase(batch, measure_at), keys=batch.keys("learning"), place=0)


def request_phase(batch: TrialBatch, number: int, measure_at: Sequence[int] = ()) -> DescentPhase:
    """Return the phase that answers request ``number``; the first request has number 0.

    All runs must be at the same position of the cycle.
    """
    (place,) = {
        run.learning_steps + sum(request.unlearning_steps for request in run.requests[:number]) for run in batch.runs
    }
    return langevin.request_phase(batch, number, measure_at, place=place)


def phases(batch: TrialBatch, measure_at: Sequence[Sequence[int]]) -> list[DescentPhase]:
    """Return the phase of learning and one phase for each request.

    Args:
        batch: Runs with the same removals, and with the same number of steps before the last request.
        measure_at: A list whose first entry contains the steps of learning at which trials are measured.
    """
    requests = range(len(batch.runs[0].requests))
    return [learning_phase(batch, measure_at[0]), *(request_phase(batch, number) for number in requests)]


def planned_run(
    constants: ProblemConstants,
    *,
    experiment: str,
    batch_size: int,
    step_size: float,
    sigma: float,
    epsilon: float,
    records: int,
    epochs: int,
) -> Run:
    """Return a run that removes records in one request, from any batches, with the fewest steps that meet the target.

    Args:
        constants: Constants of the problem.
        experiment: Name of the experiment.
        batch_size: Size ``b`` of a mini-batch, at most ``n``.
        step_size: Step size ``eta``.
        sigma: Noise scale.
        epsilon: Target epsilon.
        records: Number of removed records.
        epochs: Number of passes over the data during learning.

    Raises:
        AssumptionError: The step size is too large, the rule for ``L`` does not cover batches, or the noise is too
            small compared with rounding.
        InfeasibleError: The target cannot be met.
    """
    if batch_size > constants.n:
        raise ParameterError(f"batch_size must be at most the number of records, {constants.n}, got {batch_size}")
    if constants.smoothness != "bound":
        raise AssumptionError(
            f"smoothness must be 'bound' for mini-batches, got {constants.smoothness!r}: the largest eigenvalue of all "
            "data does not bound the largest eigenvalue of a batch"
        )
    cycle = Cycle.of(constants.n, batch_size=batch_size)
    run = Run(
        experiment=experiment,
        mechanism=MINIBATCH_LANGEVIN.name,
        variant="least-steps",
        accountant=CYCLIC.name,
        guarantee=assumptions.guarantee(CYCLIC.name, constants.smoothness),
        constants=constants,
        epsilon_target=epsilon,
        sigma=sigma,
        step_size=step_size,
        learning_steps=epochs * cycle.batches,
        radius=None,
        start=0.0,
        records_per_request=records,
        # All runs have the same type. Rounding matters more if the noise is smaller.
        dtype="float64",
        cycle=cycle,
        requests=(),
    )
    begun = Schedule(sigma, (), (), run.learning_steps, cycle)
    stream = Stream(run.computed_problem, begun, epsilon=epsilon, delta=constants.delta)
    steps = least_steps_after(stream, records=records, minimum_steps=1)
    request = Request(records_removed=records, unlearning_steps=steps, epsilon=None, mu=None)
    run = run.model_copy(update={"requests": (request,)})
    stated = run.guaranteed()
    request = request.model_copy(update={"epsilon": stated.epsilon, "mu": stated.mu})
    method = MINIBATCH_LANGEVIN.method(CYCLIC.form)
    line = MINIBATCH_LANGEVIN.line(method, f"b = {batch_size}", run.variant)
    return run.model_copy(
        update={
            "requests": (request,),
            "extra_delta": stated.extra_delta,
            "rounding_error": stated.rounding_error,
            "method": method,
            "member": f"b = {batch_size}",
            "line": line,
            "point": f"{line}, epsilon = {epsilon:g}",
        }
    )


MINIBATCH_LANGEVIN = Mechanism("minibatch-langevin", "Mini-batch Langevin", start, phases, answers=1)
