"""Measures of chapter 4's learners: their parameters, stability, recomputation and rates."""

import math
from collections.abc import Sequence
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
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity

Plan = Literal["theorem 22", "theorem 44", "theorem 45", "union bound"]


@measure
def proposition_3_distance(
    evidence: Sequence[Evidence], *, condition: list[float], printed: bool = False
) -> list[Quantity]:
    """Return how far sub-sample-GD's batches move, over ``rho``, at Proposition 3's parameters (n = 10 000).

    Args:
        evidence: None is needed.
        condition: ``H D / G``.
        printed: Whether ``T`` stays as printed where batches would be of less than one record.
    """
    found = []
    for each in condition:
        problem = ConvexProblem(10_000, 20, 1.0, 1.0, each, 0.01)
        planned = erm.proposition_3_whole(problem)
        steps, batch_size = int(planned.steps), int(planned.batch_size)
        if printed:
            root = math.sqrt(problem.stable_records)
            steps, batch_size = math.floor(each * root), max(math.floor(root / each), 1)
        apart = subsampling_tv(n=problem.n, batch_size=batch_size, steps=steps)
        found.append(Quantity(apart / problem.rho, f"H D / G = {each:g}"))
    return found


@measure
def recomputation_over_bound(
    evidence: Sequence[Evidence],
    *,
    bound: Literal["lemma 30", "proposition 2"],
    rho: list[float],
    steps: int,
    batch_size: int,
    n: int,
) -> list[Quantity]:
    """Return how likely noisy SGD computes again at Proposition 1's noise, over a bound on it.

    Proposition 2 is asked for ``n`` records, where noise was planned, and for half of them.
    """
    found = []
    for each in rho:
        sigma = erm.stable_sigma(_problem(rho=each, n=n), steps=steps)
        for left in (n,) if bound == "lemma 30" else (n, n // 2):
            exact = noisy_recompute_probability(
                n=left, batch_size=batch_size, steps=steps, sigma=sigma, gap=2 * _G / batch_size
            )
            stated = (
                lemma_30(n=n, steps=steps, sigma=sigma, lipschitz=_G)
                if bound == "lemma 30"
                else proposition_2(rho=each, steps=steps, edits=1)
            )
            found.append(Quantity(exact / stated, f"rho = {each:g}, n = {left}"))
    return found


@measure
def planned_recomputation(evidence: Sequence[Evidence], *, plan: Plan, rho: list[float]) -> list[Quantity]:
    """Return how likely a deletion computes again at a theorem's parameters, in whole numbers, over ``rho``.

    ``union bound``: Theorem 22's steps and batches with noise ``sqrt(2 / pi) G T / (n rho)``.
    """
    found = []
    for each in rho:
        problem = _problem(rho=each)
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
        found.append(Quantity(probability / each, f"rho = {each:g}"))
    return found


@measure
def example_over_rate(
    evidence: Sequence[Evidence], *, n: list[int], batch_share: float, steps: list[int], rho: float
) -> list[Quantity]:
    """Return how far Proposition 5's last iterates are apart over ``G sqrt(T) / (n sigma)``, at Proposition 1's noise.

    Proposition 1 bounds it by 8, Proposition 5 from below by some constant.
    """
    found = []
    for size in n:
        for count in steps:
            sigma = erm.stable_sigma(_problem(rho=rho, n=size), steps=count)
            batch_size = round(batch_share * size)
            apart = last_iterate_tv(n=size, batch_size=batch_size, steps=count, lipschitz=_G, sigma=sigma)
            found.append(Quantity(apart * size * sigma / (_G * math.sqrt(count)), f"n = {size}, T = {count}"))
    return found


@measure
def stability_over_printed(evidence: Sequence[Evidence], *, sigma: list[float]) -> list[Quantity]:
    """Return the stability that Proposition 1's divergences give by Pinsker's inequality, over the printed one."""
    bound = partial(noisy_stability, n=100_000, batch_size=1000, steps=30, lipschitz=_G)
    return [Quantity(bound(sigma=each) / bound(sigma=each, printed=True), f"sigma = {each:g}") for each in sigma]


@measure
def divergence_of_a_step(evidence: Sequence[Evidence], *, batch_size: list[int], printed: bool) -> list[Quantity]:
    """Return ``8 G^2 / (m sigma)^2`` at the least ``T`` of Proposition 1, as printed or by its proof's inequality."""
    problem, found = _problem(rho=0.1), []
    for each in batch_size:
        steps = rates.proposition_1_steps(problem, batch_size=each, printed=printed)
        sigma = erm.stable_sigma(problem, steps=steps)
        found.append(Quantity(8 * (_G / (each * sigma)) ** 2, f"m = {each}"))
    return found


@measure
def step_size_over_proof(
    evidence: Sequence[Evidence], *, dimension: list[int], printed: bool, accelerated: bool
) -> list[Quantity]:
    """Return the step size of Proposition 1 (accelerated) or 7 over its proof's, at Theorem 22's or 44's parameters."""
    found = []
    for each in dimension:
        problem = _problem(rho=0.1, dimension=each)
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
        found.append(Quantity(stated / meant, f"d = {each}"))
    return found


@measure
def extrapolation(evidence: Sequence[Evidence], *, steps: list[int], printed: bool) -> list[Quantity]:
    """Return ``alpha_t`` made of ``beta_t = (t + 1) / 2`` over the engine's, which is ``(1 - t) / (t + 2)``.

    Printed is ``beta_(t + 1) (1 - 1 / beta_t)``, meant is ``(1 - beta_t) / beta_(t + 1)``.
    """
    settings = NoisySgd(steps=max(steps), batch_size=1, step_size=1.0, sigma=1.0, accelerated=True)
    state = Trajectory.start(settings, Alive(torch.arange(2)), 1, 1, torch.device("cpu"))
    found = []
    for step in steps:
        now, then = (step + 1) / 2, (step + 2) / 2
        alpha = then * (1 - 1 / now) if printed else (1 - now) / then
        state.weights.zero_()
        state.weights[:, step - 1] = 1.0  # w_t; then (1 - alpha) w_t + alpha w_(t - 1) is 1 - alpha.
        point = state.points(torch.tensor([0]), torch.tensor([step - 1]))
        found.append(Quantity(alpha / (1 - float(point)), f"t = {step}"))
    return found


@measure
def stated_over_first_term(
    evidence: Sequence[Evidence], *, theorem: Literal["22", "44"], rho: list[float], printed: bool = False
) -> list[Quantity]:
    """Return a theorem's rate over the term of optimisation at its ``T``: ``H D^2 / T^2`` or ``H D^2 / T``."""
    found = []
    for each in rho:
        problem = _problem(rho=each)
        if theorem == "22":
            term = erm.theorem_22(problem).steps ** 2
            scale = math.pow(_H, 0.25) * _G * math.pow(_D, 1.5) * problem.root_dimension / problem.stable_records
            stated = math.pow(scale, 0.8)
        else:
            stated = erm.theorem_44(problem, printed_risk=printed).excess_risk
            term = erm.theorem_44(problem).steps
        found.append(Quantity(stated / (_H * _D**2 / term), f"rho = {each:g}"))
    return found


@measure
def risk_over_noise_floor(
    evidence: Sequence[Evidence], *, corollary: Literal["7", "8"], batch: Literal["least", "largest"]
) -> list[Quantity]:
    """Return all three terms of Proposition 1 or 7 at a corollary's parameters over ``G D sqrt(d) / (rho n)``."""
    found = []
    for each in _RHO:
        problem = _problem(rho=each)
        planned = _corollary(problem, corollary, batch)
        whole = (erm.proposition_1 if corollary == "7" else erm.proposition_7)(
            problem, steps=planned.steps, batch_size=planned.batch_size
        )
        found.append(Quantity(whole.excess_risk / planned.excess_risk, f"rho = {each:g}"))
    return found


@measure
def needed_over_planned_steps(evidence: Sequence[Evidence], *, corollary: Literal["7", "8"]) -> list[Quantity]:
    """Return the least ``T`` of Proposition 1, as printed, over a corollary's ``T`` at its least batch size."""
    found = []
    for each in _RHO:
        problem = _problem(rho=each)
        planned = _corollary(problem, corollary, "least")
        least = rates.proposition_1_steps(problem, batch_size=planned.batch_size, printed=True)
        found.append(Quantity(least / planned.steps, f"rho = {each:g}"))
    return found


@measure
def largest_batch_over_power(evidence: Sequence[Evidence], *, corollary: Literal["7", "8"]) -> list[Quantity]:
    """Return a corollary's largest useful batch over ``(G / (H D))^2 T^3``, or ``T`` where not accelerated."""
    found = []
    for each in _RHO:
        problem = _problem(rho=each)
        planned = _corollary(problem, corollary, "largest")
        power = planned.steps ** (3 if corollary == "7" else 1) / problem.condition**2
        found.append(Quantity(planned.batch_size / power, f"rho = {each:g}"))
    return found


@measure
def sampling_term_over_rate(evidence: Sequence[Evidence], *, n: list[int], printed: bool) -> list[Quantity]:
    """Return ``G D / sqrt(T)`` at Theorem 48's ``T`` over its rate; 10 numbers of a model, ``H D = G``, rho = 1."""
    found = []
    for size in n:
        problem = ConvexProblem(size, 10, 1.0, 1.0, 1.0, 1.0)
        steps = rates.theorem_48_steps(problem, printed=printed)
        found.append(Quantity(1 / (math.sqrt(steps) * rates.theorem_48_risk(problem)), f"n = {size}"))
    return found


@measure
def second_over_first_branch(
    evidence: Sequence[Evidence], *, stable_records: float, power: list[float]
) -> list[Quantity]:
    """Return Theorem 22's second rate over its first at ``d = (rho n)^power``, constants 1."""
    found = []
    for each in power:
        problem = ConvexProblem(int(stable_records), round(stable_records**each), 1.0, 1.0, 1.0, 1.0)
        quotient = erm.theorem_22(problem).excess_risk / erm.proposition_3(problem).excess_risk
        found.append(Quantity(quotient, f"d = (rho n)^{each:g}"))
    return found


@measure
def lower_over_upper(
    evidence: Sequence[Evidence], *, lower: Literal["24", "23"], dimension: list[int]
) -> list[Quantity]:
    """Return Theorem 24's lower bound over Theorem 23's rate, or that over Theorem 22's; constants 1."""
    found = []
    for each in dimension:
        problem = ConvexProblem(100_000, each, 1.0, 1.0, 1.0, 0.1)
        bound = rates.theorem_24_risk(problem) if lower == "24" else rates.theorem_23_risk(problem)
        above = rates.theorem_23_risk(problem) if lower == "24" else rates.theorem_22_risk(problem)
        found.append(Quantity(bound / above, f"d = {each}"))
    return found


@measure
def quantised_over_lemma_32(evidence: Sequence[Evidence], *, quantum: list[float]) -> list[Quantity]:
    """Return how likely quantised SGD computes again for one deletion, at most, over Lemma 32's bound."""
    n, batch_size, steps, dimension = 1_000_000, 10, 50, 5
    found = []
    for each in quantum:
        probability = quantised_recompute_probability(
            n=n, batch_size=batch_size, steps=steps, resolution=each, dimension=dimension, gap=2 * _G / batch_size
        )
        bound = lemma_32(n=n, steps=steps, resolution=each, dimension=dimension, lipschitz=_G, replaced=1)
        found.append(Quantity(probability / bound, f"tau = {each:g}"))
    return found


@measure
def rerun_share(evidence: Sequence[Evidence], *, steps: int, rejection: list[float]) -> list[Quantity]:
    """Return which share of a run an edit that computes again computes, on average."""
    return [
        Quantity(
            iterations_run_again(steps=steps, rejection=each) / probability_of_any(each, steps) / steps,
            f"q = {each:g}",
        )
        for each in rejection
    ]


@measure
def unstable_edits_without_noise(
    evidence: Sequence[Evidence], *, n: int, steps: int, batch_size: int, deletions: int, insertions: int
) -> list[Quantity]:
    """Return how many edits of a stream compute again on average without noise, deletions first."""
    edits = [0] * deletions + [INSERTION] * insertions
    return [Quantity(expected_without_noise(n, edits, steps, batch_size), f"n = {n}, m = {batch_size}, T = {steps}")]


_G, _H, _D = 2.0, 1.5, 3.0
_RHO = (0.01, 0.1, 1.0)


def _problem(*, rho: float, n: int = 100_000, dimension: int = 20) -> ConvexProblem:
    return ConvexProblem(n, dimension, _G, _H, _D, rho)


def _corollary(problem: ConvexProblem, corollary: str, batch: str) -> Parameters:
    least, largest = (rates.corollary_7_batches if corollary == "7" else rates.corollary_8_batches)(problem)
    batch_size = least if batch == "least" else largest
    planned = (rates.corollary_7 if corollary == "7" else rates.corollary_8)(problem, batch_size=batch_size)
    return replace(planned, batch_size=batch_size)
