"""Command-line options that are made from the settings of the ledger's mechanisms."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from types import GenericAlias
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from certified_unlearning.commands.options import delta_of, target
from certified_unlearning.errors import ParameterError
from certified_unlearning.ledger.mechanisms import LedgerMechanism
from certified_unlearning.ledger.settings.base import BatchSize
from certified_unlearning.vocabulary import Delta


def _batch_size(text: str) -> int | Literal["auto"] | None:
    if text == "auto":
        return "auto"
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ParameterError(f"--batch-size must be auto, all or a whole number, at least 1, got {text!r}")
    return int(text)


_READ: Mapping[Any, Callable[[Any], Any]] = {BatchSize: _batch_size, Delta: delta_of}
"""Functions that turn an option's text into its value, for types that Typer does not know; the keys are these types."""
_CALLBACKS: Mapping[str, Callable[..., Any]] = {"epsilon": target}
"""Functions that check an option's value before the command runs; the keys are names of settings."""


def with_settings(
    command: Callable[..., None], mechanisms: Iterable[LedgerMechanism], panel: str | None = None
) -> Callable[..., None]:
    """Return a command with the mechanisms' settings as options; only settings that a user gives are passed on.

    Args:
        command: The command, which receives the settings as keyword arguments.
        mechanisms: The mechanisms whose settings become options; of several settings with the same name, the first is
            used.
        panel: Heading of the settings in a help text, which then shows their usual values; None if no help is shown.
    """
    fields: dict[str, FieldInfo] = {}
    for mechanism in mechanisms:
        fields = {**mechanism.settings.model_fields, **fields}

    @functools.wraps(command)
    def taking(**values: Any) -> None:
        given = {name: value for name in fields if (value := values.pop(name)) not in (None, [])}
        read = {name: _READ.get(fields[name].annotation, _same)(value) for name, value in given.items()}
        command(**values, **read)

    general = [each for each in inspect.signature(command).parameters.values() if each.kind is not each.VAR_KEYWORD]
    options = [_option(name, field, panel) for name, field in fields.items()]
    taking.__signature__ = inspect.Signature([*general, *options])  # type: ignore[attr-defined]
    return taking


def _option(name: str, field: FieldInfo, panel: str | None) -> inspect.Parameter:
    """Return a setting as a parameter that Typer understands."""
    flag = f"--{name.replace('_', '-')}"
    kind: Any = field.annotation
    several = next((each for each in (kind, *get_args(kind)) if get_origin(each) is tuple), None)
    if kind in _READ:
        kind = str
    elif several is not None:
        # Each item of a sequence has a flag of its own.
        flag, kind = flag.removesuffix("s"), GenericAlias(list, get_args(several)[:1])
    elif kind is bool:
        flag = f"{flag}/--no-{flag[2:]}"
    option = typer.Option(flag, help=field.description, callback=_CALLBACKS.get(name), rich_help_panel=panel)
    usual = None if panel is None else field.default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=usual, annotation=Annotated[kind, option])


def _same(value: Any) -> Any:
    return value
