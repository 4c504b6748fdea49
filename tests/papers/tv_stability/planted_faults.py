"""Faults that tests plant below the measures of claims, and the claims whose verdicts they turn."""

import dataclasses
from fractions import Fraction

import torch

from certified_unlearning.accounting.core.groups import GroupBudget
from certified_unlearning.accounting.tv import erm, one_pass, tree
from certified_unlearning.mechanisms.exact import noisy_sgd
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.sisa import Sisa
from certified_unlearning.mechanisms.exact.trajectory import Trajectory
from certified_unlearning.papers.tv_stability.measures import (
    baselines,
    batches,
    couplings,
    descents,
    noise_scales,
    prefix_sums,
    queries,
    streams,
)
from certified_unlearning.papers.tv_stability.theory import enumeration, rates, single_pass, trees
from tests.engine.exact import wrong_steps


def times(function, factor):
    return lambda *arguments, **options: factor * function(*arguments, **options)


def inverse(function):
    return lambda *arguments, **options: -function(*arguments, **options)


def rounded_down(values, quantum, offsets):
    return torch.floor(values / quantum - offsets)


def down_to_cells(values, quantum, offsets):
    return quantum * (offsets + rounded_down(values, quantum, offsets))


def first_outside(n, batch_size):
    """Batches in which the first record outside takes a deleted one's place."""
    law = {}
    for batch, chance in enumeration.uniform(enumeration.subsets(range(n), batch_size)).items():
        if n - 1 in batch:
            batch = batch - {n - 1} | {min(set(range(n)) - batch)}
        law[batch] = law.get(batch, 0) + chance
    return law


def not_run_again(n, batch_size, steps, edit, **options):
    return enumeration.run_law(n, batch_size, steps), Fraction(0)


def at_rest(n, *arguments, **options):
    return {tuple(range(n)): Fraction(1)}


def one_batch(n, batch_size, **options):
    return {frozenset(range(batch_size)): Fraction(1)}


def counted_twice(self, state, record, draws, delete=ExactDescent.delete):
    work = delete(self, state, record, draws)
    work.gradients *= 2
    return work


def printed(function):
    return lambda *arguments, **options: function(*arguments, **options | {"printed": True})


def without_dimension(problem, real=erm.noisy_step_size, **options):
    return real(dataclasses.replace(problem, dimension=1), **options)


def first_only(length):
    return [1]


def _riskier(parameters):
    return dataclasses.replace(parameters, excess_risk=2 * parameters.excess_risk)


def _longer(parameters):
    return dataclasses.replace(parameters, steps=2 * parameters.steps)


FAULTS = {
    "a translation for the reflection": (
        [(couplings, "reflection_step", wrong_steps.moved_away)],
        ["tv-lemma-26-law", "tv-lemma-27-densities"],
    ),
    "the inverse ratio": (
        [(couplings, "log_density_ratio", inverse(couplings.log_density_ratio))],
        ["tv-lemma-26-maximal", "tv-lemma-26-law"],
    ),
    "distances ten per cent too large": (
        [(couplings, "gaussian_tv", times(couplings.gaussian_tv, 1.1))],
        ["tv-gaussian-bound", "tv-remark-1", "tv-lemma-26-maximal"],
    ),
    "half of a divergence": (
        [(couplings, "gaussian_renyi", times(couplings.gaussian_renyi, 0.25))],
        ["tv-pinsker", "tv-lemma-33"],
    ),
    "rounding down": (
        [(couplings, "cells", rounded_down), (couplings, "quantized", down_to_cells)],
        ["tv-lemma-31-unbiased", "tv-algorithm-24-same"],
    ),
    "a grid of a fifth of the spacing in all but the offsets": (
        [(couplings, "cells", lambda values, quantum, offsets: torch.round(5 * values / quantum - offsets))],
        ["tv-lemma-31-apart-exact"],
    ),
    "a grid five times as wide": (
        [(couplings, "quantized", lambda v, q, o, real=couplings.quantized: real(v, 5 * q, o))],
        ["tv-lemma-31-variance"],
    ),
    "the first record for a uniform one": (
        [(enumeration, "batch_after_deletion", first_outside)],
        ["tv-claim-5"],
    ),
    "one batch for all": (
        [
            (enumeration, name, one_batch)
            for name in ("batch_after_insertion", "batch_after_growth", "batch_after_shrinking")
        ],
        ["tv-claim-6", "tv-claim-9", "tv-claim-10"],
    ),
    "runs that an edit leaves as they are": (
        [(enumeration, "edited_run_law", not_run_again)],
        ["tv-proposition-4-deletion", "tv-proposition-4-insertion", "tv-subsampling-exact"],
    ),
    "one order for all": (
        [(enumeration, name, at_rest) for name in ("order_after_deletion", "order_after_insertion")],
        ["tv-lemma-35", "tv-insertion-place-end"],
    ),
    "records counted three times": (
        [(batches, "subsampling_tv", times(batches.subsampling_tv, 3))],
        ["tv-claim-4"],
    ),
    "the law of other members": (
        [(batches, "replaced_members", lambda **options: [0.25, 0.5, 0.25])],
        ["tv-proposition-9-members"],
    ),
    "edits that all compute again": (
        [
            (batches, "one_by_one_recomputations", lambda **options: float(options["removed"])),
            (batches, "batch_edit_probability", lambda **options: float(options["removed"])),
        ],
        ["tv-proposition-4-edits", "tv-proposition-6", "tv-proposition-6-linear"],
    ),
    "rejections 25 times as likely": (
        [(descents, "noisy_recompute_probability", times(descents.noisy_recompute_probability, 25))],
        [
            "tv-lemma-30",
            "tv-proposition-2",
            "tv-union-bound-noise",
            "tv-theorem-22-recompute",
            "tv-theorem-44-recompute",
        ],
    ),
    "cells left 200 times as often": (
        [(descents, "quantised_recompute_probability", times(descents.quantised_recompute_probability, 200))],
        ["tv-theorem-45-recompute", "tv-lemma-32"],
    ),
    "a distance of another order": (
        [(descents, "last_iterate_tv", lambda real=descents.last_iterate_tv, **o: real(**o) / o["steps"])],
        ["tv-proposition-5"],
    ),
    "a distance twelve times as large": (
        [(descents, "last_iterate_tv", times(descents.last_iterate_tv, 12))],
        ["tv-proposition-1"],
    ),
    "the printed forms for the proofs'": (
        [
            (erm, "noisy_step_size", without_dimension),
            (rates, "proposition_1_steps", printed(rates.proposition_1_steps)),
            (rates, "theorem_48_steps", printed(rates.theorem_48_steps)),
        ],
        ["tv-step-size-restored", "tv-proposition-1-condition-proof", "tv-theorem-48-steps-squared"],
    ),
    "the larger of two conditions": (
        [(rates, "proposition_1_steps", times(rates.proposition_1_steps, 2))],
        ["tv-corollary-7-printed-condition", "tv-corollary-8-printed-condition"],
    ),
    "Pinsker without its root": (
        [(descents, "noisy_stability", lambda printed=False, **options: 0.5 if printed else 1.0)],
        ["tv-proposition-1-pinsker"],
    ),
    "extrapolation left out": (
        [(Trajectory, "points", lambda self, trials, steps: 1 - 2 * self.weights[trials, steps])],
        ["tv-extrapolation-meant"],
    ),
    "rates twice as large": (
        [
            (erm, "theorem_44", lambda p, real=erm.theorem_44, **o: _riskier(real(p, **o))),
            (erm, "proposition_1", lambda p, real=erm.proposition_1, **o: _riskier(real(p, **o))),
            (erm, "proposition_7", lambda p, real=erm.proposition_7, **o: _riskier(real(p, **o))),
            (erm, "theorem_22", lambda p, real=erm.theorem_22: _riskier(real(p))),
            (rates, "theorem_23_risk", times(rates.theorem_23_risk, 100)),
        ],
        [
            "tv-theorem-44-rate-meant",
            "tv-corollary-7-rate",
            "tv-corollary-7-rate-least",
            "tv-corollary-8-rate",
            "tv-theorem-22-branches",
            "tv-theorem-23",
        ],
    ),
    "a lower bound above the upper one": (
        [(rates, "theorem_24_risk", times(rates.theorem_24_risk, 2))],
        ["tv-theorem-24"],
    ),
    "steps that are not the theorem's": (
        [
            (erm, "theorem_22", lambda p, real=erm.theorem_22: _longer(real(p))),
            (rates, "corollary_7", lambda p, real=rates.corollary_7, **o: _longer(real(p, **o))),
        ],
        ["tv-theorem-22-rate", "tv-remark-3"],
    ),
    "Proposition 3 with too many steps": (
        [(descents, "subsampling_tv", times(descents.subsampling_tv, 2))],
        ["tv-proposition-3"],
    ),
    "a count of iterations that starts late": (
        [(descents, "iterations_run_again", times(descents.iterations_run_again, 1.2))],
        ["tv-rerun-half"],
    ),
    "edits counted twice": (
        [(descents, "expected_without_noise", times(descents.expected_without_noise, 2))],
        ["tv-c12-batches-of-600"],
    ),
    "the inverse ratio at work": (
        [(noisy_sgd, "reflection_step", wrong_steps.inverted_ratio)],
        ["tv-lemma-28", "tv-lemma-28-plain", "tv-recompute-exact"],
    ),
    "edits that reject nothing": (
        [(noisy_sgd, "reflection_step", wrong_steps.never_rejecting)],
        ["tv-lemma-28", "tv-recompute-exact"],
    ),
    "the inverse ratio in the tree": (
        [("certified_unlearning.engine.exact.prefix_tree", "reflection_step", wrong_steps.inverted_ratio)],
        ["tv-lemma-36", "tv-tree-recompute", "tv-theorem-30-law", "tv-theorem-52-law"],
    ),
    "a tree whose edits reject nothing": (
        [("certified_unlearning.engine.exact.prefix_tree", "reflection_step", wrong_steps.never_rejecting)],
        ["tv-theorem-30-law", "tv-theorem-52-law", "tv-theorems-30-52-accuracy"],
    ),
    "a thousandth of the anytime noise": (
        [
            (
                streams,
                "height_sigmas",
                lambda *a, real=streams.height_sigmas, **o: [each / 1000 for each in real(*a, **o)],
            )
        ],
        ["tv-theorem-30-retrains", "tv-theorem-52-retrains"],
    ),
    "the inverse ratio in queries": (
        [
            (
                "certified_unlearning.mechanisms.exact.queries.linear_queries",
                "reflection_step",
                wrong_steps.inverted_ratio,
            )
        ],
        ["tv-algorithm-28-law", "tv-algorithm-28-insertion", "tv-algorithm-29-law"],
    ),
    "a tenth of the bound of queries": (
        [(queries, "query_recompute_probability", times(queries.query_recompute_probability, 0.1))],
        ["tv-algorithm-28-bound", "tv-algorithm-29-bound"],
    ),
    "clusters that hold one of everything": (
        [(queries.Lloyd, "sums", lambda self, step, models, records: torch.ones(1, 2))],
        ["tv-algorithm-29-linear-sums"],
    ),
    "probabilities to keep for those to compute again": (
        [(noise_scales, "_recompute_probabilities", inverse(noise_scales._recompute_probabilities))],
        ["tv-c12-scales"],
    ),
    "gradients counted twice": ([(ExactDescent, "delete", counted_twice)], ["tv-claim-8"]),
    "stages that are all as long": ([(Sisa, "steps_of", lambda self, stage: 60)], ["tv-sisa-speedup-average"]),
    "private models for every edit": (
        [(GroupBudget, "edits", 1), (GroupBudget, "learner_epsilon", 2.0)],
        ["tv-theorem-50-calls", "tv-theorem-50-guarantee"],
    ),
    "groups without their factor": (
        [(baselines, "group_guarantee", lambda epsilon, delta, edits: (edits * epsilon, delta))],
        ["tv-group-privacy"],
    ),
    "half of the noise of a mean": (
        [(baselines, "noisy_mean_sigma", times(baselines.noisy_mean_sigma, 0.5))],
        ["tv-noisy-mean"],
    ),
    "twice the noise of a mean": (
        [(baselines, "noisy_mean_sigma", times(baselines.noisy_mean_sigma, 2))],
        ["tv-claims-11-12"],
    ),
    "a prefix of one node": ([(tree, "nodes_of_prefix", first_only)], ["tv-prefix-nodes"]),
    "one node too many": (
        [(trees, "tested_nodes", lambda n, real=trees.tested_nodes: real(n) + 1)],
        ["tv-tested-nodes", "tv-tested-nodes-most"],
    ),
    "a hundredth of the printed noise of nodes, half of the calibrated one": (
        [
            (tree, "theorem_25_sigma", times(tree.theorem_25_sigma, 0.01)),
            (trees, "calibrated_sigma", times(trees.calibrated_sigma, 0.5)),
        ],
        ["tv-lemma-34-noise", "tv-calibrated"],
    ),
    "a thousand times as many rejections": (
        [(trees, "mean_recompute_probability", times(trees.mean_recompute_probability, 1000))],
        ["tv-lemma-38"],
    ),
    "more positions than there are": (
        [(tree, "deletion_queries", times(tree.deletion_queries, 10))],
        ["tv-theorem-25-complexity"],
    ),
    "twice the budget": (
        [(tree, "height_budgets", lambda *a, real=tree.height_budgets, **o: [3 * each for each in real(*a, **o)])],
        ["tv-anytime-budget"],
    ),
    "noise that grows with the sum": (
        [(trees, "prefix_noise", lambda length, sigmas: float(length))],
        ["tv-anytime-quadratic"],
    ),
    "the printed forms of chapter 5": (
        [
            (single_pass, "theorem_29_dimension", printed(single_pass.theorem_29_dimension)),
            (one_pass, "balanced_step_size", lambda **options: options["sigma"]),
            (prefix_sums, "query_sigma", times(prefix_sums.query_sigma, 0.5)),
            (single_pass, "theorem_26_risk", times(single_pass.theorem_26_risk, 3)),
            (single_pass.GeneralisedLinearProblem, "projected_smoothness", 1.0),
            (single_pass, "theorem_28_risk", lambda p: p.n**-0.5 + 1 / (p.n * p.rho)),
        ],
        [
            "tv-theorem-29-dimension-balanced",
            "tv-step-size-balanced",
            "tv-query-noise",
            "tv-theorem-51-complexity",
            "tv-table-5-1",
            "tv-algorithm-14-smoothness-proof",
            "tv-theorem-28-unlearning",
        ],
    ),
}
"""What is planted, and claims that are reproduced without it and contradicted with it."""
