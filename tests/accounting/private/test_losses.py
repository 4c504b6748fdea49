"""Bounds of losses, against their derivatives on a grid: attained or above, never below."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting.private.losses import ScalarLoss
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.private_learning.theory.privacy import lemma_2, lemma_4

LOSSES = [
    ScalarLoss(name="squared", target=0.7),
    ScalarLoss(name="absolute", target=0.7, width=0.05),
    ScalarLoss(name="huber", target=0.7, width=0.3),
    ScalarLoss(name="logistic"),
    ScalarLoss(name="tanh", target=0.9),
]
NAMES = [loss.name for loss in LOSSES]


def value(loss: ScalarLoss, z: np.ndarray, y: float) -> np.ndarray:
    r = np.abs(z - y)
    if loss.name == "squared":
        return r**2
    if loss.name == "absolute":
        return np.where(r <= loss.width, r**2 / (2 * loss.width), r - loss.width / 2)
    if loss.name == "huber":
        return np.where(r <= loss.width, r**2 / 2, loss.width * (r - loss.width / 2))
    return np.logaddexp(0, -y * z) if loss.name == "logistic" else (y - np.tanh(z)) ** 2


def targets(loss: ScalarLoss) -> list[float]:
    return [-1.0, 1.0] if loss.name == "logistic" else list(np.linspace(-loss.target, loss.target, 9))


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
@given(row_norm=st.floats(0.2, 2), radius=st.floats(0.1, 4))
def test_no_gradient_and_no_loss_is_above_its_bound(loss, row_norm, radius):
    z, step = np.linspace(-radius * row_norm, radius * row_norm, 4001, retstep=True)
    bound, largest = (
        loss.ball_lipschitz(row_norm=row_norm, radius=radius),
        loss.largest_value(row_norm=row_norm, radius=radius),
    )
    for y in targets(loss):
        values = value(loss, z, y)
        slopes = np.diff(values) / step
        assert np.abs(slopes).max() * row_norm <= bound * (1 + 1e-9)
        assert values.max() <= largest * (1 + 1e-9)
        assert np.abs(np.diff(slopes) / step).max() <= loss.smoothness * (1 + 1e-3) + 1e-6
        assert value(loss, np.zeros(1), y)[0] <= loss.at_zero**2 * (1 + 1e-12)


def test_the_sharp_bound_is_attained_by_squared_loss_and_the_proof_of_theorem_10_has_less():
    loss = ScalarLoss(name="squared")
    assert loss.ball_lipschitz(row_norm=1, radius=1) == pytest.approx(4, rel=1e-12)  # 2 (<w, x> - y) at w = x, y = -1.
    assert math.sqrt(2) * 1 + 2 * 1 == pytest.approx(3.41421, abs=1e-5)  # E42: (sqrt(H) Y + H D X) X.
    assert lemma_2(at_zero=1, smoothness=2, row_norm=1, radius=1) == pytest.approx(6.82843, abs=1e-5)


def test_the_largest_loss_is_four_where_lemma_4_has_nine_and_lemma_10_three():
    loss = ScalarLoss(name="squared")
    assert loss.largest_value(row_norm=1, radius=1) == pytest.approx(4, rel=1e-12)
    assert lemma_4(at_zero=1, smoothness=2, row_norm=1, radius=1) == 9
    lemma_10 = 1 + 2 * 1 * 1  # E4: without the factor 3.
    assert lemma_10 < (1 - -1) ** 2


def test_a_convex_loss_has_no_negative_curvature_and_the_neuron_has():
    z = np.linspace(-3, 3, 2001)
    for loss in LOSSES:
        least = min(np.diff(value(loss, z, y), 2).min() for y in targets(loss))
        assert (least >= -1e-12) == loss.convex


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"name": "hinge"}, "loss must be one of"),
        ({"name": "absolute"}, "width"),
        ({"name": "squared", "width": 1.0}, "width"),
        ({"name": "logistic", "target": 2.0}, "target"),
        ({"name": "tanh", "target": 1.5}, "target"),
        ({"name": "squared", "target": 0.0}, "target"),
    ],
)
def test_what_makes_no_sense_is_named(given, named):
    with pytest.raises(ParameterError, match=named):
        ScalarLoss(**given)


def test_squared_loss_has_no_bound_without_a_ball():
    with pytest.raises(ParameterError, match="give a radius"):
        ScalarLoss(name="squared").ball_lipschitz(row_norm=1, radius=math.inf)
