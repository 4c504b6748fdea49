"""The numbers that a certificate states: with rounding, and in exact arithmetic."""

import math
from dataclasses import replace
from typing import NamedTuple

from certified_unlearning import accounting
from certified_unlearning.accounting.core.losses import scores_per_record
from certified_unlearning.accounting.core.rounding import EXACT, Noise
from certified_unlearning.accounting.cyclic import stream as cyclic
from certified_unlearning.accounting.cyclic.accountants import ACCOUNTANTS as CYCLIC_ACCOUNTANTS
from certified_unlearning.accounting.descent.accountants import ACCOUNTANTS as DESCENT_ACCOUNTANTS
from certified_unlearning.accounting.guaranteed import Guaranteed
from certified_unlearning.accounting.langevin import learning_start
from certified_unlearning.accounting.langevin.accountants import ACCOUNTANTS, AccountantName, rounding_price
from certified_unlearning.accounting.shifted import interpolation as shifted
from certified_unlearning.accounting.shifted.arithmetic import computed, failure_delta
from certified_unlearning.accounting.streams import Stream
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.text import noun_of

BETA_OF_BEFORE = 1e-12
"""The failure probability of `learning_start` in old certificates. New certificates derive it from epsilon and
delta."""


def as_computed(
    problem: accounting.Problem,
    *,
    dimension: int,
    classes: int,
    dtype: str,
    variant: str,
    start: float = 0.0,
    projects: bool = False,
) -> accounting.Problem:
    """Return the problem, including the rounding errors that the engine makes in a variant of a mechanism.

    Args:
        problem: The constants.
        dimension: Number of parameters, ``d``.
        classes: Number of classes.
        dtype: Type of weights and rows.
        variant: Variant of the mechanism: ``secret-state`` and ``published-state`` add noise on publication. All other
            variants add noise in every step.
        start: Mean of every coordinate of the start.
        projects: Whether every step projects onto a ball.
    """
    noise: dict[str, Noise] = {"secret-state": "publication", "published-state": "publication, fed back"}
    return computed(
        problem,
        features=max(1, dimension // scores_per_record(classes)),
        classes=classes,
        dtype=dtype,
        start_norm=abs(start) * math.sqrt(dimension),
        noise=noise.get(variant, "every step"),
        projects=projects,
    )


def guarantee_of(
    problem: accounting.Problem,
    schedule: accounting.Schedule,
    *,
    accountant: str,
    variant: str,
    delta: float,
    dimension: int,
    start: float,
    stream: Stream | None = None,
) -> Guaranteed:
    """Return the numbers of a certificate, from `langevin_guarantee`, `cyclic_guarantee` or `descent_guarantee`.

    Args:
        problem: The constants.
        schedule: Noise, learning steps, and the steps of every request.
        accountant: Name of the accountant.
        variant: Variant of the mechanism.
        delta: Strictly between 0 and 1.
        dimension: Number of parameters, ``d``.
        start: Mean of every coordinate of the start.
        stream: The stored effect of the requests, if it was kept. It is not compared with the schedule.

    Raises:
        ParameterError: No accountant has this name.
    """
    if accountant in CYCLIC_ACCOUNTANTS:
        return cyclic_guarantee(problem, schedule, delta=delta, stream=stream)
    if accountant not in (*ACCOUNTANTS, *DESCENT_ACCOUNTANTS):
        raise ParameterError(f"there is no accountant {accountant!r}, so nothing is guaranteed")
    if accountant in ACCOUNTANTS:
        return langevin_guarantee(
            problem,
            schedule,
            delta=delta,
            accountant=accountant,
            dimension=dimension,
            start=start,
        )
    return descent_guarantee(
        problem, schedule, delta=delta, accountant=accountant, variant=variant, dimension=dimension
    )


def langevin_guarantee(
    problem: accounting.Problem,
    schedule: accounting.Schedule,
    *,
    delta: float,
    accountant: AccountantName,
    dimension: int,
    start: float,
) -> Guaranteed:
    """Return the numbers that a certificate of Langevin unlearning states.

    Args:
        problem: The constants. With exact arithmetic, the result is that of old certificates, which did not count
            rounding.
        schedule: Noise, learning steps, and the steps of every request. Without requests, epsilon is 0.
        delta: Strictly between 0 and 1.
        accountant: Name of the accountant.
        dimension: Number of parameters, ``d``.
        start: Mean of every coordinate of the start.

    Raises:
        AssumptionError: The additions to delta would exceed delta.
    """
    noise_std = math.sqrt(2 * problem.step_size) * schedule.sigma
    if not schedule.steps:
        return _nothing(problem, noise_std, noise_std)

    def largest_in(arithmetic: accounting.Problem) -> accounting.CertifiedRequest:
        guarantees = accounting.stream_guarantees(arithmetic, schedule, delta=delta, accountant=accountant)
        return accounting.largest_guarantee(guarantees)

    exact, largest = largest_in(replace(problem, rounding=EXACT)), largest_in(problem)
    added = added_to_delta(
        problem,
        schedule,
        delta=delta,
        accountant=accountant,
        dimension=dimension,
        start=start,
        exact_epsilon=exact.epsilon,
        epsilon=largest.epsilon,
    )
    if problem.rounding == EXACT:
        return Guaranteed(largest.epsilon, largest.mu, added.all)
    return _with_rounding(problem, largest, exact.epsilon, added, noise_std=noise_std, published_std=noise_std)


class ExtraDelta(NamedTuple):
    """Additions to delta: the sum of all, and the part that covers random norms above their assumed bounds."""

    all: float
    noise: float


def added_to_delta(
    problem: accounting.Problem,
    schedule: accounting.Schedule,
    *,
    delta: float,
    accountant: AccountantName,
    dimension: int,
    start: float,
    exact_epsilon: float,
    epsilon: float,
) -> ExtraDelta:
    """Return Langevin unlearning's additions to delta, for stopping before stationarity, for rounding, and for noise.

    Args:
        problem: The constants.
        schedule: Noise, learning steps, and the steps of every request.
        delta: Strictly between 0 and 1.
        accountant: Name of the accountant.
        dimension: Number of parameters, ``d``.
        start: Mean of every coordinate of the start.
        exact_epsilon: The epsilon in exact arithmetic. The additions do not decrease as this epsilon grows.
        epsilon: The epsilon that includes rounding.

    Raises:
        AssumptionError: The addition is more than delta.
    """
    extra = 0.0
    if ACCOUNTANTS[accountant].stationary:
        extra = require_stationarity(
            problem,
            sigma=schedule.sigma,
            dimension=dimension,
            start=start,
            learning_steps=int(schedule.learning_steps),
            epsilon=exact_epsilon,
            delta=delta,
        )
        extra += rounding_price(problem, sigma=schedule.sigma, epsilon=exact_epsilon, delta=delta + extra).delta
    return _added(problem, schedule, extra, exact_epsilon, epsilon, delta)


def _added(
    problem: accounting.Problem,
    schedule: accounting.Schedule,
    extra: float,
    exact_epsilon: float,
    epsilon: float,
    delta: float,
) -> ExtraDelta:
    noise = failure_delta(problem, steps=schedule.learning_steps + sum(schedule.steps), epsilon=epsilon)
    if extra + noise > delta:
        raise AssumptionError(
            f"with rounding, epsilon is {epsilon:.6g} ({exact_epsilon:.6g} in exact arithmetic), and "
            f"{extra + noise:.2g} would be added to delta = {delta:.2g}; use more noise (a larger sigma or fewer "
            "steps), a larger delta or a smaller epsilon"
        )
    return ExtraDelta(extra + noise, noise)


def require_stationarity(
    problem: accounting.Problem,
    *,
    sigma: float,
    dimension: int,
    start: float,
    learning_steps: int,
    epsilon: float,
    delta: float,
) -> float:
    """Return the addition to delta for stopping before stationarity, for accountants that assume stationarity.

    Raises:
        AssumptionError: The addition is more than delta.
    """
    extra = learning_start.extra_delta(
        problem,
        sigma=sigma,
        dimension=dimension,
        start=start,
        learning_steps=learning_steps,
        epsilon=epsilon,
        delta=delta,
        beta=BETA_OF_BEFORE if problem.rounding == EXACT else None,
    )
    if extra > delta:
        raise AssumptionError(
            f"after {learning_steps} learning {noun_of(learning_steps, 'step')} at sigma = {sigma:.6g}, the model is "
            f"so far from its stationary distribution that {extra:.2g} would be added to delta = {delta:.2g} at "
            f"epsilon = {epsilon:.6g}; set learning_steps to 'learned' or to a larger number, or use the accountant "
            "'shifted', which needs no stationarity"
        )
    return extra


def cyclic_guarantee(
    problem: accounting.Problem, schedule: accounting.Schedule, *, delta: float, stream: Stream | None = None
) -> Guaranteed:
    """Return the numbers that a certificate of mini-batch Langevin unlearning states.

    Args:
        problem: The constants of a batch, as for `cyclic.stream.curve`.
        schedule: Noise, cycle, learning steps and requests. Without requests, epsilon is 0.
        delta: Strictly between 0 and 1.
        stream: The stored effect of the requests, if it was kept. It is not compared with the schedule.

    Raises:
        AssumptionError: The additions to delta would exceed delta.
    """
    noise_std = math.sqrt(2 * problem.step_size) * schedule.sigma
    if not schedule.steps:
        return _nothing(problem, noise_std, noise_std)

    def largest_in(arithmetic: accounting.Problem) -> accounting.CertifiedRequest:
        mu = cyclic.largest_curve(arithmetic, schedule).mu
        return accounting.CertifiedRequest(accounting.epsilon_from_mu(mu, delta), mu)

    if stream is not None:
        largest, exact = stream.largest
    else:
        exact, largest = largest_in(replace(problem, rounding=EXACT)), largest_in(problem)
    added = _added(problem, schedule, 0.0, exact.epsilon, largest.epsilon, delta)
    if problem.rounding == EXACT:
        return Guaranteed(largest.epsilon, largest.mu, added.all)
    return _with_rounding(problem, largest, exact.epsilon, added, noise_std=noise_std, published_std=noise_std)


def descent_guarantee(
    problem: accounting.Problem,
    schedule: accounting.Schedule,
    *,
    delta: float,
    accountant: str,
    variant: str,
    dimension: int,
) -> Guaranteed:
    """Return the numbers that a certificate of Descent-to-Delete states.

    Args:
        problem: The constants, with the step size that Descent-to-Delete prescribes.
        schedule: The requests; ``sigma`` is the published noise. Without requests, epsilon is 0.
        delta: Strictly between 0 and 1.
        accountant: Name of the accountant.
        variant: ``secret-state`` or ``published-state``.
        dimension: Number of parameters, ``d``.

    Raises:
        AssumptionError: The additions to delta would exceed delta.
    """
    # `rounding` states errors in units of a step's noise.
    noise_std = math.sqrt(2 * problem.step_size) * schedule.sigma
    if not schedule.steps:
        return _nothing(problem, noise_std, schedule.sigma)
    analysis = DESCENT_ACCOUNTANTS[accountant].analyses[variant]
    exact = analysis(replace(problem, rounding=EXACT), schedule, delta, dimension)
    if problem.rounding == EXACT:
        return exact
    rounded = analysis(problem, schedule, delta, dimension)
    return _with_rounding(
        problem,
        accounting.CertifiedRequest(rounded.epsilon, rounded.mu),
        exact.epsilon,
        _added(problem, schedule, rounded.extra_delta, exact.epsilon, rounded.epsilon, delta),
        noise_std=noise_std,
        published_std=schedule.sigma,
    )


def epsilon_all_published(
    problem: accounting.Problem, schedule: accounting.Schedule, *, delta: float, stream: Stream | None = None
) -> float | None:
    """Return epsilon for an observer that kept every published model, including the learned one; 0 without requests.

    The result is None if epsilon is so large that the failure probabilities of `rounding` exceed their share of delta.
    The arguments are those of `guarantee_of`.
    """
    if not schedule.steps:
        return 0.0
    if stream is not None:
        mu = stream.all_published().mu
    elif schedule.cycle is not None:
        mu = cyclic.joint_curve(problem, schedule).mu
    else:
        mu = shifted.joint_curve(problem, schedule, learned_published=True).mu
    # A millionth of delta covers the failure probabilities. Setting it aside changes epsilon by about a millionth.
    share = 1e-6 if problem.rounding != EXACT else 0.0
    epsilon = accounting.epsilon_from_mu(mu, delta * (1 - share))
    steps = int(schedule.learning_steps) + sum(schedule.steps)
    if failure_delta(problem, steps=steps, epsilon=epsilon) > share * delta:
        return None
    return epsilon


def _nothing(problem: accounting.Problem, noise_std: float, published_std: float) -> Guaranteed:
    """Return the guarantee before any removal, with epsilon 0."""
    if problem.rounding == EXACT:
        return Guaranteed(0.0, 0.0, 0.0)
    nothing = accounting.CertifiedRequest(0.0, 0.0)
    return _with_rounding(problem, nothing, 0.0, ExtraDelta(0.0, 0.0), noise_std=noise_std, published_std=published_std)


def _with_rounding(
    problem: accounting.Problem,
    largest: accounting.CertifiedRequest,
    exact_epsilon: float,
    added: ExtraDelta,
    *,
    noise_std: float,
    published_std: float,
) -> Guaranteed:
    return Guaranteed(
        largest.epsilon,
        largest.mu,
        added.all,
        epsilon_in_exact_arithmetic=exact_epsilon,
        rounding_error=problem.rounding.step_error(noise_std),
        noise_delta=added.noise,
        noise_resolution=problem.rounding.resolution * published_std,
    )
