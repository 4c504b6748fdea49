"""The bound of a Newton step: the vector of the design, and cases in which nothing smaller would hold."""

import math

import numpy as np
import pytest

from certified_unlearning.accounting.residual.newton import (
    Step,
    by_self_concordance,
    by_third_derivative,
    growth,
    residual_after,
)
from certified_unlearning.accounting.residual.rounding import OUTWARD, THIRD_DERIVATIVE

A = np.array([1.0, -0.5, 0.8])
N, M, RHO = 3, 0.1, 0.63


def gradient(w: float, rows: np.ndarray, n: int = N, m: float = M) -> float:
    return float(-(rows / (1 + np.exp(rows * w))).sum() / n + m * w)


def hessian(w: float, rows: np.ndarray, n: int = N, m: float = M) -> float:
    p = 1 / (1 + np.exp(rows * w))
    return float((p * (1 - p) * rows**2).sum() / n + m)


def minimiser(rows: np.ndarray, n: int = N, m: float = M) -> float:
    w = 0.0
    for _ in range(60):
        w -= gradient(w, rows, n, m) / hessian(w, rows, n, m)
    return w


def test_the_constant_is_the_largest_third_derivative():
    z = np.linspace(-10, 10, 2_000_001)
    s = 1 / (1 + np.exp(-z))
    largest = np.abs(s * (1 - s) * (1 - 2 * s)).max()
    assert largest == pytest.approx(THIRD_DERIVATIVE, rel=1e-9)
    assert pytest.approx(0.0962250, abs=5e-8) == THIRD_DERIVATIVE
    assert float((A**2).mean()) == pytest.approx(RHO)


def test_the_minimisers_of_the_vector():
    assert minimiser(A) == pytest.approx(0.865606929181068, abs=1e-14)
    assert minimiser(A[1:]) == pytest.approx(0.2875266204858648, abs=1e-14)
    assert minimiser(A[[0, 2]]) == pytest.approx(1.3562915203047141, abs=1e-14)


@pytest.mark.parametrize(
    ("downdate", "matrix", "moved", "bound", "true"),
    [
        (False, 0.23678958254688123, -0.41692322630375583, 0.040012391787109684, 0.02785307220652761),
        (True, 0.16730524346191644, -0.590077601082703, 0.010553996235758657, 0.0020802469453850385),
    ],
)
def test_the_step_of_the_vector(downdate: bool, matrix: float, moved: float, bound: float, true: float):
    w = minimiser(A)
    ghat = float(A[0] / (1 + math.exp(A[0] * w))) / N
    assert ghat == pytest.approx(0.09872307671056524, abs=1e-14)
    b = hessian(w, A[1:] if downdate else A)
    v = -ghat / b
    assert (b, v) == pytest.approx((matrix, moved), abs=1e-13)
    after = residual_after(
        0.0,
        Step(abs(v), 0.0, abs(v)),
        left=0.0,
        n=N,
        not_downdated=0 if downdate else 1,
        largest_eigenvalue=RHO,
        row_norm=1.0,
    )
    assert after == pytest.approx(bound, rel=1e-12)
    assert abs(gradient(w + v, A[1:])) == pytest.approx(true, rel=1e-10)
    assert after >= abs(gradient(w + v, A[1:]))


def test_a_second_step_of_the_vector():
    w = minimiser(A)
    w -= gradient(w, A[1:]) / hessian(w, A[1:])
    w -= gradient(w, A[1:]) / hessian(w, A[1:])
    assert w == pytest.approx(0.2875243733351281, abs=1e-13)
    assert gradient(w, A[1:]) == pytest.approx(-3.8956629463265946e-07, rel=1e-7)


def change(start: float, step: float, rows: np.ndarray) -> float:
    """|grad(w + v) - grad(w) - H(w) v| of the mean loss."""
    n = len(rows)
    moved = gradient(start + step, rows, n, 0.0) - gradient(start, rows, n, 0.0) - hessian(start, rows, n, 0.0) * step
    return abs(moved)


def test_the_third_derivative_is_needed_in_full():
    """All rows are 1 and every score is where the third derivative is largest: nine tenths of the bound happen."""
    rows, start, step = np.ones(50), math.log(2 + math.sqrt(3)), 0.02
    bound = by_third_derivative(Step(step, 0.0, step), row_norm=1.0)
    assert 0.9 * bound < change(start, step, rows) <= bound


def test_self_concordance_is_needed_in_full():
    """All scores are large, where the second derivative is as large as the first one."""
    rows, start, step = np.ones(50), 6.0, -0.01
    seminorm = math.sqrt(hessian(start, rows, 50, 0.0)) * abs(step)
    bound = by_self_concordance(Step(abs(step), 0.0, abs(step), seminorm, 0.0), row_norm=1.0)
    assert 0.9 * bound < change(start, step, rows) <= bound
    assert bound < by_third_derivative(Step(abs(step), 0.0, abs(step)), row_norm=1.0) / 10


def test_both_bounds_hold_wherever_the_matrix_was_made():
    """10 000 steps of one weight from random places, the matrix from elsewhere; nothing is above either bound."""
    draw = np.random.default_rng(1)
    ratios = []
    for _ in range(10_000):
        rows = draw.uniform(-1, 1, draw.integers(1, 6))
        n, at = len(rows), draw.normal() * draw.choice([0.1, 1, 10])
        moved, v = draw.normal(size=2) * draw.choice([1e-3, 0.1, 1, 3])
        size = math.sqrt(hessian(at, rows, n, 0.0))
        step = Step(abs(v), abs(moved), abs(moved + v), size * abs(v), size * abs(moved))
        w = at + moved
        rest = gradient(w + v, rows, n, 0.0) - gradient(w, rows, n, 0.0) - hessian(at, rows, n, 0.0) * v
        for bound in (by_third_derivative, by_self_concordance):
            assert abs(rest) <= bound(step, row_norm=1.0) + 1e-15
        ratios.append(abs(rest) / by_self_concordance(step, row_norm=1.0))
    assert max(ratios) > 0.5


def test_growth():
    assert growth(0.0) == 1.0
    assert growth(1.0) == pytest.approx(math.e - 1, rel=1e-12)
    assert growth(1.0) >= math.e - 1
    assert growth(1e4) == math.inf


def test_what_was_left_before_stays():
    still = Step(0.0, 0.3, 0.3, 0.0, 0.1)
    assert residual_after(0.25, still, left=0.0, n=10, not_downdated=3) == pytest.approx(0.25, rel=2 * (OUTWARD - 1))
    assert residual_after(0.25, still, left=0.125, n=10) >= 0.375
