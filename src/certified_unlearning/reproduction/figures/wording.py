"""Texts in figures: Greek letters, the source of a line's bound, and a common format of numbers."""

import re
from collections.abc import Sequence

import numpy as np
from matplotlib.ticker import Formatter

from certified_unlearning.accounting.accountants import ACCOUNTANTS
from certified_unlearning.data.sets import built_in

_GREEK = {
    "alpha": "α",
    "beta": "β",
    "delta": "δ",
    "epsilon": "ε",
    "eta": "η",
    "lambda": "λ",
    "mu": "μ",
    "sigma": "σ",
}
_LETTER = re.compile(rf"\b({'|'.join(_GREEK)})\b")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LEAST, _MOST = 1e-4, 1e7
"""Numbers between these two are written in full, other numbers with a power of ten."""
_ROOM = 40
"""Number of characters that fit below a panel."""


def greek(text: str) -> str:
    """Return a text with Greek letters instead of their names: ``ε = 0.5`` for ``epsilon = 0.5``."""
    return _LETTER.sub(lambda found: _GREEK[found[0]], text)


def method(name: str, accountant: str) -> str:
    """Return a method's name in legends: ``Langevin (lsi)`` becomes ``Langevin, paper’s bound (lsi)``.

    Args:
        name: Name of the method in rows (`mechanisms.run.Run.method`).
        accountant: Name of the accountant. If the accountant is not declared, or declares no name for its bound, the
            method's name is not changed.
    """
    known = ACCOUNTANTS.get(accountant)
    own = f" ({known.form})" if known is not None else ""
    if known is None or not known.bound or not name.endswith(own):
        return name
    return f"{name.removesuffix(own)}, {bound(accountant)}"


def member(text: str) -> str:
    """Return the value that distinguishes a method's lines, in the format of figures.

    The text ``epsilon = 0.5``, for example, becomes ``ε = 0.5``.
    """
    letter, equals, value = text.partition(" = ")
    return f"{greek(letter)} = {number(float(value))}" if equals else text


def title_of(data: str) -> str:
    """Return a data set's title, or its name if it is not one of the package's data sets."""
    known = built_in(data)
    return known.title if known else data


def bound(accountant: str) -> str:
    """Return the name of an accountant in legends, such as ``paper’s bound (lsi)``.

    The name states whose bound the accountant computes and, in parentheses, the accountant's name in rows.
    """
    known = ACCOUNTANTS[accountant]
    return f"{known.bound} ({known.form})" if known.bound else known.form


def number(value: float, digits: int = 6) -> str:
    """Return a number in the format of figures: ``1,437``, ``0.03``, ``−0.2``, ``8.35 × 10⁻⁵``."""
    if value and not _LEAST <= abs(value) < _MOST:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        times = "" if float(mantissa) == 1 else f"{float(mantissa):g} × "
        return f"{times}10{str(int(exponent)).translate(_RAISED)}".replace("-", "−")
    # The format `:g` would have no thousands separators from 10^digits on.
    whole = f"{abs(value):.{digits}g}"
    places = len(f"{float(whole):f}".rstrip("0").partition(".")[2])
    return fixed(float(whole) * np.sign(value), places)


def fixed(value: float, decimals: int) -> str:
    """Return a number with the given decimals, thousands separators, a true minus sign and no negative zero."""
    return f"{round(value, decimals) + 0.0:,.{decimals}f}".replace("-", "−")


class Numbers(Formatter):
    """Formats the ticks of every axis like `number`; on a linear axis, all ticks have the same number of decimals."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the label of one tick."""
        return number(x)

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Return the labels of all ticks."""
        ticks = np.asarray(values, dtype=float)
        if self.axis.get_scale() == "linear" and len(ticks) > 1:  # type: ignore[union-attr]
            # Rounding errors from adding up steps do not count as digits.
            ticks = np.round(ticks / np.ptp(ticks), 12) * np.ptp(ticks)
            small = [tick for tick in ticks if tick and not _LEAST <= abs(tick) < _MOST]
            if not small:
                decimals = max(len(number(tick).partition(".")[2]) for tick in ticks)
                return [fixed(tick, decimals) for tick in ticks]
        labels = [number(tick) for tick in ticks]
        if self.axis.axis_name == "x" and sum(len(label) + 1 for label in labels) > _ROOM:  # type: ignore[union-attr]
            exponents = np.log10(ticks)
            if np.array_equal(exponents, np.round(exponents)):
                return [f"10{str(int(exponent)).translate(_RAISED)}" for exponent in exponents]
        return labels
