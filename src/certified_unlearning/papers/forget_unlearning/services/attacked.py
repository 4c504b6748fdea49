"""The attacked mechanisms on the test bed, with their exact distributions and the promises of their certificates.

The test bed is `linear_losses`: losses of one coordinate, for which every advantage is known exactly. The noise is
chosen so that all mechanisms release models of the same variance and differ only in their promises.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np

from certified_unlearning import accounting
from certified_unlearning.accounting import GaussianCurve, Schedule, delta_from_mu
from certified_unlearning.accounting.deletion.planning import DeletionPlan, adaptive_deletion_curve, plan_deletion
from certified_unlearning.accounting.deletion.soundness import largest_advantage
from certified_unlearning.accounting.langevin.accountants import unlearning_curve
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.papers.forget_unlearning.names import MechanismName
from certified_unlearning.papers.forget_unlearning.services.interaction import Service, identity
from certified_unlearning.papers.forget_unlearning.services.linear_losses import (
    ConstantService,
    LangevinService,
    NoisyGradientService,
    PublishedStateService,
    RetrainingService,
    SecretStateService,
    published,
)
from certified_unlearning.papers.forget_unlearning.sweeps import DeletionProblem
from certified_unlearning.papers.forget_unlearning.theory.exact import kept_after
from certified_unlearning.papers.forget_unlearning.theory.soundness import (
    advantage_under_unlearning,
    gaussian_advantage,
)
from certified_unlearning.papers.privacy_dynamics.theory.gaussians import inverse_lsi

# The delta at which the certificates of Descent-to-Delete are evaluated.
DELTA = 1e-6


@dataclass(frozen=True)
class Releases:
    """The exact distribution of releases if every record except the target is 0.

    The target has one of two values. All means are computed for the value with which models are larger numbers.

    Attributes:
        learned: The mean of the learned model.
        variance: The variance of the learned model.
        kept: The share of a release that the next one contains.
        drift: The mean of the new part of a later release, while the target is present. The new part is the release
            minus the kept share of the preceding release.
        fresh: The variance of the new part.
        forgets: The share of the mean that remains after each request, beginning with the deletion.
    """

    learned: float
    variance: float
    kept: float
    drift: float
    fresh: float
    forgets: float


@dataclass(frozen=True)
class Attacked:
    """A mechanism under attack.

    Attributes:
        name: The name of the mechanism.
        service: The mechanism itself.
        publish: The function that returns the released part of a model.
        releases: The distribution of the releases.
        promise: A function that returns, for a given number of requests, the largest advantage that the published
            certificate allows. The requests are fixed in advance.
        bound: A function that returns the largest advantage that a valid bound allows, given the number of requests and
            the observed releases; None if there is no valid bound.
    """

    name: MechanismName
    service: Service[Any]
    publish: Callable[[Any], Any]
    releases: Releases
    promise: Callable[[int], float]
    bound: Callable[[int, Sequence[int]], float] | None = None


def plan_of(problem: DeletionProblem) -> DeletionPlan:
    """Return the plan of noisy gradient descent that needs the fewest steps according to shifted interpolation."""
    return plan_deletion(**problem.model_dump(), dimension=1, certify_risk=False, form="shifted", dtype="float64")


def attacked(plan: DeletionPlan) -> list[Attacked]:
    """Return every mechanism, with the noise and the numbers of steps that the plan prescribes.

    Raises:
        ParameterError: A deletion takes no step, or too few steps for Descent-to-Delete.
    """
    if plan.deletion_steps == 0:
        raise ParameterError(
            "deletion.problem: epsilon_dd is reached without any deletion step, so there is nothing to attack; lower "
            "epsilon_dd"
        )
    noisy = _noisy(plan)
    retrained = replace(noisy, kept=0.0, drift=noisy.learned, fresh=noisy.variance, forgets=0.0)
    langevin = LangevinService(plan.problem, plan.sigma, plan.learning_steps, plan.deletion_steps)
    corrected = partial(_corrected, plan)
    return [
        Attacked(
            "noisy-gradient-deletion",
            NoisyGradientService(plan),
            identity,
            noisy,
            lambda requests: largest_advantage(plan.epsilon_dd, alpha=plan.alpha),
            corrected,
        ),
        Attacked("langevin", langevin, identity, noisy, partial(_by_langevin, plan), corrected),
        *_descent_to_delete(plan),
        Attacked("retraining", RetrainingService(plan), identity, retrained, lambda requests: 0.0),
        Attacked(
            "constant",
            ConstantService(),
            identity,
            Releases(learned=0.0, variance=1.0, kept=0.0, drift=0.0, fresh=1.0, forgets=0.0),
            lambda requests: 0.0,
            lambda requests, observed: 0.0,
        ),
    ]


def _pull(plan: DeletionPlan) -> float:
    """Return the limit to which the target moves the mean of the model."""
    return plan.problem.lipschitz / (plan.problem.n * plan.problem.strong_convexity)


def _noisy(plan: DeletionPlan) -> Releases:
    kept = kept_after(plan.problem, plan.deletion_steps)
    return Releases(
        learned=(1 - kept_after(plan.problem, plan.learning_steps)) * _pull(plan),
        variance=plan.start_variance,
        kept=kept,
        drift=(1 - kept) * _pull(plan),
        fresh=inverse_lsi(plan.problem, sigma=plan.sigma, steps=plan.deletion_steps, start=0.0),
        forgets=kept,
    )


def _descent_to_delete(plan: DeletionPlan) -> list[Attacked]:
    """Return both variants of Descent-to-Delete, whose releases have the same variance as noisy gradient descent."""
    problem, steps = accounting.descent_problem(plan.problem), plan.deletion_steps
    deviation, pull = math.sqrt(plan.start_variance), _pull(plan)
    kept = abs(1 - problem.step_size * problem.strong_convexity) ** steps
    descent = PublishedStateService(problem, deviation, plan.learning_steps, steps)
    law = Releases(pull, plan.start_variance, kept, (1 - kept) * pull, plan.start_variance, kept)

    def promise(epsilon_of: Callable[..., float], **deletions: Any) -> float:
        try:
            epsilon = epsilon_of(problem, sigma=deviation, delta=DELTA, **deletions)
        except AssumptionError as error:
            raise ParameterError(
                f"deletion.problem: {steps} steps for a deletion are too few for Descent-to-Delete; lower epsilon_dd "
                f"({error})"
            ) from error
        return advantage_under_unlearning(epsilon, DELTA)

    def by_published(requests: int) -> float:
        return promise(accounting.published_state_epsilon, dimension=1, steps_per_request=[steps] * requests)

    def by_secret(requests: int) -> float:
        return promise(accounting.secret_state_epsilon, steps=steps)

    return [
        Attacked("published-state", descent, identity, law, by_published),
        Attacked("secret-state", SecretStateService(descent), published, replace(law, kept=0.0, drift=pull), by_secret),
    ]


def _corrected(plan: DeletionPlan, requests: int, observed: Sequence[int]) -> float:
    """Return the bound that a corrected Theorem 4.3 gives on the advantage of any attack on all later releases."""
    curve = adaptive_deletion_curve(
        plan.problem,
        sigma=plan.sigma,
        learning_steps=plan.learning_steps,
        request_steps=[plan.deletion_steps] * requests,
        observed=observed,
        form="shifted",
    )
    return gaussian_advantage(float(curve(np.array([plan.alpha]))[0]), alpha=plan.alpha)


def _by_langevin(plan: DeletionPlan, requests: int) -> float:
    """Return the advantage that Langevin unlearning's certificate promises, by shifted interpolation.

    Under each hypothesis, the model and a retrained model are ``mu``-Gaussian DP, so the models of the two hypotheses
    are ``2 mu``-Gaussian DP. The certificate is for streams that remove every record at most once. Requests beyond the
    number of records change nothing and are left out.
    """
    steps = (plan.deletion_steps,) * min(requests, plan.problem.n)
    schedule = Schedule(plan.sigma, 1, steps, learning_steps=plan.learning_steps)
    curve = cast(GaussianCurve, unlearning_curve(plan.problem, schedule, accountant="shifted"))
    return delta_from_mu(2 * curve.mu, 0.0)
