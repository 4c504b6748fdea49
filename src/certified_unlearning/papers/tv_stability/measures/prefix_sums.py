"""Measures of chapter 5: noisy prefix sums, learners of one pass, linear queries."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from scipy.optimize import brentq

from certified_unlearning.accounting.tv import one_pass, tree
from certified_unlearning.accounting.tv.distances import gaussian_tv
from certified_unlearning.accounting.tv.erm import ConvexProblem
from certified_unlearning.accounting.tv.recomputation import query_recompute_probability
from certified_unlearning.accounting.tv.tree import Budget
from certified_unlearning.papers.tv_stability.theory import single_pass, trees
from certified_unlearning.papers.tv_stability.theory.single_pass import GeneralisedLinearProblem
from certified_unlearning.papers.tv_stability.theory.stability import query_sigma
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.claims.registry import changes, measure
from certified_unlearning.reproduction.claims.relations import Quantity


@measure
def miscounted_positions(
    evidence: Sequence[Evidence], *, lengths: list[int], heights: int, printed: bool
) -> list[Quantity]:
    """Return how many positions a prefix sum counts another number of times than it should.

    Args:
        evidence: None is needed.
        lengths: Lengths of prefixes.
        heights: Levels of the tree, which has ``2^(heights - 1)`` leaves.
        printed: Whether the last leaf and the left children on its path to the root are summed, as Algorithm 32 prints,
            or the nodes of the dyadic decomposition. A node holds what was appended below it by then.
    """
    leaves = np.arange(1, 2 ** (heights - 1) + 1)
    found = []
    for length in lengths:
        if printed:
            places = [(length - 1) >> height for height in range(heights - 1)]  # The root is nobody's child.
            ends = [
                ((place + 1) << height, 1 << height)
                for height, place in enumerate(places)
                if height == 0 or place % 2 == 0
            ]
        else:
            ends = [(node, node & -node) for node in tree.nodes_of_prefix(length)]
        counts = np.sum([(leaves > end - size) & (leaves <= min(end, length)) for end, size in ends], axis=0)
        found.append(Quantity(int(np.sum(counts != (leaves <= length))), f"t = {length}"))
    return found


@measure
def appended_over_sum(evidence: Sequence[Evidence], *, lengths: list[int], printed: bool) -> list[Quantity]:
    """Return the prefix sum of a tree to which increments of 1 are appended, or their running sums, over ``t``."""
    found = []
    for length in lengths:
        appended = [position if printed else 1 for position in range(1, length + 1)]
        found.append(Quantity(sum(appended) / length, f"t = {length}"))
    return found


@measure
def tested_node_counts(evidence: Sequence[Evidence], *, n: list[int], of: Literal["mean", "largest"]) -> list[Quantity]:
    """Return how many nodes a deletion tests, on average or at most."""
    counts = [trees.tested_nodes(size) for size in n]
    values = [float(each.mean() if of == "mean" else each.max()) for each in counts]
    return [Quantity(value, f"n = {size}") for value, size in zip(values, n, strict=True)]


@measure
def tree_recomputation(
    evidence: Sequence[Evidence],
    *,
    n: list[int],
    rho: list[float],
    noise: Literal["printed", "calibrated"],
    over: Literal["rho", "lemma 38"],
    position: Literal["mean", "worst"] = "mean",
) -> list[Quantity]:
    """Return how likely a deletion computes again at a noise, over a bound; each size with its ``rho``."""
    found = []
    for size, each in zip(n, rho, strict=True):
        sigma = (tree.theorem_25_sigma if noise == "printed" else trees.calibrated_sigma)(
            n=size, rho=each, sensitivity=1.0
        )
        of_position = trees.mean_recompute_probability if position == "mean" else tree.worst_recompute_probability
        stated = each if over == "rho" else tree.lemma_38(n=size, rho=each)
        probability = of_position(n=size, sigma=sigma, sensitivity=1.0)
        found.append(Quantity(probability / stated, f"n = {size}, rho = {each:g}"))
    return found


@measure
def complexity_over_bound(evidence: Sequence[Evidence], *, n: list[int], sigma: list[float]) -> list[Quantity]:
    """Return the relative unlearning complexity over ``2 / n`` and the probability of computing again."""
    found = []
    for size in n:
        for each in sigma:
            again = trees.mean_recompute_probability(n=size, sigma=each, sensitivity=1.0)
            complexity = tree.deletion_queries(n=size, sigma=each, sensitivity=1.0) / size
            found.append(Quantity(complexity / (2 / size + again), f"n = {size}, sigma = {each:g}"))
    return found


@measure
def tree_distance_over_rho(evidence: Sequence[Evidence], *, n: int, rho: list[float]) -> list[Quantity]:
    """Return how far all nodes' noisy sums move at Lemma 34's noise, positions known, over ``rho``.

    Of increments that depend on no model and that a replacement moves by ``B``: exactly. Where positions are not known
    the sums move by that at most.
    """
    counts = trees.tested_nodes(n + 1)[:n]  # Of a replacement, which all n nodes are there for.
    found = []
    for each in rho:
        sigma = tree.theorem_25_sigma(n=n, rho=each, sensitivity=1.0)
        apart = float(np.mean([gaussian_tv(math.sqrt(count) / sigma) for count in counts]))
        found.append(Quantity(apart / each, f"rho = {each:g}"))
    return found


@measure
def tree_distance_seen_over_rho(evidence: Sequence[Evidence], *, n: int, rho: list[float]) -> list[Quantity]:
    """Return what one weighted sum of the noisy nodes tells apart at Theorem 25's printed noise, over ``rho``.

    All increments are 0 but one record's, ``-B / 2`` or ``B / 2``, at a uniform position that is not known; nodes weigh
    as much as they sum positions. The weighted sum's two laws mirror each other, so that its sign tells them apart
    best, and the mean over positions is their total variation: all nodes move by that at least. Printed is ``rho`` for
    ``rho^2``.
    """
    weights = {node: node & -node for node in range(1, n)}
    norm = math.hypot(*weights.values())
    moved = [sum(weights[node] for node in trees.nodes_of_position(place, n - 1)) / norm for place in range(1, n + 1)]
    found = []
    for each in rho:
        sigma = tree.theorem_25_sigma(n=n, rho=math.sqrt(each), sensitivity=1.0)
        seen = math.fsum(gaussian_tv(shift / sigma) for shift in moved) / n
        found.append(Quantity(seen / each, f"rho = {each:g}"))
    return found


@measure
def noise_over_theorem_25(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return Theorem 26's and 27's noise over Theorem 25's at the sensitivity of their increments."""
    problem = ConvexProblem(65_536, 10, 1.0, 2.0, 2.0, 0.25)
    frank_wolfe = one_pass.frank_wolfe_sensitivity(lipschitz=1.0, smoothness=2.0, diameter=2.0)
    averaging = one_pass.dual_averaging_sensitivity(lipschitz=1.0)
    return [
        Quantity(stated / tree.theorem_25_sigma(n=problem.n, rho=problem.rho, sensitivity=sensitivity), name)
        for name, stated, sensitivity in (
            ("Theorem 26", single_pass.theorem_26_sigma(problem), frank_wolfe),
            ("Theorem 27", single_pass.theorem_27_sigma(problem), averaging),
        )
    ]


@measure
def changes_of_noise_in_means(
    evidence: Sequence[Evidence], *, budget: Budget, rho: float, lengths: list[int]
) -> list[Quantity]:
    """Return how the noise of a prefix sum over its length changes from length to length, as a share of the first."""
    count = max(lengths).bit_length()
    sigmas = tree.height_sigmas(budget, rho=rho, sensitivity=1.0, count=count)
    first = trees.prefix_noise(lengths[0], sigmas) / lengths[0]
    return changes([Quantity(trees.prefix_noise(each, sigmas) / each / first, f"t = {each}") for each in lengths])


@measure
def budget_over_rho(evidence: Sequence[Evidence], *, budget: Budget, heights: list[int]) -> list[Quantity]:
    """Return the sum of what heights may cost over ``rho``."""
    return [
        Quantity(math.fsum(tree.height_budgets(budget, rho=0.5, count=count)) / 0.5, f"heights = {count}")
        for count in heights
    ]


@measure
def regret_over_rate_changes(
    evidence: Sequence[Evidence], *, rho: list[float], rule: Literal["printed", "balanced"]
) -> list[Quantity]:
    """Return how the logarithm of dual averaging's regret bound over Theorem 27's rate changes from ``rho`` to ``rho``.

    The bound, a record's share, is ``eta (G^2 + G sigma sqrt(d log2 n)) + D^2 / (2 n eta)`` (Kairouz et al., 2021).
    """
    found = []
    for each in rho:
        problem = ConvexProblem(65_536, 10, 1.0, 2.0, 2.0, each)
        sigma = single_pass.theorem_27_sigma(problem)
        if rule == "printed":
            size = single_pass.theorem_27_printed_step_size(problem)
        else:
            size = one_pass.balanced_step_size(n=problem.n, dimension=10, lipschitz=1.0, diameter=2.0, sigma=sigma)
        drift = 1 + sigma * math.sqrt(problem.dimension * math.log2(problem.n))
        regret = size * drift + problem.diameter**2 / (2 * problem.n * size)
        found.append(Quantity(math.log(regret / single_pass.theorem_27_risk(problem)), f"rho = {each:g}"))
    return changes(found)


@measure
def projected_errors_over_rate(
    evidence: Sequence[Evidence], *, stable_records: list[int], printed: bool
) -> list[Quantity]:
    """Return both errors of Theorem 29 at its dimension over ``(n rho)^(-1/3)``, constants 1."""
    found = []
    for size in stable_records:
        problem = GeneralisedLinearProblem(size, 1.0, 0.0, 1.0, 1.0, 1.0)
        dimension = single_pass.theorem_29_dimension(problem, printed=printed)
        for name, error in zip(
            ("noise", "projection"), single_pass.theorem_29_errors(problem, dimension=dimension), strict=True
        ):
            found.append(Quantity(error * size ** (1 / 3), f"{name}, n rho = {size}"))
    return found


@measure
def free_unlearning_exponent(evidence: Sequence[Evidence], *, n: list[int]) -> list[Quantity]:
    """Return the power of ``n`` that unlearning costs where Theorem 28's noise costs as much as sampling."""
    found = []
    for size in n:
        problem = GeneralisedLinearProblem(size, 1.0, 1.0, 1.0, 1.0, 1.0)

        def excess(log_rho: float, problem: GeneralisedLinearProblem = problem) -> float:
            alone = replace(problem, rho=1e9)  # So that nothing but the statistical term is left.
            both = single_pass.theorem_28_risk(replace(problem, rho=math.exp(log_rho)))
            return both - 2 * single_pass.theorem_28_risk(alone)

        log_rho = float(brentq(excess, -math.log(size), 0.0, xtol=1e-12))
        found.append(Quantity(1 + log_rho / math.log(size), f"n = {size}"))
    return found


@measure
def projected_curvature_over_stated(evidence: Sequence[Evidence], *, printed: bool) -> list[Quantity]:
    """Return the smoothness of a loss on a projected row of norm ``2 |X|`` over Algorithm 14's, or over its proof's."""
    problem = GeneralisedLinearProblem(10_000, 1.0, 0.25, 3.0, 1.0, 0.1)
    reached = problem.smoothness * (2 * problem.row_norm) ** 2
    stated = 2 * problem.smoothness * problem.row_norm**2 if printed else problem.projected_smoothness
    return [Quantity(reached / stated)]


@measure
def query_distance_over_rho(
    evidence: Sequence[Evidence], *, queries: list[int], rho: float, printed: bool
) -> list[Quantity]:
    """Return how far answers of linear queries move at a noise, over ``rho``: exactly, of queries that follow no model.

    Printed is Theorem 51's noise of means of ``n = 1000`` records, a replacement moving them by ``B / n``; otherwise
    sums, which a deletion moves by ``B``.
    """
    found = []
    for count in queries:
        sigma = query_sigma(queries=count, rho=rho, bound=1.0, n=1000, printed=printed)
        moved = 1 / 1000 if printed else 1.0
        found.append(Quantity(gaussian_tv(math.sqrt(count) * moved / sigma) / rho, f"T = {count}"))
    return found


@measure
def query_recomputation_over_rate(evidence: Sequence[Evidence], *, queries: list[int], rho: float) -> list[Quantity]:
    """Return how likely queries with our noise are computed again, at most, over Theorem 51's ``rho sqrt(T)``."""
    found = []
    for count in queries:
        sigma = query_sigma(queries=count, rho=rho, bound=1.0)
        probability = query_recompute_probability(queries=count, sigma=sigma, bound=1.0)
        found.append(Quantity(probability / (rho * math.sqrt(count)), f"T = {count}"))
    return found


@measure
def rate_over_earlier(evidence: Sequence[Evidence], *, rho: list[float]) -> list[Quantity]:
    """Return Theorem 26's rate over that of the earlier result in table 5-I; n = 100 000, d = 20, constants 1."""
    found = []
    for each in rho:
        problem = ConvexProblem(100_000, 20, 0.5, 0.5, 1.0, each)  # G + H D = 1.
        noise = problem.root_dimension / problem.stable_records
        earlier = 1 / math.sqrt(problem.n) + noise ** (2 / 3)
        found.append(Quantity(single_pass.theorem_26_risk(problem) / earlier, f"rho = {each:g}"))
    return found
