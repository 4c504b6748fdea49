"""Figs. 1 and 2 of the paper on differential privacy dynamics: section 5 of the sheet."""

import math

import pytest

from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.privacy_dynamics.theory.curves import figure_1, figure_2
from certified_unlearning.papers.privacy_dynamics.theory.dynamics import composition, corollary_1, corollary_2
from certified_unlearning.papers.privacy_dynamics.theory.gaussians import exact_quadratic, theorem_3
from tests.papers.privacy_dynamics.dynamics_settings import UNIT, equal, paper, quoted, value

FIGURE_1 = {
    1: (8.00000e-05, 1.59203e-04, 1.58411e-04, 1.56842e-04),
    10: (8.00000e-04, 1.52260e-03, 1.45015e-03, 1.31872e-03),
    50: (4.00000e-03, 6.29551e-03, 5.05696e-03, 3.45866e-03),
    100: (8.00000e-03, 1.01139e-02, 6.91732e-03, 3.92674e-03),
    159: (1.27200e-02, 1.27372e-02, 7.66731e-03, 3.99308e-03),
    160: (1.28000e-02, 1.27697e-02, 7.67390e-03, 3.99335e-03),
    200: (1.60000e-02, 1.38346e-02, 7.85347e-03, 3.99866e-03),
    300: (2.40000e-02, 1.52034e-02, 7.98017e-03, 3.99998e-03),
    500: (4.00000e-02, 1.58922e-02, 7.99964e-03, 4.00000e-03),
}
# Theorem 3, exact, Corollary 2, Corollary 1, composition.
FIGURE_2 = {
    1: (7.92053e-05, 8.00000e-05, 1.58426e-04, 1.59203e-04, 8.00000e-05),
    2: (1.56842e-04, 1.59984e-04, 3.13747e-04, 3.16821e-04, 1.60000e-04),
    10: (7.25077e-04, 7.97317e-04, 1.45156e-03, 1.52260e-03, 8.00000e-04),
    50: (2.52848e-03, 3.69146e-03, 5.07817e-03, 6.29551e-03, 4.00000e-03),
    80: (3.19241e-03, 5.29488e-03, 6.42301e-03, 8.81074e-03, 6.40000e-03),
    81: (3.20841e-03, 5.33883e-03, 6.45551e-03, 8.88227e-03, 6.48000e-03),
    100: (3.45866e-03, 6.06528e-03, 6.96510e-03, 1.01139e-02, 8.00000e-03),
    150: (3.80085e-03, 7.19024e-03, 7.66624e-03, 1.24299e-02, 1.20000e-02),
    200: (3.92674e-03, 7.64622e-03, 7.92676e-03, 1.38346e-02, 1.60000e-02),
    300: (3.99008e-03, 7.88314e-03, 8.05954e-03, 1.52034e-02, 2.40000e-02),
}
SETTING = {"sensitivity": 4.0, "n": 5000, "step_size": 0.02, "sigma": 0.02}
PAIRS = ((30.0, 1.0), (20.0, 1.0), (10.0, 1.0), (10.0, 2.0), (10.0, 4.0))


def points(rows):
    return {(row["bound"], row["alpha"], row["strong_convexity"], row["steps"]): row["renyi"] for row in rows}


def test_figure_1_has_the_sheets_values():
    found = points(figure_1(steps=sorted(FIGURE_1), curves=PAIRS, smoothness=4.0, **SETTING))
    assert len(found) == len(FIGURE_1) * (5 + 3)
    for steps, (composed, *damped) in FIGURE_1.items():
        for scale in (1, 2, 3):
            assert found["composition", 10 * scale, None, steps] == quoted(scale * composed)
            assert found["corollary-1", 10 * scale, 1, steps] == quoted(scale * damped[0])
        for strong_convexity, expected in zip((1, 2, 4), damped, strict=True):
            assert found["corollary-1", 10, strong_convexity, steps] == quoted(expected)


def test_figure_2_has_the_sheets_values():
    found = points(figure_2(steps=sorted(FIGURE_2), alphas=(10.0, 20.0, 30.0), **SETTING))
    assert len(found) == len(FIGURE_2) * 3 * 4
    for steps, (third, exact, second, first, composed) in FIGURE_2.items():
        for scale in (1, 2, 3):
            assert found["theorem-3", 10 * scale, 1, steps] == quoted(scale * third)
            assert found["quadratic", 10 * scale, 1, steps] == quoted(scale * exact)
            assert found["corollary-2", 10 * scale, 1, steps] == quoted(scale * second)
            assert found["composition", 10 * scale, None, steps] == quoted(scale * composed)
        assert value(corollary_1, UNIT, steps) == quoted(first)


def test_the_figures_plateaus_are_the_sheets():
    for (alpha, strong_convexity), plateau in zip(PAIRS, (0.048, 0.032, 0.016, 0.008, 0.004), strict=True):
        assert value(corollary_1, paper(strong_convexity), math.inf, alpha=alpha) == equal(plateau)
    for scale in (1, 2, 3):
        assert value(corollary_2, UNIT, math.inf, alpha=10.0 * scale) == quoted(scale * 0.00808081)
        assert value(theorem_3, UNIT, math.inf, alpha=10.0 * scale) == equal(scale * 0.004)
        assert value(exact_quadratic, UNIT, math.inf, alpha=10.0 * scale) == equal(scale * 0.00792)
        assert value(composition, UNIT, 500, alpha=10.0 * scale) == equal(scale * 0.04)


def test_figure_rows_say_which_figure_and_where_a_bound_comes_from():
    first = figure_1(steps=[0, 7], curves=[(10.0, 2.0)], smoothness=4.0, **SETTING)
    assert [(row["figure"], row["bound"], row["source"], row["steps"]) for row in first] == [
        (1, "corollary-1", "paper", 0),
        (1, "corollary-1", "paper", 7),
        (1, "composition", "paper", 0),
        (1, "composition", "paper", 7),
    ]
    assert [row["renyi"] == 0 for row in first] == [True, False, True, False]
    second = figure_2(steps=[7], alphas=[10.0], **SETTING)
    assert [(row["figure"], row["bound"], row["source"]) for row in second] == [
        (2, "corollary-2", "paper"),
        (2, "quadratic", "exact"),
        (2, "theorem-3", "paper"),
        (2, "composition", "paper"),
    ]


@pytest.mark.parametrize("alpha", [1.0, math.nan, math.inf])
def test_figures_refuse_an_order_that_is_none(alpha):
    with pytest.raises(ParameterError, match=f"alpha must be finite and above 1, got {alpha}"):
        figure_1(steps=[1], curves=[(alpha, 1.0)], smoothness=4.0, **SETTING)


@pytest.mark.parametrize("figure", [figure_1, figure_2])
def test_figures_refuse_a_sensitivity_that_is_none(figure):
    axes = {"curves": [(10.0, 1.0)], "smoothness": 4.0} if figure is figure_1 else {"alphas": [10.0]}
    with pytest.raises(ParameterError, match=r"^sensitivity must be a finite number above 0, got 0"):
        figure(steps=[1], **axes, **SETTING | {"sensitivity": 0.0})
