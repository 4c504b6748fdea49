"""Mechanisms on a GPU that is not there (`tests.support.fake_cuda`): private learners and noisy gradient deletion.

Those that estimators have are tested in `tests/estimators/test_on_cuda.py`.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from certified_unlearning.accounting.deletion.planning import DeletionPlan
from certified_unlearning.accounting.private.learners import LinearProblem, NoisyDescent, OutputPerturbation
from certified_unlearning.accounting.private.losses import ScalarLoss
from certified_unlearning.accounting.private.phased import PhasedDescent
from certified_unlearning.accounting.private.recursive import RecursiveRegularisation
from certified_unlearning.accounting.private.sampled import SampledDescent
from certified_unlearning.accounting.private.sampled_spider import SampledSpider
from certified_unlearning.accounting.private.spider import SpiderBoost
from certified_unlearning.accounting.private.tree_spider import TreeSpider
from certified_unlearning.engine.objectives.logistic import LogisticObjective
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.mechanisms.noisy_gradient_deletion import NoisyGradientDeletion
from certified_unlearning.mechanisms.private import (
    noisy_descent,
    output_perturbation,
    phased,
    recursive,
    sampled_descent,
    spider_boost,
    tree_spider,
)
from tests.engine.cuda.case import moved, short_rows, whole
from tests.papers.forget_unlearning.small_settings import PLAN
from tests.support.fake_cuda import CUDA, as_a_gpu_draws, fake_cuda, numbers_of

N, FEATURES = 16, 2
LOGISTIC, TANH = ScalarLoss(name="logistic"), ScalarLoss(name="tanh")


def problem(loss: ScalarLoss) -> LinearProblem:
    return LinearProblem(n=N, features=FEATURES, row_norm=1.0, loss=loss, radius=1.0)


def records(loss: ScalarLoss, device: torch.device) -> BoundedRecords:
    rows, targets = moved(device, short_rows(N, FEATURES), 2.0 * whole(2, N) - 1)
    return BoundedRecords(rows, targets, loss=loss, row_norm=1.0)


def private(learn: Callable[..., Tensor], plan: Callable[[], object], loss: ScalarLoss) -> Callable[..., Tensor]:
    return lambda device: learn(plan(), records(loss, device), [3, 4])


def deletion(device: torch.device) -> Tensor:
    plan: DeletionPlan = replace(PLAN, learning_steps=20, deletion_steps=18)
    rows, labels = moved(device, short_rows(N, FEATURES), 2.0 * whole(2, N) - 1)
    loss = LogisticObjective(rows, labels, strong_convexity=0.1, lipschitz=1.0)
    own = NoisyGradientDeletion(plan)
    return own.delete(loss, own.learn(loss, [1, 2], device=device), [3, 4])


SPENT = {"epsilon": 1, "delta": 1e-6}
LEARNERS: dict[str, Callable[[torch.device], Tensor]] = {
    "noisy descent": private(
        noisy_descent.learn,
        lambda: NoisyDescent(problem=problem(LOGISTIC), steps=20, step_size=0.1, sigma=0.1),
        LOGISTIC,
    ),
    "output perturbation": private(
        output_perturbation.learn,
        lambda: OutputPerturbation.plan(problem(LOGISTIC), **SPENT, strong_convexity=0.5),
        LOGISTIC,
    ),
    "phased descent": private(phased.learn, lambda: PhasedDescent.plan(problem(LOGISTIC), **SPENT), LOGISTIC),
    "recursive regularisation": private(
        recursive.learn,
        lambda: RecursiveRegularisation.plan(problem(LOGISTIC), **SPENT, strength=0.25, steps=5),
        LOGISTIC,
    ),
    "sampled descent": private(
        sampled_descent.learn,
        lambda: SampledDescent(problem=problem(LOGISTIC), steps=20, share=0.3, clip=0.5, multiplier=1.0, step_size=1.0),
        LOGISTIC,
    ),
    "spider boost": private(
        spider_boost.learn,
        lambda: SpiderBoost(
            problem=problem(TANH), steps=9, period=3, step_size=0.1, sigma_gradient=0.1, sigma_difference=0.2
        ),
        TANH,
    ),
    "sampled spider": private(
        spider_boost.learn,
        lambda: SampledSpider(
            problem=problem(TANH), steps=9, period=3, batch=5, step_size=0.1, sigma_gradient=0.1, sigma_difference=0.2
        ),
        TANH,
    ),
    "tree spider": private(
        tree_spider.learn,
        lambda: TreeSpider(problem=problem(TANH), batch=4, depth=2, rounds=1, step=0.2, tolerance=1e-9, multiplier=0.1),
        TANH,
    ),
    "noisy gradient deletion": deletion,
}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_mechanism_on_a_gpu_learns_what_it_does_on_the_cpu(name: str) -> None:
    with as_a_gpu_draws(), fake_cuda():  # Some numbers are drawn on the CPU in any case.
        found = LEARNERS[name](CUDA)
        assert found.is_cuda
    with as_a_gpu_draws():
        torch.testing.assert_close(numbers_of(found), LEARNERS[name](torch.device("cpu")))
