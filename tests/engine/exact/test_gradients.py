"""Gradients of records against automatic differentiation."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from certified_unlearning.engine.exact import gradients
from certified_unlearning.engine.exact.gradients import GivenRecords, LinearRecords, Loss
from certified_unlearning.errors import ParameterError

N, FEATURES, CLASSES, TRIALS, M = 7, 4, 3, 5, 6


def labels_of(loss: Loss, generator: torch.Generator) -> Tensor:
    if loss == "softmax":
        return torch.randint(CLASSES, (N,), generator=generator)
    if loss == "squared":
        return torch.randn(N, generator=generator, dtype=torch.float64)
    return torch.randint(2, (N,), generator=generator).double() * 2 - 1


def losses(loss: Loss, scores: Tensor, labels: Tensor) -> Tensor:
    if loss == "softmax":
        return functional.cross_entropy(scores, labels, reduction="sum")
    values = {
        "logistic": functional.softplus(-labels * scores),
        "squared": (scores - labels) ** 2 / 2,
        "hinge": functional.relu(1 - labels * scores),
    }
    return values[loss].sum()


@pytest.mark.parametrize("loss", ["logistic", "softmax", "squared", "hinge"])
def test_sums_are_what_differentiation_gives(loss: Loss) -> None:
    generator = torch.Generator().manual_seed(3)
    rows = torch.randn(N, FEATURES, generator=generator, dtype=torch.float64)
    labels = labels_of(loss, generator)
    records = torch.randint(N, (TRIALS, M), generator=generator)
    known = LinearRecords(rows, labels, loss=loss, classes=CLASSES, strong_convexity=0.3)
    weights = torch.randn(TRIALS, known.dimension, generator=generator, dtype=torch.float64)
    sums = known.sums(weights, records)
    for trial in range(TRIALS):
        w = weights[trial].clone().requires_grad_()
        shaped = w.view(FEATURES, CLASSES) if loss == "softmax" else w
        chosen = records[trial]
        value = losses(loss, rows[chosen] @ shaped, labels[chosen]) + 0.15 * M * w @ w
        value.backward()
        torch.testing.assert_close(sums[trial], w.grad)


@pytest.mark.parametrize("loss", ["softmax", "squared"])
def test_rows_may_take_half_the_memory(loss: Loss) -> None:
    generator = torch.Generator().manual_seed(5)
    rows, labels = torch.randn(N, FEATURES, generator=generator), labels_of(loss, generator)
    half, full = (LinearRecords(each, labels, loss=loss, classes=CLASSES) for each in (rows, rows.double()))
    weights = torch.randn(TRIALS, full.dimension, generator=generator, dtype=torch.float64)
    records = torch.randint(N, (TRIALS, M), generator=generator)
    assert torch.equal(half.sums(weights, records), full.sums(weights, records))


def test_trials_in_blocks_have_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(4)
    rows = torch.randn(N, FEATURES, generator=generator, dtype=torch.float64)
    known = LinearRecords(rows, torch.arange(N) % CLASSES, loss="softmax", classes=CLASSES)
    weights = torch.randn(TRIALS, known.dimension, generator=generator, dtype=torch.float64)
    records = torch.randint(N, (TRIALS, M), generator=generator)
    together = known.sums(weights, records)
    monkeypatch.setattr(gradients, "NUMBERS_AT_ONCE", 2 * M * FEATURES)
    torch.testing.assert_close(known.sums(weights, records), together)


def test_gradients_that_somebody_gives_are_summed_and_their_shape_is_looked_at() -> None:
    rows = torch.tensor([0.0, 1.0, 3.0, 7.0], dtype=torch.float64)
    records = GivenRecords(lambda w, z: w[:, None, :] - z[..., None], rows, dimension=1)
    sums = records.sums(torch.tensor([[1.0], [2.0]], dtype=torch.float64), torch.tensor([[0, 3], [1, 1]]))
    assert sums.tolist() == [[-5.0], [2.0]]
    wrong = GivenRecords(lambda w, z: z, rows, dimension=1)
    with pytest.raises(ParameterError, match=r"\(trials, m, d\)"):
        wrong.sums(torch.zeros(1, 1, dtype=torch.float64), torch.tensor([[0, 3]]))


def test_labels_that_do_not_fit_the_loss_are_refused() -> None:
    rows = torch.zeros(2, 1)
    with pytest.raises(ParameterError, match="-1 or \\+1"):
        LinearRecords(rows, torch.tensor([0, 1]), loss="hinge")
    with pytest.raises(ParameterError, match=r"from 0 to 2 \(classes - 1\)"):
        LinearRecords(rows, torch.tensor([0, 3]), loss="softmax", classes=3)
    with pytest.raises(ParameterError, match="must have shape"):
        LinearRecords(rows, torch.tensor([1]), loss="hinge")


def test_records_are_taken_in_and_erased_in_their_places() -> None:
    rows = torch.arange(6, dtype=torch.float64).view(3, 2)
    records = LinearRecords(rows, torch.tensor([1, -1, 1]), loss="logistic")
    for more in range(4):
        records.append(torch.full((2, 2), float(more), dtype=torch.float64), torch.tensor([-1, 1]))
    assert len(records) == 11
    assert records.rows[3:, 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert records.labels.tolist() == [1, -1, 1, *([-1, 1] * 4)]
    records.erase(torch.tensor([1, 9]))
    assert records.rows[[1, 9]].abs().sum() == 0
    assert records.rows[[0, 2, 10]].tolist() == [[0, 1], [4, 5], [3, 3]]
    with pytest.raises(ParameterError, match=r"shape \(n, 2\)"):
        records.append(torch.zeros(1, 3, dtype=torch.float64), torch.tensor([1]))
