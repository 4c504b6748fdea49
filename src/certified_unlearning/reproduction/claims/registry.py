"""Measures by name: the functions that the table of claims may call, with their arguments checked."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from certified_unlearning.reproduction.claims.relations import Quantity


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
    """Say that claims may call a function by its name, with keyword arguments of the types that it states."""
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {
        name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    arguments = create_model(function.__name__, __config__=ConfigDict(extra="forbid"), **fields)
    function.measure = Measure(function, arguments)  # type: ignore[attr-defined]
    return function


def measures(modules: Sequence[str]) -> dict[str, Measure]:
    """Return the functions of modules that `measure` marks, by their names."""
    return {
        name: each.measure
        for module in modules
        for name, each in vars(import_module(module)).items()
        if isinstance(getattr(each, "measure", None), Measure) and each.__module__ == module
    }


def changes(quantities: Sequence[Quantity]) -> list[Quantity]:
    """Return the differences of neighbouring quantities, each named after both."""
    return [
        Quantity(after.value - before.value, f"{before.name} to {after.name}") for before, after in pairwise(quantities)
    ]
