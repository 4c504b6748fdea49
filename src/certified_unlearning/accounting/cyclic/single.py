"""Noisy gradient descent on cyclic mini-batches (NoisyCGD: Bok, Su, Altschuler, ICML 2024, and unlearning after it)."""

from dataclasses import replace

from certified_unlearning.accounting.core.checks import require_count
from certified_unlearning.accounting.core.curves import GaussianCurve
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.shifted.interpolation import phase, pooled_mu
from certified_unlearning.errors import AssumptionError, ParameterError


def cyclic_curve(
    problem: Problem,
    *,
    sigma: float,
    batches: int,
    batch_size: int,
    epochs: int,
    steps: int,
    records: int = 1,
    position: int | None = None,
) -> GaussianCurve:
    """Return how well the model after ``E`` epochs and ``K`` unlearning steps can be told from a retrained one.

    The records are dealt once, without looking at them, into ``l`` batches in a fixed order; an erased record is
    replaced, or its loss zeroed, *in its place*. Unlearning carries on with the cycle. Retrained: the same
    ``E l + K`` steps in the same order; whoever retrains for whole epochs needs ``K`` to be a multiple of ``l``.

    A record counts in its batch's steps of learning only, so the sensitivity goes up and down; the pooled value is
    right all the same (NoisyCGD's published bound is its case ``position = l``, ``K = 0``, ``l >= 2``).

    Args:
        problem: The constants. ``smoothness`` must hold for the mean loss of every *batch* (``1/4 + lambda`` does for
            logistic regression with rows of norm at most 1, the largest eigenvalue of all data does not).
        sigma: Noise scale; a step's noise has standard deviation ``sqrt(2 eta) sigma`` in every coordinate.
        batches: ``l``.
        batch_size: ``b``, with ``l b = n``.
        epochs: ``E``, passes over the data in learning.
        steps: ``K``, mini-batch steps of unlearning.
        records: ``S``, how many are erased.
        position: Which batch of the cycle, counted from 1, holds them all; None where that is unknown: the worst case,
            in which they fill the batches from the last one backwards.

    Raises:
        AssumptionError: ``step_size`` exceeds ``2 / L``, or the adjacency is ``remove``, which leaves no place.
    """
    require_count(least=1, batches=batches, batch_size=batch_size, records=records)
    require_count(least=0, epochs=epochs, steps=steps)
    if batches * batch_size != problem.n:
        raise ParameterError(
            f"batches * batch_size must be n = {problem.n}, got {batches} * {batch_size} = {batches * batch_size}"
        )
    if problem.adjacency == "remove":
        raise AssumptionError(
            "cyclic mini-batches need an erased record to keep its place: adjacency must be replace or zero-out, "
            "got remove"
        )
    batch = replace(problem, n=batch_size)
    epoch = [
        phase(batch, sigma=sigma, records=differing, steps=length)
        for differing, length in _runs(batches, batch_size, records, position)
    ]
    unlearning = phase(batch, sigma=sigma, records=0, steps=steps)
    return GaussianCurve(pooled_mu([*epoch * epochs, unlearning]))


def _runs(batches: int, batch_size: int, records: int, position: int | None) -> list[tuple[int, int]]:
    """Return one cycle as runs of batches: how many records differ in each batch, and how many batches do so."""
    if position is None:
        if records > batches * batch_size:
            raise ParameterError(f"records must be at most n = {batches * batch_size}, got {records}")
        full, rest = divmod(records, batch_size)
        partial = 1 if rest else 0
        return [(0, batches - full - partial), (rest, partial), (batch_size, full)]
    require_count(least=1, position=position)
    if position > batches:
        raise ParameterError(f"position must be at most batches = {batches}, got {position}")
    if records > batch_size:
        raise ParameterError(f"records in one batch must be at most batch_size = {batch_size}, got {records}")
    return [(0, position - 1), (records, 1), (0, batches - position)]
