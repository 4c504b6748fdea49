"""Input checks of the accounting functions. Errors name the parameter, its value and the allowed values."""

import math
from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np

from certified_unlearning.errors import ParameterError
from certified_unlearning.vocabulary import Delta


def require_positive(**values: float) -> None:
    """Raise `ParameterError` unless every value is finite, above 0, and not a narrow NumPy integer."""
    for name, value in values.items():
        if type(value) is float and 0 < value < math.inf:
            continue  # The common case comes first, here and below: planners check often, and abstract types are slow.
        _refuse_narrow(name, value)
        if isinstance(value, bool) or not (isinstance(value, Real) and math.isfinite(value) and value > 0):
            raise ParameterError(f"{name} must be a finite number above 0, got {value!r}")


def require_non_negative(**values: float) -> None:
    """Raise `ParameterError` unless every value is finite, at least 0, and not a narrow NumPy integer."""
    for name, value in values.items():
        if type(value) is float and 0 <= value < math.inf:
            continue
        _refuse_narrow(name, value)
        if isinstance(value, bool) or not (isinstance(value, Real) and math.isfinite(value) and value >= 0):
            raise ParameterError(f"{name} must be a finite number, at least 0, got {value!r}")


def _refuse_narrow(name: str, value: object) -> None:
    """Raise `ParameterError` for a NumPy integer that has fewer than 64 bits or no sign.

    Arithmetic with such integers wraps around, so an epsilon could come out too small.
    """
    if isinstance(value, np.integer) and not (isinstance(value, np.signedinteger) and value.itemsize >= 8):
        raise ParameterError(
            f"{name} must be a Python number or a signed 64-bit number, because arithmetic with "
            f"{type(value).__name__} wraps around: use int({value}), got {value!r}"
        )


def require_probability(**values: float) -> None:
    """Raise `ParameterError` unless every value lies strictly between 0 and 1."""
    for name, value in values.items():
        if type(value) is float and 0 < value < 1:
            continue
        if not (isinstance(value, Real) and 0 < value < 1):
            raise ParameterError(f"{name} must lie strictly between 0 and 1, got {value!r}")


def required_delta(delta: Delta, n: int, name: str = "delta") -> float:
    """Return delta for ``n`` records as a Python number. "auto" gives ``min(1e-6, 1 / (10 n))``, "1/n" gives ``1 / n``.

    With a delta of ``1 / n``, an algorithm may publish a random record and still keep the guarantee. Therefore "auto"
    gives a delta at least ten times smaller. "1/n" is the papers' choice.

    Raises:
        ParameterError: Delta is neither "auto" nor "1/n" nor a number strictly between 0 and 1.
    """
    if isinstance(delta, str):
        named = {"auto": min(1e-6, 1 / (10 * n)), "1/n": 1 / n}
        delta = named.get(delta, delta)
    if not isinstance(delta, Real):
        raise ParameterError(f'{name} must be "auto", "1/n" or a number strictly between 0 and 1, got {delta!r}')
    require_probability(**{name: delta})
    return float(delta)


def require_count(*, least: int, **values: float) -> None:
    """Raise `ParameterError` unless every value is a whole number of at least ``least``.

    Narrow NumPy integers are refused.
    """
    for name, value in values.items():
        if type(value) is int and value >= least:
            continue
        _refuse_narrow(name, value)
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise ParameterError(f"{name} must be a whole number, at least {least}, got {value!r}")


def require_counts(name: str, values: Sequence[int], *, least: int) -> tuple[int, ...]:
    """Return a sequence of whole numbers as a tuple of Python integers.

    Raises:
        ParameterError: There are no values, or some are not whole numbers, are below ``least``, or are narrow NumPy
            integers.
    """
    if not values:
        raise ParameterError(f"{name} must hold at least one number, got none")
    if set(map(type, values)) == {int} and min(values) >= least:
        # Planners often check long schedules. Checking values one by one would dominate their running time.
        return values if type(values) is tuple else tuple(values)
    for position, value in enumerate(values):
        require_count(least=least, **{f"{name}[{position}]": value})
    return tuple(map(int, values))


def make_plain(constants: object, *names: str) -> None:
    """Convert the checked numbers of a frozen data class to Python numbers.

    NumPy's floats of low precision would make the results less precise.
    """
    for name in names:
        value = getattr(constants, name)
        if type(value) is not float and type(value) is not int:
            object.__setattr__(constants, name, int(value) if isinstance(value, Integral) else float(value))


def require_class_weights(class_weights: Sequence[float] | None, *, classes: int) -> None:
    """Raise `ParameterError` unless weights are None or hold a number from 0 to 1 for each of two or more classes.

    With a weight above 1, the bounds on a record's gradient and curvature would not hold.
    """
    if class_weights is None:
        return
    if len(class_weights) != classes or classes < 2 or not all(0 <= weight <= 1 for weight in class_weights):
        raise ParameterError(
            f"class_weights must be {classes} numbers from 0 to 1, one for each class, got {tuple(class_weights)}; "
            "divide the weights by the largest weight, and multiply C by it"
        )
