import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certified_unlearning.accounting import epsilon_from_renyi
from certified_unlearning.errors import ParameterError

SCALES = st.floats(-25, 25).map(lambda exponent: 10**exponent)
DELTAS = st.floats(-15, -0.01).map(lambda exponent: 10**exponent)


@given(scale=SCALES, delta=DELTAS)
@settings(max_examples=300, deadline=None)
def test_a_linear_curve_gives_the_closed_form_minimum(scale, delta):
    # Spec, section 4: A + 2 sqrt(A l) at alpha = 1 + sqrt(l / A).
    log_inverse_delta = -math.log(delta)
    epsilon, alpha = epsilon_from_renyi(lambda orders: scale * orders, delta)
    assert epsilon == pytest.approx(scale + 2 * math.sqrt(scale * log_inverse_delta), rel=1e-12)
    if 1e-6 < scale < 1e6:  # Beyond that the value is too flat in doubles to tell the order.
        assert alpha - 1 == pytest.approx(math.sqrt(log_inverse_delta / scale), rel=1e-5)


@given(scale=SCALES, decay=st.floats(0, 50), delta=DELTAS)
@settings(max_examples=200, deadline=None)
def test_the_value_is_the_one_at_the_returned_order_and_no_order_of_a_fine_grid_does_better(scale, decay, delta):
    def curve(orders):
        return scale * orders * np.exp(-decay / orders)

    epsilon, alpha = epsilon_from_renyi(curve, delta)
    assert epsilon == curve(alpha) - math.log(delta) / (alpha - 1)
    orders = 1 + np.exp(np.linspace(-30, 78, 20_001))
    assert epsilon <= (curve(orders) - math.log(delta) / (orders - 1)).min() * (1 + 1e-12)


def test_a_curve_that_is_infinite_above_some_order_is_minimised_below_it():
    # Such a curve is what a clipped or divergent Rényi bound looks like.
    epsilon, alpha = epsilon_from_renyi(lambda orders: np.where(orders < 3, 1e-3 * orders, np.inf), 1e-5)
    assert alpha < 3
    assert epsilon == pytest.approx(3e-3 + math.log(1e5) / 2, rel=1e-5)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_a_delta_outside_zero_to_one_is_refused(delta):
    with pytest.raises(ParameterError, match="delta must lie strictly between 0 and 1, got"):
        epsilon_from_renyi(lambda orders: orders, delta)


def test_a_curve_of_nan_is_refused():
    with pytest.raises(ParameterError, match="the Rényi curve must give numbers, got NaN"):
        epsilon_from_renyi(lambda orders: orders * np.nan, 1e-5)
