"""Table 1 of Chourasia and Shah, Forget Unlearning (ICML 2023): the gradients that methods save over retraining."""

import math
from typing import NamedTuple

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.errors import ParameterError


class ComparedMethod(NamedTuple):
    """A row of Table 1: how many single-record gradients a request saves, up to constants and ``log(1 / delta)``."""

    method: str
    source: str
    has_secret_state: bool
    saved: float


def table_1(*, n: int, dimension: int, epsilon: float, request: int) -> list[ComparedMethod]:
    """Return Table 1 for requests of one record that are fixed in advance, with the same target risk for all methods.

    Args:
        n: The number of records.
        dimension: The dimension ``d``.
        epsilon: The epsilon of ``(epsilon, delta)``-DP.
        request: The number ``i`` of the request, counted from 1.

    Raises:
        ParameterError: A logarithm of the table is not above 0.
    """
    require_count(least=1, n=n, dimension=dimension, request=request)
    require_positive(epsilon=epsilon)
    signal = epsilon * n / math.sqrt(dimension)
    published = signal / math.log(request * dimension) ** 2 if request * dimension > 1 else 0.0
    if min(signal, published) <= 1:
        raise ParameterError(
            "Table 1 needs request * dimension > 1 and epsilon n > sqrt(dimension) max(1, log(request dimension)^2), "
            f"got epsilon = {epsilon}, n = {n}, dimension = {dimension}, request = {request}"
        )
    return [
        ComparedMethod(
            "Noisy-m-A-SGD", "Ullah et al., Theorem 1", False, math.sqrt(dimension) * (1 - math.sqrt(dimension) / n)
        ),
        ComparedMethod("Perturbed-GD", "Neel et al., Theorem 9", True, n * math.log(signal)),
        ComparedMethod("Perturbed-GD", "Neel et al., Theorem 28", False, n * math.log(published)),
        ComparedMethod("Noisy-GD", "Theorem 5.1", False, n * math.log(min(n, signal))),
    ]
