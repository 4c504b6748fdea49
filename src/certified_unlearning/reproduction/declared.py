"""Finding declarations in modules (experiments, mechanisms, drawing functions) by names of the form ``module:name``.

With names of the form ``module:name``, a job imports only the declarations that it needs, not a list of all
declarations. Therefore, a changed module reruns only the jobs that use it.
"""

from importlib import import_module
from typing import Any, TypeVar

from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.mechanism import Mechanism, Refit
from certified_unlearning.reproduction.experiment import Experiment

Kind = TypeVar("Kind")


def experiment(reference: str) -> Experiment:
    """Return the experiment of a reference such as ``package.module:name``.

    Raises:
        ParameterError: There is no such module, or it declares no experiment of that name.
    """
    return _named(reference, Experiment)


def mechanism(reference: str) -> Mechanism | Refit:
    """Return the mechanism that a reference names.

    The reference is ``package.module:name``. For a mechanism of this package, the name alone is enough.

    Raises:
        ParameterError: There is no such mechanism.
    """
    return _named(mechanism_reference(reference), Mechanism, Refit)  # type: ignore[return-value]


def mechanism_reference(name: str) -> str:
    """Return the reference ``module:name`` of a mechanism.

    Each mechanism of this package is declared in the module that is named after the mechanism.
    """
    return name if ":" in name else f"certified_unlearning.mechanisms.{name.replace('-', '_')}:{name}"


def mechanism_name(reference: str) -> str:
    """Return a mechanism's name, as it occurs in rows and paths."""
    return reference.rpartition(":")[2]


def function(reference: str) -> Any:
    """Return the function of a reference such as ``package.module:function``.

    Raises:
        ParameterError: There is no such function.
    """
    module, _, name = reference.partition(":")
    found = getattr(_module(module, reference), name, None)
    if found is None:
        raise ParameterError(f"{reference} names nothing: the module {module} has no {name}")
    return found


def _named(reference: str, *kinds: type[Kind]) -> Kind:
    module, _, name = reference.partition(":")
    declared = {
        each.name: each  # type: ignore[attr-defined]
        for each in vars(_module(module, reference)).values()
        if isinstance(each, kinds)
    }
    if name not in declared:
        known = f"only {', '.join(declared)}" if declared else "none"
        raise ParameterError(f"{reference} names nothing: the module declares {known} of type {kinds[0].__name__}")
    return declared[name]


def _module(name: str, reference: str) -> Any:
    if ":" not in reference or not name or name.startswith("."):
        raise ParameterError(f"{reference} names nothing: write it as package.module:name")
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if not name.startswith(error.name or " "):
            raise
        raise ParameterError(f"{reference} names nothing: there is no module {name}") from error
