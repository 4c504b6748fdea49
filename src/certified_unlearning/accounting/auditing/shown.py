"""The printed parts of audits: the confidence level of bounds, verdicts, and bounds rounded to the safe side."""

import math
from typing import Literal

Verdict = Literal["violated", "no power", "nothing found"]
SHOWN = 0.05
"""The level of the bounds that are printed for information. Verdicts use the level of the audit instead."""


def ceiling(epsilon: float) -> str:
    """Return an upper bound with two decimals, rounded up."""
    return f"{math.ceil(round(epsilon * 100, 6)) / 100:.2f}" if math.isfinite(epsilon) else "anything"


def floor(epsilon: float) -> str:
    """Return a lower bound with two decimals, rounded down."""
    return f"{math.floor(epsilon * 100) / 100:.2f}"
