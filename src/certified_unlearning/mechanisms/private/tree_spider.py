"""Tree-based private Spider (Algorithm 6): one pass over disjoint batches along a binary tree.

Source: Ullah (2024). `accounting.private.tree_spider.TreeSpider` computes the privacy. As in SpiderBoost, the rounding
of gradients is counted, but the resolution of the sampler is not. Trials stop at different leaves, so each runs
separately.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from certified_unlearning.accounting.private.tree_spider import TreeSpider
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.engine.randomness import normal_rows
from certified_unlearning.mechanisms.private.fitting import require_fitting
from certified_unlearning.mechanisms.private.rounding_share import counted_distances, mean_gradient_error, require_share

Batches = Callable[[str, int], BoundedRecords]
"""A function that returns fresh records, given a node's name and the number of records."""


class Node(NamedTuple):
    """The final state of a node.

    Attributes:
        name: Bits of the path from the root to the node; empty for a root.
        weights: Weights of the node, shape ``(1, features)``.
        estimate: Noisy estimate of the gradient at these weights, shape ``(1, features)``.
    """

    name: str
    weights: Tensor
    estimate: Tensor


def learn(plan: TreeSpider, records: BoundedRecords, keys: Sequence[int]) -> Tensor:
    """Return the first leaf whose noisy gradient is small enough; if there is none, a uniformly drawn leaf.

    The arguments are those of `noisy_descent.learn`. The order of records must not depend on their values.

    Raises:
        AssumptionError: Weights became so large that the rounding of gradients would exceed its share of the
            sensitivity.
    """
    return torch.cat([_learned(plan, records, key) for key in keys])


def nodes(plan: TreeSpider, records: BoundedRecords, key: int, batches: Batches | None = None) -> Iterator[Node]:
    """Yield all nodes in the order of visits, root by root, without stopping.

    Publishing all nodes is as private as publishing one.

    Args:
        plan: The plan, as for `learn`.
        records: The records, as for `learn`.
        key: The trial's address.
        batches: Function that chooses the records, for tests; None: the records in order, each once.
    """
    require_fitting(plan.problem, records)
    fresh = _in_order(records) if batches is None else batches
    carry = records.rows.new_zeros(1, records.features)
    visited = 0
    for _ in range(plan.rounds):
        batch = fresh("", plan.batch)
        error = mean_gradient_error(plan.problem, plan.gradient_bound, plan.batch, carry)
        require_share(error, plan.gradient_bound, plan.batch)
        noise = normal_rows([address(str(key), "node", visited)], carry)
        below = {"": Node("", carry, batch.mean_gradients(carry) + plan.root_sigma * noise)}
        yield below[""]
        for name in pre_order(plan.depth):
            parent = below[name[:-1]]
            visited += 1
            if name[-1] == "0":
                here = Node(name, parent.weights, parent.estimate)
            else:
                noise = normal_rows([address(str(key), "node", visited)], carry)
                here = _right_child(plan, fresh(name, plan.node_batch(len(name))), parent, name, carry, noise)
            below[name] = here
            yield here
            if len(name) == plan.depth:
                size = torch.linalg.vector_norm(here.estimate)
                carry = here.weights - (plan.length / size if size > 0 else 0.0) * here.estimate
        visited += 1


def _right_child(
    plan: TreeSpider, batch: BoundedRecords, parent: Node, name: str, weights: Tensor, noise: Tensor
) -> Node:
    """Return a node whose estimate is its parent's estimate plus a noisy difference on fresh records."""
    both = torch.cat([weights, parent.weights])
    error = mean_gradient_error(plan.problem, plan.gradient_bound, len(batch), both)
    require_share(2 * error, plan.gradient_bound, len(batch))
    there, before = batch.mean_gradients(both).split([1, 1])  # type: ignore[no-untyped-call]
    apart = counted_distances(plan.problem, error, len(batch), plan.farthest, weights, parent.weights)
    sigma = plan.node_sigma(len(name), float(apart))
    # The order matters: the addition to the estimate must be rounded together with its noise.
    return Node(name, weights, parent.estimate + ((there - before) + sigma * noise))


def _learned(plan: TreeSpider, records: BoundedRecords, key: int) -> Tensor:
    leaves = []
    for node in nodes(plan, records, key):
        if len(node.name) == plan.depth:
            if float(torch.linalg.vector_norm(node.estimate)) <= 2 * plan.tolerance:
                return node.weights
            leaves.append(node.weights)
    return leaves[int(Draws(address(str(key), "leaf")).integers(len(leaves), 1))]


def pre_order(depth: int) -> list[str]:
    """Return the names of all nodes below a root in the order of visits, which is alphabetical."""
    return sorted("".join(bits) for level in range(1, depth + 1) for bits in product("01", repeat=level))


def _in_order(records: BoundedRecords) -> Batches:
    """Return a function that gives out records in order, each once."""
    used = 0

    def fresh(name: str, count: int) -> BoundedRecords:
        nonlocal used
        used += count
        return records.part(used - count, used)

    return fresh
