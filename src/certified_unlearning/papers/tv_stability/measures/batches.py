"""Measures of batches, runs of batches and orders: laws before and after an edit, by enumeration."""

from collections.abc import Sequence
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
from certified_unlearning.papers.tv_stability.theory.enumeration import Edit, subsets, total_variation
from certified_unlearning.papers.tv_stability.theory.stability import recourse_bound
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity

Growth = tuple[int, int, int, int]
"""``n, k_1, k_2, m``."""


@measure
def deleted_batches(evidence: Sequence[Evidence], *, sizes: list[tuple[int, int]]) -> list[Quantity]:
    """Return how far batches after uniform replacement are from uniform ones; of each ``n, m``."""
    return [
        Quantity(
            float(
                total_variation(enumeration.batch_after_deletion(n, m), enumeration.uniform(subsets(range(n - 1), m)))
            ),
            f"n = {n}, m = {m}",
        )
        for n, m in sizes
    ]


@measure
def inserted_batches(
    evidence: Sequence[Evidence], *, sizes: list[tuple[int, int]], printed: bool = False
) -> list[Quantity]:
    """Return how far batches are from uniform ones that a new record joins with ``m / (n + 1)``, or ``m / n``."""
    found = []
    for n, m in sizes:
        law = enumeration.batch_after_insertion(n, m, probability=Fraction(m, n if printed else n + 1))
        apart = total_variation(law, enumeration.uniform(subsets(range(n + 1), m)))
        found.append(Quantity(float(apart), f"n = {n}, m = {m}"))
    return found


@measure
def grown_batches(evidence: Sequence[Evidence], *, sizes: list[Growth]) -> list[Quantity]:
    """Return how far batches after an edit that adds records are from uniform ones (Algorithm 24, case 1)."""
    found = []
    for n, replaced, added, m in sizes:
        law = enumeration.batch_after_growth(n, m, replaced=replaced, added=added)
        after = [*range(n - replaced), *range(n, n + replaced + added)]
        apart = total_variation(law, enumeration.uniform(subsets(after, m)))
        found.append(Quantity(float(apart), f"n = {n}, k1 = {replaced}, k2 = {added}, m = {m}"))
    return found


@measure
def shrunk_batches(evidence: Sequence[Evidence], *, sizes: list[Growth]) -> list[Quantity]:
    """Return how far batches after an edit that removes records are from uniform ones (Algorithm 24, case 2)."""
    found = []
    for n, replaced, removed, m in sizes:
        law = enumeration.batch_after_shrinking(n, m, replaced=replaced, removed=removed)
        after = [*range(n - replaced - removed), *range(n, n + replaced)]
        apart = total_variation(law, enumeration.uniform(subsets(after, m)))
        found.append(Quantity(float(apart), f"n = {n}, k1 = {replaced}, k2 = {removed}, m = {m}"))
    return found


@measure
def replaced_member_counts(
    evidence: Sequence[Evidence], *, n: int, batch_size: int, replaced: int, added: int
) -> list[Quantity]:
    """Return the law of how many members of a batch an edit of many records replaces, Proposition 9's ``j``."""
    law = replaced_members(n=n, batch_size=batch_size, replaced=replaced, added=added)
    return [Quantity(float(chance), f"J = {count}") for count, chance in enumerate(law)]


@measure
def edited_runs(evidence: Sequence[Evidence], *, n: int, batch_size: int, steps: int, edit: Edit) -> list[Quantity]:
    """Return how far all batches after an edit of sub-sample-GD are from those of a fresh run; models follow."""
    law, _ = enumeration.edited_run_law(n, batch_size, steps, edit)
    after = n - 1 if edit == "delete" else n + 1
    return [Quantity(float(total_variation(law, enumeration.run_law(after, batch_size, steps))), edit)]


@measure
def edits_that_compute_again(
    evidence: Sequence[Evidence], *, n: int, batch_size: int, steps: int, stated: Literal["exact", "one draw"]
) -> list[Quantity]:
    """Return how often a deletion and an insertion compute again, by enumeration, over what is stated of them.

    ``exact``: ``1 - (1 - m / n)^T`` and ``1 - (1 - m / (n + 1))^T``; ``one draw``: ``T m / n`` of an insertion.
    """
    constants = {"n": n, "batch_size": batch_size, "steps": steps}
    _, deleted = enumeration.edited_run_law(n, batch_size, steps, "delete")
    _, inserted = enumeration.edited_run_law(n, batch_size, steps, "insert")
    if stated == "one draw":
        return [Quantity(float(inserted) / subsampling_tv_bound(**constants), "insert")]
    return [
        Quantity(float(deleted) / subsampling_tv(**constants), "delete"),
        Quantity(float(inserted) / insertion_tv(**constants), "insert"),
    ]


@measure
def batches_apart_over_bound(evidence: Sequence[Evidence], *, settings: list[tuple[int, int, int]]) -> list[Quantity]:
    """Return ``1 - (1 - m / n)^T`` over Claim 4's ``T m / n``; of each ``n, m, T``."""
    return [
        Quantity(
            subsampling_tv(n=n, batch_size=m, steps=steps) / subsampling_tv_bound(n=n, batch_size=m, steps=steps),
            f"n = {n}, m = {m}, T = {steps}",
        )
        for n, m, steps in settings
    ]


@measure
def gain_of_one_edit(
    evidence: Sequence[Evidence], *, n: int, batch_size: int, steps: int, removed: list[int]
) -> list[Quantity]:
    """Return how often sub-sample-GD computes again for deletions one by one, over that for one edit of all."""
    found = []
    for count in removed:
        constants = {"n": n, "batch_size": batch_size, "steps": steps, "removed": count}
        gain = one_by_one_recomputations(**constants) / batch_edit_probability(**constants)
        found.append(Quantity(gain, f"k = {count}"))
    return found


@measure
def recomputations_over_bound(
    evidence: Sequence[Evidence],
    *,
    n: int,
    batch_size: int,
    steps: int,
    removed: list[int],
    bound: Literal["proposition 4", "proposition 6", "linearity"],
) -> list[Quantity]:
    """Return how often deletions compute again, one by one, over a bound at ``rho = T m / n``.

    Proposition 4 bounds the probability that any of them does, the others how many do on average.
    """
    rho = subsampling_tv_bound(n=n, batch_size=batch_size, steps=steps)
    found = []
    for count in removed:
        stated = recourse_bound(rho=rho, edits=count, printed=bound == "proposition 6")
        exact = batch_edit_probability if bound == "proposition 4" else one_by_one_recomputations
        again = exact(n=n, batch_size=batch_size, steps=steps, removed=count)
        found.append(Quantity(again / stated, f"k = {count}"))
    return found


@measure
def orders_after_edit(
    evidence: Sequence[Evidence], *, sizes: list[int], edit: Literal["delete", "insert", "insert before the end"]
) -> list[Quantity]:
    """Return how far the order of records after an edit is from a uniform one, by enumeration."""
    found = []
    for n in sizes:
        if edit == "delete":
            law, after = enumeration.order_after_deletion(n), n - 1
        else:
            law, after = enumeration.order_after_insertion(n, end_included=edit == "insert"), n + 1
        apart = total_variation(law, enumeration.uniform(permutations(range(after))))
        found.append(Quantity(float(apart), f"n = {n}"))
    return found


@measure
def average_of_equal_iterates(evidence: Sequence[Evidence], *, steps: int) -> list[Quantity]:
    """Return the printed average of ``T + 1`` iterates that are all 1: their sum over ``T``."""
    return [Quantity((steps + 1) / steps)]
