"""Measures of chapter 4's learners: their parameters, stability, recomputation and rates."""

import math
from dataclasses import replace
from functools import partial
from typing import Literal

import torch

from certified_unlearning.accounting.tv import erm
from certified_unlearning.accounting.tv.erm import ConvexProblem, Parameters
from certified_unlearning.accounting.tv.recomputation import (
    iterations_run_again,
    noisy_recompute_probability,
    quantised_recompute_probability,
)
from certified_unlearning.accounting.tv.subsampling import probability_of_any, subsampling_tv
from certified_unlearning.engine.exact.alive import Alive
from certified_unlearning.mechanisms.exact.noisy_sgd import NoisySgd
from certified_unlearning.mechanisms.exact.trajectory import Trajectory
from certified_unlearning.papers.tv_stability.edits import INSERTION, expected_without_noise
from certified_unlearning.papers.tv_stability.theory import rates
from certified_unlearning.papers.tv_stability.theory.distances import last_iterate_tv
from certified_unlearning.papers.tv_stability.theory.stability import lemma_30, lemma_32, noisy_stability, proposition_2
from certified_unlearning.reproduction.claims.registry import measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

NoiseRule = Literal["theorem 22", "theorem 44", "theorem 45", "union bound"]


@sweep("H D / G = {condition:g}")
def proposition_3_distance(*, condition: float, printed: bool = False) -> float:
    """Return the total variation of sub-sample-GD's batches divided by ``rho``, at Proposition 3's parameters.

    There are 10 000 records.

    Args:
        condition: The ratio ``H D / G``.
        printed: Whether ``T`` stays as printed if batches would have fewer than one record.
    """
    problem = ConvexProblem(10_000, 20, 1.0, 1.0, condition, 0.01)
    planned = erm.proposition_3_whole(problem)
    steps, batch_size = int(planned.steps), int(planned.batch_size)
    if printed:
        root = math.sqrt(problem.stable_records)
        steps, batch_size = math.floor(condition * root), max(math.floor(root / condition), 1)
    apart = subsampling_tv(n=problem.n, batch_size=batch_size, steps=steps)
    return apart / problem.rho


@sweep("rho = {rho:g}")
def recomputation_over_bound(
    *, bound: Literal["lemma 30", "proposition 2"], rho: float, steps: int, batch_size: int, n: int
) -> list[Quantity]:
    """Return the probability that noisy SGD recomputes at Proposition 1's noise, divided by a bound.

    Proposition 2 is checked for ``n`` records, for which the noise was planned, and for half of them.
    """
    sigma = erm.stable_sigma(_problem(rho=rho, n=n), steps=steps)
    if bound == "lemma 30":
        sizes, stated = [n], lemma_30(n=n, steps=steps, sigma=sigma, lipschitz=_G)
    else:
        sizes, stated = [n, n // 2], proposition_2(rho=rho, steps=steps, edits=1)
    constants = {"batch_size": batch_size, "steps": steps, "sigma": sigma, "gap": 2 * _G / batch_size}
    return [
        Quantity(noisy_recompute_probability(n=left, **constants) / stated, f"rho = {rho:g}, n = {left}")  # type: ignore[arg-type]
        for left in sizes
    ]


@sweep("rho = {rho:g}")
def planned_recomputation(*, plan: NoiseRule, rho: float) -> float:
    """Return the probability that a deletion causes a recomputation, divided by ``rho``.

    The number of steps and the batch size are those of a theorem, rounded to whole numbers. ``union bound`` means
    Theorem 22's steps and batches with noise ``sqrt(2 / pi) G T / (n rho)``.
    """
    problem = _problem(rho=rho)
    planned = {"theorem 44": erm.theorem_44, "theorem 45": erm.theorem_45}.get(plan, erm.theorem_22)(problem)
    steps, batch_size = erm.whole_numbers(planned, n=problem.n)
    constants = {"n": problem.n, "batch_size": batch_size, "steps": steps}
    gap = 2 * _G / batch_size
    if plan == "theorem 45":
        resolution = 4 * _G * problem.dimension * steps / problem.stable_records
        probability = quantised_recompute_probability(
            **constants, resolution=resolution, dimension=problem.dimension, gap=gap
        )
    else:
        constant = math.sqrt(2 / math.pi) if plan == "union bound" else 8
        sigma = constant * _G * steps / problem.stable_records
        probability = noisy_recompute_probability(**constants, sigma=sigma, gap=gap)
    return probability / rho


@sweep("n = {n}, T = {steps}")
def example_over_rate(*, n: int, batch_share: float, steps: int, rho: float) -> float:
    """Return the total variation of Proposition 5's last iterates, divided by ``G sqrt(T) / (n sigma)``.

    The noise is that of Proposition 1. Proposition 1 bounds the quotient by 8 from above, and Proposition 5 bounds it
    by some constant from below.
    """
    sigma = erm.stable_sigma(_problem(rho=rho, n=n), steps=steps)
    batch_size = round(batch_share * n)
    apart = last_iterate_tv(n=n, batch_size=batch_size, steps=steps, lipschitz=_G, sigma=sigma)
    return apart * n * sigma / (_G * math.sqrt(steps))


@sweep("sigma = {sigma:g}")
def stability_over_printed(*, sigma: float) -> float:
    """Return Pinsker's bound on the stability from Proposition 1's divergences, divided by the printed bound."""
    bound = partial(noisy_stability, n=100_000, batch_size=1000, steps=30, lipschitz=_G)
    return bound(sigma=sigma) / bound(sigma=sigma, printed=True)


@sweep("m = {batch_size}")
def divergence_of_a_step(*, batch_size: int, printed: bool) -> float:
    """Return ``8 G^2 / (m sigma)^2`` at the smallest ``T`` that Proposition 1 allows.

    The smallest ``T`` follows from the printed condition if ``printed`` is true, and from the inequality in the proof
    otherwise.
    """
    problem = _problem(rho=0.1)
    steps = rates.proposition_1_steps(problem, batch_size=batch_size, printed=printed)
    return 8 * (_G / (batch_size * erm.stable_sigma(problem, steps=steps))) ** 2


@sweep("d = {dimension}")
def step_size_over_proof(*, dimension: int, printed: bool, accelerated: bool) -> float:
    """Return the step size of Proposition 1 (accelerated) or 7, divided by the step size of its proof.

    The parameters are those of Theorem 22 or 44.
    """
    problem = _problem(rho=0.1, dimension=dimension)
    planned = (erm.theorem_22 if accelerated else erm.theorem_44)(problem)
    stated, meant = (
        rule(
            problem,
            steps=math.ceil(planned.steps),
            batch_size=math.ceil(planned.batch_size),
            sigma=planned.noise,
            accelerated=accelerated,
        )
        for rule in (rates.printed_step_size if printed else erm.noisy_step_size, rates.proof_step_size)
    )
    return stated / meant


@sweep("t = {step}")
def extrapolation(*, step: int, printed: bool) -> float:
    """Return the ``alpha_t`` for ``beta_t = (t + 1) / 2``, divided by the engine's value ``(1 - t) / (t + 2)``.

    The text prints ``beta_(t + 1) (1 - 1 / beta_t)`` for ``alpha_t``, and means ``(1 - beta_t) / beta_(t + 1)``.
    """
    settings = NoisySgd(steps=step, batch_size=1, step_size=1.0, sigma=1.0, accelerated=True)
    state = Trajectory.start(settings, Alive(torch.arange(2)), 1, 1, torch.device("cpu"))
    now, then = (step + 1) / 2, (step + 2) / 2
    alpha = then * (1 - 1 / now) if printed else (1 - now) / then
    state.weights.zero_()
    state.weights[:, step - 1] = 1.0  # The model w_t; then (1 - alpha) w_t + alpha w_(t - 1) is 1 - alpha.
    point = state.points(torch.tensor([0]), torch.tensor([step - 1]))
    return alpha / (1 - float(point))


@sweep("rho = {rho:g}")
def stated_over_first_term(*, theorem: Literal["22", "44"], rho: float, printed: bool = False) -> float:
    """Return a theorem's rate at its ``T``, divided by ``H D^2 / T^2`` (Theorem 22) or ``H D^2 / T`` (Theorem 44)."""
    problem = _problem(rho=rho)
    if theorem == "22":
        term = erm.theorem_22(problem).steps ** 2
        scale = math.pow(_H, 0.25) * _G * math.pow(_D, 1.5) * problem.root_dimension / problem.stable_records
        stated = math.pow(scale, 0.8)
    else:
        stated = erm.theorem_44(problem, printed_risk=printed).excess_risk
        term = erm.theorem_44(problem).steps
    return stated / (_H * _D**2 / term)


@sweep("rho = {rho:g}")
def risk_over_noise_floor(*, corollary: Literal["7", "8"], batch: Literal["least", "largest"], rho: float) -> float:
    """Return the sum of three terms at a corollary's parameters, divided by ``G D sqrt(d) / (rho n)``.

    The terms are those of Proposition 1 or 7.
    """
    problem = _problem(rho=rho)
    planned = _corollary(problem, corollary, batch)
    whole = (erm.proposition_1 if corollary == "7" else erm.proposition_7)(
        problem, steps=planned.steps, batch_size=planned.batch_size
    )
    return whole.excess_risk / planned.excess_risk


@sweep("rho = {rho:g}")
def needed_over_planned_steps(*, corollary: Literal["7", "8"], rho: float) -> float:
    """Return the smallest ``T`` that meets Proposition 1's printed condition, divided by the ``T`` of a corollary.

    Both values of ``T`` are for the smallest batch size of the corollary.
    """
    problem = _problem(rho=rho)
    planned = _corollary(problem, corollary, "least")
    return rates.proposition_1_steps(problem, batch_size=planned.batch_size, printed=True) / planned.steps


@sweep("rho = {rho:g}")
def largest_batch_over_power(*, corollary: Literal["7", "8"], rho: float) -> float:
    """Return a corollary's largest useful batch size, divided by a power of its ``T``.

    The divisor is ``(G / (H D))^2 T^3`` for Corollary 7, and ``(G / (H D))^2 T`` for Corollary 8.
    """
    problem = _problem(rho=rho)
    planned = _corollary(problem, corollary, "largest")
    return planned.batch_size / (planned.steps ** (3 if corollary == "7" else 1) / problem.condition**2)


@sweep("n = {n}")
def sampling_term_over_rate(*, n: int, printed: bool) -> float:
    """Return ``G D / sqrt(T)`` at Theorem 48's ``T``, divided by its rate, for d = 10, ``H D = G`` and rho = 1."""
    problem = ConvexProblem(n, 10, 1.0, 1.0, 1.0, 1.0)
    steps = rates.theorem_48_steps(problem, printed=printed)
    return 1 / (math.sqrt(steps) * rates.theorem_48_risk(problem))


@sweep("d = (rho n)^{power:g}")
def second_over_first_branch(*, stable_records: float, power: float) -> float:
    """Return Theorem 22's second rate divided by its first at ``d = (rho n)^power``, with constants 1."""
    problem = ConvexProblem(int(stable_records), round(stable_records**power), 1.0, 1.0, 1.0, 1.0)
    return erm.theorem_22(problem).excess_risk / erm.proposition_3(problem).excess_risk


@sweep("d = {dimension}")
def lower_over_upper(*, lower: Literal["24", "23"], dimension: int) -> float:
    """Return the quotient of two theorems' rates, with all constants set to 1.

    If ``lower`` is ``24``, Theorem 24's lower bound is divided by Theorem 23's rate. If ``lower`` is ``23``, Theorem
    23's rate is divided by Theorem 22's rate.
    """
    problem = ConvexProblem(100_000, dimension, 1.0, 1.0, 1.0, 0.1)
    bound = rates.theorem_24_risk(problem) if lower == "24" else rates.theorem_23_risk(problem)
    above = rates.theorem_23_risk(problem) if lower == "24" else rates.theorem_22_risk(problem)
    return bound / above


@sweep("tau = {quantum:g}")
def quantised_over_lemma_32(*, quantum: float) -> float:
    """Return the largest probability that quantised SGD recomputes for one deletion, divided by Lemma 32's bound."""
    n, batch_size, steps, dimension = 1_000_000, 10, 50, 5
    probability = quantised_recompute_probability(
        n=n, batch_size=batch_size, steps=steps, resolution=quantum, dimension=dimension, gap=2 * _G / batch_size
    )
    bound = lemma_32(n=n, steps=steps, resolution=quantum, dimension=dimension, lipschitz=_G, replaced=1)
    return probability / bound


@sweep("q = {rejection:g}")
def rerun_share(*, steps: int, rejection: float) -> float:
    """Return the recomputed share of a run's iterations, averaged over the edits that cause a recomputation."""
    return iterations_run_again(steps=steps, rejection=rejection) / probability_of_any(rejection, steps) / steps


@measure
def unstable_edits_without_noise(*, n: int, steps: int, batch_size: int, deletions: int, insertions: int) -> Quantity:
    """Return the expected number of recomputations in a stream without noise, in which deletions come first."""
    edits = [0] * deletions + [INSERTION] * insertions
    return Quantity(expected_without_noise(n, edits, steps, batch_size), f"n = {n}, m = {batch_size}, T = {steps}")


_G, _H, _D = 2.0, 1.5, 3.0


def _problem(*, rho: float, n: int = 100_000, dimension: int = 20) -> ConvexProblem:
    return ConvexProblem(n, dimension, _G, _H, _D, rho)


def _corollary(problem: ConvexProblem, corollary: str, batch: str) -> Parameters:
    least, largest = (rates.corollary_7_batches if corollary == "7" else rates.corollary_8_batches)(problem)
    batch_size = least if batch == "least" else largest
    planned = (rates.corollary_7 if corollary == "7" else rates.corollary_8)(problem, batch_size=batch_size)
    return replace(planned, batch_size=batch_size)
