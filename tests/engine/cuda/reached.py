"""What of the engine takes tensors, or a device: found by its signatures, not by a list."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from types import ModuleType
from typing import Any

from certified_unlearning import engine

PARTS = ("Tensor", "device", "Interval", "Batch", "Factors", "StreamedRows")
"""A parameter takes tensors if its type names one of these."""


def takes_tensors(function: Callable[..., Any]) -> bool:
    """Return whether a parameter is a device, or a tensor, or holds some."""
    given = inspect.signature(function).parameters.values()
    return any(each.name == "device" or any(part in str(each.annotation) for part in PARTS) for each in given)


def public_functions(modules: list[ModuleType] | None = None) -> Iterator[str]:
    """Yield public functions, and classes' public methods, that take tensors or a device, as ``module:name``.

    A class whose own constructor takes some is named itself. Protocols compute nothing.
    """
    for module in modules or _modules():
        name = module.__name__.partition(".")[2]
        for own_name, own in vars(module).items():
            if getattr(own, "__module__", None) != module.__name__ or own_name.startswith("_"):
                continue
            if inspect.isfunction(own) and takes_tensors(own):
                yield f"{name}:{own.__qualname__}"
            elif inspect.isclass(own) and not getattr(own, "_is_protocol", False):
                if "__init__" in vars(own) and not is_dataclass(own) and takes_tensors(own.__init__):
                    yield f"{name}:{own.__qualname__}"
                for key, value in vars(own).items():
                    method = inspect.unwrap(getattr(value, "__func__", value))
                    if inspect.isfunction(method) and not key.startswith("_") and takes_tensors(method):
                        yield f"{name}:{method.__qualname__}"


def _modules() -> list[ModuleType]:
    found = pkgutil.walk_packages(engine.__path__, f"{engine.__name__}.")
    return [importlib.import_module(each.name) for each in found]
