"""The mean cost of a deletion from prefix sums, given what was learned; see also `mechanisms.exact.expected`.

Positions are uniform, so the average over positions equals the average over records. Along a learned tree, a node keeps
its value with a probability that follows from the drawn noise and from the deletion's effect on the node's sum.
"""

import torch
from torch import Tensor

from certified_unlearning.engine.exact.prefix_tree import PrefixTree, heights, lowest_bit
from certified_unlearning.engine.exact.reflection import log_density_ratio
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.exact.expected import ExpectedWork
from certified_unlearning.mechanisms.exact.one_pass.prefix_sums import PrefixSums


def expected_deletion_of_prefix_sums(system: PrefixSums, tree: PrefixTree) -> ExpectedWork:
    """Return the mean cost of deleting a record, for each trial.

    Args:
        system: The learner.
        tree: The learner's state, with noise at every height; it is not changed.

    Raises:
        ParameterError: Records are not in random order, there is only one record, or a height has no noise.
    """
    if system.settings.order != "random" or tree.size < 2 or not all(system.settings.sigmas):
        raise ParameterError(
            "the mean cost of a deletion is known only for two or more records in random order, with noise at every "
            "height"
        )
    found = torch.stack([_of_trial(system, tree, trial) for trial in range(tree.trials)])
    gradients, tests, rejected, again = found.T
    return ExpectedWork(gradients, tests, rejected, again)


def _of_trial(system: PrefixSums, tree: PrefixTree, trial: int) -> Tensor:
    """Return the mean numbers of gradients, of tests, of recomputations, and of repeated positions, shape ``(4,)``."""
    size = tree.size
    positions = torch.arange(1, size, device=tree.order.device)
    rows = torch.full_like(positions, trial)
    models, previous = tree.models[rows, positions], tree.models[rows, positions - 1]
    last = tree.order[trial, size].expand(size - 1)
    changes = system.learner.increments(positions, models, previous, last) - tree.increments[trial, 1:size]
    reached = torch.ones(size - 1, dtype=changes.dtype, device=changes.device)
    tests = rejected = again = changes.new_zeros(())
    nodes = positions
    while len(nodes):
        sums = tree.sums[trial, nodes]
        ratios = log_density_ratio(tree.noisy[trial, nodes], sums, sums + changes, tree.sigmas[heights(nodes)])
        rejections = -reached * torch.expm1(ratios.clamp(max=0))
        tests, rejected = tests + reached.sum(), rejected + rejections.sum()
        again = again + (rejections * (size - 1 - nodes)).sum()
        nodes, reached = nodes + lowest_bit(nodes), reached - rejections
        stays = nodes < size
        nodes, reached, changes = nodes[stays], reached[stays], changes[stays]
    queries = (size - 1) + again
    return torch.stack([system.learner.gradients_per_increment * queries, tests, rejected, again]) / size
