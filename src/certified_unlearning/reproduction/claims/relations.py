"""Relations between measured and claimed values: a relation gives a range of allowed values for each entry."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from certified_unlearning.errors import ParameterError
from certified_unlearning.reproduction.claims.severity import Deviation, missed_bound, missed_range, missed_value
from certified_unlearning.text import counted

# This allows for values at the edge of a truncation interval: lambda = 1e-6 * 50 000 is one rounding below 0.05 in
# binary.
ROUNDING = 1e-12


class Quantity(NamedTuple):
    """One measured number, with its name.

    Attributes:
        value: The number.
        name: Name that distinguishes the number from other entries, such as ``sigma = 0.1``; may be empty for a single
            entry.
        uncertainty: Half the width of the number's confidence interval; 0 for computed values, which are not sampled.
    """

    value: float
    name: str = ""
    uncertainty: float = 0.0


class Finding(NamedTuple):
    """Result for one entry; ``agrees`` is None if the confidence interval is partly outside the allowed range.

    If the entry does not agree, ``miss`` is the size of the deviation.
    """

    agrees: bool | None
    text: str
    miss: Deviation | None = None


@dataclass(frozen=True)
class Range:
    """The values from ``low`` to ``high``; ``strict`` excludes both ends."""

    low: float = -math.inf
    high: float = math.inf
    strict: bool = False

    def judge(self, quantity: Quantity) -> bool | None:
        """Return True if a quantity's interval is inside the range, False if it is outside, and None otherwise."""
        ends = (quantity.value - quantity.uncertainty, quantity.value + quantity.uncertainty)
        inside = [self._holds(end) for end in ends]
        if all(inside):
            return True
        apart = ends[1] < self.low or ends[0] > self.high or (ends[0] == ends[1] and not inside[0])
        return False if apart else None

    def nearest(self, quantity: Quantity) -> float:
        """Return the value in a quantity's interval that is nearest to the range."""
        ends = (quantity.value - quantity.uncertainty, quantity.value + quantity.uncertainty)
        if ends[1] < self.low:
            return ends[1]
        return ends[0] if ends[0] > self.high else quantity.value

    def _holds(self, value: float) -> bool:
        if self.strict:
            return self.low < value < self.high
        return self.low <= value <= self.high


class _Relation(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _EntryByEntry(_Relation):
    """A relation to printed values, one for each measured entry."""

    values: Annotated[tuple[FiniteFloat, ...], Field(min_length=1)]

    def findings(self, measured: Sequence[Quantity]) -> list[Finding]:
        """Judge every entry.

        Raises:
            ParameterError: The numbers of printed and measured values differ.
        """
        if len(measured) != len(self.values):
            raise ParameterError(f"{len(self.values)} values are expected, but {len(measured)} were measured")
        findings = []
        for number, (printed, quantity) in enumerate(zip(self.values, measured, strict=True), start=1):
            where = f"entry {number}" + (f" ({quantity.name})" if quantity.name else "")
            text = f"{where}: printed {formatted(printed)}, computed {_with_uncertainty(quantity)}"
            allowed = self.allowed(printed)
            agrees = allowed.judge(quantity)
            miss = self.missed(printed, allowed.nearest(quantity)) if agrees is False else None
            findings.append(Finding(agrees, text, miss))
        return findings

    def missed(self, printed: float, measured: float) -> Deviation:
        """Return the deviation of a measured value from a printed one."""
        return missed_value(printed, measured)

    @abstractmethod
    def allowed(self, printed: float) -> Range:
        """Return the measured values that agree with a printed one."""

    def expected_text(self) -> str:
        """Return the expected values as text."""
        return ", ".join(map(formatted, self.values))

    def measured_text(self, measured: Sequence[Quantity]) -> str:
        """Return the measured values as text."""
        return ", ".join(map(_with_uncertainty, measured))


class Equals(_EntryByEntry):
    """Equal within an absolute or relative tolerance, or exactly equal if there is no tolerance."""

    relation: Literal["equals"]
    absolute: Annotated[FiniteFloat, Field(ge=0)] = 0.0
    relative: Annotated[FiniteFloat, Field(ge=0)] = 0.0
    why: str = ""

    @model_validator(mode="after")
    def _tolerance_has_a_reason(self) -> "Equals":
        if (self.absolute or self.relative) and not self.why:
            raise ValueError("a tolerance needs a `why`")
        return self

    def allowed(self, printed: float) -> Range:
        """Return the measured values that agree with a printed one."""
        tolerance = max(self.absolute, self.relative * abs(printed))
        return Range(printed - tolerance, printed + tolerance)

    def tolerance_text(self) -> str:
        """Return the tolerance and its reason."""
        amounts = {"absolute": self.absolute, "relative": self.relative}
        amount = ", ".join(f"{value:g} {kind}" for kind, value in amounts.items() if value)
        return f"{amount}: {self.why}" if amount else f"none: {self.why or 'the numbers are exact'}"


class Truncated(_EntryByEntry):
    """The printed value is the exact one, cut off (not rounded) after the given number of decimals."""

    relation: Literal["truncated"]
    digits: Annotated[int, Field(ge=0)]
    relative: Annotated[FiniteFloat, Field(ge=0)] = 0.0
    why: str = ""

    def allowed(self, printed: float) -> Range:
        """Return the measured values that agree with a printed one."""
        slack = self.relative * abs(printed)
        unit = 10.0**-self.digits
        return Range(printed - slack - ROUNDING, printed + unit + slack - ROUNDING)

    def tolerance_text(self) -> str:
        """Return the tolerance and its reason."""
        slack = f"; {self.relative:g} relative: {self.why}" if self.relative else ""
        return f"printed values are cut off after {self.digits} digits, not rounded{slack}"


class PrintedOverExact(_EntryByEntry):
    """Printed values that should be equal to exact values, or slightly larger.

    The quotient printed / exact must be in the range from ``low`` to ``high``.
    """

    relation: Literal["printed over exact"]
    low: Annotated[FiniteFloat, Field(gt=0)]
    high: Annotated[FiniteFloat, Field(gt=0)]
    why: str

    def allowed(self, printed: float) -> Range:
        """Return the measured values that agree with a printed one."""
        return Range(printed / self.high, printed / self.low)

    def tolerance_text(self) -> str:
        """Return the tolerance and its reason."""
        return f"printed / exact from {self.low:g} to {self.high:g}: {self.why}"


class AtMost(_EntryByEntry):
    """Measured values that should be at most the printed ones."""

    relation: Literal["at most"]
    why: str = ""

    def allowed(self, printed: float) -> Range:
        """Return the measured values that agree with a printed one."""
        return Range(high=printed)

    def missed(self, printed: float, measured: float) -> Deviation:
        """Return the amount by which a measured value exceeds a printed bound."""
        return missed_bound(printed, measured)

    def tolerance_text(self) -> str:
        """Return the tolerance and its reason."""
        return f"none: {self.why or 'an upper bound'}"

    def expected_text(self) -> str:
        """Return the expected values as text."""
        return f"at most {super().expected_text()}"


class Between(_Relation):
    """Any number of measured values, all in the same range."""

    relation: Literal["between"]
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None
    strict: bool = False
    why: str

    @model_validator(mode="after")
    def _has_an_end(self) -> "Between":
        if self.low is None and self.high is None:
            raise ValueError("give `low`, `high` or both")
        return self

    def findings(self, measured: Sequence[Quantity]) -> list[Finding]:
        """Judge every entry."""
        allowed = Range(
            -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high, self.strict
        )
        findings = []
        for each in measured:
            text = f"{each.name + ': ' if each.name else ''}{_with_uncertainty(each)}, expected {self.expected_text()}"
            agrees = allowed.judge(each)
            miss = missed_range(allowed.low, allowed.high, allowed.nearest(each)) if agrees is False else None
            findings.append(Finding(agrees, text, miss))
        return findings

    def expected_text(self) -> str:
        """Return the range as text."""
        if self.low is None:
            return f"{'below' if self.strict else 'at most'} {self.high:g}"
        if self.high is None:
            return f"{'above' if self.strict else 'at least'} {self.low:g}"
        return f"{'strictly ' if self.strict else ''}between {self.low:g} and {self.high:g}"

    def measured_text(self, measured: Sequence[Quantity]) -> str:
        """Return the measured values as text; if there are many, only their range."""
        if len(measured) <= 6:
            return ", ".join(map(_with_uncertainty, measured))
        values = [each.value for each in measured]
        widest = max(each.uncertainty for each in measured)
        sampled = f", each ± {widest:.2g} or less" if widest else ""
        ends = " to ".join(f"{end:.4g}" if widest else formatted(end) for end in (min(values), max(values)))
        return f"{ends} ({counted(len(values), 'value')}{sampled})"

    def tolerance_text(self) -> str:
        """Return the reason for the range."""
        return self.why


Relation: TypeAlias = Annotated[
    Equals | Truncated | PrintedOverExact | AtMost | Between, Field(discriminator="relation")
]


def formatted(value: float) -> str:
    """Return a number with seven significant digits; whole numbers have all their digits."""
    return str(int(value)) if math.isfinite(value) and value == int(value) else f"{value:.7g}"


def _with_uncertainty(quantity: Quantity) -> str:
    if not quantity.uncertainty:
        return formatted(quantity.value)
    return f"{quantity.value:.4g} ± {quantity.uncertainty:.2g}"
