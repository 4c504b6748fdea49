"""The residual of Newton removal: how much of the gradient can remain after a step that reads no data.

The objective is ``f_R(w) = (1/n) sum_{i in R} log(1 + exp(-a_i.w)) + (m/2) |w|^2`` with rows of norm at most ``r``. The
adjacency is `zero-out`, so ``n`` does not change. The state has weights ``w`` with ``|grad f_R(w)| <= tau``, and ``B``,
the Hessian at the weights ``w_B`` at which data were last read. ``S`` records are removed, which leaves the records
``R'``. The contribution of the removed records to the gradient was ``-ghat``, which is computed in time ``O(S d)``.
Then for *any* vector ``v``, in particular for the solution of ``B v = -ghat``,

    ``grad f_R'(w + v) = grad f_R(w) + [ghat + B v] + (H_R'(w_B) - B) v + rest``,

    ``rest = integral over 0 <= t <= 1 of (H_R'(w + t v) - H_R'(w_B)) v``.

The bracket ``[ghat + B v]`` is evaluated. If each removed record's part is subtracted from ``B`` (*downdated*),
``H_R'(w_B) - B`` consists only of rounding errors. Otherwise, ``B`` still contains the ``S_B`` records that were
removed since ``B`` was computed, which contribute at most ``S_B r^2 / (4 n)``. `curvature_change` returns the smaller
of two bounds on the norm of ``rest``:

- *Third derivative*: ``gamma rho r (|w - w_B| + |v|/2) |v|``, where ``gamma = sup |s''|`` and ``rho`` bounds the
  largest eigenvalue of ``A'A / n``. ``r^2`` is always such a bound.
- *Self-concordance* (Bach, 2010): ``|s''| <= s'``. So between ``w_B`` and ``x``, ``s'`` changes by a factor of at most
  ``exp(|a.(x - w_B)|)``, and ``|s'(a.x) - s'(a.w_B)| <= s'(a.w_B) |a.(x - w_B)| E(X)``, with
  ``E(X) = (exp(X) - 1) / X`` (convexity) and ``X = r max(|w - w_B|, |w + v - w_B|)``. With the seminorm
  ``|x|_H^2 = x'(H(w_B) - m I) x`` and the Cauchy-Schwarz inequality, the rest is at most
  ``r E(X) (|w - w_B|_H + |v|_H / 2) |v|_H``.

Both bounds use only one property of the distances ``|w - w_B|`` and ``|w + v - w_B|``: no remaining row's score moved
by more than ``r`` times the distance. So a bound on ``|a.(w - w_B)| / r`` over the remaining rows ``a`` may replace
each distance. A pass over the rows evaluates such a bound, which is often many times smaller, and a step increases it
by at most ``|v|``. Seminorms are not replaced.

The second bound needs no ``rho``. It accounts for directions in which the data have little curvature. ``B^-1`` sends
most of ``ghat`` into these directions. The second bound also leads to a bound that holds for *any* records and depends
only on their number. For the exact solution, ``|v|_H <= |ghat| / (2 sqrt(m))``, because
``sqrt(h) / (h + m) <= 1 / (2 sqrt(m))``. So after the removal of ``S`` records in any number of requests, the rest adds
up to at most ``r E S^2 r^2 / (8 m n^2)`` (see `schedule`).

For ridge regression, ``s'`` is constant, so ``rest`` is 0. Then the step adds only the solution's remainder and
rounding.

Earlier work: Guo, Goldstein, Hannun, van der Maaten, Certified Data Removal (ICML 2020), bound the residual and perturb
the objective. Sekhari, Acharya, Kamath, Suresh (NeurIPS 2021) add noise to the output.
"""

import math
from dataclasses import dataclass

from certified_unlearning.accounting.core.checks import require_count, require_non_negative
from certified_unlearning.accounting.residual.rounding import OUTWARD, ROW_NORM, THIRD_DERIVATIVE
from certified_unlearning.errors import ParameterError


@dataclass(frozen=True)
class Step:
    """Upper bounds, rounding included, on the norms of a step ``v`` from ``w``.

    Attributes:
        length: Bound on ``|v|``.
        moved: Bound on ``|w - w_B|``, or on ``|a.(w - w_B)| / r`` for every remaining row ``a``.
        moved_after: Bound on ``|w + v - w_B|``, or on ``|a.(w + v - w_B)| / r`` for every remaining row ``a``.
        seminorm: Bound on ``|v|_H``; infinite if it is not known.
        moved_seminorm: Bound on ``|w - w_B|_H``; infinite if it is not known.
        moved_after_seminorm: Bound on ``|w + v - w_B|_H``; infinite if it is not known.
    """

    length: float
    moved: float
    moved_after: float
    seminorm: float = math.inf
    moved_seminorm: float = math.inf
    moved_after_seminorm: float = math.inf


def residual_after(
    before: float,
    step: Step,
    *,
    left: float,
    n: int,
    not_downdated: int = 0,
    matrix_error: float = 0.0,
    largest_eigenvalue: float | None = None,
    row_norm: float = ROW_NORM,
    quadratic: bool = False,
) -> float:
    """Return ``tau'``, a bound on ``|grad f_R'(w + v)|``, rounded up.

    Args:
        before: Bound ``tau`` on ``|grad f_R(w)|``.
        step: The step.
        left: Bound on ``|ghat + B v|``, plus a bound on all effects of rounding on the gradient except those in
            ``matrix_error``.
        n: Number of records at the start.
        not_downdated: Number ``S_B`` of records removed since ``B`` was computed, including the records of this step; 0
            if ``B`` is downdated.
        matrix_error: Largest distance, due to rounding, of ``B`` from the Hessian that it represents.
        largest_eigenvalue: Bound ``rho`` on the largest eigenvalue of ``A'A / n``. If None, ``r^2`` is used.
        row_norm: Largest norm ``r`` of a row.
        quadratic: Whether the Hessian is the same everywhere. In this case, ``rest`` is 0, and ``B`` must be downdated.
    """
    require_non_negative(before=before, left=left, matrix_error=matrix_error)
    require_count(least=1, n=n)
    require_count(least=0, not_downdated=not_downdated)
    of_matrix = matrix_error + not_downdated * row_norm**2 / (4 * n)
    if quadratic:
        if not_downdated:
            raise ParameterError(
                f"not_downdated must be 0 for a quadratic, whose matrix is always downdated, got {not_downdated}"
            )
        return (before + left + of_matrix * step.length) * OUTWARD
    of_curvature = curvature_change(step, largest_eigenvalue=largest_eigenvalue, row_norm=row_norm)
    return (before + left + of_matrix * step.length + of_curvature) * OUTWARD


def curvature_change(step: Step, *, largest_eigenvalue: float | None = None, row_norm: float = ROW_NORM) -> float:
    """Return a bound on the norm of ``rest``: the smaller of `by_third_derivative` and `by_self_concordance`."""
    return min(
        by_third_derivative(step, largest_eigenvalue=largest_eigenvalue, row_norm=row_norm),
        by_self_concordance(step, row_norm=row_norm),
    )


def by_third_derivative(step: Step, *, largest_eigenvalue: float | None = None, row_norm: float = ROW_NORM) -> float:
    """Return the bound ``gamma rho r (|w - w_B| + |v|/2) |v|`` on the norm of ``rest``, rounded up."""
    rho = row_norm**2 if largest_eigenvalue is None else largest_eigenvalue
    return THIRD_DERIVATIVE * rho * row_norm * (step.moved + step.length / 2) * step.length * OUTWARD


def by_self_concordance(step: Step, *, row_norm: float = ROW_NORM) -> float:
    """Return the bound ``r E(X) (|w - w_B|_H + |v|_H / 2) |v|_H`` on the norm of ``rest``, rounded up."""
    spread = growth(row_norm * max(step.moved, step.moved_after))
    return row_norm * spread * (step.moved_seminorm + step.seminorm / 2) * step.seminorm * OUTWARD


def growth(exponent: float) -> float:
    """Return ``E(X) = (exp(X) - 1) / X``, rounded up; 1 at 0, infinite if it overflows."""
    if exponent > 700:
        return math.inf
    return math.expm1(exponent) / exponent * OUTWARD if exponent > 0 else 1.0
