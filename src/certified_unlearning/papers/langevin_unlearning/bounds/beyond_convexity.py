"""Theorems 3.2 and 3.3 beyond strong convexity: epsilon against T, K and sigma. Nothing is simulated."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from certified_unlearning.accounting.core.conversion import epsilon_from_renyi
from certified_unlearning.accounting.core.curves import RenyiCurve, Schedule
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.langevin import lsi
from certified_unlearning.papers.langevin_unlearning.sweeps import BeyondConvexity
from certified_unlearning.papers.langevin_unlearning.theory import general
from certified_unlearning.papers.langevin_unlearning.theory.training import gibbs_divergence
from certified_unlearning.papers.privacy_dynamics.theory.dynamics import composition
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import column, columns

POINTS = 25
"""The largest number of step counts at which a bound is evaluated; the counts grow by equal factors."""
SIGMAS_PER_DECADE = 12

ROWS = pa.schema(
    [
        *columns("text", "point", "experiment", "part", "bound"),
        *columns("text", "constant", "guarantee", "source"),
        column("n", "whole", "constant"),
        *columns("number", "constant", "strong_convexity", "smoothness_constant", "lipschitz", "step_size"),
        column("sigma", "number", "point"),
        column("radius", "number", "point", empty=True),
        column("records_removed", "whole", "constant"),
        column("learning_steps", "whole", "point", empty=True),
        column("unlearning_steps", "whole", "point"),
        column("delta", "number", "constant"),
        column("log10_epsilon", "number", "measure"),
    ]
)
"""The columns of the table, which has one row for each bound at each point of a part.

The parts are ``learning`` (along T), ``unlearning`` (along K) and ``limit`` (along sigma).

``learning_steps`` is empty for infinitely many learning steps, and ``radius`` is empty if a bound does not depend on
it. The table has the decimal logarithm of epsilon, because no double can represent the limits.
"""


def make(inputs: Inputs) -> pd.DataFrame:
    """Return epsilon by all three cases of the theorems, by composition and by Proposition E.1.

    Raises:
        AssumptionError: The step is too long.
    """
    sweep: BeyondConvexity = inputs.sweep
    problem = Problem(sweep.n, sweep.strong_convexity, sweep.smoothness, sweep.lipschitz, 1 / sweep.smoothness)
    rows = [*_along_learning(problem, sweep), *_along_unlearning(problem, sweep), *_along_sigma(problem, sweep)]
    constants = {
        "experiment": BEYOND_CONVEXITY.name,
        "n": problem.n,
        "strong_convexity": problem.strong_convexity,
        "smoothness_constant": problem.smoothness,
        "lipschitz": problem.lipschitz,
        "step_size": problem.step_size,
        "records_removed": 1,
        "delta": 1 / problem.n,
    }
    return pd.DataFrame([constants | row for row in rows]).astype({"learning_steps": "Int64"})


def _along_learning(problem: Problem, sweep: BeyondConvexity) -> Iterator[dict[str, Any]]:
    sigma, radius = sweep.sigma, max(sweep.radius)
    for steps in _steps_up_to(sweep.most_learning_steps):
        point = {"part": "learning", "sigma": sigma, "learning_steps": steps, "unlearning_steps": 0}
        curve = lsi.initial_curve(problem, sigma=sigma, records=1, learning_steps=steps)
        yield point | _bound("strongly convex", None, _log10(problem, curve))
        yield point | _bound("composition", None, _log10(problem, composition(problem, sigma=sigma, steps=steps)))
        for bound, convex in _GENERAL:
            yield point | _bound(bound, radius, _initial_log10(problem, sigma, steps, radius, convex))


def _along_unlearning(problem: Problem, sweep: BeyondConvexity) -> Iterator[dict[str, Any]]:
    sigma, radius, learning = sweep.sigma, max(sweep.radius), sweep.learning_steps
    for steps in _steps_up_to(sweep.most_unlearning_steps):
        point = {"part": "unlearning", "sigma": sigma, "learning_steps": learning, "unlearning_steps": steps}
        schedule = Schedule(sigma, 1, (steps,), learning)
        yield point | _bound("strongly convex", None, _log10(problem, lsi.curve(problem, schedule)))
        # For composition, steps on the same data change no divergence.
        yield point | _bound("composition", None, _log10(problem, composition(problem, sigma=sigma, steps=learning)))
        for bound, convex in _GENERAL:
            curve = general.curve(_of(problem), schedule, radius=radius, convex=convex)
            yield point | _bound(bound, radius, _log10(problem, curve))


def _along_sigma(problem: Problem, sweep: BeyondConvexity) -> Iterator[dict[str, Any]]:
    least, most = sweep.least_sigma, sweep.most_sigma
    count = 1 + math.ceil(SIGMAS_PER_DECADE * math.log10(most / least))
    for sigma in map(float, np.geomspace(least, most, count)):
        point = {"part": "limit", "sigma": sigma, "learning_steps": None, "unlearning_steps": 0}
        curve = lsi.initial_curve(problem, sigma=sigma, records=1)
        yield point | _bound("strongly convex", None, _log10(problem, curve))
        for radius in sweep.radius:
            for bound, convex in _GENERAL:
                yield point | _bound(bound, radius, _initial_log10(problem, sigma, math.inf, radius, convex))
            # log(1 + e^a) - log(1 + e^-a) = a: on the ball, a logistic loss has values in an interval of length M R.
            divergence = gibbs_divergence(loss_range=problem.lipschitz * radius, n=problem.n, sigma=sigma)
            yield point | _bound("Proposition E.1", radius, math.log10(divergence))


_GENERAL = (("convex", True), ("smooth", False))
_SOURCES = {"composition": "own"}
_GUARANTEES = {"Proposition E.1": "heuristic"}


def _bound(bound: str, radius: float | None, log10_epsilon: float) -> dict[str, Any]:
    return {
        "bound": bound,
        "guarantee": _GUARANTEES.get(bound, "upper bound"),
        "source": _SOURCES.get(bound, "paper"),
        "radius": radius,
        "log10_epsilon": log10_epsilon,
    }


def _of(problem: Problem) -> Problem:
    """Return the problem of the loss without its regulariser; L also bounds the curvature of this loss."""
    return replace(problem, strong_convexity=0.0)


def _initial_log10(problem: Problem, sigma: float, learning_steps: float, radius: float, convex: bool) -> float:
    log_epsilon = general.initial_log_epsilon(
        _of(problem),
        delta=1 / problem.n,
        sigma=sigma,
        records=1,
        learning_steps=learning_steps,
        radius=radius,
        convex=convex,
    )
    return log_epsilon / math.log(10)


def _log10(problem: Problem, curve: RenyiCurve) -> float:
    return math.log10(epsilon_from_renyi(curve, 1 / problem.n, conversion="paper").epsilon)


def _steps_up_to(most: int) -> list[int]:
    return sorted({round(float(steps)) for steps in np.geomspace(1, most, POINTS)})


BEYOND_CONVEXITY = Experiment(
    name="beyond_convexity",
    source="Theorems 3.2 and 3.3",
    sweep=BeyondConvexity,
    rows=ROWS,
    make=make,
    needs_data=False,
    draw="certified_unlearning.papers.langevin_unlearning.figures.beyond_convexity:draw",
    caption=Caption(
        "Bounds for one removed record beyond strong convexity, at MNIST’s constants",
        "The lines show ε by Theorems 3.2 and 3.3 for one record, with n, M, L and η = 1/L of MNIST 3 against 8. The "
        "strongly convex case has m = λ, as everywhere else. The figure does not depend on any data set, and nothing "
        "is simulated. The convex case and the smooth case use the logistic loss without its regulariser. The "
        "convex case uses the convexity of this loss, whereas the smooth case uses only M and L. In both cases, every "
        "step is projected onto a ball of radius R. Left: ε before unlearning, against learning steps T. At the T of "
        "this panel, the bounds do not depend on R. Middle: ε after T learning steps and K unlearning "
        "steps, compared with retraining for T + K steps. The middle panel uses our extension of the theorems "
        "to finite T. Right: ε before unlearning, in the limit of infinitely many learning steps, against σ. To the "
        "left of each steep line, nothing is promised: at σ = 0.03 and R = 1, the limit of ε is above 10⁵⁰⁰⁰. "
        "Proposition E.1 bounds the divergence of the Gibbs distributions that small steps approach. It is no "
        "guarantee for a run. The line “composition” is the bound for T Gaussian mechanisms.",
        "Three panels of ε on a logarithmic axis. Against T, the convex and smooth cases rise above composition, "
        "and the strongly convex case levels off. Against K, only the strongly convex case falls. Against σ, the "
        "convex and smooth cases fall steeply at a σ that grows with R.",
    ),
)
