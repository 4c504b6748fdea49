"""L-BFGS from another Hessian's factor: it solves what its pairs tell, and finds the minimum in fewer passes."""

import functools

import numpy as np
import pytest

from certified_unlearning.engine.objectives.float64 import LogisticRegression64
from certified_unlearning.mechanisms.newton.secants import Secants
from certified_unlearning.mechanisms.newton.state import factor_of, solve
from certified_unlearning.mechanisms.newton_removal import NewtonRemoval
from tests.mechanisms.residual_streams import plan_of, problem


def hessian(draw: np.random.Generator, d: int) -> np.ndarray:
    root = draw.standard_normal((2 * d, d))
    return root.T @ root / d + 0.1 * np.eye(d)


def test_steps_along_which_the_gradient_s_change_is_known_are_solved_exactly():
    draw = np.random.default_rng(0)
    matrix = hessian(draw, 5)
    secants = Secants(functools.partial(solve, factor_of(hessian(draw, 5))))
    step = draw.standard_normal(5)
    assert secants.solved(matrix @ step) != pytest.approx(step)
    secants.add(step, matrix @ step)
    assert secants.solved(matrix @ step) == pytest.approx(step)
    secants.add(step, -matrix @ step)
    assert len(secants.pairs) == 1, "a loss that is convex has no such pairs"


def test_with_all_directions_known_it_is_newton_s_step():
    """Conjugate steps: the quadratic is known then."""
    draw = np.random.default_rng(1)
    matrix = hessian(draw, 4)
    secants = Secants(lambda gradient: gradient)
    for step in np.linalg.eigh(matrix)[1].T:
        secants.add(step, matrix @ step)
    gradient = draw.standard_normal(4)
    assert secants.solved(gradient) == pytest.approx(np.linalg.solve(matrix, gradient))


def test_learning_makes_one_hessian_over_all_rows(monkeypatch: pytest.MonkeyPatch):
    """Where a sample's Hessian is a poor guide; without secants several were made."""
    made, right = [], LogisticRegression64.gradient_and_hessian

    def counted(self: LogisticRegression64, weights: np.ndarray, **options: bool) -> tuple[np.ndarray, np.ndarray]:
        made.append(len(self.rows))
        return right(self, weights, **options)

    monkeypatch.setattr(LogisticRegression64, "gradient_and_hessian", counted)
    rows, labels = problem(np.random.default_rng(2), 9000, 300)
    plan = plan_of(9000, 300, 1e-4)
    NewtonRemoval(plan).fit(rows, labels)
    assert made.count(9000) == 1
    made.clear()
    monkeypatch.setattr(Secants, "add", lambda *_: None)
    NewtonRemoval(plan).fit(rows, labels)
    assert made.count(9000) > 1


@pytest.mark.parametrize(("share", "right_along_the_step"), [(1 / 1000, True), (0.8, False)])
def test_a_first_matrix_that_is_far_too_large_is_scaled_by_the_last_step(share: float, right_along_the_step: bool):
    """Then a gradient of which nothing is known is solved about right, too; a matrix that is nearly right stays."""
    draw = np.random.default_rng(3)
    matrix = hessian(draw, 5)
    factor = factor_of(share * matrix)
    step, gradient = draw.standard_normal((2, 5))
    plain, scaled = (Secants(functools.partial(solve, factor), scaled=scaled) for scaled in (False, True))
    for each in (plain, scaled):
        each.add(step, matrix @ step)
        assert each.solved(matrix @ step) == pytest.approx(step)
    right = np.linalg.solve(matrix, gradient)
    if right_along_the_step:
        assert scaled.solved(gradient) == pytest.approx(right)
        assert np.linalg.norm(plain.solved(gradient) - right) > 100 * np.linalg.norm(right)
    else:
        assert (scaled.solved(gradient) == plain.solved(gradient)).all()
