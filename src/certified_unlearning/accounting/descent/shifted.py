"""Descent-to-Delete. Shifted `interpolation` gives the least noise that hides the distance from retraining.

The algorithm is that of `published`: noiseless projected gradient steps of size ``2 / (L + m)``, which contract by
``gamma = (L - m) / (L + m)``, and noise on publication. The published theorems assume a distance that is more than four
times the largest one in an endless stream.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.accounting.core.curves import GaussianCurve, Schedule
from certified_unlearning.accounting.core.pooling import NoisyPhase, pooled_mu
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.descent.published import require_descent_step_size
from certified_unlearning.accounting.shifted.interpolation import contraction_gap, schedule_phases
from certified_unlearning.errors import AssumptionError


def secret_state_mu(
    problem: Problem,
    *,
    sigma: float,
    steps: int,
    records_per_request: int = 1,
    request: float = 1,
    learning_steps: float = math.inf,
    radius: float | None = None,
) -> float:
    """Return the ``mu`` of Gaussian DP between a published model and a retrained one, with the state kept secret.

    After request ``i``, the noiseless parameters are within ``e_i = gamma^I (e_(i-1) + Delta)`` of the retrained ones,
    with ``Delta = 2 M b / (m n)``. Noise is added only on publication. After converged learning,

        ``mu = Delta/sigma gamma^I (1 - gamma^(i I)) / (1 - gamma^I)``.

    This ``mu`` covers only the model of request ``i``. The secret state is never noised, so every further publication
    that an observer keeps adds its own ``mu^2``.

    Args:
        problem: The constants. The step size must be `descent_step_size`.
        sigma: Standard deviation of the published noise.
        steps: Number of steps of each request, ``I``, at least 1.
        records_per_request: Number of records of each request, ``b``.
        request: Number ``i`` of the request, counted from 1; infinite for a value that holds after every request of an
            endless stream.
        learning_steps: Number of learning steps, ``T``; infinite for converged learning.
        radius: If None, the comparator is retrained from the same start for the same total number of steps, ``T + i
            I``. Otherwise, the radius ``R`` of a ball that contains the start and onto which every step projects. In
            that case, the comparator is retrained separately, for ``T`` steps. Both models are then only near the
            optimum, which adds ``2 R (gamma^T + gamma^(T + i I)) / sigma`` to the value of converged learning.

    Raises:
        AssumptionError: ``m`` is 0, the step size differs from `descent_step_size`, or the stream is endless although
            the adjacency is ``remove``.
    """
    require_positive(sigma=sigma)
    require_count(least=1, steps=steps)
    require_descent_step_size(problem)
    if request == math.inf:
        noiseless = _endless_stream(problem, steps, records_per_request)
    else:
        require_count(least=1, request=request)
        schedule = Schedule(
            sigma=sigma,
            records_per_request=records_per_request,
            steps=(steps,) * int(request),
            learning_steps=learning_steps if radius is None else math.inf,
        )
        noiseless = _noiseless(problem, schedule)
    mu = pooled_mu([*noiseless, _published(sigma)])
    if radius is None:
        return mu
    require_positive(radius=radius)
    learning = NoisyPhase(learning_steps, contraction_gap(problem), 0.0, 0.0)
    # In an endless stream, the earliest request is the worst.
    unlearning = replace(learning, steps=steps * (1 if request == math.inf else request))
    return mu + 2 * radius / sigma * math.exp(learning.log_decay) * (1 + math.exp(unlearning.log_decay))


def secret_state_history_mu(
    problem: Problem,
    *,
    sigma: float,
    records_per_request: int | Sequence[int],
    steps_per_request: Sequence[int],
    learning_steps: float = math.inf,
) -> float:
    """Return `secret_state_mu` after requests of unequal sizes and numbers of steps.

    After converged learning, distances follow ``e_i = gamma^(I_i) (e_(i-1) + Delta_(b_i))`` with ``Delta_b = 2 M b / (m
    n)``. The comparator is retrained from the same start for the same total number of steps.

    Args:
        problem: The constants. The step size must be `descent_step_size`.
        sigma: Standard deviation of the published noise.
        records_per_request: Numbers of records ``b_1, b_2, ...`` of the requests, or one number for all.
        steps_per_request: Numbers of steps ``I_1, I_2, ...`` of the requests.
        learning_steps: Number of learning steps, ``T``; infinite for converged learning.

    Raises:
        AssumptionError: The step size is not `descent_step_size`, or ``m = 0``.
    """
    require_descent_step_size(problem)
    schedule = request_schedule(sigma, records_per_request, steps_per_request, learning_steps)
    return pooled_mu([*_noiseless(problem, schedule), _published(sigma)])


def secret_state_sigma(
    problem: Problem,
    *,
    mu: float,
    steps: int,
    records_per_request: int = 1,
    request: float = 1,
    learning_steps: float = math.inf,
    radius: float | None = None,
) -> float:
    """Return the least published noise that gives ``mu``. This inverts `secret_state_mu`, and raises the same errors.

    ``mu`` is proportional to ``1 / sigma``. `conversion.mu_from_epsilon` gives the ``mu`` of an epsilon.
    """
    require_positive(mu=mu)
    mu_of_unit_noise = secret_state_mu(
        problem,
        sigma=1.0,
        steps=steps,
        records_per_request=records_per_request,
        request=request,
        learning_steps=learning_steps,
        radius=radius,
    )
    return mu_of_unit_noise / mu


def published_state_curve(
    problem: Problem,
    *,
    sigma: float,
    steps_per_request: Sequence[int],
    records_per_request: int | Sequence[int] = 1,
    learning_steps: float = math.inf,
) -> GaussianCurve:
    """Return the curve of the last published model of a stream in which requests continue from published models.

    The noise is fed back. A request is one macro-step with contraction ``gamma^I`` and sensitivity ``(1 - gamma^I)
    Delta``, followed by noise. So the comparator can *only* be a retrained model that is published, noised and
    continued at the same times. A retrained model that is noised once has another covariance, so epsilon can be ten
    times as large. Such a model is the comparator of `conditional` and of Theorem N.2
    (`published.published_state_epsilon`).

    Args:
        problem: The constants. The step size must be `descent_step_size`.
        sigma: Standard deviation of the published noise, also for the learned model.
        steps_per_request: Numbers of steps of the requests, in order.
        records_per_request: Number of records of each request, ``b``, or one number for each request.
        learning_steps: Number of learning steps, ``T``; infinite for converged learning.

    Raises:
        AssumptionError: The step size is not `descent_step_size`, or ``m = 0``.
    """
    require_descent_step_size(problem)
    schedule = request_schedule(sigma, records_per_request, steps_per_request, learning_steps)
    phases = _noiseless(problem, schedule)
    return GaussianCurve(pooled_mu([part for phase in phases for part in (phase, _published(sigma))]))


def request_schedule(
    sigma: float, records_per_request: int | Sequence[int], steps_per_request: Sequence[int], learning_steps: float
) -> Schedule:
    """Return the schedule of requests, whose sizes and numbers of steps may be sequences of any type."""
    return Schedule(
        sigma=sigma,
        records_per_request=(
            tuple(records_per_request) if isinstance(records_per_request, Sequence) else records_per_request
        ),
        steps=tuple(steps_per_request),
        learning_steps=learning_steps,
    )


def _noiseless(problem: Problem, schedule: Schedule) -> list[NoisyPhase]:
    """Return the phases of a schedule, with no noise in the steps."""
    return [replace(phase, noise_std=0.0) for phase in schedule_phases(problem, schedule)]


def _published(sigma: float) -> NoisyPhase:
    """Return the phase of the noise that is added on publication."""
    return NoisyPhase(1, 0.0, 0.0, sigma)


def _endless_stream(problem: Problem, steps: int, records_per_request: int) -> list[NoisyPhase]:
    """Return noiseless phases that lead to the largest distance after a request.

    The distance is ``Delta / (1 - gamma^I)`` just after a request has changed the data and before the request's steps.
    """
    if problem.adjacency == "remove":
        raise AssumptionError(
            "an endless stream must not run out of records: adjacency must be replace or zero-out, got remove"
        )
    unlearning = NoisyPhase(steps, contraction_gap(problem), 0.0, 0.0)
    distance = problem.sensitivity(records_per_request) / problem.strong_convexity
    rounded = NoisyPhase(1, 0.0, 2 * problem.rounding.fixed / contraction_gap(problem), 0.0)
    return [NoisyPhase(math.inf, -math.expm1(unlearning.log_decay), distance, 0.0), unlearning, rounded]
