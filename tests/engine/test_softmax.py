"""The softmax step against automatic differentiation, its constants, and what is refused."""

import math
from collections.abc import Callable
from dataclasses import astuple

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from certified_unlearning.accounting.core.losses import softmax_constants
from certified_unlearning.engine.objectives.logistic import LogisticObjective
from certified_unlearning.engine.objectives.softmax import SoftmaxObjective, accuracy
from certified_unlearning.errors import AssumptionError, DataError, ParameterError

N, D, CLASSES, TRIALS = 30, 5, 4, 3
STRENGTH, STEP_SIZE, LIPSCHITZ = 0.3, 0.8, 2.0
EXACT = {"rtol": 1e-12, "atol": 1e-13}
CLIP = 1.0992775
COUNTEREXAMPLE = (
    torch.tensor([-1.07644412, 2.06213715, -0.54623712, 0.10229711], dtype=torch.float64),
    torch.tensor([-1.99661885, 2.46900391, -0.48508016, 0.27465585], dtype=torch.float64),
)
"""Langevin sheet, section 2: two weights between which the clipped gradient at x = 1, y = 0 is not monotone."""


def problem() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    features = torch.nn.functional.normalize(torch.randn(N, D, dtype=torch.float64))
    return features, torch.randint(0, CLASSES, (N,)), torch.randn(TRIALS, CLASSES * D, dtype=torch.float64)


def objective(features: Tensor, labels: Tensor, **options: object) -> SoftmaxObjective:
    settings = {"classes": CLASSES, "strong_convexity": STRENGTH, "lipschitz": LIPSCHITZ} | options
    return SoftmaxObjective(features, labels, **settings)


def stepped(target: SoftmaxObjective, weights: Tensor, step_size: float = STEP_SIZE) -> Tensor:
    weights = weights.clone()
    target.descend(weights, step_size)
    return weights


def loss(weight: Tensor, features: Tensor, labels: Tensor) -> Tensor:
    """One trial's objective, written down a second time."""
    scores = features @ weight.view(-1, features.shape[1]).T
    data_loss = torch.logsumexp(scores, dim=1) - scores[torch.arange(len(labels)), labels]
    return data_loss.mean() + STRENGTH / 2 * weight @ weight


def reference_step(features: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    steps = []
    for weight in weights:
        variable = weight.clone().requires_grad_()
        loss(variable, features, labels).backward()
        steps.append(weight - STEP_SIZE * variable.grad)
    return torch.stack(steps)


def agrees(target: SoftmaxObjective, weights: Tensor, expected: Tensor) -> bool:
    return torch.allclose(stepped(target, weights), expected, **EXACT)


@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0, 1e4])
def test_a_step_equals_the_automatic_derivative(scale: float) -> None:
    features, labels, weights = problem()
    expected = reference_step(features, labels, scale * weights)
    torch.testing.assert_close(stepped(objective(features, labels), scale * weights), expected, **EXACT)


def test_the_gradient_is_the_slope_of_the_loss() -> None:
    features, labels, weights = problem()
    gradient = (weights - stepped(objective(features, labels), weights, 1.0))[0]
    width = 1e-5
    for axis, direction in enumerate(torch.eye(CLASSES * D, dtype=torch.float64)):
        above, below = (loss(weights[0] + sign * width * direction, features, labels) for sign in (1, -1))
        assert float(gradient[axis]) == pytest.approx(float(above - below) / (2 * width), abs=1e-9)


FAULTS: dict[str, Callable[[SoftmaxObjective], None]] = {
    "another normaliser": lambda target: setattr(target, "_normaliser", N - 1),
    "a weaker regulariser": lambda target: setattr(target, "strong_convexity", 0.99 * STRENGTH),
    "labels one class off": lambda target: target._constant_gradient.copy_(target._constant_gradient.roll(1, 0)),
    "no labels at all": lambda target: target._constant_gradient.zero_(),
    "the last row left out": lambda target: setattr(target._blocks, "n", N - 1),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_in_the_step_is_caught(fault: str) -> None:
    features, labels, weights = problem()
    expected = reference_step(features, labels, weights)
    target = objective(features, labels)
    assert agrees(target, weights, expected)
    FAULTS[fault](target)
    assert not agrees(target, weights, expected)


def test_weights_laid_out_feature_after_feature_are_caught() -> None:
    features, labels, weights = problem()
    swapped = weights.view(TRIALS, D, CLASSES).transpose(1, 2).reshape(TRIALS, -1)
    wrong = stepped(objective(features, labels), swapped).view(TRIALS, CLASSES, D).transpose(1, 2).reshape(TRIALS, -1)
    assert float((wrong - reference_step(features, labels, weights)).abs().max()) > 0.01


def test_two_classes_are_logistic_regression() -> None:
    # W = (-v / 2, v / 2): scores differ by v'x, ||W||^2 = ||v||^2 / 2, and v moves twice as fast as v / 2.
    features, labels, weights = problem()
    v, labels = weights[:, :D].clone(), labels % 2
    antisymmetric = torch.cat([-v / 2, v / 2], dim=1)
    softmax = objective(features, labels, classes=2)
    logistic = LogisticObjective(features, 2 * labels - 1, strong_convexity=STRENGTH / 2, lipschitz=1.0)
    for _ in range(10):
        softmax.descend(antisymmetric, STEP_SIZE)
        logistic.descend(v, 2 * STEP_SIZE)
    torch.testing.assert_close(antisymmetric, torch.cat([-v / 2, v / 2], dim=1), **EXACT)


def test_trials_do_not_see_each_other() -> None:
    features, labels, weights = problem()
    target = objective(features, labels)
    alone = [stepped(target, weights[[trial]])[0] for trial in range(TRIALS)]
    together = stepped(target, weights)
    torch.testing.assert_close(torch.stack(alone), together, **EXACT)
    changed = weights.clone()
    changed[0] += 7
    assert torch.equal(stepped(target, changed)[1:], together[1:])


@pytest.mark.parametrize("rows_at_once", [1, 7, N - 1, N, 10 * N])
def test_blocks_of_any_size_give_the_same_step(rows_at_once: int) -> None:
    features, labels, weights = problem()
    expected = reference_step(features, labels, weights)
    assert agrees(objective(features, labels, rows_at_once=rows_at_once), weights, expected)


class LargestTensor(TorchDispatchMode):
    """Remembers the largest tensor that any operation returns."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (list, tuple)) else [result]:
            self.numbers = max(self.numbers, tensor.numel())
        return result


@pytest.mark.parametrize(("rows_at_once", "largest"), [(50, 50 * TRIALS * CLASSES), (5000, 5000 * TRIALS * CLASSES)])
def test_a_step_needs_no_more_memory_than_one_block_of_scores(rows_at_once: int, largest: int) -> None:
    _, _, weights = problem()
    features = torch.nn.functional.normalize(torch.randn(5000, D, dtype=torch.float64))
    target = objective(features, torch.arange(5000) % CLASSES, rows_at_once=rows_at_once)
    with LargestTensor() as memory:
        target.descend(weights, STEP_SIZE)
    assert memory.numbers == largest


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_float32_steps_follow_float64_steps(scale: float) -> None:
    features, labels, weights = problem()
    expected = stepped(objective(features, labels), scale * weights)
    single = stepped(objective(features.float(), labels), scale * weights.float())
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), expected, rtol=1e-5, atol=1e-5)


def test_removals_replace_records_in_place_and_can_be_taken_back() -> None:
    features, labels, weights = problem()
    indices = torch.tensor([7, 2])
    new_rows, new_labels = torch.eye(2, D, dtype=torch.float64), (labels[indices] + 1) % CLASSES
    before = features.clone(), labels.clone()
    target = objective(features, labels, replacements=(indices, new_rows, new_labels))
    for count in (0, 1, 2, 1, 0):
        changed, changed_labels = features.clone(), labels.clone()
        changed[indices[:count]], changed_labels[indices[:count]] = new_rows[:count], new_labels[:count]
        target.remove(count)
        assert agrees(target, weights, reference_step(changed, changed_labels, weights))
        assert agrees(target, weights, reference_step(features, labels, weights)) == (count == 0)
    assert torch.equal(features, before[0])
    assert torch.equal(labels, before[1])


def test_a_zeroed_record_leaves_the_sum_but_not_the_normaliser() -> None:
    features, labels, weights = problem()
    target = objective(features, labels, replacements=(torch.tensor([4]), torch.zeros_like(features[:1]), labels[4:5]))
    target.remove(1)
    rest = torch.arange(N) != 4
    shrunk = (1 - STEP_SIZE * STRENGTH) * weights
    mean_step = reference_step(features[rest], labels[rest], weights) - shrunk
    assert agrees(target, weights, shrunk + mean_step * (N - 1) / N)


def test_a_record_s_gradient_stays_below_the_square_root_of_two_and_reaches_it() -> None:
    features, labels, weights = problem()
    norms = []
    for row, label in zip(features, labels, strict=True):
        # The second part scores another class far above the label's: there the bound is attained.
        extreme = torch.zeros(1, CLASSES, D, dtype=torch.float64)
        extreme[0, (label + 1) % CLASSES] = 50 * row
        points = torch.cat([weights, 20 * weights, extreme.flatten(1)])
        target = objective(row[None], label[None])
        norms.append((points - stepped(target, points, 1.0) - STRENGTH * points).norm(dim=1))
    largest = float(torch.cat(norms).max())
    assert largest <= math.sqrt(2) * (1 + 1e-12)
    assert largest > math.sqrt(2) * (1 - 1e-6)


def largest_curvature(target: SoftmaxObjective, weight: Tensor) -> float:
    """Power iteration on the Hessian, whose products are differences of gradients."""
    direction = torch.randn(weight.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    width, curvature = 1e-5, 0.0
    for _ in range(200):
        direction = direction / direction.norm()
        ends = torch.cat([weight + width * direction, weight - width * direction])
        above, below = ends - stepped(target, ends, 1.0)
        direction = (above - below)[None] / (2 * width)
        curvature = float(direction.norm())
    return curvature


def test_the_smoothness_constant_bounds_the_curvature_and_the_tight_one_is_attained() -> None:
    features, labels, weights = problem()
    regularisation = STRENGTH / N
    published, tight = (
        softmax_constants(n=N, regularisation=regularisation, bounds=bounds) for bounds in ("published", "tight")
    )
    for weight in weights:
        assert largest_curvature(objective(features, labels), weight[None]) <= tight.smoothness < published.smoothness
    # One direction only, and two classes of probability 1/2 each: nothing is left between curvature and bound.
    worst = torch.zeros(1, CLASSES, D, dtype=torch.float64)
    worst[0, :2] = 50 * features[0]
    curvature = largest_curvature(objective(features[:1].expand(N, -1), labels), worst.flatten(1))
    assert curvature == pytest.approx(tight.smoothness, abs=1e-8)


def test_the_objective_is_strongly_convex_and_no_more_than_that() -> None:
    features, labels, weights = problem()
    constants = softmax_constants(n=N, regularisation=STRENGTH / N)
    for weight in weights:
        hessian = torch.autograd.functional.hessian(lambda point: loss(point, features, labels), weight)
        least = float(torch.linalg.eigvalsh(hessian).min())
        # Scores of all classes raised alike change no probability.
        assert least == pytest.approx(constants.strong_convexity, abs=1e-12)
    target = objective(features, labels)
    for other in (weights.roll(1, 0), 1000 * weights.roll(1, 0)):
        gradients = [points - stepped(target, points, 1.0) for points in (weights, other)]
        inner = ((gradients[0] - gradients[1]) * (weights - other)).sum(dim=1)
        assert bool((inner >= STRENGTH * (weights - other).square().sum(dim=1)).all())


def test_the_constants_are_those_of_table_1_and_the_tighter_ones() -> None:
    published = softmax_constants(n=50_000, regularisation=1e-6)
    assert astuple(published) == pytest.approx((0.05, 1.05, 2.0), rel=1e-15)
    tight = softmax_constants(n=50_000, regularisation=1e-6, bounds="tight")
    assert astuple(tight) == pytest.approx((0.05, 0.55, math.sqrt(2)), rel=1e-15)
    with pytest.raises(ParameterError, match=r"regularisation must be above 0 for strong convexity, got -1\.0"):
        softmax_constants(n=10, regularisation=-1.0)


def test_a_clipped_softmax_gradient_is_not_monotone() -> None:
    def monotonicity(clip: float) -> float:
        one, other = COUNTEREXAMPLE
        gradients = []
        for weight in (one, other):
            gradient = weight.softmax(0) - torch.tensor([1.0, 0, 0, 0])
            gradients.append(gradient * min(1.0, clip / float(gradient.norm())))
        return float((gradients[0] - gradients[1]) @ (one - other) / (one - other).square().sum())

    assert monotonicity(CLIP) == pytest.approx(-0.00816, abs=5e-6)
    assert monotonicity(math.sqrt(2)) > 0


def test_a_lipschitz_constant_at_which_clipping_would_bite_is_refused() -> None:
    features, labels, _ = problem()
    one_record = torch.ones(1, 1, dtype=torch.float64), torch.zeros(1, dtype=torch.int64)
    with pytest.raises(AssumptionError, match=r"lipschitz must be at least 1\.414214, got 1\.0992775.*has norm 1,"):
        objective(*one_record, lipschitz=CLIP)
    with pytest.raises(AssumptionError, match=r"must be at least 4\.242641, .* has norm 3,"):
        objective(torch.cat([features[1:], 3 * features[:1]]), labels)
    replacements = torch.tensor([0]), 2 * features[:1], labels[:1]
    with pytest.raises(AssumptionError, match=r"must be at least 2\.828427"):
        objective(features, labels, replacements=replacements)
    with pytest.raises(AssumptionError, match=r"lipschitz must be at least .*, got nan"):
        objective(features, labels, lipschitz=math.nan)
    with pytest.raises(AssumptionError, match=r"lipschitz must be at least .*, got 1\.414"):
        objective(features, labels, lipschitz=math.sqrt(2) * (1 - 1e-5))
    single = torch.nn.functional.normalize(torch.randn(5000, D)), torch.zeros(5000, dtype=torch.int64)
    assert objective(*single, lipschitz=math.sqrt(2)).n == 5000


@pytest.mark.parametrize(("wrong", "value"), [(CLASSES, "4"), (-1, "-1"), (0.5, "0.5")])
def test_a_label_that_is_no_class_is_refused(wrong: float, value: str) -> None:
    features, labels, _ = problem()
    labels = labels.double() if isinstance(wrong, float) else labels
    labels[3] = wrong
    with pytest.raises(DataError, match=f"label of record 3 must be an integer from 0 to 3, got {value}"):
        objective(features, labels)


def test_accuracy_is_the_share_of_right_classes() -> None:
    features = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    by_class = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    weights = torch.stack([by_class.flatten(), torch.zeros(6)])
    assert accuracy(weights, features, torch.tensor([0, 1, 2, 0])).tolist() == [0.75, 0.5]
    many = features.repeat(700, 1), torch.tensor([0, 1, 2, 0]).repeat(700)
    assert accuracy(weights, *many).tolist() == [0.75, 0.5]
