"""Measures of chapter 5: noisy prefix sums, one-pass learners, and linear queries."""

import math
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
from certified_unlearning.reproduction.claims.registry import changes, measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity


@sweep("t = {length}")
def miscounted_positions(*, length: int, heights: int, printed: bool) -> float:
    """Return the number of positions that a prefix sum counts a wrong number of times.

    Args:
        length: The length of the prefix.
        heights: The number of levels of the tree, which has ``2^(heights - 1)`` leaves.
        printed: Whether to sum the last leaf and the left children on its path to the root, as in Algorithm 32, instead
            of the nodes of the dyadic decomposition. A node contains the values that were appended below it so far.
    """
    leaves = np.arange(1, 2 ** (heights - 1) + 1)
    if printed:
        places = [(length - 1) >> height for height in range(heights - 1)]  # The root is not a child.
        ends = [
            ((place + 1) << height, 1 << height) for height, place in enumerate(places) if height == 0 or place % 2 == 0
        ]
    else:
        ends = [(node, node & -node) for node in tree.nodes_of_prefix(length)]
    counts = np.sum([(leaves > end - size) & (leaves <= min(end, length)) for end, size in ends], axis=0)
    return int(np.sum(counts != (leaves <= length)))


@sweep("t = {length}")
def appended_over_sum(*, length: int, printed: bool) -> float:
    """Return the sum of the first ``t`` values that are appended to a tree, divided by ``t``.

    The values are the running sums 1, 2, ... if ``printed`` is true, and increments of 1 otherwise.
    """
    appended = [position if printed else 1 for position in range(1, length + 1)]
    return sum(appended) / length


@sweep("n = {n}")
def tested_node_counts(*, n: int, of: Literal["mean", "largest"]) -> float:
    """Return the mean or the largest number of nodes that a deletion tests."""
    counts = trees.tested_nodes(n)
    return float(counts.mean() if of == "mean" else counts.max())


@sweep("n = {setting[0]}, rho = {setting[1]:g}")
def tree_recomputation(
    *,
    setting: tuple[int, float],
    noise: Literal["printed", "calibrated"],
    over: Literal["rho", "lemma 38"],
    position: Literal["mean", "worst"] = "mean",
) -> float:
    """Return the probability that a deletion causes a recomputation, divided by a bound, for each ``n, rho``."""
    n, rho = setting
    sigma = (tree.theorem_25_sigma if noise == "printed" else trees.calibrated_sigma)(n=n, rho=rho, sensitivity=1.0)
    of_position = trees.mean_recompute_probability if position == "mean" else tree.worst_recompute_probability
    stated = rho if over == "rho" else tree.lemma_38(n=n, rho=rho)
    return of_position(n=n, sigma=sigma, sensitivity=1.0) / stated


@sweep("n = {n}, sigma = {sigma:g}")
def complexity_over_bound(*, n: int, sigma: float) -> float:
    """Return the relative unlearning complexity, divided by ``2 / n`` plus the probability of a recomputation."""
    again = trees.mean_recompute_probability(n=n, sigma=sigma, sensitivity=1.0)
    complexity = tree.deletion_queries(n=n, sigma=sigma, sensitivity=1.0) / n
    return complexity / (2 / n + again)


@sweep("rho = {rho:g}")
def tree_distance_over_rho(*, n: int, rho: float) -> float:
    """Return the total variation of all nodes' noisy sums at Lemma 34's noise, divided by ``rho``.

    Positions are known. The value is exact for increments that do not depend on a model and that a replacement moves by
    ``B``. If positions are unknown, the total variation is at most as large.
    """
    counts = trees.tested_nodes(n + 1)[:n]  # A replacement meets all n nodes.
    sigma = tree.theorem_25_sigma(n=n, rho=rho, sensitivity=1.0)
    apart = float(np.mean([gaussian_tv(math.sqrt(count) / sigma) for count in counts]))
    return apart / rho


@sweep("rho = {rho:g}")
def tree_distance_seen_over_rho(*, n: int, rho: float) -> float:
    """Return the total variation between two distributions of one weighted sum of noisy nodes, divided by ``rho``.

    The noise of the nodes is Theorem 25's printed noise.

    All increments are 0 except that of one record, which is ``-B / 2`` or ``B / 2``; the record's position is uniform
    and unknown. The weight of a node is the number of positions that it sums. The two distributions of the weighted sum
    mirror each other, so the sum's sign is the best test between them. Their total variation is the mean, over
    positions, of the total variation given the position. The total variation of all nodes together is at least as
    large. The printed noise has ``rho`` instead of ``rho^2``.
    """
    weights = {node: node & -node for node in range(1, n)}
    norm = math.hypot(*weights.values())
    moved = [sum(weights[node] for node in trees.nodes_of_position(place, n - 1)) / norm for place in range(1, n + 1)]
    sigma = tree.theorem_25_sigma(n=n, rho=math.sqrt(rho), sensitivity=1.0)
    seen = math.fsum(gaussian_tv(shift / sigma) for shift in moved) / n
    return seen / rho


@measure
def noise_over_theorem_25() -> dict[str, float]:
    """Return the noise of Theorem 26 and the noise of Theorem 27, each divided by Theorem 25's noise.

    Theorem 25's noise is for the sensitivity of Frank-Wolfe's increments in the quotient of Theorem 26, and for the
    sensitivity of dual averaging's increments in the quotient of Theorem 27.
    """
    problem = ConvexProblem(65_536, 10, 1.0, 2.0, 2.0, 0.25)
    frank_wolfe = one_pass.frank_wolfe_sensitivity(lipschitz=1.0, smoothness=2.0, diameter=2.0)
    averaging = one_pass.dual_averaging_sensitivity(lipschitz=1.0)
    return {
        name: stated / tree.theorem_25_sigma(n=problem.n, rho=problem.rho, sensitivity=sensitivity)
        for name, stated, sensitivity in (
            ("Theorem 26", single_pass.theorem_26_sigma(problem), frank_wolfe),
            ("Theorem 27", single_pass.theorem_27_sigma(problem), averaging),
        )
    }


@measure
def changes_of_noise_in_means(*, budget: Budget, rho: float, lengths: list[int]) -> list[Quantity]:
    """Return the changes of the noise in a prefix's mean, from each prefix length to the next.

    The changes are divided by the noise at the first length.
    """
    count = max(lengths).bit_length()
    sigmas = tree.height_sigmas(budget, rho=rho, sensitivity=1.0, count=count)
    first = trees.prefix_noise(lengths[0], sigmas) / lengths[0]
    return changes([Quantity(trees.prefix_noise(each, sigmas) / each / first, f"t = {each}") for each in lengths])


@sweep("heights = {heights}")
def budget_over_rho(*, budget: Budget, heights: int) -> float:
    """Return the sum of the budgets of all heights divided by ``rho``."""
    return math.fsum(tree.height_budgets(budget, rho=0.5, count=heights)) / 0.5


@sweep("rho = {rho:g}", then=changes)
def regret_over_rate_changes(*, rho: float, rule: Literal["printed", "balanced"]) -> float:
    """Return the changes of ``log(bound / rate)`` with ``rho``.

    The bound is dual averaging's regret bound, and the rate is that of Theorem 27. The bound for one record is
    ``eta (G^2 + G sigma sqrt(d log2 n)) + D^2 / (2 n eta)`` (Kairouz et al., 2021).
    """
    problem = ConvexProblem(65_536, 10, 1.0, 2.0, 2.0, rho)
    sigma = single_pass.theorem_27_sigma(problem)
    if rule == "printed":
        size = single_pass.theorem_27_printed_step_size(problem)
    else:
        size = one_pass.balanced_step_size(n=problem.n, dimension=10, lipschitz=1.0, diameter=2.0, sigma=sigma)
    drift = 1 + sigma * math.sqrt(problem.dimension * math.log2(problem.n))
    regret = size * drift + problem.diameter**2 / (2 * problem.n * size)
    return math.log(regret / single_pass.theorem_27_risk(problem))


@sweep("n rho = {stable_records}")
def projected_errors_over_rate(*, stable_records: int, printed: bool) -> dict[str, float]:
    """Return the errors from noise and from projection at Theorem 29's dimension, divided by ``(n rho)^(-1/3)``.

    All constants are 1.
    """
    problem = GeneralisedLinearProblem(stable_records, 1.0, 0.0, 1.0, 1.0, 1.0)
    dimension = single_pass.theorem_29_dimension(problem, printed=printed)
    noise, projection = single_pass.theorem_29_errors(problem, dimension=dimension)
    return {"noise": noise * stable_records ** (1 / 3), "projection": projection * stable_records ** (1 / 3)}


@sweep("n = {n}")
def free_unlearning_exponent(*, n: int) -> float:
    """Return the exponent of ``n`` in ``n rho``, the cost of unlearning, if Theorem 28's two terms are equal."""
    problem = GeneralisedLinearProblem(n, 1.0, 1.0, 1.0, 1.0, 1.0)
    # At such a rho, only the statistical term of the risk remains.
    alone = single_pass.theorem_28_risk(replace(problem, rho=1e9))

    def excess(log_rho: float) -> float:
        return single_pass.theorem_28_risk(replace(problem, rho=math.exp(log_rho))) - 2 * alone

    log_rho = float(brentq(excess, -math.log(n), 0.0, xtol=1e-12))
    return 1 + log_rho / math.log(n)


@measure
def projected_curvature_over_stated(*, printed: bool) -> float:
    """Return the smoothness of the loss on a projected row of norm ``2 |X|``, divided by a constant.

    The constant is that of Algorithm 14 if ``printed`` is true, and that of the proof otherwise.
    """
    problem = GeneralisedLinearProblem(10_000, 1.0, 0.25, 3.0, 1.0, 0.1)
    reached = problem.smoothness * (2 * problem.row_norm) ** 2
    stated = 2 * problem.smoothness * problem.row_norm**2 if printed else problem.projected_smoothness
    return reached / stated


@sweep("T = {queries}")
def query_distance_over_rho(*, queries: int, rho: float, printed: bool) -> float:
    """Return the total variation of queries' answers divided by ``rho``, for queries that do not depend on a model.

    If ``printed`` is true, the noise is that of Theorem 51, and the queries are means of ``n = 1000`` records, which a
    replacement moves by ``B / n``. If ``printed`` is false, the noise is ours, and the queries are sums, which a
    deletion moves by ``B``.
    """
    sigma = query_sigma(queries=queries, rho=rho, bound=1.0, n=1000, printed=printed)
    moved = 1 / 1000 if printed else 1.0
    return gaussian_tv(math.sqrt(queries) * moved / sigma) / rho


@sweep("T = {queries}")
def query_recomputation_over_rate(*, queries: int, rho: float) -> float:
    """Return our bound on the probability that queries are recomputed, divided by Theorem 51's ``rho sqrt(T)``.

    The queries have our noise.
    """
    sigma = query_sigma(queries=queries, rho=rho, bound=1.0)
    probability = query_recompute_probability(queries=queries, sigma=sigma, bound=1.0)
    return probability / (rho * math.sqrt(queries))


@sweep("rho = {rho:g}")
def rate_over_earlier(*, rho: float) -> float:
    """Return Theorem 26's rate divided by the earlier rate in Table 5-I, for n = 100 000, d = 20 and constants of 1."""
    problem = ConvexProblem(100_000, 20, 0.5, 0.5, 1.0, rho)  # G + H D = 1.
    noise = problem.root_dimension / problem.stable_records
    earlier = 1 / math.sqrt(problem.n) + noise ** (2 / 3)
    return float(single_pass.theorem_26_risk(problem) / earlier)
