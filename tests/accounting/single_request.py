"""One request to noisy gradient descent on cyclic mini-batches, step by step: an oracle for streams of requests.

NoisyCGD: Bok, Su, Altschuler, ICML 2024, and unlearning after it.
"""

from dataclasses import replace

from certified_unlearning.accounting.core.curves import GaussianCurve
from certified_unlearning.accounting.core.pooling import pooled_mu
from certified_unlearning.accounting.shifted.interpolation import phase


def cyclic_curve(problem, *, sigma, batches, batch_size, epochs, steps, records=1, position=None):
    """How well the model after ``E`` epochs and ``K`` unlearning steps can be told from a retrained one.

    Retrained: the same ``E l + K`` steps in the same order. A record counts in its batch's steps of learning only, so
    the sensitivity goes up and down; the pooled value is right all the same (NoisyCGD's published bound is its case
    ``position = l``, ``K = 0``, ``l >= 2``). ``position`` counts batches from 1; None is the worst case, in which the
    records fill the batches from the last one backwards.
    """
    assert batches * batch_size == problem.n
    batch = replace(problem, n=batch_size)
    epoch = [
        phase(batch, sigma=sigma, records=differing, steps=length)
        for differing, length in _runs(batches, batch_size, records, position)
    ]
    unlearning = phase(batch, sigma=sigma, records=0, steps=steps)
    return GaussianCurve(pooled_mu([*epoch * epochs, unlearning]))


def _runs(batches, batch_size, records, position):
    """One cycle as runs of batches: how many records differ in each batch, and how many batches do so."""
    if position is None:
        full, rest = divmod(records, batch_size)
        partial = 1 if rest else 0
        return [(0, batches - full - partial), (rest, partial), (batch_size, full)]
    return [(0, position - 1), (records, 1), (0, batches - position)]
