"""Measures that need only accounting: results of the papers' formulas, with the constants of the paper's experiments.

These measures need no results of runs, with one exception: the spectral smoothness of MNIST is a property of its
records.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Literal

import numpy as np

from certified_unlearning import accounting
from certified_unlearning.accounting import Problem, Schedule
from certified_unlearning.accounting.descent import shifted as descent_shifted
from certified_unlearning.accounting.langevin.lsi import initial_curve
from certified_unlearning.papers.langevin_unlearning.constants import Dataset, Smoothness, paper_problem
from certified_unlearning.papers.langevin_unlearning.theory.extras import gaussian_start_divergence, saved_steps
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.claims.registry import changes, measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity


@sweep("{datasets}")
def table_1_constant(
    evidence: Sequence[Evidence],
    *,
    datasets: Dataset,
    constant: Literal["smoothness", "strong_convexity", "lipschitz", "delta"],
) -> float:
    """Return a constant of the experiments, one value for each data set."""
    problem = paper_problem(evidence, datasets, "bound")
    return 1 / problem.n if constant == "delta" else float(getattr(problem, constant))


@sweep("epsilon = {epsilon:g}")
def secret_state_sigma(
    evidence: Sequence[Evidence], *, dataset: Dataset, smoothness: Smoothness, steps: int, epsilon: float
) -> float:
    """Return the noise of Descent-to-Delete with internal state (Theorem N.1), one value for each epsilon."""
    problem = accounting.descent_problem(paper_problem(evidence, dataset, smoothness))
    return accounting.secret_state_sigma(problem, epsilon=epsilon, delta=1 / problem.n, steps=steps)


@sweep("I = {steps}, epsilon = {epsilon:g}")
def secret_state_excess(
    evidence: Sequence[Evidence],
    *,
    dataset: Dataset,
    steps: int,
    epsilon: float,
    requests: Literal["one", "a stream without end"],
) -> float:
    """Return Theorem N.1's noise divided by the smallest sufficient noise, for each number of steps and epsilon."""
    problem = accounting.descent_problem(paper_problem(evidence, dataset, "bound"))
    delta = 1 / problem.n
    enough = descent_shifted.secret_state_sigma(
        problem,
        mu=accounting.mu_from_epsilon(epsilon, delta),
        steps=steps,
        request=1 if requests == "one" else math.inf,
    )
    return accounting.secret_state_sigma(problem, epsilon=epsilon, delta=delta, steps=steps) / enough


@sweep("epsilon = {epsilon:g}")
def least_sigma(evidence: Sequence[Evidence], *, dataset: Dataset, smoothness: Smoothness, epsilon: float) -> float:
    """Return the smallest noise scale for one record and one unlearning step, one value for each epsilon."""
    problem = paper_problem(evidence, dataset, smoothness)
    return accounting.least_sigma(problem, steps=1, epsilon=epsilon, delta=1 / problem.n, records=1)


@sweep("sigma = {sigma:g}")
def epsilon_after_one_step(
    evidence: Sequence[Evidence], *, dataset: Dataset, smoothness: Smoothness, sigma: float
) -> float:
    """Return epsilon after one unlearning step for one record, one value for each noise scale."""
    problem = paper_problem(evidence, dataset, smoothness)
    return accounting.unlearning_epsilon(problem, Schedule(sigma, 1, (1,)), delta=1 / problem.n)


@sweep("S = {records}, sigma = {sigma:g}, epsilon = {epsilon:g}")
def least_steps(
    evidence: Sequence[Evidence],
    *,
    dataset: Dataset,
    smoothness: Smoothness,
    records: int,
    sigma: float,
    epsilon: float,
    grid: int = 1,
) -> float:
    """Return the smallest number K of unlearning steps among 1, 1 + grid, 1 + 2 grid, ... that meets epsilon."""
    problem = paper_problem(evidence, dataset, smoothness)
    return 1 + grid * math.ceil((_least_steps(problem, records, sigma, epsilon) - 1) / grid)


@measure
def changes_of_least_steps(
    evidence: Sequence[Evidence],
    *,
    dataset: Dataset,
    smoothness: Smoothness,
    records: list[int],
    sigma: list[float],
    epsilon: list[float],
) -> list[Quantity]:
    """Return how much the smallest K changes between each combination of the arguments and the next."""
    return changes(
        least_steps(
            evidence, dataset=dataset, smoothness=smoothness, records=records, sigma=sigma, epsilon=epsilon, grid=1
        )
    )


@sweep("sigma = {sigma:g}")
def initial_epsilon(evidence: Sequence[Evidence], *, dataset: Dataset, records: int, sigma: float) -> float:
    """Return epsilon before unlearning, one value for each noise scale."""
    problem = paper_problem(evidence, dataset, "bound")
    return accounting.initial_epsilon(problem, sigma=sigma, delta=1 / problem.n, records=records)


@measure
def changes_of_initial_epsilon(
    evidence: Sequence[Evidence], *, dataset: Dataset, records: int, sigma: list[float]
) -> list[Quantity]:
    """Return how much epsilon before unlearning changes between each noise scale and the next."""
    return changes(initial_epsilon(evidence, dataset=dataset, records=records, sigma=sigma))


@measure
def initial_renyi_at_the_order_after_unlearning(
    evidence: Sequence[Evidence], *, dataset: Dataset, records: int, sigma: float, epsilon: float
) -> Quantity:
    """Return the Rényi divergence before unlearning, at the order that gives the smallest epsilon after unlearning.

    Unlearning takes the smallest number K of steps that meets ``epsilon``.
    """
    problem = paper_problem(evidence, dataset, "bound")
    steps = _least_steps(problem, records, sigma, epsilon)
    curve = accounting.unlearning_curve(problem, Schedule(sigma, records, (steps,)))
    assert isinstance(curve, accounting.RenyiCurve)
    alpha = accounting.epsilon_from_renyi(curve, 1 / problem.n, conversion="paper").alpha
    return Quantity(_initial_renyi(problem, records, sigma, alpha), f"alpha = {alpha:.4g}")


@sweep("K = {steps}", then=changes)
def changes_of_epsilon(
    evidence: Sequence[Evidence], *, dataset: Dataset, smoothness: Smoothness, records: int, sigma: float, steps: int
) -> float:
    """Return how much the certified epsilon changes between each number of unlearning steps and the next."""
    problem = paper_problem(evidence, dataset, smoothness)
    return accounting.unlearning_epsilon(problem, Schedule(sigma, records, (steps,)), delta=1 / problem.n)


@sweep("n = {n}", then=changes)
def changes_of_saved_steps(evidence: Sequence[Evidence], *, dataset: Dataset, n: int) -> float:
    """Return the changes, from each n to the next, in the number of steps that unlearning saves.

    Unlearning saves steps in comparison with retraining (Appendix E, order 2). All other constants are those of a data
    set.
    """
    problem = paper_problem(evidence, dataset, "bound")
    sigma = 1.0  # The noise scale cancels.
    divergence = gaussian_start_divergence(problem, alpha=2, sigma=sigma, distance=1)
    return saved_steps(replace(problem, n=n), alpha=2, sigma=sigma, records=1, start_divergence=divergence)


@sweep("distance {distance:g}")
def gaussian_divergences(
    evidence: Sequence[Evidence], *, dataset: Dataset, alpha: float, sigma: float, distance: float
) -> float:
    """Return the Rényi divergence of two Gaussians of Appendix E's variance, for each distance of their means."""
    problem = paper_problem(evidence, dataset, "bound")
    return gaussian_start_divergence(problem, alpha=alpha, sigma=sigma, distance=distance)


def _initial_renyi(problem: Problem, records: int, sigma: float, alpha: float) -> float:
    return math.exp(float(initial_curve(problem, sigma=sigma, records=records).log_divergence(np.array(alpha))))


@cache
def _least_steps(problem: Problem, records: int, sigma: float, epsilon: float) -> int:
    return accounting.least_steps(
        problem, sigma=sigma, epsilon=epsilon, delta=1 / problem.n, records=records, minimum_steps=1
    )
