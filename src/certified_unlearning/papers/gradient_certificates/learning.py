"""Networks that are trained with boxes, and the certified share of their predictions."""

from collections.abc import Sequence

import torch
from torch import Tensor

from certified_unlearning.engine.abstract_training.descent import Descent, Parameters
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood
from certified_unlearning.engine.intervals.margins import certify
from certified_unlearning.engine.intervals.network import Network
from certified_unlearning.engine.intervals.propagation import RUMP, TIGHTEST, Bounding
from certified_unlearning.mechanisms.certified_sgd.learned import ROWS_AT_ONCE, Learned
from certified_unlearning.mechanisms.certified_sgd.sgd import CertifiedSgd
from certified_unlearning.papers.gradient_certificates.sweeps import Training
from certified_unlearning.papers.gradient_certificates.tasks import Task
from certified_unlearning.vocabulary import Changes

CHANGES: dict[str, Changes] = {"unlearning": "removals", "privacy": "additions and removals"}
"""The possible changes of every batch, by mode: up to k removals, or up to k removals and up to k additions."""
BOUNDS: dict[str, Bounding] = {"tighter": TIGHTEST, "published": RUMP}
"""The bounds of boxes: our tighter bounds, or midpoints and radii everywhere, as in the paper and its authors' code."""


def learned(
    task: Task,
    training: Training,
    *,
    mode: str,
    gamma: float,
    k: Sequence[int],
    seed: int,
    bounds: str = "tighter",
) -> Learned:
    """Train a network of dense layers, one logit for each class, with a box for each k.

    The start and the batches depend only on the seed. The step size depends on the number of the update, counted from
    0.

    Args:
        task: The data to learn.
        training: The training recipe.
        mode: A key of `CHANGES`.
        gamma: The level to which the entries of a record's gradient are clamped.
        k: The numbers of records, increasing.
        seed: The seed of the start and the batches.
        bounds: A key of `BOUNDS`.

    Raises:
        AssumptionError: Removals could empty a batch.
        IntervalError: Bounds overflow.
    """
    network = Network.dense(task.features, *training.hidden, task.classes)
    descent = Descent(
        step_size=training.step_size,
        decay=training.decay,
        weight_decay=training.weight_decay,
        clipping="clamp",
        bound=gamma,
    )
    sgd = CertifiedSgd(
        network, descent, training.batch_size, training.epochs, Neighbourhood(CHANGES[mode]), BOUNDS[bounds]
    )
    generator = torch.Generator().manual_seed(seed)
    start = uniform_start(network, generator)
    places = sgd.places(len(task), generator)
    return sgd.learn(task.rows, task.labels, places, start, torch.ones(len(task), dtype=torch.bool), [*k])


def uniform_start(network: Network, generator: torch.Generator) -> Parameters:
    """Draw the start of training as PyTorch's layers do: uniform between minus and plus 1 / sqrt(inputs)."""
    found = []
    for layer in network.affine:
        shapes = [layer.weight_shape, (layer.outputs,)] if layer.bias else [layer.weight_shape]
        scale = layer.inputs**-0.5
        found += [scale * (2 * torch.rand(1, *shape, generator=generator, dtype=torch.float64) - 1) for shape in shapes]
    return tuple(found)


def certified(found: Learned, rows: Tensor, bounds: str = "tighter") -> Tensor:
    """Return whether each prediction is certified, for each k, shape ``(k, records)``.

    With ``published``, bounds of single logits are compared; with ``tighter``, the differences of logits are bounded.
    """
    if bounds == "tighter":
        return found.certified(rows)
    pieces = [
        certify(found.network, found.box, piece[None], found.bounding, joint=False).certified
        for piece in torch.split(rows, ROWS_AT_ONCE)
    ]
    return torch.cat(pieces, dim=1)


def accuracy(found: Learned, rows: Tensor, labels: Tensor) -> float:
    """Return the share of correct predictions."""
    return float((found.classes(rows) == labels).double().mean())
