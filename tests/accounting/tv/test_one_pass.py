"""Chapter 5's parameters: the worked example."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting.tv import one_pass
from certified_unlearning.accounting.tv.erm import ConvexProblem
from certified_unlearning.papers.tv_stability.theory import single_pass
from certified_unlearning.papers.tv_stability.theory.trees import calibrated_sigma

EXAMPLE = ConvexProblem(n=65536, dimension=10, lipschitz=1, smoothness=2, diameter=2, rho=0.25)
MODEL = single_pass.GeneralisedLinearProblem(n=65536, lipschitz=1, smoothness=0.25, row_norm=1, model_norm=3, rho=0.25)


def near(value: float) -> object:
    return pytest.approx(value, rel=5e-6)


def test_frank_wolfe() -> None:
    assert single_pass.theorem_26_sigma(EXAMPLE) == near(2560)
    assert single_pass.theorem_26_sigma(EXAMPLE, logarithm="e") == near(1774.46)
    assert single_pass.theorem_26_risk(EXAMPLE) == near(0.0409926)
    assert one_pass.frank_wolfe_sensitivity(lipschitz=1, smoothness=2, diameter=2) == 10


def test_dual_averaging() -> None:
    assert single_pass.theorem_27_sigma(EXAMPLE) == near(512)
    assert single_pass.theorem_27_sigma(EXAMPLE, logarithm="e") == near(354.891)
    assert single_pass.theorem_27_risk(EXAMPLE) == near(0.0355981)
    assert single_pass.theorem_27_printed_step_size(EXAMPLE) == near(0.0925322)
    case = {"n": 65536, "dimension": 10, "lipschitz": 1.0, "diameter": 2.0}
    assert one_pass.balanced_step_size(**case, sigma=16 * math.log(65536) / 0.25) == near(5.82986e-05)
    sigma = calibrated_sigma(n=65536, rho=0.25, sensitivity=one_pass.dual_averaging_sensitivity(lipschitz=1))
    assert sigma == near(54.2562)
    assert one_pass.balanced_step_size(**case, sigma=sigma) == near(2.10719e-04)


@given(st.floats(1e-3, 1e3))
def test_more_noise_asks_for_shorter_steps_but_not_in_print(sigma: float) -> None:
    case = {"n": 1000, "dimension": 5, "lipschitz": 1.0, "diameter": 1.0}
    longer = one_pass.balanced_step_size(**case, sigma=sigma)
    assert one_pass.balanced_step_size(**case, sigma=2 * sigma) < longer
    noisier = replace(EXAMPLE, rho=EXAMPLE.rho / 2)
    assert single_pass.theorem_27_printed_step_size(noisier) > single_pass.theorem_27_printed_step_size(EXAMPLE)


def test_smooth_generalised_linear_models() -> None:
    assert single_pass.theorem_28_risk(MODEL) == near(0.0282211)
    assert MODEL.projected_smoothness == 1


def test_lipschitz_generalised_linear_models() -> None:
    assert single_pass.theorem_29_dimension(MODEL) == near(645.080)
    assert single_pass.theorem_29_dimension(MODEL, printed=True) == near(128)
    assert single_pass.theorem_29_errors(MODEL, dimension=645.0796) == (near(0.118118), near(0.118118))
    assert single_pass.theorem_29_errors(MODEL, dimension=128) == (near(0.0788340), near(0.265165))
