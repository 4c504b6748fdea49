"""Pooling on arrays: many phases, and many runs, give what one after the other gives."""

import math

import numpy as np
import pytest

from certified_unlearning.accounting.core.pooling import NoisyPhase, Pool, mu_of_all, pooled_mu


@pytest.mark.parametrize("seed", range(6))
def test_runs_regressed_together_are_those_of_each(seed):
    """Whatever the gap, the sensitivities and the distances; zeros among them."""
    generator = np.random.default_rng(seed)
    for _ in range(200):
        gap = 1 - 10 ** generator.uniform(-9, -0.01) if generator.random() < 0.7 else 10 ** generator.uniform(-4, -0.1)
        steps, sensitivities, firsts, distances, each = [], [], [], [], []
        for _ in range(generator.integers(1, 12)):
            firsts.append(len(steps))
            phases = []
            for _ in range(generator.integers(1, 25)):
                steps.append(int(generator.choice([1, 1, 1, 2, 5, generator.integers(1, 40)])))
                sizes = [0.0, 0.0, 1e-12, 1.0, generator.random(), 10 ** generator.uniform(-14, 3)]
                sensitivities.append(float(generator.choice(sizes)))
                phases.append(NoisyPhase(steps[-1], gap, sensitivities[-1], 0.7))
            distances.append(float(generator.choice([0.0, generator.random(), 10 ** generator.uniform(-10, 5)])))
            each.append(pooled_mu(phases, starting_distance=distances[-1]))
        together = mu_of_all(
            np.array(steps, dtype=float),
            np.array(sensitivities),
            np.array(firsts),
            contraction_gap=gap,
            noise_std=0.7,
            starting_distances=np.array(distances),
        )
        assert together == pytest.approx(math.hypot(*each), rel=1e-12, abs=0)


@pytest.mark.parametrize("contraction_gap", [0.0, 5e-324, 1e-310, 1e-6, 0.003, 0.2, 0.999, 1.0])
@pytest.mark.parametrize("distance", [0.0, 7.0])
def test_many_runs_pool_to_what_one_after_the_other_does(contraction_gap: float, distance: float) -> None:
    draw = np.random.default_rng(5)
    steps = draw.integers(1, 9, size=100).astype(np.float64)
    sensitivities = draw.choice([0.0, 1e-9, 1.0, 2.0, 3.0], size=100)
    phases = [
        NoisyPhase(int(number), contraction_gap, size, 0.3) for number, size in zip(steps, sensitivities, strict=True)
    ]
    one_by_one = Pool.of(phases, starting_distance=distance)
    at_once = Pool.of_runs(
        steps, sensitivities, contraction_gap=contraction_gap, noise_std=0.3, starting_distance=distance
    )
    for number in (0, 1, 50):
        more = NoisyPhase(number, contraction_gap, 0.0, 0.3)
        assert at_once.followed_by(more).mu() == pytest.approx(one_by_one.followed_by(more).mu(), rel=1e-12)


@pytest.mark.parametrize("contraction_gap", [0.0, 5e-324, 1e-310, 1e-6, 0.003, 0.2, 0.999, 1.0])
@pytest.mark.parametrize("least", [0.0, 1e-9, 1e-3])
def test_many_runs_that_are_counted_each_on_its_own_add_up(contraction_gap: float, least: float) -> None:
    draw = np.random.default_rng(7)
    lengths = draw.integers(1, 40, size=120)
    firsts = np.cumsum(lengths) - lengths
    steps = draw.integers(1, 9, size=lengths.sum()).astype(np.float64)
    sensitivities = draw.choice([least, 1.0, 2.0, 3.0], size=len(steps))
    distances = draw.choice([0.0, 7.0], size=len(firsts))
    constants = {"contraction_gap": contraction_gap, "noise_std": 0.3}
    one_by_one = [
        Pool.of_runs(
            steps[first : first + length],
            sensitivities[first : first + length],
            **constants,
            starting_distance=distance,
        ).mu()
        for first, length, distance in zip(firsts, lengths, distances, strict=True)
    ]
    found = mu_of_all(steps, sensitivities, firsts, **constants, starting_distances=distances)
    assert found == pytest.approx(math.hypot(*one_by_one), rel=1e-12)
    # Were they counted together, noise of one would hide what the one before shows.
    together = Pool.of_runs(steps, sensitivities, **constants, starting_distance=distances[0]).mu()
    assert together < found * (1 - 1e-3)


@pytest.mark.parametrize("size", [1e-200, 1e-20, 1e150])
def test_units_change_no_digit_of_many_runs(size: float) -> None:
    draw = np.random.default_rng(8)
    steps, sensitivities = np.ones(60), draw.random(60)
    constants = {"contraction_gap": 0.05, "noise_std": 1.0, "starting_distances": np.zeros(3)}
    firsts = np.array([0, 20, 40])
    expected = mu_of_all(steps, sensitivities, firsts, **constants) * size
    assert mu_of_all(steps, sensitivities * size, firsts, **constants) == pytest.approx(expected, rel=1e-12)


def test_runs_without_any_difference_show_nothing_and_tiny_ones_something() -> None:
    constants = {"contraction_gap": 0.05, "noise_std": 1.0, "starting_distances": np.zeros(2)}
    steps, firsts = np.ones(40), np.array([0, 20])
    assert mu_of_all(steps, np.zeros(40), firsts, **constants) == 0
    assert mu_of_all(steps, np.full(40, 5e-324), firsts, **constants | {"noise_std": 1e300}) > 0
