"""Measures by accounting: what the papers' formulas give under the constants that the paper states or used.

They need no results, with one exception: the spectral smoothness of MNIST is a property of its records.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Literal

import numpy as np

from certified_unlearning import accounting
from certified_unlearning.accounting import Problem, Schedule
from certified_unlearning.accounting.langevin.lsi import initial_curve
from certified_unlearning.papers.langevin_unlearning.constants import Dataset, Smoothness, paper_problem
from certified_unlearning.papers.langevin_unlearning.theory.extras import gaussian_start_divergence, saved_steps
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.claims.registry import changes, measure
from certified_unlearning.reproduction.claims.relations import Quantity


@measure
def table_1_constant(
    evidence: Sequence[Evidence],
    *,
    datasets: list[Dataset],
    constant: Literal["smoothness", "strong_convexity", "lipschitz", "delta"],
) -> list[Quantity]:
    """Return a constant of the experiments, one for each data set."""
    problems = [paper_problem(evidence, dataset, "bound") for dataset in datasets]
    values = [1 / problem.n if constant == "delta" else getattr(problem, constant) for problem in problems]
    return [Quantity(value, dataset) for value, dataset in zip(values, datasets, strict=True)]


@measure
def secret_state_sigma(
    evidence: Sequence[Evidence], *, dataset: Dataset, smoothness: Smoothness, steps: int, epsilon: list[float]
) -> list[Quantity]:
    """Return Descent-to-Delete's noise with internal state (Theorem N.1), one for each epsilon."""
    problem = accounting.descent_problem(paper_problem(evidence, dataset, smoothness))
    return [
        Quantity(
            accounting.secret_state_sigma(problem, epsilon=target, delta=1 / problem.n, steps=steps),
            f"epsilon = {target:g}",
        )
        for target in epsilon
    ]


@measure
def least_sigma(
    evidence: Sequence[Evidence], *, dataset: Dataset, smoothness: Smoothness, epsilon: list[float]
) -> list[Quantity]:
    """Return the least noise scale for one record and one unlearning step, one for each epsilon."""
    problem = paper_problem(evidence, dataset, smoothness)
    return [
        Quantity(
            accounting.least_sigma(problem, steps=1, epsilon=target, delta=1 / problem.n, records=1),
            f"epsilon = {target:g}",
        )
        for target in epsilon
    ]


@measure
def epsilon_after_one_step(
    evidence: Sequence[Evidence], *, dataset: Dataset, smoothness: Smoothness, sigma: list[float]
) -> list[Quantity]:
    """Return epsilon after one unlearning step for one record, one for each noise scale."""
    problem = paper_problem(evidence, dataset, smoothness)
    return [
        Quantity(
            accounting.unlearning_epsilon(problem, Schedule(scale, 1, (1,)), delta=1 / problem.n), f"sigma = {scale:g}"
        )
        for scale in sigma
    ]


@measure
def least_steps(
    evidence: Sequence[Evidence],
    *,
    dataset: Dataset,
    smoothness: Smoothness,
    records: list[int],
    sigma: list[float],
    epsilon: list[float],
    grid: int = 1,
) -> list[Quantity]:
    """Return the least K of 1, 1 + grid, ... for all combinations of the arguments, the last one running fastest."""
    problem = paper_problem(evidence, dataset, smoothness)
    return [
        Quantity(
            1 + grid * math.ceil((_least_steps(problem, count, scale, target) - 1) / grid),
            f"S = {count}, sigma = {scale:g}, epsilon = {target:g}",
        )
        for count, scale, target in product(records, sigma, epsilon)
    ]


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
    """Return how the least K changes from one combination of the arguments to the next."""
    steps = least_steps(evidence, dataset=dataset, smoothness=smoothness, records=records, sigma=sigma, epsilon=epsilon)
    return changes(steps)


@measure
def initial_epsilon(
    evidence: Sequence[Evidence], *, dataset: Dataset, records: int, sigma: list[float]
) -> list[Quantity]:
    """Return epsilon before unlearning, one for each noise scale."""
    problem = paper_problem(evidence, dataset, "bound")
    return [
        Quantity(
            accounting.initial_epsilon(problem, sigma=scale, delta=1 / problem.n, records=records), f"sigma = {scale:g}"
        )
        for scale in sigma
    ]


@measure
def changes_of_initial_epsilon(
    evidence: Sequence[Evidence], *, dataset: Dataset, records: int, sigma: list[float]
) -> list[Quantity]:
    """Return how epsilon before unlearning changes from one noise scale to the next."""
    return changes(initial_epsilon(evidence, dataset=dataset, records=records, sigma=sigma))


@measure
def initial_renyi_at_the_order_after_unlearning(
    evidence: Sequence[Evidence], *, dataset: Dataset, records: int, sigma: float, epsilon: float
) -> list[Quantity]:
    """Return the Rényi divergence before unlearning, of the order that gives the best epsilon after the least K."""
    problem = paper_problem(evidence, dataset, "bound")
    steps = _least_steps(problem, records, sigma, epsilon)
    curve = accounting.unlearning_curve(problem, Schedule(sigma, records, (steps,)))
    assert isinstance(curve, accounting.RenyiCurve)
    alpha = accounting.epsilon_from_renyi(curve, 1 / problem.n, conversion="paper").alpha
    return [Quantity(_initial_renyi(problem, records, sigma, alpha), f"alpha = {alpha:.4g}")]


@measure
def changes_of_epsilon(
    evidence: Sequence[Evidence],
    *,
    dataset: Dataset,
    smoothness: Smoothness,
    records: int,
    sigma: float,
    steps: list[int],
) -> list[Quantity]:
    """Return how the certified epsilon changes from one number of unlearning steps to the next."""
    problem = paper_problem(evidence, dataset, smoothness)
    epsilons = [
        Quantity(
            accounting.unlearning_epsilon(problem, Schedule(sigma, records, (count,)), delta=1 / problem.n),
            f"K = {count}",
        )
        for count in steps
    ]
    return changes(epsilons)


@measure
def changes_of_saved_steps(evidence: Sequence[Evidence], *, dataset: Dataset, n: list[int]) -> list[Quantity]:
    """Return how the steps saved against retraining (Appendix E, order 2) change with n, all else as on a data set."""
    problem = paper_problem(evidence, dataset, "bound")
    sigma = 1.0  # It cancels.
    divergence = gaussian_start_divergence(problem, alpha=2, sigma=sigma, distance=1)
    saved = [
        Quantity(
            saved_steps(replace(problem, n=size), alpha=2, sigma=sigma, records=1, start_divergence=divergence),
            f"n = {size}",
        )
        for size in n
    ]
    return changes(saved)


@measure
def gaussian_divergences(
    evidence: Sequence[Evidence], *, dataset: Dataset, alpha: float, sigma: float, distances: list[float]
) -> list[Quantity]:
    """Return the Rényi divergence of two Gaussians of Appendix E's variance, one for each distance of their means."""
    problem = paper_problem(evidence, dataset, "bound")
    return [
        Quantity(
            gaussian_start_divergence(problem, alpha=alpha, sigma=sigma, distance=distance), f"distance {distance:g}"
        )
        for distance in distances
    ]


def _initial_renyi(problem: Problem, records: int, sigma: float, alpha: float) -> float:
    return math.exp(float(initial_curve(problem, sigma=sigma, records=records).log_divergence(np.array(alpha))))


@cache
def _least_steps(problem: Problem, records: int, sigma: float, epsilon: float) -> int:
    return accounting.least_steps(
        problem, sigma=sigma, epsilon=epsilon, delta=1 / problem.n, records=records, minimum_steps=1
    )
