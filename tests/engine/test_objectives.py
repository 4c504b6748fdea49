"""The logistic step against a plain per-record reference, and its constants."""

import pytest
import torch

from certified_unlearning.accounting.core.losses import logistic_constants
from certified_unlearning.engine.objectives.logistic import LogisticObjective, accuracy
from certified_unlearning.errors import ParameterError

STRENGTH, STEP_SIZE = 0.3, 0.8


def problem(scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    features = torch.randn(30, 5, dtype=torch.float64)
    features = scale * features / features.norm(dim=1, keepdim=True)
    labels = torch.where(torch.rand(30) < 0.5, -1, 1)
    return features, labels, torch.randn(4, 5, dtype=torch.float64)


def reference_step(features, labels, weights, clip: float, *, clip_sum: bool = False) -> torch.Tensor:
    """One step for each trial, record by record: clip the data-loss gradient, then add the regulariser's."""
    steps = []
    for weight in weights:
        total = torch.zeros_like(weight)
        for row, label in zip(features, labels, strict=True):
            variable = weight.clone().requires_grad_()
            torch.nn.functional.softplus(-label * (row @ variable)).backward()
            gradient = variable.grad + STRENGTH * weight if clip_sum else variable.grad
            gradient = gradient * min(1.0, clip / float(gradient.norm()))
            total += gradient if clip_sum else gradient + STRENGTH * weight
        steps.append(weight - STEP_SIZE * total / len(features))
    return torch.stack(steps)


@pytest.mark.parametrize(("scale", "clip"), [(1.0, 1.0), (1.0, 0.4), (3.0, 1.0)])
def test_a_step_equals_the_record_by_record_reference(scale: float, clip: float) -> None:
    features, labels, weights = problem(scale)
    expected = reference_step(features, labels, weights, clip)
    LogisticObjective(features, labels, strong_convexity=STRENGTH, lipschitz=clip).descend(weights, STEP_SIZE)
    torch.testing.assert_close(weights, expected, rtol=1e-12, atol=1e-14)


def test_clipping_the_sum_would_be_caught() -> None:
    features, labels, weights = problem()
    expected = reference_step(features, labels, 10 * weights, 1.0)
    wrong = reference_step(features, labels, 10 * weights, 1.0, clip_sum=True)
    assert float((wrong - expected).abs().max()) > 0.5


def test_a_distant_start_is_forgotten_exponentially_fast() -> None:
    features, labels, weights = problem()
    near, far = weights.clone(), weights + 1000
    objective = LogisticObjective(features, labels, strong_convexity=STRENGTH, lipschitz=1.0)
    for _ in range(120):
        objective.descend(near, STEP_SIZE)
        objective.descend(far, STEP_SIZE)
    bound = (1 - STEP_SIZE * STRENGTH) ** 120 * 1000 * 5**0.5
    assert float((far - near).norm(dim=1).max()) <= bound


def test_removals_replace_records_in_place_and_can_be_taken_back() -> None:
    features, labels, weights = problem()
    indices = torch.tensor([7, 2])
    new_rows, new_labels = torch.eye(2, 5, dtype=torch.float64), torch.tensor([1, -1])
    objective = LogisticObjective(
        features, labels, strong_convexity=STRENGTH, lipschitz=1.0, replacements=(indices, new_rows, new_labels)
    )
    for count in (0, 1, 2, 1, 0):
        changed, changed_labels = features.clone(), labels.clone()
        changed[indices[:count]], changed_labels[indices[:count]] = new_rows[:count], new_labels[:count]
        expected = reference_step(changed, changed_labels, weights, 1.0)
        objective.remove(count)
        actual = weights.clone()
        objective.descend(actual, STEP_SIZE)
        torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-14)


def test_float32_steps_follow_float64_steps() -> None:
    features, labels, weights = problem()
    single = weights.float()
    LogisticObjective(features, labels, strong_convexity=STRENGTH, lipschitz=1.0).descend(weights, STEP_SIZE)
    LogisticObjective(features.float(), labels, strong_convexity=STRENGTH, lipschitz=1.0).descend(single, STEP_SIZE)
    torch.testing.assert_close(single.double(), weights, rtol=1e-5, atol=1e-6)


def test_the_logistic_constants_bound_gradient_and_curvature() -> None:
    features, labels, weights = problem()
    constants = logistic_constants(n=30, regularisation=STRENGTH / 30)

    def loss(weight: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.softplus(-labels * (features @ weight)).mean() + STRENGTH / 2 * weight @ weight

    for weight in weights:
        eigenvalues = torch.linalg.eigvalsh(torch.autograd.functional.hessian(loss, weight))
        assert constants.strong_convexity <= float(eigenvalues.min())
        assert float(eigenvalues.max()) <= constants.smoothness
    spectral = torch.linalg.eigvalsh(features.T @ features / 30).max()
    tighter = logistic_constants(
        n=30, regularisation=STRENGTH / 30, smoothness="spectral", largest_eigenvalue=float(spectral)
    )
    assert tighter.smoothness == pytest.approx(0.25 * float(spectral) + STRENGTH)


def test_constants_refuse_what_makes_no_sense() -> None:
    with pytest.raises(ParameterError, match="regularisation must be above 0"):
        logistic_constants(n=10, regularisation=0.0)
    with pytest.raises(ParameterError, match="largest eigenvalue"):
        logistic_constants(n=10, regularisation=0.1, smoothness="spectral")


def test_accuracy_is_the_share_of_right_signs() -> None:
    features = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    weights = torch.tensor([[1.0, 0.5], [-1.0, -0.5]])
    assert accuracy(weights, features, torch.tensor([1, 1, -1, 1])).tolist() == [0.75, 0.25]
