"""The curvature that public rows guarantee. These rows stay in the objective, so no removal reduces their curvature.

The objective over the remaining records ``R`` and public rows ``P`` is ``f_R = F + Q``. The public part is
``F(w) = (1/n) sum_P c_i loss_i(w) + (m/2) |w|^2`` with ``0 <= c_i <= 1``. ``Q`` is the same sum over ``R``, without a
regulariser. ``n`` counts both kinds of rows. Losses are convex, so for every ``R`` the Hessian of ``f_R`` is at least
that of ``F``, which is ``m I + H_P``. If ``H_P >= k I`` from the exact minimiser ``w*_R`` to the weights ``w``, then
``|w - w*_R| <= |grad f_R(w)| / (m + k)``, and the budget for the gradient may be larger by the factor ``(m + k) / m``.
``k`` must not depend on ``R``, because the budget and ``mu`` are public.

*Ridge regression.* ``H_P`` is the same everywhere, so ``k`` is the least eigenvalue of ``X_P'X_P / n``.

*Logistic regression.* ``H_P`` is evaluated at one point ``w_0``, near the minimiser of ``F``, and bounded elsewhere by
self-concordance (Bach, 2010): ``H_P(w) >= exp(-r |w - w_0|) H_P(w_0)`` for rows of norm at most ``r``. So the distance
``rho = |w*_R - w_0|`` must be bounded for every ``R``. Let ``e = w*_R - w_0`` and ``g = |grad F(w_0)|``. Let ``k_0`` be
the least eigenvalue of ``H_P(w_0)``, and let ``q`` be the number of private records divided by ``n``. At the minimiser,
``grad F = -grad Q``. So with scores ``z_i = a_i.w*_R`` and ``z'_i = a_i.w_0 >= -r |w_0|``,

    ``e.grad F(w*_R) = (1/n) sum_R c_i s(-z_i) (z_i - z'_i) <= q min(L, r rho)``,

where ``L = max_z s(-z) (z + r |w_0|) = omega(r |w_0| - 1)`` with Wright's function ``omega``. ``L`` is finite because a
record that is classified well no longer pulls the weights. In the other direction, integration from ``w_0`` to ``w*_R``
gives

    ``e.grad F(w*_R) >= rho (m rho + k_0 (1 - exp(-r rho)) / r - g)``.

Divided by ``rho``, the first bound decreases in ``rho`` and the second increases. So ``rho`` is at most the value at
which both are equal. With this ``rho``, public rows guarantee the curvature ``k_1 = k_0 exp(-r rho)`` at ``w*_R``. Let
``D`` be the distance from ``w*_R`` to ``w``. Then ``|grad f_R(w)| >= m D + k_1 (1 - exp(-r D)) / r``, which is concave
in ``D``. So with ``k = k_1 (1 - exp(-r d)) / (r d)``, a gradient of at most ``(m + k) d`` implies ``D <= |grad f_R(w)|
/ (m + k) <= d``.

*When public rows help.* ``k_0`` is at most ``p / (4 d n)`` for ``p`` public rows. Public rows do not help if ``k_0`` is
small compared with ``m``, or if the rows have no component in some direction. ``rho`` is small if ``q L`` is small
compared with ``k_0``. This needs about ``4 d`` times as many public rows as private records. Otherwise, ``exp(-r rho)``
is close to 0, and the curvature stays ``m``.

*Softmax regression.* The loss does not change if the same vector is added to the weights of all classes. Public rows
have no curvature in these directions, so ``k = 0``.
"""

import math

from certified_unlearning.accounting.core.checks import require_non_negative, require_positive
from certified_unlearning.accounting.residual.rounding import OUTWARD, ROW_NORM
from certified_unlearning.accounting.residual.rounding import curvature as curvature_of_a_record

_HALVINGS = 200
_ACCURACY = 1e-9
"""Relative amount by which Wright's function is increased. The result is checked."""


def curvature_at_minimisers(
    curvature: float,
    *,
    gradient: float,
    weight_norm: float,
    private_share: float,
    strong_convexity: float,
    row_norm: float = ROW_NORM,
) -> float:
    """Return ``k_1``, rounded down: the curvature that public rows guarantee at the minimiser for any private records.

    Args:
        curvature: ``k_0``, at most the least eigenvalue of ``H_P(w_0)``.
        gradient: ``g``, at least ``|grad F(w_0)|``.
        weight_norm: Bound on ``|w_0|``.
        private_share: Number of private records divided by ``n``, ``q``.
        strong_convexity: Strong convexity ``m``.
        row_norm: Largest norm ``r`` of a row.
    """
    away = farthest_minimiser(
        curvature,
        gradient=gradient,
        weight_norm=weight_norm,
        private_share=private_share,
        strong_convexity=strong_convexity,
        row_norm=row_norm,
    )
    return curvature * math.exp(-row_norm * away * OUTWARD) / OUTWARD


def farthest_minimiser(
    curvature: float,
    *,
    gradient: float,
    weight_norm: float,
    private_share: float,
    strong_convexity: float,
    row_norm: float = ROW_NORM,
) -> float:
    """Return the largest ``rho``, rounded up. The arguments are those of `curvature_at_minimisers`."""
    require_non_negative(curvature=curvature, gradient=gradient, weight_norm=weight_norm, private_share=private_share)
    require_positive(strong_convexity=strong_convexity)
    pull = most_pull(row_norm * weight_norm * OUTWARD)

    def meets(away: float) -> bool:
        held = strong_convexity * away - curvature * math.expm1(-row_norm * away) / row_norm
        return held >= (gradient + private_share * min(pull / away, row_norm)) * OUTWARD

    # No record pulls by more than r, and at this distance the regulariser alone balances the pull.
    least, most = 0.0, (gradient + private_share * row_norm) / strong_convexity * OUTWARD**2
    for _ in range(_HALVINGS):
        middle = (least + most) / 2
        if not least < middle < most:
            break
        least, most = (least, middle) if meets(middle) else (middle, most)
    return most


def most_pull(score: float) -> float:
    """Return ``max_z s(-z) (z + score)``, rounded up.

    The result is the ``t`` with ``t + log t = score - 1``, because ``1 + exp(z) = (z + score) exp(z)`` at the maximum.
    """
    from scipy.special import wrightomega  # Imported here because quick commands read certificates.

    found = float(wrightomega(score - 1)) * (1 + _ACCURACY)
    if not found + math.log(found) > score - 1:
        raise ArithmeticError(f"Wright's function of {score - 1} is not {found}")
    return found


def least_curvature(strong_convexity: float, public_curvature: float) -> float:
    """Return ``m + k``, rounded down. Without public rows, return ``m`` itself."""
    return (strong_convexity + public_curvature) / OUTWARD if public_curvature else strong_convexity


def most_curvature(public_records: int, *, n: int, features: int, classes: int) -> float:
    """Return the largest ``k`` that this number of public rows can have; 0 for softmax.

    It is the largest trace of the public rows' Hessian, divided by the dimension of the Hessian.
    """
    return OUTWARD * curvature_of_a_record(classes) * public_records / (n * features) if classes <= 2 else 0.0


def curvature_on_the_way(curvature: float, *, distance: float, row_norm: float = ROW_NORM) -> float:
    """Return ``k``, the curvature between the minimiser and any point at most ``distance`` away, rounded down.

    Args:
        curvature: Curvature ``k_1`` at the minimiser.
        distance: Distance ``d`` from the minimiser, above 0.
        row_norm: Largest norm ``r`` of a row.
    """
    require_non_negative(curvature=curvature)
    require_positive(distance=distance)
    exponent = row_norm * distance
    return curvature * -math.expm1(-exponent) / exponent / OUTWARD
