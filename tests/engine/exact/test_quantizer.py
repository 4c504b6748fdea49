"""The quantiser: its published numbers, its mean and variance, how often two values share a cell."""

import pytest
import torch

from certified_unlearning.engine.exact.couplings import cells, quantized

QUANTUM = 0.5


def vector(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


@pytest.mark.parametrize(("value", "published"), [((1.13, -0.42), (1.1, -0.65)), ((1.4, -0.42), (1.6, -0.65))])
def test_the_published_values(value: tuple[float, float], published: tuple[float, float]) -> None:
    assert quantized(vector(*value), QUANTUM, vector(0.2, -0.3)).tolist() == pytest.approx(published)


def grid(points: int) -> torch.Tensor:
    """Offsets, evenly over their range."""
    return (torch.arange(points, dtype=torch.float64) + 0.5) / points - 0.5


def test_two_values_part_as_often_as_published() -> None:
    """The mean over a grid of offsets; independent coordinates multiply."""
    offsets = grid(10_000)
    alike = [
        float((cells(vector(u).expand(10_000), QUANTUM, offsets) == cells(vector(v), QUANTUM, offsets)).double().mean())
        for u, v in [(1.13, 1.20), (-0.42, -0.30)]
    ]
    assert 1 - alike[0] * alike[1] == pytest.approx(0.3464, abs=1e-9)


def test_it_is_unbiased_and_its_variance_is_a_twelfth_of_the_squared_quantum() -> None:
    values = torch.linspace(-3, 3, 41, dtype=torch.float64)[:, None].expand(-1, 20_000)
    errors = quantized(values, QUANTUM, grid(20_000).expand(41, -1)) - values
    assert float(errors.mean(dim=1).abs().max()) < QUANTUM / 20_000
    assert errors.square().mean(dim=1).tolist() == pytest.approx([0.0416667 / 2] * 41, rel=1e-5)


def test_the_same_offset_leaves_the_law_right_and_a_fresh_one_after_a_failed_test_does_not() -> None:
    """One gradient moves from 0 to 0.1: the cell fails for a fifth of the offsets; the mean of the output is known."""
    offsets = grid(10_000)
    old, new = torch.zeros(10_000, dtype=torch.float64), torch.full((10_000,), 0.1, dtype=torch.float64)
    kept = cells(old, QUANTUM, offsets) == cells(new, QUANTUM, offsets)
    assert 1 - float(kept.double().mean()) == pytest.approx(0.2)
    same = torch.where(kept, quantized(old, QUANTUM, offsets), quantized(new, QUANTUM, offsets))
    assert float(same.mean()) == pytest.approx(0.1)
    fresh = torch.where(kept, quantized(old, QUANTUM, offsets), quantized(new, QUANTUM, offsets).mean())
    assert float(fresh.mean()) == pytest.approx(0.06)
