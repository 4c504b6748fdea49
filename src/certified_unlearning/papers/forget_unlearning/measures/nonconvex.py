"""Measures for Section 5.2: Theorem 5.2 and the results in its proof, compared with exact distributions.

The data are four records whose losses are waves on the real line (`theory.waves`). The amplitude of the waves is the
largest that Theorem 5.2 admits at its own noise, for q = 2, B = e, lambda = 1, epsilon_dp = 0.25 and epsilon_dd =
0.005. Each of the three requests shifts the wave of one record by half a period.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from certified_unlearning.papers.forget_unlearning.theory.gibbs import (
    BoundedProblem,
    divergence_from_gibbs,
    gibbs_risk,
)
from certified_unlearning.papers.forget_unlearning.theory.nonconvex import NonconvexPlan, plan_nonconvex_deletion
from certified_unlearning.papers.forget_unlearning.theory.waves import Array, Phases, Waves, divergence
from certified_unlearning.reproduction.claims.registry import measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

_RECORDS: Phases = (0.0, 1.0, 2.0, 3.0)
_TURNED: Phases = tuple(phase + math.pi for phase in _RECORDS)
_ALPHA, _EPSILON_DP, _EPSILON_DD = 2.0, 0.25, 0.005


class _Service(NamedTuple):
    """A plan of Theorem 5.2, the losses that it admits, and the distributions of its models."""

    plan: NonconvexPlan
    waves: Waves
    data: tuple[Phases, ...]
    models: tuple[Array, ...]


@cache
def _service() -> _Service:
    # In Eq. 163, sigma^2 is `noise` times the squared amplitude. The amplitude must be at most sigma^2 log(B) / 4, and
    # 4 / `noise` is the smallest such amplitude.
    noise = 2 * _ALPHA * math.e / (_EPSILON_DP * len(_RECORDS) ** 2) * math.log(_ALPHA / _EPSILON_DD)
    amplitude = 4 / noise
    problem = BoundedProblem(len(_RECORDS), 1, amplitude, 1.0, 1 + amplitude, math.e)
    plan = plan_nonconvex_deletion(problem, alpha=_ALPHA, epsilon_dp=_EPSILON_DP, epsilon_dd=_EPSILON_DD)
    waves = Waves(amplitude, 1.0, plan.sigma, plan.step_size)
    data = tuple(_TURNED[:turned] + _RECORDS[turned:] for turned in range(len(_RECORDS)))
    models = [waves.after(waves.start(), data[0], steps=plan.learning_steps)]
    for records in data[1:]:
        models.append(waves.after(models[-1], records, steps=plan.deletion_steps))
    return _Service(plan, waves, data, tuple(models))


@measure
def exact_over_epsilon_dp() -> dict[str, float]:
    """Return the exact divergence for a record that is present, divided by epsilon_dp.

    One value is for learning, and one is for a deletion.

    Each value is for the larger of the two directions of the divergence. The deletion starts from the same learned
    model for both data sets, which differ in their last record.
    """
    plan, waves, data, models = _service()
    learned = [waves.after(waves.start(), records, steps=plan.learning_steps) for records in data[:2]]
    others = (data[1], (*data[1][:-1], _TURNED[-1]))
    deleted = [waves.after(models[0], records, steps=plan.deletion_steps) for records in others]
    return {
        name: max(_between(waves, first, second), _between(waves, second, first)) / plan.epsilon_dp
        for name, (first, second) in {"learning": learned, "a deletion": deleted}.items()
    }


@measure
def exact_over_epsilon_dd() -> list[Quantity]:
    """Return the exact divergence of every model from the Gibbs distribution of its data, divided by epsilon_dd."""
    _, waves, data, models = _service()
    return [
        Quantity(
            divergence(waves.density(model), waves.gibbs(records), alpha=_ALPHA) / _EPSILON_DD,
            f"after {number} requests",
        )
        for number, (records, model) in enumerate(zip(data, models, strict=True))
    ]


@measure
def exact_over_nonconvex_risk() -> list[Quantity]:
    """Return the exact excess risk of every model, divided by the risk that Theorem 5.2 certifies."""
    plan, waves, data, models = _service()
    return [
        Quantity(waves.risk(waves.density(model), records) / plan.risk_bound, f"after {number} requests")
        for number, (records, model) in enumerate(zip(data, models, strict=True))
    ]


@sweep("K = {steps}")
def exact_over_theorem_g_22(*, steps: int) -> float:
    """Return the exact divergence from the Gibbs distribution, divided by Theorem G.22's bound.

    The steps start from the distribution of a model that was learned from the opposite records.
    """
    plan, waves, data, _ = _service()
    start = waves.after(waves.start(), _TURNED, steps=plan.learning_steps)
    gibbs = waves.gibbs(data[0])
    bound = divergence_from_gibbs(
        plan.problem,
        step_size=plan.step_size,
        alpha=_ALPHA,
        steps=steps,
        start=divergence(waves.density(start), gibbs, alpha=_ALPHA),
    )
    law = waves.after(start, data[0], steps=steps)
    return divergence(waves.density(law), gibbs, alpha=_ALPHA) / bound


@sweep("alpha = {alpha:g}")
def exact_over_lemma_g_23(*, alpha: float) -> float:
    """Return the divergence between the Gibbs distributions of two data sets, divided by Lemma G.23's bound.

    One data set contains the opposites of the records in the other data set. The result is for the larger of the two
    directions of the divergence.
    """
    _, waves, data, _ = _service()
    first, second = waves.gibbs(data[0]), waves.gibbs(_TURNED)
    circle = np.linspace(0, 2 * math.pi, 10_001)
    furthest = np.abs(waves.mean_loss(circle, data[0]) - waves.mean_loss(circle, _TURNED)).max()
    exact = max(divergence(first, second, alpha=alpha), divergence(second, first, alpha=alpha))
    return exact / float(2 * furthest / waves.sigma**2)


@measure
def exact_over_theorem_g_24() -> Quantity:
    """Return the exact excess risk of a Gibbs distribution, divided by Theorem G.24's bound."""
    plan, waves, data, _ = _service()
    exact = waves.risk(waves.gibbs(data[0]), data[0])
    return Quantity(exact / gibbs_risk(plan.problem, sigma=plan.sigma), "exact over bound")


@sweep("{share:g} of the threshold")
def gradients_saved_around_threshold(*, share: float) -> float:
    """Return the number of single-record gradients that a request saves if ``r / n`` is ``share`` times the threshold.

    The threshold is ``1/2 - epsilon_dd / log(B)``, which is 1/4 for ``epsilon_dd = log(B) / 4``. The other constants
    are n = 10 000, d = 20, q = 2 and B = 2.
    """
    n = 10_000
    problem = BoundedProblem(n, 20, 1.0, 1.0, 1.5, 2.0)
    epsilon_dd = math.log(2.0) / 4
    records = round(share * n / 4)
    plan = plan_nonconvex_deletion(problem, alpha=2.0, epsilon_dp=1.0, epsilon_dd=epsilon_dd, records=records)
    return plan.gradients_saved


def _between(waves: Waves, law: Array, reference: Array) -> float:
    return divergence(waves.density(law), waves.density(reference), alpha=_ALPHA)
