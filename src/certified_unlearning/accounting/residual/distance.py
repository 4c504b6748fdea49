"""How far weights can be from the minimiser: the least of three bounds on the result of Newton removal.

By strong convexity the distance is at most ``|g| / m``, where ``g = grad f_R(w)`` is bounded as in `newton`. If the
data have much more curvature than the regulariser, two bounds that use curvature are many times sharper; otherwise they
gain nothing. Both use a *metric*, ``B_0 = H(w_B)`` over the records that were present when the whole gradient was last
evaluated. ``B = H_R(w_B)`` is what remains of it after later removals, and ``Theta`` is at least the largest eigenvalue
of ``B_0^-1/2 (B_0 - B) B_0^-1/2``. ``D`` is the data's part, ``B = D(w_B) + m I``; ``|x|_D`` and ``|x|_B`` are the
norms that these give. Rows have norm at most ``r``; ``M = |w - w_B|``, or a lesser bound on ``|a.(w - w_B)| / r`` over
the remaining rows, if a pass evaluated one; ``e = w*_R - w``.

*Self-concordance* (Bach, 2010): ``|s''| <= s'``, so ``exp(-r|x-y|) D(y) <= D(x) <= exp(r|x-y|) D(y)``, where ``r|x-y|``
may be any bound on ``|a.(x-y)|`` over the rows. With ``H_int``,
the mean of ``H_R(w + t e)`` over ``0 <= t <= 1``: ``H_int e = -g``.

*Local bound.* Let ``nu = |g|`` in the norm of ``H_R(w)^-1``. ``e'H_int e = -e'g`` and ``H_R(w + t e) >= exp(-r t |e|)
H_R(w)`` give ``|e|_H (1 - exp(-X)) / X <= nu`` for ``X = r |e| <= r |e|_H / sqrt(m)``, and the fraction falls in ``X``:
if ``kappa = r nu / sqrt(m) < 1``, then ``|e| <= -log(1 - kappa) / r``. As ``H_R(w) >= exp(-r M) B >= exp(-r M) (1 -
Theta) B_0``, the state's ``beta``, at least ``|g|`` in the norm of ``B_0^-1``, gives ``nu <= beta exp(r M / 2) / sqrt(1
- Theta)``.

*Displacement.* The state's ``alpha`` is at least ``|p|``, ``p = B_0^-1 g``. As ``e = -p - H_int^-1 (B_0 - H_int) p``
and ``B_0 - H_int = (B_0 - B) + (D(w_B) - D_int)``, where row by row ``|D_int - D(w_B)| <= (exp(Y) - 1) D(w_B)`` and
``D_int >= exp(-Y) D(w_B)`` for ``Y = r (M + |e|)``, Cauchy and Schwarz's inequality and ``h / (h + m)^2 <= 1 / (4 m)``
give

    ``|e| <= alpha + (beta / sqrt m) exp(Y / 2) ((exp(Y) - 1) / 2 + Theta / sqrt(1 - Theta))``,

with the lesser of the first two bounds for ``|e|`` in ``Y``.

*Recursion.* A step ``v`` adds to ``g`` a remainder of Euclidean norm ``x``, which adds at most ``x / sqrt(m)`` to
``beta`` and ``x / m`` to ``alpha``, and the rest of `newton`. For every ``u`` one of the three factors of that rest is
bounded by ``r`` times a Euclidean norm, the others by Cauchy and Schwarz:

    ``|u.rest| <= r E(X) min(D2 |v|_D |u|_D, |v| DD |u|_D, DD |v|_D |u|)``,

``D2`` and ``DD`` the mean of ``|w + t v - w_B|`` over the way in the Euclidean norm and in ``D``'s: at most the mean of
both ends. ``|u| = 1`` in the norm of ``B_0`` has ``|u|_D <= 1`` and Euclidean norm at most ``1 / sqrt(m)``: beta. ``u =
B_0^-1 u_0`` with ``|u_0| = 1`` has ``|u|_D <= 1 / (2 sqrt m)`` and at most ``1 / m``: alpha.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

from certified_unlearning.accounting.core.checks import require_non_negative, require_positive
from certified_unlearning.accounting.residual.newton import Step, curvature_change, growth
from certified_unlearning.accounting.residual.rounding import OUTWARD, ROW_NORM

_LARGEST_EXPONENT = 30.0
"""The largest exponent: its exponential's rounding is below `OUTWARD`; bounds with larger ones are useless anyway."""


@dataclass(frozen=True)
class Left:
    """The remaining gradient ``g``, bounded from above in three norms.

    Attributes:
        residual: ``tau``: its Euclidean norm.
        dual: ``beta``: its norm in ``B_0^-1``.
        displacement: ``alpha``: the Euclidean norm of ``B_0^-1 g``.
        change: ``Theta``, of the records removed since ``B_0``.
        records: Number of these records.
        moved: A bound on ``|a.(w - w_B)| / r`` over the remaining rows; infinite if ``|w - w_B|`` alone is known.
    """

    residual: float
    dual: float
    displacement: float
    change: float = 0.0
    records: int = 0
    moved: float = math.inf

    @classmethod
    def of_residual(cls, residual: float, *, strong_convexity: float) -> Self:
        """Return what follows from the Euclidean norm alone, with the Hessian over the present records."""
        require_non_negative(residual=residual)
        require_positive(strong_convexity=strong_convexity)
        return cls(residual, residual / math.sqrt(strong_convexity) * OUTWARD, residual / strong_convexity * OUTWARD)

    def plus(self, size: float, *, strong_convexity: float) -> Self:
        """Return the bounds with one more part of the gradient, of at most this Euclidean norm."""
        return replace(
            self,
            residual=self.residual + size,
            dual=(self.dual + size / math.sqrt(strong_convexity)) * OUTWARD,
            displacement=(self.displacement + size / strong_convexity) * OUTWARD,
        )


def left_after(
    before: Left, residual: float, step: Step, *, remainder: float, strong_convexity: float, row_norm: float = ROW_NORM
) -> Left:
    """Return the bounds on the gradient after a step, rounded up.

    Args:
        before: The bounds before the step, with the change and the number of records after this step's removal.
        residual: The Euclidean norm afterwards, by `newton.residual_after`; infinite if there is no bound.
        step: The step.
        remainder: Everything that the step adds to the gradient besides the rest: ``|ghat + B v|``, rounding, and the
            distance of the matrix from the Hessian times ``|v|``.
        strong_convexity: ``m``.
        row_norm: ``r``.

    Raises:
        ParameterError: A value is invalid.
    """
    require_non_negative(remainder=remainder)
    require_positive(strong_convexity=strong_convexity)
    root = math.sqrt(strong_convexity)
    euclidean = curvature_change(step, row_norm=row_norm)
    mean = (step.moved + step.moved_after) / 2
    mean_seminorm = min(step.moved_seminorm + step.seminorm / 2, (step.moved_seminorm + step.moved_after_seminorm) / 2)
    by_seminorm = min(mean * step.seminorm, step.length * mean_seminorm)
    by_length = mean_seminorm * step.seminorm
    spread = row_norm * growth(row_norm * max(step.moved, step.moved_after)) * OUTWARD
    dual = min(euclidean / root, spread * min(by_seminorm, by_length / root))
    moved = min(euclidean / strong_convexity, spread * min(by_seminorm / (2 * root), by_length / strong_convexity))
    return Left(
        residual,
        (before.dual + remainder / root + dual) * OUTWARD,
        (before.displacement + remainder / strong_convexity + moved) * OUTWARD,
        before.change,
        before.records,
        step.moved_after,
    )


def change_by_counts(records: int, *, n: int, strong_convexity: float, row_norm: float = ROW_NORM) -> float:
    """Return ``Theta`` for a number of removed records, whatever they are: ``x / (x + m)``, ``x = S r^2 / (4 n)``."""
    return share_of(records * row_norm**2 / (4 * n), strong_convexity=strong_convexity)


def share_of(part: float, *, strong_convexity: float) -> float:
    """Return ``Theta`` of removed records whose part of the Hessian has at most this norm; it needs no ``B_0``."""
    return part / (part + strong_convexity) * OUTWARD if part < math.inf else 1.0


def by_local_norm(left: Left, *, moved: float, strong_convexity: float, row_norm: float = ROW_NORM) -> float:
    """Return the local bound, rounded up; infinite if it does not apply.

    Args:
        left: Bounds on the remaining gradient.
        moved: ``M``.
        strong_convexity: ``m``.
        row_norm: ``r``.
    """
    kappa = kappa_of(left, moved=moved, strong_convexity=strong_convexity, row_norm=row_norm)
    return -math.log1p(-kappa) / row_norm * OUTWARD if kappa < 1 else math.inf


def kappa_of(left: Left, *, moved: float, strong_convexity: float, row_norm: float = ROW_NORM) -> float:
    """Return ``kappa``, rounded up; infinite if ``Theta`` or an exponential is too large."""
    exponent = row_norm * moved / 2
    if left.change >= 1 or exponent > _LARGEST_EXPONENT:
        return math.inf
    nu = left.dual * math.exp(exponent) / math.sqrt(1 - left.change)
    return row_norm * nu / math.sqrt(strong_convexity) * OUTWARD


def by_displacement(left: Left, *, moved: float, strong_convexity: float, row_norm: float = ROW_NORM) -> float:
    """Return the bound by displacement, rounded up; infinite if it does not apply. Arguments as in `by_local_norm`."""
    near = by_local_norm(left, moved=moved, strong_convexity=strong_convexity, row_norm=row_norm)
    spread = row_norm * (moved + min(near, left.residual / strong_convexity)) * OUTWARD
    if left.change >= 1 or spread > _LARGEST_EXPONENT:
        return math.inf
    bent = math.expm1(spread) / 2 + left.change / math.sqrt(1 - left.change)
    return (left.displacement + left.dual / math.sqrt(strong_convexity) * math.exp(spread / 2) * bent) * OUTWARD


def distance(left: Left, *, moved: float, strong_convexity: float, row_norm: float = ROW_NORM) -> float:
    """Return the least of the three bounds on ``|w - w*_R|``; see `by_local_norm` for arguments."""
    return min(
        left.residual / strong_convexity * OUTWARD,
        by_local_norm(left, moved=moved, strong_convexity=strong_convexity, row_norm=row_norm),
        by_displacement(left, moved=moved, strong_convexity=strong_convexity, row_norm=row_norm),
    )
