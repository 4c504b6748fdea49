"""Experiment X12: audits of every private mechanism, and of mechanisms with planted faults.

An audit runs a mechanism on neighbouring data sets (`attacks`) and computes an exact lower bound on the privacy loss
(Clopper and Pearson). If the bound exceeds the stated value, the statement is false, unless this is a false alarm. If
the statement is true, the probability of a false alarm is at most `FALSE_ALARM`. The threshold of the test does not
depend on the runs. Selections are enumerated instead of sampled. If an output is Gaussian, Kolmogorov-Smirnov tests
also compare the output's scores with the exact distribution. If the scores pass, the audit also compares the exact
``mu`` of this distribution with the stated ``mu``; if they fail, the audit reports a fault.

The result of an audit is not an upper bound. An audit without a finding proves nothing. If a fault reduces the noise by
less than the width of the confidence interval, only the recomputed guarantee shows the fault (`checks`). Planners and
estimators make this check before they learn (`accounting.private.guarantee.require_met`).
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from certified_unlearning.accounting.core.checks import require_count
from certified_unlearning.accounting.core.conversion import mu_from_epsilon
from certified_unlearning.accounting.private.guarantee import require_met
from certified_unlearning.accounting.private.learners import NoisyDescent, OutputPerturbation
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.phased import PhasedDescent
from certified_unlearning.accounting.private.recursive import RecursiveRegularisation
from certified_unlearning.accounting.private.releases import noise_multiplier
from certified_unlearning.accounting.private.sampled import NoisySums, SampledDescent
from certified_unlearning.accounting.private.sampled_spider import SampledSpider
from certified_unlearning.accounting.private.searches import Boosting, GridSearch
from certified_unlearning.accounting.private.selections import (
    generalised_probabilities,
    mean_score_sensitivity,
    noisy_minimum_scale,
)
from certified_unlearning.accounting.private.spider import SpiderBoost
from certified_unlearning.accounting.private.tree_spider import TreeSpider
from certified_unlearning.accounting.residual.rounding import OUTWARD
from certified_unlearning.errors import AssumptionError
from certified_unlearning.papers.private_learning import attacks
from certified_unlearning.papers.private_learning.attacks import LINEAR, SQUARED, Attack
from certified_unlearning.papers.private_learning.audit_statistics import (
    EXACTLY,
    Audit,
    Method,
    audited,
    audited_batches,
    least_of_noisy,
    worst_ratio,
)
from certified_unlearning.papers.private_learning.theory.privacy import PRINTED
from certified_unlearning.vocabulary import Relation

DELTA = 1e-5
"""The delta of all audited plans."""


def selections(epsilon: float) -> list[Audit]:
    """Return the audits of Algorithms 4 and 15, whose selection probabilities on neighbours are enumerated."""
    problem = LinearProblem(n=1000, features=2, row_norm=1.0, loss=SQUARED, radius=1.0)

    def planner(some: LinearProblem, runs: int) -> NoisyDescent:
        return NoisyDescent.plan(some, epsilon=epsilon, delta=DELTA, runs=runs, steps=20)

    search = GridSearch.plan(problem, (0.5, 1.0, 2.0, 4.0), planner, epsilon=epsilon)

    def drawn(losses: Sequence[float]) -> attacks.Array:
        return generalised_probabilities(losses, search.sensitivities, epsilon=epsilon, beta=search.beta)

    widest = search.sensitivities[-1]
    bases = [[base * widest * k for k in range(5)] for base in (0.0, 0.5, -0.5)]
    found = max(worst_ratio(drawn, base, search.sensitivities) for base in bases)
    boosted = Boosting.plan(problem, planner, epsilon=epsilon)
    largest, relation = boosted.largest_loss, problem.relation
    moved = [mean_score_sensitivity(largest, n=boosted.validated, relation=relation)] * boosted.chunks
    # The fault: the noise is as if the losses had been measured on all records.
    forgotten = noisy_minimum_scale(mean_score_sensitivity(largest, n=problem.n, relation=relation), epsilon)
    level = [1.0] * boosted.chunks

    def least(scale: float) -> float:
        return worst_ratio(lambda losses: least_of_noisy(losses, scale), level, moved)

    return [
        _enumerated("grid search", "", epsilon, found, relation),
        _enumerated("boosting", "", epsilon, least(boosted.scale), relation),
        _enumerated("boosting", "n for the chunk size", epsilon, least(forgotten), relation),
    ]


def _enumerated(mechanism: str, planted: str, stated: float, shown: float, relation: Relation) -> Audit:
    return _exactly(mechanism, planted, "enumeration", stated, shown, relation)


def _exactly(mechanism: str, planted: str, method: Method, stated: float, shown: float, relation: Relation) -> Audit:
    return Audit(
        mechanism=mechanism,
        planted=planted,
        method=method,
        unit="epsilon",
        relation=relation,
        runs=0,
        stated=stated,
        shown=shown,
        exact=shown,
        false_alarm=0.0,
        caught=shown > stated * (1 + EXACTLY),
    )


def checks(epsilon: float) -> list[Audit]:
    """Return audits in which the run-time check `require_met` checks plans with and without planted faults."""
    squared = LinearProblem(n=1000, features=5, row_norm=1.0, loss=SQUARED, radius=1.0)
    logistic = replace(squared, loss=ScalarLoss(name="logistic"))
    asked: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA}
    descent = NoisyDescent.plan(squared, **asked, steps=100)
    embedded = NoisyDescent.plan(squared.embedded(3), **asked, steps=100)
    inner = embedded.problem
    planned_inside = NoisyDescent.plan(replace(inner, radius=inner.radius / 2), **asked, steps=100)
    unstretched = NoisyDescent.plan(replace(inner, row_norm=squared.row_norm), **asked, steps=100)
    phased = PhasedDescent.plan(squared, **asked)
    loss_at_zero = squared.loss.at_zero**2 / squared.gradient_bound
    stages = RecursiveRegularisation.plan(logistic, **asked, steps=50)
    few = len(stages.stages)
    by_relation = SpiderBoost.plan(replace(logistic, relation="add-remove"), **asked, gap=1.0, steps=50)
    plans: list[tuple[str, str, Any]] = [
        ("noisy descent", "", descent),
        ("noisy descent", "a forgotten sqrt(T)", _quieter(descent, math.sqrt(descent.releases))),
        ("embedding", "", embedded),
        ("embedding", "an inner radius too small", replace(planned_inside, problem=inner)),
        ("embedding", "rows as if they were not embedded", replace(unstretched, problem=inner)),
        ("phased descent", "", phased),
        (
            "phased descent",
            "L0 for G",
            replace(phased, phases=tuple(_quieter(each, 1 / loss_at_zero) for each in phased.phases)),
        ),
        ("recursive regularisation", "", stages),
        (
            "recursive regularisation",
            "n for the chunk size",
            replace(stages, stages=tuple(_quieter(each, few) for each in stages.stages)),
        ),
        ("SpiderBoost", "", SpiderBoost.plan(logistic, **asked, gap=1.0, steps=50)),
        ("SpiderBoost", "c = 1.61 for replace-one", replace(by_relation, problem=logistic)),
    ]
    found = []
    for mechanism, planted, plan in plans:
        recomputed, relation = plan.guarantee.epsilon(DELTA), plan.problem.relation
        row = _exactly(mechanism, planted, "recomputed guarantee", epsilon, recomputed, relation)
        try:
            require_met(plan.guarantee, **asked)
        except AssumptionError:
            found.append(replace(row, caught=True))
        else:
            found.append(replace(row, caught=False))
    return found


def _quieter(plan: Any, factor: float) -> Any:
    """Return a plan with its noise divided by a factor."""
    return replace(plan, sigma=plan.sigma / factor)


def sampled(*, runs: int, seed: int, epsilon: float) -> list[Audit]:
    """Return the audits of mechanisms that dp-accounting accounts for: SpiderBoost and DP-SGD on Poisson batches.

    Args:
        runs: The number of runs on each side.
        seed: The seed of the noise.
        epsilon: The epsilon of SpiderBoost's plan.

    Raises:
        ParameterError: dp-accounting is not installed.
    """
    line = LinearProblem(n=100, features=1, row_norm=1.0, loss=LINEAR, radius=1e6)
    without = replace(line, relation="add-remove")
    asked: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "gap": 1.0, "steps": 2, "batch": 25}
    spider = SampledSpider.plan(line, **asked)
    # To within a percent, half of the noise is what add-remove needs: c = 1.61 instead of 3.21.
    halved = replace(spider, sigma_gradient=spider.sigma_gradient / 2, sigma_difference=spider.sigma_difference / 2)
    # The largest mu that all Gaussian releases of the plan may show together.
    stated = mu_from_epsilon(epsilon, DELTA)
    some = {"runs": runs, "seed": seed}
    found = [
        audited(
            "SpiderBoost, sampled",
            attacks.spider_gradients(plan, **some),
            stated,
            relation=line.relation,
            planted=fault,
        )
        for plan, fault in ((spider, ""), (halved, "c = 1.61 for replace-one"))
    ]
    # The noise is so small that delta is large enough to be measured.
    loud = replace(spider, problem=without, sigma_difference=1 / spider.batch)
    for plan, fault in ((loud, ""), (_shrunk(loud), "n for the batch size")):
        attack = attacks.spider_batch(plan, **some)
        found.append(
            audited_batches("SpiderBoost, a batch", attack, loud.sums[1], relation="add-remove", planted=fault)
        )
    step = SampledDescent(problem=line, steps=1, share=0.5, clip=1.0, multiplier=1.0, step_size=1.0)
    sums = NoisySums(multiplier=step.multiplier, share=step.share, times=1)
    for taken, fault in ((step, ""), (replace(step, multiplier=0.5), "noise for add-remove, used for replace-one")):
        attack = attacks.batch(taken, **some)
        found.append(audited_batches("DP-SGD, a batch", attack, sums, relation=line.relation, planted=fault))
    return found


def _shrunk(plan: SampledSpider) -> SampledSpider:
    """Return the plan with less noise in the differences.

    This noise would be right if every batch contained all records.
    """
    return replace(plan, sigma_difference=plan.sigma_difference * plan.share)


def gaussian(*, runs: int, seed: int, epsilon: float) -> list[Audit]:
    """Return the audits of mechanisms with Gaussian noise, with and without faults.

    Args:
        runs: The number of runs on each side. A node of the tree has a quarter of these runs, because its runs are made
            one by one.
        seed: The seed of the noise.
        epsilon: The epsilon of every plan.
    """
    line = LinearProblem(n=100, features=1, row_norm=1.0, loss=LINEAR, radius=1e4)
    without = replace(line, relation="add-remove")
    asked: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA}
    some = {"runs": runs, "seed": seed}
    found: list[Audit] = []

    def add(mechanism: str, attack: Attack, stated: float, relation: Relation, planted: str = "") -> None:
        found.append(audited(mechanism, attack, stated, relation=relation, planted=planted))

    descent = NoisyDescent.plan(line, **asked, steps=50, step_size=0.1)
    for plan, fault in (
        (descent, ""),
        (_quieter(descent, math.sqrt(descent.releases)), "a forgotten sqrt(T)"),
    ):
        add("noisy descent", attacks.descent(plan, **some), descent.mu, line.relation, fault)

    ball = LinearProblem(n=1000, features=1, row_norm=1.0, loss=SQUARED, radius=2.0, relation="add-remove")
    inside, half = (
        NoisyDescent.plan(replace(ball, radius=radius), **asked, steps=40, step_size=1.0) for radius in (2.0, 1.0)
    )
    for plan, fault in ((inside, ""), (replace(half, problem=ball), "an inner radius too small")):
        add("noisy descent in a ball", attacks.gradients_in_the_ball(plan, **some), inside.mu, ball.relation, fault)

    output = OutputPerturbation.plan(replace(line, n=10, radius=1e3), **asked, strong_convexity=0.1)
    printed = replace(output, sigma=PRINTED["theorem 12"](epsilon, DELTA) * output.exact_sensitivity)
    for plan, fault in ((output, ""), (printed, "noise of Theorem 12 as printed")):
        add("output perturbation", attacks.minimiser(plan, **some), output.mu, line.relation, fault)

    one = PhasedDescent.plan(replace(line, n=16), **asked, step_size=1.0).phases[0]
    # The loss has range 1 / 2 and slopes of 1.
    for plan_of_pass, fault in ((one, ""), (_quieter(one, 2.0), "L0 for G")):
        add("phased descent", attacks.one_pass(plan_of_pass, **some), one.mu, line.relation, fault)

    stages = RecursiveRegularisation.plan(replace(line, n=60), **asked, strength=0.125, steps=50)
    chunks = len(stages.stages)
    planted = replace(stages, stages=tuple(_quieter(each, chunks) for each in stages.stages))
    for plan_of_stages, fault in ((stages, ""), (planted, "n for the chunk size")):
        attack = attacks.stage(plan_of_stages, **some)
        add("recursive regularisation", attack, stages.stages[0].mu, line.relation, fault)

    spider, other = (SpiderBoost.plan(each, **asked, gap=1.0, steps=12) for each in (line, without))
    for boosted, fault in ((spider, ""), (replace(other, problem=line), "c = 1.61 for replace-one")):
        add("SpiderBoost", attacks.spider_gradients(boosted, **some), spider.mu, line.relation, fault)
    forgotten = replace(other, sigma_difference=other.sigma_difference / math.sqrt(other.differences))
    for boosted, fault in ((other, ""), (forgotten, "a forgotten sqrt(T)")):
        add("SpiderBoost, differences", attacks.spider_differences(boosted, **some), other.mu, "add-remove", fault)

    return found + _nodes(runs=max(1, runs // 4), seed=seed, epsilon=epsilon)


def _nodes(*, runs: int, seed: int, epsilon: float) -> list[Audit]:
    """Return the audits of the tree's root alone and of each of its right children alone."""
    line = LinearProblem(n=32, features=1, row_norm=1.0, loss=LINEAR, radius=1.0)
    tree = TreeSpider(
        problem=line,
        batch=16,
        depth=2,
        rounds=1,
        step=0.2,
        tolerance=1e-9,
        multiplier=noise_multiplier(epsilon, DELTA) * OUTWARD,
    )
    # A loss of range 1 / 2 has slopes of 1; nodes two levels down have a quarter of the root's records.
    faults = {"": 1.0, "L0 for G": 2.0}
    found = [
        audited(
            "tree Spider, root",
            attacks.root(replace(tree, multiplier=tree.multiplier / factor), runs=runs, seed=seed),
            tree.mu,
            relation=line.relation,
            planted=fault,
        )
        for fault, factor in faults.items()
    ]
    without = replace(tree, problem=replace(line, relation="add-remove"))
    for name, factor, fault in (("01", 1.0, ""), ("1", 1.0, ""), ("11", 1.0, ""), ("11", 4.0, "n for the chunk size")):
        plan = replace(without, multiplier=tree.multiplier / factor)
        attack = attacks.right_child(plan, name, runs=runs, seed=seed)
        found.append(audited(f"tree Spider, node {name}", attack, tree.mu, relation="add-remove", planted=fault))
    return found


def rows(
    *, runs: int = 20_000, seed: int = 0, epsilon: float = 2.0, with_sampling: bool = True
) -> list[dict[str, Any]]:
    """Return the rows of X12: one for each audit, with and without planted faults.

    Args:
        runs: The number of runs of a mechanism on each data set.
        seed: The seed of the noise.
        epsilon: The epsilon of every plan, at delta `DELTA`.
        with_sampling: Whether to include mechanisms on Poisson batches, which need dp-accounting.

    Returns:
        The rows, with the columns of `Audit`. The probability that any audit is wrong about a true statement is at most
        `FALSE_ALARM` times the number of audits.

    Raises:
        ParameterError: ``with_sampling`` is true, and the package dp-accounting is not installed.
    """
    require_count(least=1, runs=runs)
    found = gaussian(runs=runs, seed=seed, epsilon=epsilon)
    if with_sampling:
        found += sampled(runs=runs, seed=seed, epsilon=epsilon)
    return [asdict(audit) for audit in (*found, *selections(epsilon), *checks(epsilon))]
