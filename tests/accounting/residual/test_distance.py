"""Three bounds on the distance to the minimiser: a vector to twelve digits, exact cases, and faults that are found."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from certified_unlearning.accounting.residual import distance
from certified_unlearning.accounting.residual.distance import (
    Left,
    by_displacement,
    by_local_norm,
    change_by_counts,
    kappa_of,
    left_after,
)
from certified_unlearning.accounting.residual.newton import Step, residual_after
from certified_unlearning.errors import ParameterError

GIVEN = {"strong_convexity": 1 / 400, "row_norm": 1.0}
FIRST = {
    "ghat": (0.00132660050985, 0.00110550042488),
    "v": (-0.0605847588727, -0.0277111492078),
    "norms of v": (0.0666214740011, 0.00999551935808),
    "M, Theta": (0.0666214740011, 0.0437632931748),
    "beta, alpha": (3.44299655656e-4, 0.00344299655656),
    "tau, kappa": (5.16568257411e-5, 0.00728032132612),
    "bounds": (0.00730695219835, 0.00403690172003, 0.0206627302964),
    "true distance": (0.00113347305473,),
    "true norms": (1.78996363113e-4, 0.00112580124973, 2.84903918974e-5),
}
SECOND = {
    "ghat": (-0.00384147932361, 0.0102439448630),
    "v": (0.0648963518116, -0.126861495451),
    "norms of v": (0.142496931569, 0.0387052544175),
    "M, Theta": (0.154632765966, 0.0582707089791),
    "beta, alpha": (0.00429315889057, 0.0429315889057),
    "tau, kappa": (0.00127990893088, 0.0955920987815),
    "bounds": (0.100474802196, 0.0629620296849, 0.511963572353),
    "true distance": (0.00197875283719,),
    "true norms": (3.29417729131e-4, 0.00192309657485, 6.31437580471e-5),
}


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


class Problem:
    """A logistic regression of few records; ``a`` holds label times row."""

    def __init__(self, a: np.ndarray, n: int, strong_convexity: float) -> None:
        self.a, self.n, self.m = a, n, strong_convexity

    def gradient(self, w: np.ndarray) -> np.ndarray:
        return -self.a.T @ sigmoid(-(self.a @ w)) / self.n + self.m * w

    def hessian(self, w: np.ndarray) -> np.ndarray:
        z = self.a @ w
        return (self.a.T * (sigmoid(z) * sigmoid(-z))) @ self.a / self.n + self.m * np.eye(len(w))

    def minimiser(self) -> np.ndarray:
        w = np.zeros(self.a.shape[1])
        for _ in range(200):
            step = np.linalg.solve(self.hessian(w), self.gradient(w))
            w = w - step / max(1.0, float(np.linalg.norm(step)))
        return w

    def without(self, index: int) -> "Problem":
        return Problem(np.delete(self.a, index, axis=0), self.n, self.m)


def test_two_removals_give_the_vector_to_twelve_digits():
    a = np.repeat([(0.6, 0.5), (-0.3, 0.8), (0.9, -0.2), (0.1, -0.7)], 10, axis=0)
    problem = Problem(a, 40, 1 / 400)
    at = w = problem.minimiser()
    metric, left, roots = problem.hessian(at), Left(0.0, 0.0, 0.0), []
    assert at == pytest.approx((2.99788681441, 1.06820110252), rel=6e-12)
    assert metric.ravel()[[0, 1, 3]] == pytest.approx((0.0303566582709, -0.0163052380743, 0.0773675551308), rel=6e-12)
    for index, expected in ((0, FIRST), (9, SECOND)):
        gone, before = problem.a[index], problem
        problem = problem.without(index)
        ghat = gone * sigmoid(-gone @ w) / 40
        matrix = problem.hessian(at)
        v = -np.linalg.solve(matrix, ghat)

        def seminorm(x: np.ndarray, matrix: np.ndarray = matrix) -> float:
            return math.sqrt(max(float(x @ matrix @ x - x @ x / 400), 0.0))

        roots.append(np.linalg.solve(np.linalg.cholesky(metric), gone) * math.sqrt(before_slope(gone, at) / 40))
        change = float(np.linalg.eigvalsh(np.array(roots) @ np.array(roots).T).max())
        moved = w - at
        step = Step(
            float(np.linalg.norm(v)),
            float(np.linalg.norm(moved)),
            float(np.linalg.norm(moved + v)),
            seminorm(v),
            seminorm(moved),
            seminorm(moved + v),
        )
        residual = residual_after(left.residual, step, left=0, n=40, row_norm=1.0)
        left = left_after(
            Left(left.residual, left.dual, left.displacement, change), residual, step, remainder=0, **GIVEN
        )
        w = w + v
        bounds = {"moved": step.moved_after, **GIVEN}
        gradient = problem.gradient(w)
        inverse = np.linalg.solve(metric, gradient)
        found = {
            "ghat": ghat,
            "v": v,
            "norms of v": (step.length, step.seminorm),
            "M, Theta": (step.moved_after, change),
            "beta, alpha": (left.dual, left.displacement),
            "tau, kappa": (residual, kappa_of(left, **bounds)),
            "bounds": (by_local_norm(left, **bounds), by_displacement(left, **bounds), residual * 400),
            "true distance": (np.linalg.norm(w - problem.minimiser()),),
            "true norms": (math.sqrt(gradient @ inverse), np.linalg.norm(inverse), np.linalg.norm(gradient)),
        }
        assert before.a.shape[0] == len(problem.a) + 1
        for name, values in expected.items():
            assert found[name] == pytest.approx(values, rel=6e-12), name
        assert distance.distance(left, **bounds) == pytest.approx(expected["bounds"][1], rel=6e-12)


def before_slope(row: np.ndarray, at: np.ndarray) -> float:
    return float(sigmoid(row @ at) * sigmoid(-row @ at))


def line(*, kept: int, removed: int, n: int, m: float, at: float, w: float) -> tuple[Left, float, float]:
    """One weight, all rows 1: the exact norms of the gradient as state, ``M``, and the true distance."""
    before, after = Problem(np.ones((kept + removed, 1)), n, m), Problem(np.ones((kept, 1)), n, m)
    metric = before.hessian(np.array([at]))[0, 0]
    gradient = abs(after.gradient(np.array([w]))[0])
    change = 1 - after.hessian(np.array([at]))[0, 0] / metric
    left = Left(gradient, gradient / math.sqrt(metric), gradient / metric, change, removed)
    return left, abs(w - at), abs(w - after.minimiser()[0])


def near(problem: dict[str, float], w: float) -> dict[str, float]:
    """The problem with weights a little away from its minimiser."""
    after = Problem(np.ones((int(problem["kept"]), 1)), int(problem["n"]), problem["m"])
    return problem | {"w": float(after.minimiser()[0]) + w}


LINES = {
    # Nearly all of the curvature was removed, the rest is the regulariser's.
    "removed": near({"kept": 1, "removed": 99, "n": 100, "m": 0.01, "at": 1.0}, 1e-4),
    # The Hessian was made where data curve, and they no longer do.
    "moved": near({"kept": 100, "removed": 0, "n": 100, "m": 0.004, "at": 0.0}, 1e-4),
    "far": near({"kept": 100, "removed": 0, "n": 100, "m": 0.2, "at": 0.0}, 3.0),
}


@pytest.mark.parametrize("case", LINES.values(), ids=LINES.keys())
def test_bounds_are_above_the_distance_where_the_norms_are_exact(case: dict[str, float]):
    left, moved, true = line(**case)
    local = by_local_norm(left, moved=moved, strong_convexity=case["m"], row_norm=1.0)
    displaced = by_displacement(left, moved=moved, strong_convexity=case["m"], row_norm=1.0)
    assert true <= left.residual / case["m"]
    assert true <= min(local, displaced)


@pytest.mark.parametrize(
    ("case", "without"), [("removed", {"change": 0.0}), ("moved", {"moved": 0.0})], ids=["Theta", "exponentials"]
)
@pytest.mark.parametrize("bound", [by_local_norm, by_displacement])
def test_a_bound_that_lacks_a_term_is_found(case: str, without: dict[str, float], bound: Callable[..., float]):
    left, moved, true = line(**LINES[case])
    given = {"moved": moved} | without
    lacking = replace(left, change=given.pop("change", left.change))
    assert bound(lacking, **given, strong_convexity=LINES[case]["m"], row_norm=1.0) < true


def stepped(*, records: int, n: int, m: float, at: float, away: float, gone: int) -> tuple[Left, float, float]:
    """One exact Newton step by the Hessian at ``at`` from near the minimiser; the true norms of what it leaves."""
    before, after = Problem(np.ones((records, 1)), n, m), Problem(np.ones((records - gone, 1)), n, m)
    at_, w = np.array([at]), np.array([at + away])
    metric, matrix = before.hessian(at_)[0, 0], after.hessian(at_)[0, 0]
    start = abs(before.gradient(w)[0])
    ghat = gone * sigmoid(-w)[0] / n
    v = -ghat / matrix
    part = math.sqrt(matrix - m)
    ends = abs(away), abs(away + v)
    step = Step(abs(v), *ends, part * abs(v), part * ends[0], part * ends[1])
    left = Left(start, start / math.sqrt(metric), start / metric)
    after_step = left_after(left, math.inf, step, remainder=0, strong_convexity=m, row_norm=1.0)
    rest = abs(after.gradient(w + v)[0] - before.gradient(w)[0])
    return after_step, rest / math.sqrt(metric) + left.dual, rest / metric + left.displacement


STEPS = [
    {"records": 1000, "n": 1000, "m": m, "at": at, "away": away, "gone": gone}
    for m in (1e-4, 1e-3, 1e-2, 0.1)
    for at in (3.0, 6.0)
    for away in (-0.1, 0.0, 0.1)
    for gone in (1, 20)
]


def excess() -> tuple[float, float]:
    """The largest true over certified norms of all steps, what was left before not counted."""
    ratios = []
    for case in STEPS:
        left, dual, displacement = stepped(**case)
        ratios.append((dual / left.dual, displacement / left.displacement))
    return tuple(np.max(ratios, axis=0))


def test_what_a_step_leaves_is_below_its_bounds():
    dual, displacement = excess()
    assert 0.5 < dual <= 1
    assert 0.5 < displacement <= 1


def test_half_of_the_rest_is_not_enough(monkeypatch: pytest.MonkeyPatch):
    right = distance.growth
    monkeypatch.setattr(distance, "growth", lambda exponent: right(exponent) / 2)
    assert min(excess()) > 1


def test_what_says_nothing_is_infinite_and_the_gradient_s_norm_remains():
    given = {"moved": 0.1, "strong_convexity": 0.01}
    for left in (Left(1e-3, 1.0, 1.0), Left(1e-3, 1e-3, 1e-3, change=1.0)):
        assert by_local_norm(left, **given) == math.inf
        assert distance.distance(left, **given) == pytest.approx(0.1)
    far = Left(1e-3, 1e-3, 1e-3)
    assert distance.distance(far, moved=1e3, strong_convexity=0.01) == pytest.approx(0.1)


def test_the_change_by_counts_is_that_of_the_worst_records():
    assert change_by_counts(0, n=100, strong_convexity=0.1) == 0
    roots = np.full((10, 1), math.sqrt(0.25 / 100))  # Scores of 0: the steepest sigmoid.
    worst = float((roots.T @ roots)[0, 0] / ((roots.T @ roots)[0, 0] + 0.1))
    assert change_by_counts(10, n=100, strong_convexity=0.1, row_norm=1.0) == pytest.approx(worst)


def test_impossible_values_are_refused():
    with pytest.raises(ParameterError, match="residual"):
        Left.of_residual(-1.0, strong_convexity=0.1)
    with pytest.raises(ParameterError, match="strong_convexity"):
        Left.of_residual(1.0, strong_convexity=0.0)
