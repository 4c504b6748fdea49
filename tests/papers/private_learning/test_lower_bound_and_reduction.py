"""Theorem 13's instance, recursive regularisation in linear time, and Algorithm 8: against records written out."""

import math

import pytest
import torch

from certified_unlearning.accounting.private.learners import NoisyDescent
from certified_unlearning.accounting.private.losses import CAP, LinearProblem
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.mechanisms.private import noisy_descent
from certified_unlearning.papers.private_learning.runs import linear_time, reduction
from certified_unlearning.papers.private_learning.runs.convex import ABSOLUTE
from certified_unlearning.papers.private_learning.runs.fingerprints import BlockLabels, excess
from certified_unlearning.papers.private_learning.runs.population import LOGISTIC
from certified_unlearning.papers.private_learning.theory.linear_models import Setting, theorem_13, theorem_33_instance


def test_the_instance_of_theorem_33_has_its_numbers():
    few, many = (Setting(n=10_000, d=rank) for rank in (10, 10**9))
    assert theorem_13(few) == pytest.approx(math.sqrt(10) / 10_000)
    assert theorem_13(many) == pytest.approx(0.01)
    assert theorem_33_instance(few).value == pytest.approx(theorem_13(few) / 15_552)
    assert theorem_33_instance(many).value == pytest.approx(theorem_13(many) / 529.1, rel=1e-3)
    assert theorem_33_instance(many).blocks == 8_640_000
    printed = theorem_33_instance(few, printed=True)
    assert printed.value < 0
    assert printed.stated == pytest.approx(theorem_13(few) / 1024)
    # Without the lost factor the printed choice gives what the proof says, up to its last constant.
    told = 3 * printed.share * 1.125 * 10_000 / 10
    kept = printed.share / (1.125 * math.sqrt(10)) * (1 / 4 - told - 1 / 8)
    assert printed.stated <= kept == pytest.approx(theorem_13(few) / 972)


def test_blocks_of_labels_have_the_gradients_of_their_records():
    low, high = torch.tensor([[2.0, 1.0]]).double(), torch.tensor([[1.0, 0.0]]).double()
    blocks = BlockLabels(low, high, label=0.5)
    rows = torch.eye(2, dtype=torch.float64)[[0, 0, 1, 0]]
    spelled = BoundedRecords(rows, torch.tensor([0.0, 0.0, 0.0, 0.5]), loss=ABSOLUTE, row_norm=1.0)
    assert len(blocks) == len(spelled) == 4
    weights = torch.tensor([[0.0013, -0.7]], dtype=torch.float64)
    torch.testing.assert_close(blocks.mean_gradients(weights), spelled.mean_gradients(weights))
    assert blocks.medians().tolist() == [[0.0, 0.0]]


def test_excess_over_the_secret_shares_is_that_of_all_labels():
    mu, weights = torch.tensor([[0.25, 1.0]]).double(), torch.tensor([[0.1, 0.5]]).double()
    lost = (0.25 * 0.4 + 0.75 * 0.1 + 0.0) / 2
    best = (0.25 * 0.375 + 0.75 * 0.125 + 0.0) / 2
    assert float(excess(weights, mu, 0.5)) == pytest.approx(lost - best)


def folded(n: int, trials: int = 1) -> torch.Tensor:
    rows = Draws.at("linear time", n).normal(trials, n, 3)
    return rows / torch.linalg.vector_norm(rows, dim=2, keepdim=True)


@pytest.mark.parametrize("step_size", [0.1, 1 / (0.25 + 0.1)])
def test_one_record_moves_a_pass_by_the_length_of_its_step(step_size):
    """Lemma 23: no step that is short enough takes two runs farther apart."""
    block = torch.tensor([[[1.0]] * 40], dtype=torch.float64)
    other = block.clone()
    other[:, 0] = -1.0
    start, pull = torch.zeros(1, 1).double(), torch.zeros(1, 1).double()
    ends = [
        linear_time.one_pass(each, start, pull, step_size=step_size, regulariser=0.1, radius=1e6)
        for each in (block, other)
    ]
    moved = float((ends[0] - ends[1]).abs())
    assert 0 < moved <= 2 * step_size * linear_time.LIPSCHITZ


@pytest.mark.parametrize(
    ("blocks", "lengths"),
    [(linear_time.halved_blocks(16), (1 / 4, 1 / 16, 1 / 64)), (linear_time.equal_blocks(16), (1.0, 1.0))],
    ids=["halved", "equal"],
)
def test_the_noise_of_blocks_is_that_of_their_steps(blocks, lengths):
    """On rows of zeros nothing is learned, and what is published is noise; false alarms below 1e-6."""
    assert [each.shorter for each in blocks] == list(lengths)
    trials, steps = 4_000, {"step_size": 0.8, "regulariser": 1e-12, "radius": 1e6}
    blank, pull = torch.zeros(trials, 16, 1).double(), torch.zeros(trials, 1).double()
    found = linear_time.phased(blank, list(range(trials)), pull, 2.0, blocks=blocks, **steps)
    expected = 2.0 * 0.8 * math.sqrt(sum(length**2 for length in lengths))
    assert float(found.std()) == pytest.approx(expected, rel=5 / math.sqrt(2 * trials))


def test_linear_time_finds_a_small_gradient_where_privacy_costs_nothing():
    data = folded(2_000, trials=2)
    data[:, :, 0] = data[:, :, 0].abs()  # All scores push weights one way.
    private, free = (linear_time.linear_time(data, [1, 2], epsilon=each, delta=1e-6, equal=True) for each in (0.1, 1e6))

    def slope(weights: torch.Tensor) -> float:
        return float(
            torch.linalg.vector_norm((torch.sigmoid((data @ weights[:, :, None])) * data).mean(dim=1), dim=1).mean()
        )

    zero = slope(torch.zeros(2, 3).double())
    assert slope(free) < 0.8 * zero
    assert slope(private) > slope(free)


def test_a_reduction_by_the_identity_is_the_learner_itself():
    rows = folded(50)[0]
    records = BoundedRecords(rows, torch.ones(50), loss=LOGISTIC, row_norm=1.0)
    problem = LinearProblem(n=50, features=3, row_norm=1.0, loss=LOGISTIC, radius=2.0)

    def learn(given: LinearProblem, short: BoundedRecords, keys: list[int]) -> torch.Tensor:
        plan = NoisyDescent.plan(given, epsilon=1, delta=1e-6, steps=20)
        return noisy_descent.learn(plan, short, keys)

    matrix = torch.eye(3, dtype=torch.float64)
    found = reduction.embedded(learn, problem, records, matrix, [1, 2])
    assert torch.equal(
        found, learn(problem.embedded(3), BoundedRecords(rows, torch.ones(50), loss=LOGISTIC, row_norm=CAP), [1, 2])
    )
    longest = []

    def looking(given: LinearProblem, short: BoundedRecords, keys: list[int]) -> torch.Tensor:
        longest.append(float(torch.linalg.vector_norm(short.rows, dim=1).max()))
        assert given.row_norm == short.row_norm == CAP
        return torch.zeros(len(keys), 3).double()

    reduction.embedded(looking, problem, records, 10 * matrix, [1])
    assert longest == [pytest.approx(CAP)]
