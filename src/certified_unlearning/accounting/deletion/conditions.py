"""Checks of the assumptions of the theorems on data deletion: on budgets, on requests and on clipped gradients.

Source: Chourasia and Shah, Forget Unlearning (ICML 2023). This module derives which theorems survive clipping. Lemmas
F.3 and F.4 imply that all theorems survive, but these lemmas are wrong: clipped gradients of a convex loss need be
neither monotone nor the gradient of a function.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, get_args

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.errors import AssumptionError, ParameterError

# `lipschitz`: the gradients of a loss that is L-Lipschitz without clipping. In all other cases, each record's gradient
# is clipped to length L. `clipped-convex`: the clipped gradients are those of a convex function (losses phi(<theta, x>)
# with convex phi). `clipped-bounded`: the clipped gradients are those of a function within the range that Theorem 5.2
# needs, which is checked directly. `clipped`: nothing more is known.
GradientField = Literal["lipschitz", "clipped-convex", "clipped-bounded", "clipped"]

_COVERED: dict[str, tuple[GradientField, ...]] = {
    "Theorem G.7": get_args(GradientField),
    "Theorem G.9": ("lipschitz", "clipped-convex"),
    "Theorem G.15": ("lipschitz", "clipped-convex"),
    "Theorem 5.1": ("lipschitz", "clipped-convex"),
    "Theorem G.22": ("lipschitz", "clipped-bounded"),
    "Theorem 5.2": ("lipschitz", "clipped-bounded"),
}


def surviving_theorems(gradient_field: GradientField) -> tuple[str, ...]:
    """Return the theorems that hold for steps along gradients of this kind, if the theorems' other conditions hold.

    The theorems' statements on risk hold only for the function whose gradients are followed.

    Raises:
        ParameterError: ``gradient_field`` is unknown.
    """
    if gradient_field not in get_args(GradientField):
        known = ", ".join(get_args(GradientField))
        raise ParameterError(f"gradient_field must be one of {known}, got {gradient_field!r}")
    return tuple(theorem for theorem, fields in _COVERED.items() if gradient_field in fields)


def require_survival(theorem: str, gradient_field: GradientField) -> None:
    """Raise `AssumptionError` unless a theorem holds for steps along gradients of this kind."""
    if theorem not in surviving_theorems(gradient_field):
        needed = " or ".join(_COVERED[theorem])
        raise AssumptionError(
            f"{theorem} does not survive this clipping: gradient_field must be {needed}, got {gradient_field!r} "
            "(Theorem G.7 holds for every clipping)"
        )


def require_budgets(epsilon_dp: float, epsilon_dd: float) -> None:
    """Raise an error unless both budgets are above 0 and ``epsilon_dd <= epsilon_dp``.

    Raises:
        ParameterError: A budget is not above 0.
        AssumptionError: ``epsilon_dd`` exceeds ``epsilon_dp``.
    """
    require_positive(epsilon_dp=epsilon_dp, epsilon_dd=epsilon_dd)
    if epsilon_dd > epsilon_dp:
        raise AssumptionError(
            f"deleted records need at least the protection of present ones: epsilon_dd must be at most "
            f"epsilon_dp = {epsilon_dp}, got epsilon_dd = {epsilon_dd}"
        )


def require_request_size(records: int, n: int) -> None:
    """Raise `ParameterError` unless a request replaces 1 to ``n`` records."""
    require_count(least=1, records=records)
    if records > n:
        raise ParameterError(f"records must be at most n = {n}, got {records}")


def require_observable(observed: Sequence[int], *, request: int) -> None:
    """Raise `ParameterError` unless the observed models are in increasing order and precede the deletion request."""
    for position, model in enumerate(observed):
        require_count(least=0, **{f"observed[{position}]": model})
    if any(later <= earlier for earlier, later in pairwise(observed)):
        raise ParameterError(f"observed must be in increasing order, got {list(observed)}")
    if observed and observed[-1] >= request:
        raise ParameterError(
            f"all observed models must come before the deletion, which is request {request}, got observed[-1] = "
            f"{observed[-1]}"
        )
