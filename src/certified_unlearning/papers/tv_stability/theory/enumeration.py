"""Exact distributions of batches, runs and record orders in small examples, before and after an edit.

All cases are enumerated, and probabilities are fractions.

Records are numbered from 0. A deletion removes the last record, and an insertion adds the next number.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb, factorial
from typing import Literal, TypeAlias

Batch: TypeAlias = frozenset[int]
Law: TypeAlias = dict[Hashable, Fraction]
Edit = Literal["delete", "insert"]
Insertion = Literal["replaced", "drawn again"]


def uniform(outcomes: Iterable[Hashable]) -> Law:
    """Return the uniform distribution on distinct outcomes."""
    found = list(outcomes)
    return {each: Fraction(1, len(found)) for each in found}


def subsets(members: Iterable[int], size: int) -> list[Batch]:
    """Return all subsets of a given size."""
    return [frozenset(each) for each in combinations(sorted(members), size)]


def total_variation(first: Law, second: Law) -> Fraction:
    """Return the total variation between two distributions."""
    both = first.keys() | second.keys()
    apart = [abs(first.get(each, Fraction(0)) - second.get(each, Fraction(0))) for each in both]
    return sum(apart, Fraction(0)) / 2


def batch_after_insertion(n: int, batch_size: int, *, probability: Fraction) -> Law:
    """Return the distribution of a batch if, with a given probability, the next record replaces a uniform member."""
    law: Law = defaultdict(Fraction)
    for batch in subsets(range(n), batch_size):
        law[batch] += (1 - probability) / comb(n, batch_size)
        for leaving in batch:
            law[batch - {leaving} | {n}] += probability / comb(n, batch_size) / batch_size
    return law


def batch_after_deletion(n: int, batch_size: int) -> Law:
    """Return the distribution of a batch in which a uniform outside record replaces the last record (Algorithm 10)."""
    law: Law = defaultdict(Fraction)
    for batch in subsets(range(n), batch_size):
        outside = set(range(n - 1)) - batch if n - 1 in batch else set()
        for entering in outside:
            law[batch - {n - 1} | {entering}] += Fraction(1, comb(n, batch_size) * len(outside))
        if not outside:
            law[batch] += Fraction(1, comb(n, batch_size))
    return law


def batch_after_growth(n: int, batch_size: int, *, replaced: int, added: int) -> Law:
    """Return the distribution of a batch after an edit that replaces the last records and adds more.

    This is case 1 of Algorithm 24.

    First, the replacement records take the places of the replaced members of the batch. The members that make room for
    added records are then drawn from this batch.

    Args:
        n: The number of records before the edit.
        batch_size: The batch size ``m``.
        replaced: The number ``k_1`` of replaced records; ``n, n + 1, ...`` take their places.
        added: The number ``k_2`` of added records.
    """
    law: Law = defaultdict(Fraction)
    after = [*range(n - replaced), *range(n, n + replaced + added)]
    newcomers = frozenset(range(n + replaced, n + replaced + added))
    drawn_batches = subsets(after, batch_size)
    for batch in subsets(range(n), batch_size):
        mapped = frozenset(each + replaced if each >= n - replaced else each for each in batch)
        for drawn in drawn_batches:
            joining = drawn & newcomers
            leaving = subsets(mapped, len(joining))
            for those in leaving:
                weight = Fraction(1, comb(n, batch_size) * len(drawn_batches) * len(leaving))
                law[mapped - those | joining] += weight
    return law


def batch_after_shrinking(n: int, batch_size: int, *, replaced: int, removed: int) -> Law:
    """Return the distribution of a batch after an edit that replaces records and removes the last records.

    This is case 2 of Algorithm 24.
    """
    law: Law = defaultdict(Fraction)
    kept_below = n - replaced - removed
    after = frozenset([*range(kept_below), *range(n, n + replaced)])
    for batch in subsets(range(n), batch_size):
        staying = frozenset(
            each if each < kept_below else each + replaced + removed for each in batch if each < n - removed
        )
        entering = subsets(after - staying, batch_size - len(staying))
        for those in entering:
            law[staying | those] += Fraction(1, comb(n, batch_size) * len(entering))
    return law


def run_law(n: int, batch_size: int, steps: int) -> Law:
    """Return the joint distribution of all batches of a sub-sample-GD run; the batches determine the run's models."""
    return uniform(product(subsets(range(n), batch_size), repeat=steps))


def edited_run_law(
    n: int, batch_size: int, steps: int, edit: Edit, *, insertion: Insertion = "replaced"
) -> tuple[Law, Fraction]:
    """Return the distribution of all batches after an edit of sub-sample-GD, and the probability of a recomputation.

    Args:
        n: The number of records before the edit.
        batch_size: The batch size ``m``.
        steps: The number ``T`` of steps.
        edit: The edit of Algorithm 20: a deletion or an insertion.
        insertion: Whether the batch that a new record joins keeps its other members, or is drawn again from all
            records.
    """
    law: Law = defaultdict(Fraction)
    again = Fraction(0)
    after = subsets(range(n - 1 if edit == "delete" else n + 1), batch_size)
    for run, weight in run_law(n, batch_size, steps).items():
        assert isinstance(run, tuple)
        for start, begun, chance in _starts(run, n, edit, insertion, after):
            rest = list(product(after, repeat=steps - start))
            for new in rest:
                law[(*begun, *new)] += weight * chance / len(rest)
            again += weight * chance * (begun != run)
    return law, again


def _starts(
    run: tuple[Batch, ...], n: int, edit: Edit, insertion: Insertion, after: list[Batch]
) -> Iterator[tuple[int, tuple[Batch, ...], Fraction]]:
    """Yield three values for each case of an edit.

    The values are the first iteration with fresh batches, the batches before this iteration, and the probability of the
    case.
    """
    if edit == "delete":
        first = next((t for t, batch in enumerate(run) if n - 1 in batch), len(run))
        yield first, run[:first], Fraction(1)
        return
    joins, missed = Fraction(len(run[0]), n + 1), Fraction(1)
    for step, batch in enumerate(run):
        if insertion == "drawn again":
            for new in after:
                yield step + 1, (*run[:step], new), missed * joins / len(after)
        else:
            for leaving in batch:
                yield step + 1, (*run[:step], batch - {leaving} | {n}), missed * joins / len(batch)
        missed *= 1 - joins
    yield len(run), run, missed


def order_after_deletion(n: int) -> Law:
    """Return the distribution of a uniform order in which the last record replaces a deleted one (Lemma 35)."""
    law: Law = defaultdict(Fraction)
    for order in permutations(range(n)):
        place = order.index(n - 1)
        filled = (*order[:place], order[-1], *order[place + 1 :]) if place < n - 1 else order
        law[filled[:-1]] += Fraction(1, factorial(n))
    return law


def order_after_insertion(n: int, *, end_included: bool) -> Law:
    """Return the distribution of a uniform order in which a new record takes a uniform place.

    The record at this place moves to the end.

    Args:
        n: The number of records before the edit.
        end_included: Whether the new end is one of the places; Section D.6.2 chooses among the existing places.
    """
    law: Law = defaultdict(Fraction)
    places = n + 1 if end_included else n
    for order in permutations(range(n)):
        for place in range(places):
            new = (*order, n) if place == n else (*order[:place], n, *order[place + 1 :], order[place])
            law[new] += Fraction(1, factorial(n) * places)
    return law
