"""The constants of the paper on differential privacy dynamics, and how its sheet quotes a bound."""

import math

import numpy as np
import pytest

from certified_unlearning.accounting.core.curves import RenyiCurve
from certified_unlearning.accounting.core.problem import Problem

SIGMA = 0.02
QUOTED, CLOSED_FORM = 1e-5, 1e-10


def paper(strong_convexity=1.0, smoothness=4.0):
    """S_g = 4, n = 5000, eta = 0.02."""
    return Problem(5000, strong_convexity, smoothness, 2, 0.02)


UNIT = paper(1, 1)
# S_g = 2, n = 4, eta = 0.5.
BY_HAND = Problem(4, 1, 1, 1, 0.5)


def value(bound, problem, steps, *, alpha=10.0, sigma=SIGMA, **options):
    return float(bound(problem, sigma=sigma, steps=steps, **options)(np.array([alpha]))[0])


def quoted(expected):
    return pytest.approx(expected, rel=QUOTED)


def equal(expected):
    return pytest.approx(expected, rel=CLOSED_FORM)


def linear(slope):
    return RenyiCurve(lambda alpha: np.log(alpha) + math.log(slope))


def tracked_inverse_lsi(inverse_lsi: float, *, map_lipschitz: float, noise_variance: float) -> float:
    """``1 / c`` of a law after a Lipschitz map (Lemma 8) and Gaussian noise (Lemma 9); a projection leaves it."""
    return map_lipschitz**2 * inverse_lsi + noise_variance
