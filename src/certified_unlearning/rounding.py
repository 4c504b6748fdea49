"""Numbers for people: rounded to where they promise less."""

import decimal


def rounded_up(value: float, digits: int = 6) -> str:
    """Return a number with so many digits, rounded up: a printed epsilon or sigma must still hold."""
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_CEILING)
    return f"{float(context.create_decimal(repr(value))):.{digits}g}"
