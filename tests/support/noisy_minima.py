"""The law of a noisy minimum, by quadrature."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.integrate import quad


def least_of_noisy(scores: Sequence[float], scale: float) -> np.ndarray:
    """The probability of each to be the least with Laplace noise, by quadrature."""

    def of(which: int) -> float:
        def density(x: float) -> float:
            others = [0.5 * math.exp(-abs(x - s) / scale) for k, s in enumerate(scores) if k != which]
            above = [
                each if x >= s else 1 - each
                for each, s in zip(others, (s for k, s in enumerate(scores) if k != which), strict=True)
            ]
            return math.exp(-abs(x - scores[which]) / scale) / (2 * scale) * math.prod(above)

        return quad(density, -60 * scale, 60 * scale, points=list(scores), limit=400)[0]

    return np.array([of(which) for which in range(len(scores))])
