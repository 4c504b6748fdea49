"""Measures by name: the functions that the table of claims may call, with their arguments checked."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from certified_unlearning.claims.relations import Quantity

MEASURES: "dict[str, Measure]" = {}


@dataclass(frozen=True)
class Measure:
    """A function from evidence and keyword arguments to quantities.

    Attributes:
        function: Takes a sequence of `Evidence` first, then keyword-only arguments.
        arguments: What these may be.
    """

    function: Callable[..., list[Quantity]]
    arguments: type[BaseModel]

    def bind(self, arguments: dict[str, Any]) -> Callable[..., list[Quantity]]:
        """Return the function with its arguments filled in; it takes the evidence.

        Raises:
            pydantic.ValidationError: An argument is unknown, missing, or of another type.
        """
        checked = self.arguments.model_validate(arguments)
        return partial(self.function, **{name: getattr(checked, name) for name in self.arguments.model_fields})


def measure(function: Callable[..., list[Quantity]]) -> Callable[..., list[Quantity]]:
    """Let the table of claims call a function by its name."""
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {
        name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    name = function.__name__
    MEASURES[name] = Measure(function, create_model(name, __config__=ConfigDict(extra="forbid"), **fields))
    return function


def changes(quantities: Sequence[Quantity]) -> list[Quantity]:
    """Return the differences of neighbouring quantities, each named after both."""
    return [
        Quantity(after.value - before.value, f"{before.name} to {after.name}") for before, after in pairwise(quantities)
    ]
