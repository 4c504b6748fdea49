"""Bounds of records that are enforced."""

import mpmath
import pytest
import torch

from certified_unlearning.engine.private.bounded_records import shortened


@pytest.mark.parametrize(
    ("row_norm", "value"),
    [(1e-180, 1e-170), (1e-200, 1e-165), (1e-160, 3e-160), (1e-290, 1e-280), (1.0, 1e200), (1e300, 1e308), (0.1, 0.2)],
)
def test_a_row_that_is_too_long_is_scaled_down_also_where_its_squares_are_no_numbers(
    row_norm: float, value: float
) -> None:
    row = shortened(torch.full((1, 3), value, dtype=torch.float64), row_norm)[0].tolist()
    with mpmath.workdps(40):
        norm = mpmath.sqrt(sum(mpmath.mpf(each) ** 2 for each in row)) / row_norm
    assert float(norm) == pytest.approx(1, rel=1e-14)


def test_a_row_that_is_not_too_long_stays() -> None:
    row = torch.tensor([[0.3, -0.4], [3e-170, 4e-170], [0.0, 0.0]], dtype=torch.float64)
    assert torch.equal(shortened(row, 0.6), row)
