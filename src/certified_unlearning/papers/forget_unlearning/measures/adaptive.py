"""Measures for Theorem 4.5, and for the text on small requests after Theorem 5.1. All of them are computed bounds.

The settings are those of `deletion_guarantees`. Exact values are for linear losses of one coordinate.
"""

import math
from typing import Literal

from certified_unlearning.accounting.deletion.soundness import largest_advantage
from certified_unlearning.papers.forget_unlearning.measures.deletion_guarantees import (
    SETTINGS,
    Setting,
    exact_divergence,
    setting_plan,
)
from certified_unlearning.papers.forget_unlearning.theory.attacks import encode_then_delete_advantage
from certified_unlearning.papers.forget_unlearning.theory.exact import kept_after
from certified_unlearning.papers.forget_unlearning.theory.soundness import (
    bernoulli_divergence,
    gaussian_advantage,
    necessary_epsilon,
)
from certified_unlearning.papers.privacy_dynamics.theory.gaussians import inverse_lsi
from certified_unlearning.reproduction.claims.registry import measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity


@sweep("alpha = {alpha:g}, advantage = {advantage:g}")
def advantage_at_equation_11(*, alpha: float, advantage: float) -> float:
    """Return the advantage that Theorem 4.1 allows for Eq. 11's epsilon, divided by the square of ``advantage``."""
    return largest_advantage(necessary_epsilon(advantage, alpha=alpha), alpha=alpha) / advantage**2


@sweep("epsilon_dp = {epsilon_dp:g}")
def least_deletion_bound_over_equation_11(*, setting: Setting, epsilon_dp: float) -> float:
    """Return the smallest deletion bound that the requester of Theorem 4.5's proof allows, divided by Eq. 11.

    The requester writes one record, whose value depends on the sign of the learned model. After the deletion, the sign
    of the model diverges from its reference; this divergence is the deletion bound. The two hypotheses are mirror
    images, so no reference is nearer to both hypotheses than a fair coin.
    """
    plan = setting_plan(setting, epsilon_dp=epsilon_dp, epsilon_dd=min(epsilon_dp, 0.1))
    problem, sigma, alpha = plan.problem, plan.sigma, plan.alpha
    # The steps are those of the setting; only the noise follows epsilon_dp.
    learning = setting_plan(setting).learning_steps
    deletion = setting_plan(setting, certify_risk=False).deletion_steps
    found = encode_then_delete_advantage(
        problem, sigma=sigma, learning_steps=learning, deletion_steps=deletion, edits=1
    )
    certain = math.log((1 + found) / 2), math.log((1 - found) / 2)
    bound = bernoulli_divergence(*certain, -math.log(2), -math.log(2), alpha=alpha)
    of_learning = gaussian_advantage(exact_divergence(plan, 0, learning), alpha=alpha)
    # The call is on data that differ in one record, from the same model.
    gap = problem.sensitivity(1) / problem.strong_convexity * (1 - kept_after(problem, deletion))
    variance = inverse_lsi(problem, sigma=sigma, steps=deletion, start=0.0)
    of_deletion = gaussian_advantage(alpha * gap**2 / (2 * variance), alpha=alpha)
    return bound / necessary_epsilon(min(of_learning, of_deletion), alpha=alpha)


@sweep("Adv(Test) = {advantage:g}")
def requester_over_product(*, advantage: float, payload: Literal["published", "other"]) -> float:
    """Return the requester's advantage divided by the product of the tests' advantages.

    The answer to the deletion depends on the model before the deletion. Learning publishes the bit of record n with
    probability ``(1 + a) / 2``, and otherwise the opposite bit. A call that replaces another record returns its input
    ``theta``. The call that replaces record n returns 1 with probability ``(y + 1 - theta) / 2``, where ``y`` is the
    bit of record 1. The test of this answer has the advantage 1 / 2, whatever ``theta`` is. The requester in the proof
    overwrites record 1 with the published bit. If the requester writes the opposite bit, an answer of 1 may be more
    likely under either hypothesis, so the advantage is that of the test or of its negation.
    """

    def says_1(published: int) -> float:
        written = published if payload == "published" else 1 - published
        return (written + 1 - published) / 2

    right, wrong = (1 + advantage) / 2, (1 - advantage) / 2
    under_1 = right * says_1(1) + wrong * says_1(0)
    under_0 = wrong * says_1(1) + right * says_1(0)
    return abs(under_1 - under_0) / (advantage / 2)


@sweep("{setting}")
def steps_beyond_privacy(*, setting: Setting) -> Quantity:
    """Return the number of deletion steps under Eq. 17 minus the number of deletion steps that privacy needs.

    Both numbers are for the largest ``r`` that the text allows.
    """
    return _steps_beyond_privacy(setting, share=1.0)


@measure
def steps_beyond_privacy_where_enough(*, setting: Setting) -> Quantity:
    """Return the same difference as `steps_beyond_privacy`, under the corrected conditions.

    The conditions are ``r <= sqrt(q d / (8 epsilon_dd))`` and ``epsilon_dd = epsilon_dp / (5 kappa)``.
    """
    plan = setting_plan(setting)
    condition = plan.problem.smoothness / plan.problem.strong_convexity
    return _steps_beyond_privacy(setting, share=1 / 8, epsilon_dd=SETTINGS[setting]["epsilon_dp"] / (5 * condition))


def _steps_beyond_privacy(setting: Setting, *, share: float, **changed: float) -> Quantity:
    values = SETTINGS[setting] | changed
    records = math.floor(math.sqrt(share * values["alpha"] * values["dimension"] / values["epsilon_dd"]))
    for_privacy = setting_plan(setting, **changed, records=records, certify_risk=False).deletion_steps
    for_both = setting_plan(setting, **changed, records=records).deletion_steps
    name = f"{setting}, r = {records}, {for_privacy} steps for privacy, {for_both} for privacy and risk"
    return Quantity(for_both - for_privacy, name)


@sweep("{setting}, epsilon_dd = epsilon_dp / {ratio:g}")
def linear_risk_at_privacy_steps(*, setting: Setting, ratio: float) -> float:
    """Return the excess risk on linear losses, with only the steps that privacy needs, divided by the certified risk.

    Each of 100 requests moves ``r = sqrt(q d / epsilon_dd)`` records as far as possible, all in the same direction.
    """
    values = SETTINGS[setting]
    values = values | {"epsilon_dd": values["epsilon_dp"] / ratio}
    records = math.floor(math.sqrt(values["alpha"] * values["dimension"] / values["epsilon_dd"]))
    plan = setting_plan(setting, epsilon_dd=values["epsilon_dd"], certify_risk=False)
    problem = plan.problem
    moved = problem.sensitivity(records) / problem.strong_convexity
    distance = kept_after(problem, setting_plan(setting).learning_steps) * problem.lipschitz / problem.strong_convexity
    furthest = distance
    for _ in range(100):
        distance = kept_after(problem, plan.deletion_steps) * (distance + moved)
        furthest = max(furthest, distance)
    risk = problem.strong_convexity / 2 * (furthest**2 + values["dimension"] * plan.start_variance)
    certified = setting_plan(setting).risk_bound
    assert certified is not None
    return float(risk / certified)
