"""What is tested elsewhere on a GPU that is not there, on a real one: `pytest tests/gpu`, on a machine that has one.

Both devices get the same random numbers, so they must compute the same up to rounding. The GPU's own random numbers are
tested for their distribution, and for giving the same bits again.
"""

import itertools
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from certified_unlearning.engine import randomness
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.ledger.methods import noisy_steps
from tests.engine.cuda.case import Case
from tests.engine.cuda.test_cases import every_case
from tests.engine.intervals.test_products import PRODUCTS, drawn
from tests.estimators.test_on_cuda import MODELS, used
from tests.gpu.same_draws import same_draws
from tests.ledger.conftest import Original
from tests.ledger.test_on_cuda import answered
from tests.mechanisms.test_on_cuda import LEARNERS
from tests.reproduction.test_jobs import plan, run_all
from tests.reproduction.test_on_cuda import FEW, assert_same_rows

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU here")
GPU, CPU = torch.device("cuda"), torch.device("cpu")
NUMBERS = 1 << 20


@every_case
def test_the_engine_computes_what_it_does_on_the_cpu(case: Case) -> None:
    with same_draws():
        found = case.run(GPU, 1)
        torch.testing.assert_close(found, case.run(CPU, 1), check_device=False)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_learns_unlearns_predicts_and_loads_as_on_the_cpu(name: str, tmp_path: Path) -> None:
    with same_draws():
        found = used(name, tmp_path / "cuda", "cuda")
        expected = used(name, tmp_path / "cpu", "cpu")
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_mechanism_learns_what_it_does_on_the_cpu(name: str) -> None:
    with same_draws():
        found = LEARNERS[name](GPU)
        assert found.is_cuda
        torch.testing.assert_close(found.cpu(), LEARNERS[name](CPU))


@pytest.mark.parametrize("batch_size", [None, 90], ids=["all records", "mini-batches"])
def test_a_ledger_learns_and_answers_requests_as_on_the_cpu(
    batch_size: int | None, original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noisy_steps, "noise_key", lambda: 7)
    with same_draws():
        found = answered(tmp_path / "cuda", original.data, "cuda", batch_size)
        expected = answered(tmp_path / "cpu", original.data, "cpu", batch_size)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("experiment", ["fig3a", "fig3b", "fig3c", "fig4", "fig5a", "batch_sizes"])
@pytest.mark.parametrize("classes", [2, 3])
def test_jobs_write_the_rows_of_those_on_the_cpu(
    experiment: str, classes: int, small_data, three_classes, tmp_path
) -> None:
    data = small_data if classes == 2 else three_classes
    with same_draws():
        found = run_all(plan(data, experiment, **FEW, device="cuda"), data, tmp_path / "cuda")
        expected = run_all(plan(data, experiment, **FEW, device="cpu"), data, tmp_path / "cpu")
    assert_same_rows(found, expected, device="cuda", rtol=1e-6)


@pytest.mark.parametrize("name", ["langevin", "ridge", "network", "exact, subsample-gd"])
def test_a_model_with_the_gpu_s_own_numbers_is_the_same_bit_by_bit_again(name: str, tmp_path: Path) -> None:
    found, again = (used(name, tmp_path / each, "cuda") for each in ("first", "second"))
    for one, other in zip(found, again, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_gpu_s_own_noise_is_standard_normal_and_addressed(dtype: torch.dtype) -> None:
    """False alarms: once in 10^6 runs for each type."""
    steps, d = randomness.BLOCK_STEPS, NUMBERS // randomness.BLOCK_STEPS // 4
    together = torch.empty(2, 2, steps, d, dtype=dtype, device=GPU)
    randomness.fill_blocks(together, [1, 2], 5)
    alone = together.new_empty(1, steps, d)
    randomness.fill_block(alone, [2], 6)
    assert torch.equal(together[1, 1], alone[0]), "neither the number of trials nor that of blocks changes a number"
    assert stats.kstest(together.cpu().double().ravel().numpy(), "norm").pvalue > 1e-6


def test_the_gpu_s_own_draws_have_the_distributions_that_exact_unlearning_needs() -> None:
    """False alarms: once in 10^6 runs."""
    draws = Draws.at("test of the GPU", device=GPU)
    assert draws.normal(3).device.type == "cuda"
    counts = torch.bincount(draws.integers(10, NUMBERS), minlength=10).cpu().numpy()
    chosen = torch.bincount(draws.subsets(torch.arange(6, device=GPU), 3, NUMBERS).ravel(), minlength=6)
    # Subsets of a half: their counts vary less than independent ones, so the test is on the safe side.
    assert (
        min(
            stats.chisquare(counts).pvalue,
            stats.kstest(draws.normal(NUMBERS).cpu().numpy(), "norm").pvalue,
            stats.kstest(draws.uniform(NUMBERS).cpu().numpy(), "uniform").pvalue,
            stats.chisquare(chosen.cpu().numpy()).pvalue,
        )
        > 0.25e-6
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("multiplied", PRODUCTS)
def test_products_of_intervals_contain_the_exact_products_of_their_ends(
    multiplied: Callable[..., Interval], dtype: torch.dtype
) -> None:
    """Bounds must hold for the GPU's sums, whose order is another, and which round products and sums at once."""
    left, right = drawn(4, 700, width=1e-7, dtype=dtype, seed=1), drawn(700, 3, width=1e-7, dtype=dtype, seed=2)
    found = multiplied(*(Interval(each.lower.to(GPU), each.upper.to(GPU)) for each in (left, right)))
    assert found.lower.device.type == GPU.type
    lower, upper = found.lower.cpu().tolist(), found.upper.cpu().tolist()
    for rows, columns in itertools.product((left.lower, left.upper), (right.lower, right.upper)):
        for i, row in enumerate(rows.tolist()):
            for j, column in enumerate(columns.T.tolist()):
                exact = sum(Fraction(one) * Fraction(other) for one, other in zip(row, column, strict=True))
                assert lower[i][j] <= exact <= upper[i][j]
