"""Theorems that survive clipping, counterexamples to the others (E10; section 7.6, item 6), and refused conditions."""

from itertools import pairwise

import numpy as np
import pytest

from certified_unlearning.accounting.deletion.conditions import require_survival, surviving_theorems
from certified_unlearning.errors import AssumptionError, ParameterError
from tests.accounting.deletion_settings import quoted


def test_lipschitz_losses_lose_no_theorem():
    assert set(surviving_theorems("lipschitz")) == {
        f"Theorem {n}" for n in ("G.7", "G.9", "G.15", "5.1", "G.22", "5.2")
    }


@pytest.mark.parametrize(
    ("field", "survivors"),
    [
        ("clipped", ("Theorem G.7",)),
        ("clipped-convex", ("Theorem G.7", "Theorem G.9", "Theorem G.15", "Theorem 5.1")),
        ("clipped-bounded", ("Theorem G.7", "Theorem G.22", "Theorem 5.2")),
    ],
)
def test_clipping_leaves_what_its_gradients_allow(field, survivors):
    assert surviving_theorems(field) == survivors


def test_a_theorem_that_does_not_survive_is_refused_by_name():
    with pytest.raises(AssumptionError, match=r"G\.15 does not survive .* lipschitz or clipped-convex, got 'clipped'"):
        require_survival("Theorem G.15", "clipped")
    require_survival("Theorem G.7", "clipped")


def test_an_unknown_gradient_field_is_refused():
    with pytest.raises(ParameterError, match="gradient_field must be one of"):
        surviving_theorems("sharpened")


# --- The counterexamples to Lemmas F.3 and F.4 ------------------------------------------------------------------------

HESSIAN = np.diag([1.0, 10.0])


def clipped(theta):
    """The gradients of a convex quadratic, clipped to length 1; points in the last axis."""
    gradient = theta @ HESSIAN
    return gradient / np.maximum(1, np.linalg.norm(gradient, axis=-1, keepdims=True))


def test_clipped_gradients_of_a_convex_loss_need_not_be_monotone():
    point, step = np.array([np.sqrt(2), np.sqrt(2) / 10]), 1e-6
    jacobian = np.stack(
        [(clipped(point + step * axis) - clipped(point - step * axis)) / (2 * step) for axis in np.eye(2)], axis=1
    )
    np.testing.assert_allclose(jacobian, [[0.25, -2.5], [-0.25, 2.5]], atol=1e-6)
    np.testing.assert_allclose(np.linalg.eigvalsh((jacobian + jacobian.T) / 2), [-0.401584, 3.15158], rtol=1e-5)


def test_clipped_gradients_of_a_convex_loss_need_not_be_a_gradient():
    """Their circulation around a square, by Gauss's rule on every side."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    corners = np.array([[2.0, 1.0], [4.0, 1.0], [4.0, 3.0], [2.0, 3.0], [2.0, 1.0]])
    circulation = 0.0
    for start, end in pairwise(corners):
        points = start + (end - start) * ((nodes + 1) / 2)[:, None]
        circulation += weights / 2 @ (clipped(points) @ (end - start))
    assert circulation == quoted(0.336052)


def test_clipping_a_bounded_sawtooth_leaves_an_unbounded_function():
    slopes, lengths = np.array([10.0, -1.0]), np.array([0.2, 2.0])
    assert slopes @ lengths == pytest.approx(0)
    assert np.clip(slopes, -1, 1) @ lengths == pytest.approx(-1.8)
