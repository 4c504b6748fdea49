"""The two settings of section 7.1 of the sheet, and how its numbers are compared."""

import math

import numpy as np
import pytest

QUOTED = 1e-5

C1 = {
    "n": 1000,
    "dimension": 10,
    "lipschitz": 1.0,
    "strong_convexity": 0.05,
    "smoothness": 0.30,
    "alpha": 8.0,
    "epsilon_dp": 1.0,
    "epsilon_dd": 0.1,
    "records": 10,
}
C2 = {
    "n": 60000,
    "dimension": 50,
    "lipschitz": 1.0,
    "strong_convexity": 0.01,
    "smoothness": 0.26,
    "alpha": 1 + 2 * math.log(1e5),
    "epsilon_dp": 0.5,
    "epsilon_dd": 0.05,
    "records": 100,
}


def quoted(expected):
    """Six significant digits, as the sheet prints them."""
    return pytest.approx(expected, rel=QUOTED)


def at(curve, alpha):
    return float(curve(np.array([alpha]))[0])
