"""The tree: its trace, its invariants, and the law of every node's noise."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.private.learners import ROUNDING_SHARE
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.releases import noise_multiplier
from certified_unlearning.accounting.private.tree_spider import TreeSpider
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.private.tree_spider import learn, nodes

NEVER = 1e-290
"""Noise that changes no digit."""
HUBER = ScalarLoss(name="huber", width=100.0)
"""Half of the squared loss, where residuals are small."""
ROWS = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], dtype=torch.float64)
TARGETS = torch.tensor([1.0, -0.5, 0.25], dtype=torch.float64)


def trace(**chosen: list[int]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    eight = BoundedRecords(torch.zeros(8, 2), torch.zeros(8), loss=HUBER, row_norm=1.0)
    problem = LinearProblem(n=8, features=2, row_norm=1.0, loss=HUBER, radius=1.0)
    plan = TreeSpider(
        problem=problem, batch=4, depth=2, rounds=1, step=0.2, tolerance=1e-9, multiplier=NEVER
    )  # Half of the loss has half of H: steps of 0.1 again.
    assert plan.length == pytest.approx(0.1)

    def batches(name: str, count: int) -> BoundedRecords:
        some = chosen.get(f"n{name}", [0, 1, 2])
        return BoundedRecords(ROWS[some], TARGETS[some], loss=HUBER, row_norm=1.0)

    return {
        node.name: (node.weights[0].numpy(), 2 * node.estimate[0].numpy()) for node in nodes(plan, eight, 0, batches)
    }


def test_the_trace_of_the_specification():
    found = trace(n01=[0], n1=[1, 2], n11=[2])
    assert list(found) == ["", "0", "00", "01", "1", "10", "11"]
    assert found["00"][0] == pytest.approx([0, 0])
    assert found["01"][0] == pytest.approx([0.0967617, -0.0252422], abs=1e-6)
    assert found["01"][1] == pytest.approx([-0.573143, 0.2], abs=1e-6)
    assert found["10"][0] == pytest.approx([0.191178, -0.0581891], abs=1e-6)
    assert found["10"][1] == pytest.approx([-0.725773, 0.196335], abs=1e-6)
    assert found["11"][0] == pytest.approx([0.287709, -0.0843024], abs=1e-6)
    assert found["11"][1] == pytest.approx([-0.68134, 0.255579], abs=1e-6)
    weights, estimate = found["11"]
    assert weights - 0.1 * estimate / np.linalg.norm(estimate) == pytest.approx([0.381338, -0.119424], abs=1e-6)


def test_with_all_records_everywhere_estimates_are_gradients():
    found = trace()
    weights, estimate = found["11"]
    assert estimate == pytest.approx([-0.533261, 0.198806], abs=1e-6)
    assert weights - 0.1 * estimate / np.linalg.norm(estimate) == pytest.approx([0.381219, -0.120176], abs=1e-6)


TANH = ScalarLoss(name="tanh")


def sphere(n: int, d: int) -> BoundedRecords:
    generator = torch.Generator().manual_seed(0)
    rows = torch.nn.functional.normalize(torch.randn(n, d, generator=generator, dtype=torch.float64))
    return BoundedRecords(rows, (2 * rows[:, 0]).tanh(), loss=TANH, row_norm=1.0)


def problem(n: int, d: int) -> LinearProblem:
    return LinearProblem(n=n, features=d, row_norm=1.0, loss=TANH, radius=1.0)


def test_steps_have_one_length_and_points_are_as_near_as_their_place_says():
    plan = TreeSpider.plan(problem(3000, 4), epsilon=1, delta=1e-6)
    found = list(nodes(plan, sphere(3000, 4), 7))
    assert len(found) == plan.rounds * (2 ** (plan.depth + 1) - 1)
    leaves = [node for node in found if len(node.name) == plan.depth]
    for here, there in pairwise(leaves):
        assert float((there.weights - here.weights).norm()) == pytest.approx(plan.length, rel=1e-9)
    by_name: dict[str, torch.Tensor] = {}
    for node in found:
        by_name[node.name] = node.weights
        if node.name.endswith("1"):
            apart = float((node.weights - by_name[node.name[:-1]]).norm())
            assert apart <= 2 ** (plan.depth - len(node.name)) * plan.length * (1 + 1e-9)


def test_a_leaf_has_the_estimate_of_its_root_and_at_most_one_increment_a_level():
    """Invariant 5: left children add nothing."""
    plan = TreeSpider.plan(problem(3000, 4), epsilon=1, delta=1e-6)
    by_name: dict[str, torch.Tensor] = {}
    increments: dict[str, torch.Tensor] = {}
    for node in nodes(plan, sphere(3000, 4), 7):
        by_name[node.name] = node.estimate
        if node.name:
            increments[node.name] = node.estimate - by_name[node.name[:-1]]
            assert node.name.endswith("1") or not increments[node.name].any()
        if len(node.name) == plan.depth:
            prefixes = [node.name[:length] for length in range(1, plan.depth + 1)]
            added = [increments[name] for name in prefixes if name.endswith("1")]
            assert len(added) <= plan.depth
            total = by_name[""] + sum(added, torch.zeros(1, 4, dtype=torch.float64))
            assert node.estimate.numpy() == pytest.approx(total.numpy(), rel=1e-9, abs=1e-12)
    assert plan.records_per_round == plan.batch + sum(
        2 ** (k - 1) * (plan.batch // 2**k) for k in range(1, plan.depth + 1)
    )


def test_every_record_is_read_once():
    """Disjoint batches: privacy is that of one release. Each record is marked by a column of its own."""
    plan = TreeSpider.plan(problem(400, 3), epsilon=1, delta=1e-6)
    read: list[int] = []
    records = sphere(400, 3)
    given = records.part
    records.part = lambda start, stop: read.extend(range(start, stop)) or given(start, stop)  # type: ignore[method-assign,func-returns-value]
    list(nodes(plan, records, 0))
    assert read == list(range(plan.rounds * plan.records_per_round))


def test_every_release_has_the_noise_of_its_own_sensitivity():
    """Node by node, chi-squared of 300 trees, wrong once in 1e6: deviations are z times 2 H |w - w'| / records."""
    plan = TreeSpider.plan(problem(300, 2), epsilon=1, delta=1e-6)
    records = sphere(300, 2)
    assert epsilon_from_mu(plan.mu, 1e-6) <= 1
    multiplier = noise_multiplier(1, 1e-6) * (1 + ROUNDING_SHARE)
    bound, smoothness = plan.gradient_bound, plan.problem.smoothness
    squares, count = 0.0, 0
    for key in range(300):
        used, by_name = 0, {}
        for node in nodes(plan, records, key):
            level = len(node.name)
            if level == 0 or node.name.endswith("1"):
                size = plan.batch if level == 0 else plan.node_batch(level)
                batch = records.part(used, used + size)
                used += size
                if level == 0:
                    moved, mean = 2 * bound / size, batch.mean_gradients(node.weights)
                else:
                    parent = by_name[node.name[:-1]]
                    apart = float((node.weights - parent.weights).norm())
                    moved = 2 * min(smoothness * apart, 2 * bound) / size
                    mean = batch.mean_gradients(node.weights) - batch.mean_gradients(parent.weights) + parent.estimate
                squares += float((((node.estimate - mean) / (multiplier * moved)) ** 2).sum())
                count += 2
            by_name[node.name] = node
    assert abs(squares - count) < 4.9 * math.sqrt(2 * count)


def test_parameters_of_theorem_19_in_whole_numbers():
    huber = ScalarLoss(name="huber", width=1.0)  # G = H = 1.
    plan = TreeSpider.plan(
        LinearProblem(n=10**5, features=10, row_norm=1.0, loss=huber, radius=1.0), epsilon=1, delta=1e-6
    )
    assert (plan.batch, plan.depth, plan.rounds, plan.records_per_round) == (2154, 7, 10, 9607)
    assert plan.length == pytest.approx(0.00269304, rel=1e-5)
    assert plan.root_sigma == pytest.approx(0.00392264 * (1 + ROUNDING_SHARE), rel=1e-5)
    assert plan.tolerance == pytest.approx(0.0304683 / 2, rel=1e-5)


def test_a_leaf_that_looks_stationary_is_returned_and_else_any():
    plan = TreeSpider.plan(problem(3000, 4), epsilon=1, delta=1e-6)
    assert torch.equal(learn(replace(plan, tolerance=1e3), sphere(3000, 4), [0, 1]), torch.zeros(2, 4).double())
    never = replace(plan, tolerance=1e-12)
    leaves = {
        tuple(node.weights[0].tolist()) for node in nodes(never, sphere(3000, 4), 3) if len(node.name) == plan.depth
    }
    assert tuple(learn(never, sphere(3000, 4), [3])[0].tolist()) in leaves


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"depth": 11}, "depth"),
        ({"rounds": 1000}, "rounds need"),
        (
            {"problem": LinearProblem(n=3000, features=4, row_norm=1.0, loss=ScalarLoss(name="squared"), radius=1.0)},
            "slope",
        ),
    ],
)
def test_what_makes_no_sense_is_named(changes, named):
    plan = TreeSpider.plan(problem(3000, 4), epsilon=1, delta=1e-6)
    with pytest.raises(ParameterError, match=named):
        replace(plan, **changes)
