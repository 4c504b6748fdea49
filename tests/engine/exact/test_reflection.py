"""The reflection step: its published numbers, its law, and that other steps have another law."""

from collections.abc import Callable
from math import erf, sqrt

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.reflection import log_density_ratio, reflection_step
from tests.engine.exact import wrong_steps

Step = Callable[[Tensor, Tensor, Tensor, float, Tensor], tuple[Tensor, Tensor]]
FALSE_ALARM_RATE = 1e-9
"""Of each check of a law; there are two of them, with nine numbers each at most."""
ALMOST_ONE = 1 - 2**-53


def row(*numbers: float) -> Tensor:
    return torch.tensor([numbers], dtype=torch.float64)


def total_variation(gap: float) -> float:
    """Between Gaussians of variance 1 whose means are so far apart."""
    return erf(gap / (2 * sqrt(2)))


@pytest.mark.parametrize(
    ("gap", "published"),
    [
        (0.05, 0.0199450),
        (0.1, 0.0398776),
        (0.25, 0.0994764),
        (0.5, 0.197413),
        (1, 0.382925),
        (2, 0.682689),
        (4, 0.9545),
    ],
)
def test_as_many_values_move_as_the_laws_differ_by(gap: float, published: float) -> None:
    assert 1 - moments(reflection_step, gap)[0] == pytest.approx(published, rel=3e-6)
    assert total_variation(gap) == pytest.approx(published, rel=3e-6)


def test_the_published_example() -> None:
    old, new, sigma = row(1, 2), row(0.5, 2.5), 0.7
    value = row(1.3, 1.1)
    assert float(log_density_ratio(value, old, new, sigma)) == pytest.approx(-1.73469, abs=5e-6)
    for uniform, expected, stays in [(0.176453, (1.3, 1.1), True), (0.176455, (0.2, 3.4), False)]:
        stepped, stayed = reflection_step(value, old, new, sigma, torch.tensor([uniform], dtype=torch.float64))
        assert stepped[0].tolist() == pytest.approx(expected)
        assert stayed.tolist() == [stays]
    likely = row(0.4, 2.2)
    assert float(log_density_ratio(likely, old, new, sigma).exp()) == pytest.approx(1.35815, abs=5e-6)
    assert reflection_step(likely, old, new, sigma, torch.tensor([ALMOST_ONE]))[1].tolist() == [True]


def moments(step: Step, gap: float = 1.0) -> tuple[float, float, float]:
    """The probability to stay, the mean and the variance of what N(0, 1) becomes, by the trapezoidal rule."""
    values = torch.linspace(-14, 14, 200_001, dtype=torch.float64)[:, None]
    old, new = torch.zeros_like(values), torch.full_like(values, gap)

    def at(uniforms: Tensor) -> tuple[Tensor, Tensor]:
        return step(values, old, new, 1.0, uniforms)

    # The largest uniform number with which a value stays, by bisection.
    low, high = torch.zeros(len(values), dtype=torch.float64), torch.ones(len(values), dtype=torch.float64)
    for _ in range(52):
        middle = (low + high) / 2
        stays = at(middle)[1]
        low, high = torch.where(stays, middle, low), torch.where(stays, high, middle)
    density = torch.exp(-(values[:, 0] ** 2) / 2) / sqrt(2 * torch.pi)
    moved = at(torch.full_like(low, ALMOST_ONE))[0][:, 0]

    def mean(of_stayed: Tensor, of_moved: Tensor) -> float:
        return float(torch.trapezoid(density * (low * of_stayed + (1 - low) * of_moved), values[:, 0]))

    first = mean(values[:, 0], moved)
    return mean(torch.ones_like(low), torch.zeros_like(low)), first, mean(values[:, 0] ** 2, moved**2) - first**2


@pytest.mark.parametrize(
    ("step", "published", "tolerance"),
    [
        (reflection_step, (0.617075, 1, 1), 2e-6),
        (wrong_steps.inverted_ratio, (0.873063, -0.236265, 0.707914), 2e-6),
        (wrong_steps.moved_away, (0.617075, -0.382925, 1.85337), 3e-6),
        (wrong_steps.moved_along, (0.617075, 0.382925, 0.619218), 2e-6),
        (wrong_steps.redrawn, (0.617075, 0.691462, 0.861277), 0.02),  # What is drawn afresh is random here, too.
    ],
)
def test_only_reflection_has_the_right_mean_and_variance(
    step: Step, published: tuple[float, float, float], tolerance: float
) -> None:
    assert moments(step) == pytest.approx(published, abs=tolerance)


def smallest_p_value(step: Step, dimension: int, draws: int = 50_000) -> float:
    """Test everything that is known of the law of a step at random means: of each value, its length, how many stay."""
    generator = torch.Generator().manual_seed(dimension)
    old = torch.randn(1, dimension, generator=generator, dtype=torch.float64).expand(draws, -1)
    new = old + 0.6 * torch.randn(1, dimension, generator=generator, dtype=torch.float64)
    sigma = 0.8
    values = old + sigma * torch.randn(draws, dimension, generator=generator, dtype=torch.float64)
    uniforms = torch.rand(draws, generator=generator, dtype=torch.float64)
    stepped, stays = step(values, old, new, sigma, uniforms)
    normal = ((stepped - new) / sigma).numpy()
    expected = 1 - total_variation(float((new - old)[0].norm()) / sigma)
    return min(
        *(stats.kstest(column, stats.norm.cdf).pvalue for column in normal.T),
        stats.kstest((normal**2).sum(axis=1), stats.chi2(dimension).cdf).pvalue,
        stats.binomtest(int(stays.sum()), draws, expected).pvalue,
        stats.kstest(normal @ np.sign((new - old)[0].numpy()) / sqrt(dimension), stats.norm.cdf).pvalue,
    )


@pytest.mark.parametrize("dimension", [1, 5])
def test_the_law_is_the_new_one_and_values_stay_as_often_as_they_can(dimension: int) -> None:
    assert smallest_p_value(reflection_step, dimension) > FALSE_ALARM_RATE


@pytest.mark.parametrize("dimension", [1, 5])
@pytest.mark.parametrize(
    "step",
    [
        wrong_steps.inverted_ratio,
        wrong_steps.moved_away,
        wrong_steps.moved_along,
        wrong_steps.redrawn,
        wrong_steps.never_rejecting,
        wrong_steps.stale_noise,
    ],
)
def test_a_wrong_step_is_caught(step: Step, dimension: int) -> None:
    assert smallest_p_value(step, dimension) < FALSE_ALARM_RATE


def test_without_noise_a_value_stays_only_where_nothing_changed() -> None:
    old = torch.tensor([[1.0, 2.0], [1.0, 2.0]], dtype=torch.float64)
    new = torch.tensor([[1.0, 2.0], [1.0, 2.5]], dtype=torch.float64)
    stepped, stays = reflection_step(old, old, new, 0.0, torch.zeros(2, dtype=torch.float64))
    assert stays.tolist() == [True, False]
    assert torch.equal(stepped, new)


def test_leading_axes_are_separate_cases_with_their_own_noise() -> None:
    draws = Draws(3)
    values, old, new, uniforms = draws.normal(4, 3, 2), draws.normal(4, 3, 2), draws.normal(3, 2), draws.uniform(4, 3)
    sigmas = draws.uniform(4, 3) + 0.1
    stepped, stayed = reflection_step(values, old, new, sigmas, uniforms)
    for case in [(0, 0), (2, 1), (3, 2)]:
        one = reflection_step(values[case], old[case], new[case[1]], float(sigmas[case]), uniforms[case])
        assert torch.equal(stepped[case], one[0])
        assert stayed[case] == one[1]


@pytest.mark.parametrize("sigma", [1e-200, 1e160, 1e300])
def test_deviations_whose_squares_are_no_numbers_keep_as_many_values(sigma: float) -> None:
    # 10,000 values, of which 0.8026 stay on average: 5 standard deviations, a false alarm in 2 million.
    draws = Draws(1)
    old = torch.zeros(10_000, 2, dtype=torch.float64)
    new = old.clone()
    new[:, 0] = sigma / 2
    values = sigma * draws.normal(10_000, 2)
    moved, stayed = reflection_step(values, old, new, sigma, draws.uniform(10_000))
    expected = 1 - erf(0.5 / sqrt(8))
    assert abs(float(stayed.double().mean()) - expected) < 5 * sqrt(expected * (1 - expected) / 10_000)
    assert abs(float((moved[:, 0] / sigma).mean()) - 0.5) < 5 / sqrt(10_000)
