"""Measures of the exact distributions of batches, runs and record orders, before and after an edit."""

from collections.abc import Hashable, Iterable
from fractions import Fraction
from itertools import permutations
from typing import Literal

from certified_unlearning.accounting.tv.subsampling import subsampling_tv, subsampling_tv_bound
from certified_unlearning.papers.tv_stability.theory import enumeration
from certified_unlearning.papers.tv_stability.theory.batch_edits import (
    batch_edit_probability,
    insertion_tv,
    one_by_one_recomputations,
    replaced_members,
)
from certified_unlearning.papers.tv_stability.theory.enumeration import Edit, Law, subsets, total_variation
from certified_unlearning.papers.tv_stability.theory.stability import recourse_bound
from certified_unlearning.reproduction.claims.registry import measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

Growth = tuple[int, int, int, int]
"""The numbers ``n, k_1, k_2, m``."""


@sweep("n = {size[0]}, m = {size[1]}")
def deleted_batches(*, size: tuple[int, int]) -> float:
    """Return how far batches are from uniform after a uniformly drawn record replaces the deleted record.

    The argument ``size`` is ``(n, m)``.
    """
    n, m = size
    return _from_uniform(enumeration.batch_after_deletion(n, m), subsets(range(n - 1), m))


@sweep("n = {size[0]}, m = {size[1]}")
def inserted_batches(*, size: tuple[int, int], printed: bool = False) -> float:
    """Return how far batches are from uniform after an insertion.

    The new record joins a batch with probability ``m / n`` if ``printed`` is true, and ``m / (n + 1)`` otherwise.
    """
    n, m = size
    law = enumeration.batch_after_insertion(n, m, probability=Fraction(m, n if printed else n + 1))
    return _from_uniform(law, subsets(range(n + 1), m))


@sweep("n = {size[0]}, k1 = {size[1]}, k2 = {size[2]}, m = {size[3]}")
def grown_batches(*, size: Growth) -> float:
    """Return how far batches are from uniform after an edit that adds records (Algorithm 24, case 1)."""
    n, replaced, added, m = size
    law = enumeration.batch_after_growth(n, m, replaced=replaced, added=added)
    return _from_uniform(law, subsets([*range(n - replaced), *range(n, n + replaced + added)], m))


@sweep("n = {size[0]}, k1 = {size[1]}, k2 = {size[2]}, m = {size[3]}")
def shrunk_batches(*, size: Growth) -> float:
    """Return how far batches are from uniform after an edit that removes records (Algorithm 24, case 2)."""
    n, replaced, removed, m = size
    law = enumeration.batch_after_shrinking(n, m, replaced=replaced, removed=removed)
    return _from_uniform(law, subsets([*range(n - replaced - removed), *range(n, n + replaced)], m))


@measure
def replaced_member_counts(*, n: int, batch_size: int, replaced: int, added: int) -> dict[str, float]:
    """Return the distribution of Proposition 9's ``j``, the number of members of a batch that an edit replaces."""
    law = replaced_members(n=n, batch_size=batch_size, replaced=replaced, added=added)
    return {f"J = {count}": float(chance) for count, chance in enumerate(law)}


@measure
def edited_runs(*, n: int, batch_size: int, steps: int, edit: Edit) -> Quantity:
    """Return the distance between the distributions of all batches in two runs: an edited run and a fresh run.

    Both runs are runs of sub-sample-GD. The batches determine the models.
    """
    law, _ = enumeration.edited_run_law(n, batch_size, steps, edit)
    after = n - 1 if edit == "delete" else n + 1
    return Quantity(float(total_variation(law, enumeration.run_law(after, batch_size, steps))), edit)


@measure
def edits_that_compute_again(
    *, n: int, batch_size: int, steps: int, stated: Literal["exact", "one draw"]
) -> dict[str, float]:
    """Return a deletion's and an insertion's probability of a recomputation, divided by the stated probability.

    The probabilities are found by enumeration. The stated probabilities are ``1 - (1 - m / n)^T`` and
    ``1 - (1 - m / (n + 1))^T`` (``exact``), or ``T m / n`` for an insertion (``one draw``).
    """
    constants = {"n": n, "batch_size": batch_size, "steps": steps}
    _, deleted = enumeration.edited_run_law(n, batch_size, steps, "delete")
    _, inserted = enumeration.edited_run_law(n, batch_size, steps, "insert")
    if stated == "one draw":
        return {"insert": float(inserted) / subsampling_tv_bound(**constants)}
    return {
        "delete": float(deleted) / subsampling_tv(**constants),
        "insert": float(inserted) / insertion_tv(**constants),
    }


@sweep("n = {setting[0]}, m = {setting[1]}, T = {setting[2]}")
def batches_apart_over_bound(*, setting: tuple[int, int, int]) -> float:
    """Return ``1 - (1 - m / n)^T`` divided by Claim 4's ``T m / n``, for ``n, m, T``."""
    n, m, steps = setting
    return subsampling_tv(n=n, batch_size=m, steps=steps) / subsampling_tv_bound(n=n, batch_size=m, steps=steps)


@sweep("k = {removed}")
def gain_of_one_edit(*, n: int, batch_size: int, steps: int, removed: int) -> float:
    """Return sub-sample-GD's mean number of recomputations for single deletions, divided by that number for one edit.

    The edit removes together the records that the single deletions remove one by one.
    """
    constants = {"n": n, "batch_size": batch_size, "steps": steps, "removed": removed}
    return one_by_one_recomputations(**constants) / batch_edit_probability(**constants)


@sweep("k = {removed}")
def recomputations_over_bound(
    *, n: int, batch_size: int, steps: int, removed: int, bound: Literal["proposition 4", "proposition 6", "linearity"]
) -> float:
    """Return the probability that single deletions cause any recomputation, or the mean number of recomputations.

    The probability or the mean number is divided by a bound. The bounds are evaluated at ``rho = T m / n``. Proposition
    4 bounds the probability of any recomputation; the other bounds are on the mean number of recomputations.
    """
    rho = subsampling_tv_bound(n=n, batch_size=batch_size, steps=steps)
    stated = recourse_bound(rho=rho, edits=removed, printed=bound == "proposition 6")
    exact = batch_edit_probability if bound == "proposition 4" else one_by_one_recomputations
    again = exact(n=n, batch_size=batch_size, steps=steps, removed=removed)
    return again / stated


@sweep("n = {n}")
def orders_after_edit(*, n: int, edit: Literal["delete", "insert", "insert before the end"]) -> float:
    """Return how far the order of records is from uniform after an edit, by enumeration."""
    if edit == "delete":
        law, after = enumeration.order_after_deletion(n), n - 1
    else:
        law, after = enumeration.order_after_insertion(n, end_included=edit == "insert"), n + 1
    return _from_uniform(law, permutations(range(after)))


@measure
def average_of_equal_iterates(*, steps: int) -> float:
    """Return the printed average of ``T + 1`` iterates that are all 1: their sum divided by ``T``."""
    return (steps + 1) / steps


def _from_uniform(law: Law, outcomes: Iterable[Hashable]) -> float:
    """Return the distance of a distribution from the uniform distribution on these outcomes."""
    return float(total_variation(law, enumeration.uniform(outcomes)))
