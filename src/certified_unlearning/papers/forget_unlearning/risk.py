"""Measured excess risk along a stream of deletions, for logistic regression on the digits, with Theorem 5.1's plan.

Each request flips the labels of some records. The certified risk is meant for every requester, so there is a fixed
requester and an adaptive one. If the learned model prefers class +1, the adaptive requester flips only records of this
class; otherwise, it flips the same records as the fixed requester.
"""

from pathlib import Path

import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import softplus

from certified_unlearning.accounting.deletion.planning import DeletionPlan, plan_deletion
from certified_unlearning.data import digits
from certified_unlearning.engine import randomness
from certified_unlearning.engine.objectives.logistic import LogisticObjective
from certified_unlearning.mechanisms.noisy_gradient_deletion import NoisyGradientDeletion, noisy_descent
from certified_unlearning.papers.forget_unlearning.sweeps import DeletionRisk
from certified_unlearning.version import code_version

# Each step of plain gradient descent shrinks the distance to the minimiser by the factor 1 - 1 / kappa.
MINIMISING_STEPS = 2000


def risk_table(settings: DeletionRisk) -> pd.DataFrame:
    """Return the mean excess risk after learning and after every request, in rows of `experiments.RISK_ROWS`.

    Args:
        settings: The stream, and the seed, which also determines the split of the data.

    Raises:
        AssumptionError: The settings violate an assumption of a theorem.
    """
    seed = settings.seed
    data = digits.prepare(Path(), seed)
    features, labels = (torch.from_numpy(each).double() for each in (data.train_features, data.train_labels))
    plan = plan_of(settings, n=len(labels), dimension=features.shape[1])
    rows = []
    for requester in ("fixed", "adaptive"):
        keys = [randomness.address(seed, "deletion-risk", requester, trial) for trial in range(settings.trials)]
        learned = NoisyGradientDeletion(plan).learn(_loss(features, labels, plan), keys)
        # The scores of all records have a positive sum: the model prefers +1.
        leans = (learned @ features.sum(dim=0) > 0) & (requester == "adaptive")
        risks = torch.empty(settings.trials, settings.requests + 1, dtype=torch.float64)
        for branch in (False, True):
            trials = torch.nonzero(leans == branch)[:, 0]
            if len(trials):
                flipped = torch.nonzero(labels == 1)[:, 0] if branch else torch.arange(len(labels))
                indices = flipped[: settings.requests * settings.records]
                own = [keys[trial] for trial in trials.tolist()]
                risks[trials] = _stream(plan, features, labels, indices, learned[trials], own, settings.records)
        for request in range(settings.requests + 1):
            rows.append(
                {
                    "requester": requester,
                    "request": request,
                    "trials": settings.trials,
                    "risk": float(risks[:, request].mean()),
                    "standard_error": float(risks[:, request].std() / settings.trials**0.5),
                    "certified": plan.risk_bound,
                }
            )
    return pd.DataFrame(rows).assign(
        experiment="deletion",
        n=plan.problem.n,
        d=features.shape[1],
        records_per_request=settings.records,
        learning_steps=plan.learning_steps,
        deletion_steps=plan.deletion_steps,
        gradients_saved=plan.gradients_saved,
        sigma=plan.sigma,
        seed=seed,
        code_version=code_version(),
    )


def plan_of(settings: DeletionRisk, *, n: int, dimension: int) -> DeletionPlan:
    """Return Theorem 5.1's plan for rows of norm 1 and the logistic loss."""
    return plan_deletion(
        n=n,
        dimension=dimension,
        lipschitz=1.0,
        strong_convexity=settings.strong_convexity,
        smoothness=0.25 + settings.strong_convexity,
        alpha=settings.alpha,
        epsilon_dp=settings.epsilon_dp,
        epsilon_dd=settings.epsilon_dd,
        records=settings.records,
        dtype="float64",
    )


def excess_risk(weights: Tensor, features: Tensor, labels: Tensor, plan: DeletionPlan) -> Tensor:
    """Return the excess risk ``f_D(w) - min f_D`` of every trial, shape ``(trials,)``."""
    start = torch.zeros(1, features.shape[1], dtype=torch.float64)
    least = noisy_descent(
        _loss(features, labels, plan), start, [0], steps=MINIMISING_STEPS, sigma=0.0, step_size=2 * plan.step_size
    )

    def risk(models: Tensor) -> Tensor:
        data_loss = softplus(-labels * (models @ features.T)).mean(dim=1)
        return data_loss + plan.problem.strong_convexity / 2 * models.square().sum(dim=1)

    return risk(weights) - risk(least)


def _stream(
    plan: DeletionPlan,
    features: Tensor,
    labels: Tensor,
    indices: Tensor,
    weights: Tensor,
    keys: list[int],
    records: int,
) -> Tensor:
    """Return all trials' excess risks after learning and after every request, shape ``(trials, 1 + requests)``."""
    risks = [excess_risk(weights, features, labels, plan)]
    for request in range(1, len(indices) // records + 1):
        labels = labels.clone()
        labels[indices[(request - 1) * records : request * records]] *= -1
        fresh = [randomness.address(str(key), request) for key in keys]
        weights = NoisyGradientDeletion(plan).delete(_loss(features, labels, plan), weights, fresh)
        risks.append(excess_risk(weights, features, labels, plan))
    return torch.stack(risks, dim=1)


def _loss(features: Tensor, labels: Tensor, plan: DeletionPlan) -> LogisticObjective:
    problem = plan.problem
    return LogisticObjective(features, labels, strong_convexity=problem.strong_convexity, lipschitz=problem.lipschitz)
