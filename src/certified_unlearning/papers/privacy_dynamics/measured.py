"""Runs of noisy gradient descent on two neighbouring data sets, with the measured divergence and its bounds.

The losses ``(theta - x)^T H (theta - x) / 2`` have the two curvatures of the sweep, and one record is replaced along
the direction of the smaller curvature. A step maps a Gaussian to a Gaussian (Appendix E), and neither the curvatures
nor the noise depend on records. After any number of steps, the two distributions are therefore Gaussians with the same
covariance. The other coordinate has the same distribution on both data sets and is independent of the first one, so the
first coordinate accounts for the whole divergence. The module `sampled` relies only on the equal variances of the
Gaussians, and estimates means and the variance from the runs alone.
"""

import numpy as np
import pandas as pd
import torch

from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.engine import descent as dynamics
from certified_unlearning.engine import randomness
from certified_unlearning.engine.descent import DescentPhase
from certified_unlearning.engine.objectives.quadratic import QuadraticObjective
from certified_unlearning.papers.privacy_dynamics.sampled import Array, Estimate, divergence_by_order
from certified_unlearning.papers.privacy_dynamics.sweeps import Measured
from certified_unlearning.papers.privacy_dynamics.theory.dynamics import BOUNDS
from certified_unlearning.papers.privacy_dynamics.theory.gaussians import exact_hessian

_UPPER_BOUNDS = ("corollary-1", "composition")


def measured_table(sweep: Measured) -> pd.DataFrame:
    """Return exact values, upper bounds and sampled estimates of divergences after different numbers of steps.

    The exact values and the bounds are given for every number of steps up to the largest of ``sweep.steps``, and the
    estimates for the numbers in ``sweep.steps``. The values of ``bound`` are ``exact`` (the divergence of the two
    distributions), ``sampled`` (the estimate from runs), ``corollary-1`` and ``composition`` (upper bounds). ``low``
    and ``high`` are the ends of the confidence interval, and null for rows that were not sampled. All intervals
    together hold with probability at least ``1 - sweep.false_alarms``.

    Returns:
        One row for each bound, order and number of steps.

    Raises:
        AssumptionError: ``step_size`` is not below ``1 / smoothness``, or ``strong_convexity`` exceeds ``smoothness``.
    """
    problem = problem_of(sweep)
    every = np.arange(max(sweep.steps) + 1)
    formulas = {
        bound: [_bounded(bound, problem, sweep.sigma, int(count)) for count in every] for bound in _UPPER_BOUNDS
    }
    formulas["exact"] = [_exact(problem, sweep.sigma, int(count)) for count in every]
    estimate = sampled(sweep)
    rows = [
        pd.DataFrame({"bound": bound, "alpha": alpha, "steps": every, "renyi": alpha * np.array(by_order)})
        for alpha in sweep.alpha
        for bound, by_order in formulas.items()
    ]
    rows += [
        pd.DataFrame(
            {
                "bound": "sampled",
                "alpha": alpha,
                "steps": sorted(sweep.steps),
                "renyi": alpha * estimate.value,
                "low": alpha * estimate.low,
                "high": alpha * estimate.high,
            }
        )
        for alpha in sweep.alpha
    ]
    table = pd.concat(rows, ignore_index=True)
    return table.assign(
        experiment="measured",
        guarantee=table["bound"].map(_GUARANTEES),
        source=table["bound"].map(_SOURCES),
        smoothness_constant=sweep.smoothness,
        records_removed=1,
        **sweep.model_dump(include={"n", "strong_convexity", "lipschitz", "step_size", "sigma", "trials", "seed"}),
    )


def sampled(sweep: Measured) -> Estimate:
    """Return, for each of the sorted ``sweep.steps``, the divergence of the engine's runs, divided by the order."""
    first, second = (_runs(sweep, replaced) for replaced in (0, 1))
    return divergence_by_order(first, second, miss=sweep.false_alarms / len(sweep.steps))


def problem_of(sweep: Measured) -> Problem:
    """Return the constants for the bounds.

    Raises:
        AssumptionError: ``strong_convexity`` exceeds ``smoothness``.
    """
    return Problem(sweep.n, sweep.strong_convexity, sweep.smoothness, sweep.lipschitz, sweep.step_size)


def _runs(sweep: Measured, replaced: int) -> Array:
    """Return the first coordinate of every run on one of the data sets, shape ``(steps, trials)``."""
    records = torch.zeros(sweep.n, 2, dtype=torch.float64)
    # Moving a record by this distance moves the gradient of its loss by 2 lipschitz.
    records[0, 0] = sweep.lipschitz / sweep.strong_convexity
    objective = QuadraticObjective(
        records,
        torch.tensor([sweep.strong_convexity, sweep.smoothness], dtype=torch.float64),
        replacements=(torch.tensor([0]), -records[:1]),
    )
    steps = sorted(sweep.steps)
    phase = DescentPhase(
        removed=replaced,
        steps=[steps[-1]] * sweep.trials,
        sigma=[sweep.sigma] * sweep.trials,
        keys=[randomness.address(sweep.seed, "dynamics-measured", replaced, trial) for trial in range(sweep.trials)],
        measure_at=steps,
    )
    start = torch.zeros(sweep.trials, 2, dtype=torch.float64)
    run = dynamics.run(objective, start, [phase], step_size=sweep.step_size, measure=lambda rows: rows[:, 0])
    return np.stack([run.curve[0, count] for count in steps])


def _exact(problem: Problem, sigma: float, steps: int) -> float:
    curve = exact_hessian(
        [problem.strong_convexity, problem.smoothness],
        [problem.sensitivity(1), 0.0],
        step_size=problem.step_size,
        sigma=sigma,
        steps=steps,
    )
    return float(curve(np.ones(1))[0])


def _bounded(bound: str, problem: Problem, sigma: float, steps: int) -> float:
    return float(BOUNDS[bound].curve(problem, sigma=sigma, steps=steps)(np.ones(1))[0])


_GUARANTEES = {
    "exact": "exact",
    "sampled": "measured",
    "corollary-1": "upper bound",
    "composition": "upper bound",
}
_SOURCES = {"exact": "exact", "sampled": "runs", "corollary-1": "paper", "composition": "paper"}
