"""Log-Sobolev inequalities of non-Gaussian distributions on the line, tested on functions by quadrature.

Source: Lemmas 8 and 9 of Chourasia, Ye, Shokri (NeurIPS 2021). A distribution is ``c``-LSI if ``Ent(f^2) <= (2 / c) E
|f'|^2`` for every ``f``. One function can disprove a constant, but none can prove it.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from certified_unlearning.accounting.core.checks import require_non_negative

Array = npt.NDArray[np.float64]
MapName = Literal["identity", "half", "descent", "clip"]
FunctionName = Literal["exponential", "line", "wave"]

_X = np.linspace(-9, 9, 1801)
_WEIGHTS = np.exp(-(_X**2) / 2)
_WEIGHTS /= _WEIGHTS.sum()
_NOISE, _NOISE_WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
_NOISE_WEIGHTS = _NOISE_WEIGHTS / _NOISE_WEIGHTS.sum()


class _Map(NamedTuple):
    move: Callable[[Array], Array]
    lipschitz: float


_MAPS: dict[MapName, _Map] = {
    "identity": _Map(lambda x: x, 1.0),
    "half": _Map(lambda x: x / 2, 0.5),
    # A gradient step of size 1/2 on log cosh(x) + x^2 / 4; log cosh has curvature from 0 to 1.
    "descent": _Map(lambda x: x - (np.tanh(x) + x / 2) / 2, 0.75),
    "clip": _Map(lambda x: np.clip(x, -1, 1), 1.0),
}
_FUNCTIONS: dict[FunctionName, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "exponential": (lambda y: np.exp(y / 2), lambda y: np.exp(y / 2) / 2),
    "line": (lambda y: 1 + y / 2, lambda y: np.full_like(y, 0.5)),
    "wave": (lambda y: 2 + np.sin(y), np.cos),
}


def log_sobolev_quotient(*, map_name: MapName, noise_variance: float, function: FunctionName) -> float:
    """Return the left side of the inequality divided by its right side, with the constant from Lemmas 8 and 9.

    The distribution is that of ``T(X) + sqrt(v) Z``. ``X`` and ``Z`` are standard normal, hence 1-LSI. ``T`` is
    ``L``-Lipschitz, so ``T(X)`` is ``1 / L^2``-LSI by Lemma 8, and the sum is ``1 / (L^2 + v)``-LSI by Lemma 9.

    Args:
        map_name: The map ``T``. The map ``clip`` is not differentiable. It is nevertheless included, because it is a
            projection, and Lemma 5 applies Lemma 8 to a projection.
        noise_variance: The variance ``v``, the lemma's ``2 t``; 0 for Lemma 8 alone.
        function: The function ``f``.
    """
    require_non_negative(noise_variance=noise_variance)
    move, lipschitz = _MAPS[map_name]
    points = move(_X)[:, np.newaxis] + np.sqrt(noise_variance) * _NOISE
    weights = np.multiply.outer(_WEIGHTS, _NOISE_WEIGHTS)
    value, slope = _FUNCTIONS[function]
    squares = value(points) ** 2
    mean = float(np.sum(weights * squares))
    # x log x is 0 at 0.
    logs = np.log(squares, out=np.zeros_like(squares), where=squares > 0)
    entropy = float(np.sum(weights * squares * logs)) - mean * np.log(mean)
    return float(entropy / (2 * (lipschitz**2 + noise_variance) * np.sum(weights * slope(points) ** 2)))
