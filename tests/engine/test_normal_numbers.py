"""NumPy's normal numbers are PyTorch's of the same key, and those without a key are normal and never the same."""

import numpy as np
import pytest
import torch
from scipy.special import ndtr

from certified_unlearning.engine import normal_numbers as module
from certified_unlearning.engine.normal_numbers import normal_numbers
from certified_unlearning.engine.randomness import fine_radius, normal_rows


@pytest.mark.parametrize("count", [1, 2, 21, 785])
def test_a_key_gives_the_engine_s_numbers(count: int):
    for key in (0, 12345, 2**128 - 1):
        theirs = normal_rows([key], torch.empty(1, count, dtype=torch.float64)).numpy()[0]
        assert normal_numbers(count, key) == pytest.approx(theirs, rel=1e-14, abs=1e-14)


@pytest.mark.parametrize("number", [0, 1, 2**40 - 1, 2**63 - 1, 2**63 - 2**43])
def test_rare_radii_are_drawn_finely(monkeypatch: pytest.MonkeyPatch, number: int):
    """Where an integer is too coarse, and at 0, where its logarithm is none."""
    monkeypatch.setattr(module, "_bits", lambda *_: np.array([number, 0], dtype=np.int64).tobytes())
    fine = 2**63 - number <= 2**43 or number < 2**40
    expected = fine_radius(number, 2**63, 7, 0, 0) if fine else np.sqrt(-2 * np.log(number / 2**63))
    assert normal_numbers(2, 7) == pytest.approx([expected, 0.0], rel=1e-12)
    assert np.isfinite(normal_numbers(2)).all()


def test_the_operating_system_s_are_normal():
    """Kolmogorov and Smirnov's test of 100 000; false alarms: below 1e-9 (Dvoretzky, Kiefer, Wolfowitz)."""
    found = np.sort(ndtr(normal_numbers(100_000)))
    expected = np.arange(1, 100_001) / 100_000
    assert np.abs(found - expected).max() < np.sqrt(np.log(2 / 1e-9) / (2 * 100_000)) + 1e-5
    assert not (normal_numbers(10) == normal_numbers(10)).any()
