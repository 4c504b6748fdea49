"""How measures are marked: what they return becomes quantities, and sweeps run over all combinations of values."""

import pytest
from pydantic import ValidationError

from certified_unlearning.reproduction.claims.registry import (
    Measure,
    changes,
    changes_in_units_of_first,
    last_over_first,
    measure,
    over_first,
    sweep,
)
from certified_unlearning.reproduction.claims.relations import Quantity

SQUARES = [Quantity(value, f"n = {n}") for n, value in ((2, 4.0), (3, 9.0), (4, 16.0))]


@pytest.mark.parametrize(
    ("returned", "quantities"),
    [
        (2.0, [Quantity(2.0)]),
        ({"mean": 1.0, "spread": 2.0}, [Quantity(1.0, "mean"), Quantity(2.0, "spread")]),
        (Quantity(1.0, "one", 0.5), [Quantity(1.0, "one", 0.5)]),
        ([Quantity(1.0, "one"), Quantity(2.0)], [Quantity(1.0, "one"), Quantity(2.0)]),
    ],
)
def test_what_a_measure_returns_becomes_quantities(returned, quantities):
    assert measure(lambda: returned)() == quantities


def test_a_sweep_runs_over_all_combinations_and_the_last_argument_runs_fastest():
    @sweep("n = {n}, rho = {rho:.2f}")
    def product(*, n: int, rho: float, scale: float = 1.0) -> float:
        return scale * n * rho

    assert product(n=[1, 2], rho=[3.0, 5.0], scale=2.0) == [
        Quantity(6.0, "n = 1, rho = 3.00"),
        Quantity(10.0, "n = 1, rho = 5.00"),
        Quantity(12.0, "n = 2, rho = 3.00"),
        Quantity(20.0, "n = 2, rho = 5.00"),
    ]


def test_a_sweep_names_parts_of_a_value_and_entries_without_a_name():
    @sweep("n = {size[0]}")
    def parts(*, size: tuple[int, int]) -> dict[str, float]:
        return {"sum": sum(size), "product": size[0] * size[1]}

    @sweep("n = {n}")
    def named(*, n: int) -> list[Quantity]:
        return [Quantity(n, "own name"), Quantity(2 * n, uncertainty=0.5)]

    assert parts(size=[(2, 3)]) == [Quantity(5, "sum, n = 2"), Quantity(6, "product, n = 2")]
    assert named(n=[1]) == [Quantity(1, "own name"), Quantity(2, "n = 1", 0.5)]


def test_what_becomes_of_all_entries_of_a_sweep():
    @sweep("n = {n}", then=changes)
    def square(*, n: int) -> float:
        return n**2

    assert square(n=[2, 3, 4]) == [Quantity(5, "n = 2 to n = 3"), Quantity(7, "n = 3 to n = 4")]
    assert [each.value for each in over_first(SQUARES)] == [1, 2.25, 4]
    assert [each.value for each in changes_in_units_of_first(SQUARES)] == [1.25, 1.75]
    assert last_over_first(SQUARES) == [Quantity(4, "n = 4 over n = 2")]


def test_only_measures_that_ask_for_it_get_the_evidence():
    @measure
    def of_results(evidence, *, n: int) -> float:
        return len(evidence) * n

    @sweep("{n}")
    def of_formulas(*, n: int) -> float:
        return n

    assert bound(of_results, n=3)(["a", "b"]) == [Quantity(6)]
    assert bound(of_formulas, n=[3])(["a", "b"]) == [Quantity(3, "3")]
    with pytest.raises(ValidationError, match="valid list"):
        bound(of_formulas, n=3)


def bound(function, **arguments):
    marked: Measure = function.measure
    return marked.bind(arguments)
