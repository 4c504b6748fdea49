"""The distance of weights from the minimiser after Newton removal: the least of three bounds.

By strong convexity, the distance is at most ``|g| / m``, where ``g = grad f_R(w)`` is bounded as in `newton`. Two other
bounds use curvature. If the data have much more curvature than the regulariser, these bounds are many times sharper.
Otherwise, they do not help. Both use a *metric* ``B_0 = H(w_B)``, the Hessian over the records that were present when
the whole gradient was last evaluated. ``B = H_R(w_B)`` is the part of ``B_0`` that remains after later removals, and
``Theta`` is at least the largest eigenvalue of ``B_0^-1/2 (B_0 - B) B_0^-1/2``. ``D`` is the data's part of ``B``, so
``B = D(w_B) + m I``. ``|x|_D`` and ``|x|_B`` are the norms of ``D`` and ``B``. Rows have norm at most ``r``. ``M`` is
``|w - w_B|``. If a pass has evaluated a smaller bound on ``|a.(w - w_B)| / r`` over the remaining rows ``a``, ``M`` is
this smaller bound. The error is ``e = w*_R - w``.

*Self-concordance* (Bach, 2010): ``|s''| <= s'``, so ``exp(-r|x-y|) D(y) <= D(x) <= exp(r|x-y|) D(y)``, where ``r|x-y|``
may be replaced by any bound on ``|a.(x-y)|`` over the rows. Let ``H_int`` be the mean of ``H_R(w + t e)`` over ``0 <= t
<= 1``. Then ``H_int e = -g``.

*Local bound.* Let ``nu = |g|`` in the norm of ``H_R(w)^-1``. ``e'H_int e = -e'g`` and
``H_R(w + t e) >= exp(-r t |e|) H_R(w)`` give ``|e|_H (1 - exp(-X)) / X <= nu`` for ``X = r |e| <= r |e|_H / sqrt(m)``.
The fraction decreases in ``X``. So if ``kappa = r nu / sqrt(m) < 1``, then ``|e| <= -log(1 - kappa) / r``. The state's
``beta`` is at least ``|g|`` in the norm of ``B_0^-1``. Because ``H_R(w) >= exp(-r M) B >= exp(-r M) (1 - Theta) B_0``,
it follows that ``nu <= beta exp(r M / 2) / sqrt(1 - Theta)``.

*Displacement.* Let ``p = B_0^-1 g``. The state's ``alpha`` is at least ``|p|``. Then
``e = -p - H_int^-1 (B_0 - H_int) p`` and ``B_0 - H_int = (B_0 - B) + (D(w_B) - D_int)``. Row by row,
``|D_int - D(w_B)| <= (exp(Y) - 1) D(w_B)`` and ``D_int >= exp(-Y) D(w_B)`` for ``Y = r (M + |e|)``. The Cauchy-Schwarz
inequality and ``h / (h + m)^2 <= 1 / (4 m)`` then give

    ``|e| <= alpha + (beta / sqrt m) exp(Y / 2) ((exp(Y) - 1) / 2 + Theta / sqrt(1 - Theta))``,

where the smaller of the first two bounds replaces ``|e|`` in ``Y``.

*Recursion.* A step ``v`` adds two parts to ``g``. The first is a remainder of Euclidean norm ``x``, which adds at most
``x / sqrt(m)`` to ``beta`` and ``x / m`` to ``alpha``. The second is the term ``rest`` of `newton`. For every ``u``,
each row's part of ``u.rest`` is a product of three factors. One factor is bounded by ``r`` times a Euclidean norm, and
the other two by the Cauchy-Schwarz inequality:

    ``|u.rest| <= r E(X) min(D2 |v|_D |u|_D, |v| DD |u|_D, DD |v|_D |u|)``,

where ``D2`` and ``DD`` are the means of ``|w + t v - w_B|`` over ``t``, in the Euclidean norm and in that of ``D``.
Each of these means is at most the mean of the values at ``t = 0`` and ``t = 1``. For ``beta``, take ``u`` of norm 1 in
``B_0``: then ``|u|_D <= 1``, and the Euclidean norm is at most ``1 / sqrt(m)``. For ``alpha``, take ``u = B_0^-1 u_0``
with ``|u_0| = 1``: then ``|u|_D <= 1 / (2 sqrt m)``, and the Euclidean norm is at most ``1 / m``.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

from certified_unlearning.accounting.core.checks import require_non_negative, require_positive
from certified_unlearning.accounting.residual.newton import Step, curvature_change, growth
from certified_unlearning.accounting.residual.rounding import OUTWARD, ROW_NORM

_LARGEST_EXPONENT = 30.0
"""The largest exponent that is used. `OUTWARD` covers the rounding of its exponential. Larger exponents give useless
bounds."""


@dataclass(frozen=True)
class Left:
    """Upper bounds on the remaining gradient ``g`` in three norms.

    Attributes:
        residual: Bound ``tau`` on the Euclidean norm of ``g``.
        dual: Bound ``beta`` on the norm of ``g`` in ``B_0^-1``.
        displacement: Bound ``alpha`` on the Euclidean norm of ``B_0^-1 g``.
        change: ``Theta`` of the records that were removed since ``B_0`` was computed.
        records: Number of records that were removed since ``B_0`` was computed.
        moved: Bound on ``|a.(w - w_B)| / r`` over the remaining rows ``a``; infinite if only ``|w - w_B|`` is known.
    """

    residual: float
    dual: float
    displacement: float
    change: float = 0.0
    records: int = 0
    moved: float = math.inf

    @classmethod
    def of_residual(cls, residual: float, *, strong_convexity: float) -> Self:
        """Return the bounds that follow from the Euclidean norm alone.

        ``B_0`` is the Hessian over the present records.
        """
        require_non_negative(residual=residual)
        require_positive(strong_convexity=strong_convexity)
        return cls(residual, residual / math.sqrt(strong_convexity) * OUTWARD, residual / strong_convexity * OUTWARD)

    def plus(self, size: float, *, strong_convexity: float) -> Self:
        """Return the bounds after a vector of at most this Euclidean norm is added to the gradient."""
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
        before: The bounds before the step, except that ``change`` and ``records`` already include this step's removal.
        residual: Bound on the gradient's Euclidean norm after the step, by `newton.residual_after`; infinite if there
            is no bound.
        step: The step.
        remainder: Bound on everything that the step adds to the gradient except ``rest``: the sum of ``|ghat + B v|``,
            the rounding, and ``|v|`` times the distance of the matrix from the Hessian.
        strong_convexity: Strong convexity ``m``.
        row_norm: Largest norm ``r`` of a row.

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
    """Return ``Theta`` for any ``S`` removed records: ``x / (x + m)`` with ``x = S r^2 / (4 n)``."""
    return share_of(records * row_norm**2 / (4 * n), strong_convexity=strong_convexity)


def share_of(part: float, *, strong_convexity: float) -> float:
    """Return ``Theta``, given a bound ``part`` on the norm of the removed records' part of the Hessian.

    The result holds for any ``B_0``.
    """
    return part / (part + strong_convexity) * OUTWARD if part < math.inf else 1.0


def by_local_norm(left: Left, *, moved: float, strong_convexity: float, row_norm: float = ROW_NORM) -> float:
    """Return the local bound on the distance, rounded up, or infinity if the bound does not apply.

    Args:
        left: Bounds on the remaining gradient.
        moved: ``M``, a bound on ``|w - w_B|``.
        strong_convexity: Strong convexity ``m``.
        row_norm: Largest norm ``r`` of a row.
    """
    kappa = kappa_of(left, moved=moved, strong_convexity=strong_convexity, row_norm=row_norm)
    return -math.log1p(-kappa) / row_norm * OUTWARD if kappa < 1 else math.inf


def kappa_of(left: Left, *, moved: float, strong_convexity: float, row_norm: float = ROW_NORM) -> float:
    """Return ``kappa``, rounded up, or infinity if ``Theta`` or an exponential is too large."""
    exponent = row_norm * moved / 2
    if left.change >= 1 or exponent > _LARGEST_EXPONENT:
        return math.inf
    nu = left.dual * math.exp(exponent) / math.sqrt(1 - left.change)
    return row_norm * nu / math.sqrt(strong_convexity) * OUTWARD


def by_displacement(left: Left, *, moved: float, strong_convexity: float, row_norm: float = ROW_NORM) -> float:
    """Return the displacement bound, rounded up, or infinity if it does not apply. Arguments: see `by_local_norm`."""
    near = by_local_norm(left, moved=moved, strong_convexity=strong_convexity, row_norm=row_norm)
    spread = row_norm * (moved + min(near, left.residual / strong_convexity)) * OUTWARD
    if left.change >= 1 or spread > _LARGEST_EXPONENT:
        return math.inf
    bent = math.expm1(spread) / 2 + left.change / math.sqrt(1 - left.change)
    return (left.displacement + left.dual / math.sqrt(strong_convexity) * math.exp(spread / 2) * bent) * OUTWARD


def distance(left: Left, *, moved: float, strong_convexity: float, row_norm: float = ROW_NORM) -> float:
    """Return the least of the three bounds on ``|w - w*_R|``, with the arguments of `by_local_norm`."""
    return min(
        left.residual / strong_convexity * OUTWARD,
        by_local_norm(left, moved=moved, strong_convexity=strong_convexity, row_norm=row_norm),
        by_displacement(left, moved=moved, strong_convexity=strong_convexity, row_norm=row_norm),
    )
