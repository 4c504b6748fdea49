"""Measures by name: the functions that the table of claims may call; their arguments are checked.

A measure returns a number, several numbers by name, or a list of quantities. `measure` marks a function as a measure.
`sweep` marks a measure that is evaluated for every combination of values. A measure of results has the evidence as its
first argument, ``evidence``. A measure of formulas has no such argument.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from importlib import import_module
from itertools import pairwise, product
from string import Formatter
from typing import Any, TypeAlias, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.claims.relations import Quantity

Measured: TypeAlias = float | Mapping[str, float] | Quantity | list[Quantity]
"""Result of a measure: a number, a mapping from names to numbers, or quantities."""
Function: TypeAlias = Callable[..., list[Quantity]]


@dataclass(frozen=True)
class Measure:
    """A function that computes quantities from keyword arguments and, if it needs results, evidence.

    Attributes:
        function: Function with keyword-only arguments. If the function needs the evidence, the evidence is the only
            positional argument.
        arguments: Pydantic model of the arguments.
        needs_evidence: Whether the function needs the evidence.
    """

    function: Function
    arguments: type[BaseModel]
    needs_evidence: bool

    def bind(self, arguments: dict[str, Any]) -> Callable[[Sequence[Evidence]], list[Quantity]]:
        """Return a function of the evidence, with all other arguments set.

        Raises:
            pydantic.ValidationError: An argument is unknown, missing, or of another type.
        """
        checked = self.arguments.model_validate(arguments)
        bound = partial(self.function, **{name: getattr(checked, name) for name in self.arguments.model_fields})
        return bound if self.needs_evidence else lambda evidence: bound()


def measure(function: Callable[..., Measured]) -> Function:
    """Mark a function as a measure that claims may call by name; its annotations give the types of its arguments."""
    return _marked(function, lambda *evidence, **given: _quantities(function(*evidence, **given)))


def sweep(
    name: str, *, then: Callable[[list[Quantity]], list[Quantity]] | None = None
) -> Callable[[Callable[..., Measured]], Function]:
    """Mark a function as a measure that claims may call by name. Claims give a list of values for each swept argument.

    The function is called for all combinations of values, one from each list. The last argument in its signature varies
    fastest.

    Args:
        name: Name of an entry, as a format string such as ``n = {n}``. The arguments that occur in this string are
            swept.
        then: Function that is applied to all entries together, such as `changes`.
    """
    fields = {(field or "").partition("[")[0] for _, field, _, _ in Formatter().parse(name)}

    def mark(function: Callable[..., Measured]) -> Function:
        swept = [argument for argument in inspect.signature(function).parameters if argument in fields]

        def at_all_points(*evidence: Any, **given: Any) -> list[Quantity]:
            found: list[Quantity] = []
            for values in product(*(given[argument] for argument in swept)):
                point = dict(zip(swept, values, strict=True))
                found += _quantities(function(*evidence, **{**given, **point}), name.format(**point))
            return found if then is None else then(found)

        return _marked(function, at_all_points, swept)

    return mark


def measures(modules: Sequence[str]) -> dict[str, Measure]:
    """Return the measures that `measure` and `sweep` marked in these modules, keyed by name."""
    return {
        name: each.measure
        for module in modules
        for name, each in vars(import_module(module)).items()
        if isinstance(getattr(each, "measure", None), Measure) and each.__module__ == module
    }


def changes(quantities: Sequence[Quantity]) -> list[Quantity]:
    """Return the differences of neighbouring quantities; each difference is named after both quantities."""
    return [
        Quantity(after.value - before.value, f"{before.name} to {after.name}") for before, after in pairwise(quantities)
    ]


def over_first(quantities: Sequence[Quantity]) -> list[Quantity]:
    """Return the quantities divided by the first one."""
    return [Quantity(each.value / quantities[0].value, each.name) for each in quantities]


def changes_in_units_of_first(quantities: Sequence[Quantity]) -> list[Quantity]:
    """Return the differences of neighbouring quantities, divided by the first of all quantities.

    Each difference is named after its two neighbours.
    """
    return changes(over_first(quantities))


def last_over_first(quantities: Sequence[Quantity]) -> list[Quantity]:
    """Return the last quantity divided by the first; the quotient is named after both."""
    first, *_, last = quantities
    return [Quantity(last.value / first.value, f"{last.name} over {first.name}")]


def _marked(function: Callable[..., Measured], called: Function, swept: Sequence[str] = ()) -> Function:
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters
    fields: dict[str, Any] = {
        name: (list[hints[name]] if name in swept else hints[name], ... if each.default is each.empty else each.default)  # type: ignore[valid-type]
        for name, each in parameters.items()
        if each.kind is each.KEYWORD_ONLY
    }
    arguments = create_model(function.__name__, __config__=ConfigDict(extra="forbid"), **fields)
    called = wraps(function)(called)
    called.measure = Measure(called, arguments, "evidence" in parameters)  # type: ignore[attr-defined]
    return called


def _quantities(measured: Measured, name: str = "") -> list[Quantity]:
    """Return a measure's result as quantities; ``name`` is used for quantities without a name."""
    match measured:
        case Quantity():
            return [measured if measured.name else measured._replace(name=name)]
        case list():
            return [quantity for each in measured for quantity in _quantities(each, name)]
        case Mapping():
            return [Quantity(value, ", ".join(filter(None, [each, name]))) for each, value in measured.items()]
    return [Quantity(measured, name)]
