"""A private model is computed anew after every g-th edit, on the records that are there then."""

import pytest
import torch
from torch import Tensor

from certified_unlearning.accounting.core.conversion import delta_from_mu, mu_from_epsilon
from certified_unlearning.accounting.core.groups import GroupBudget
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.exact.counted_edits import CountedEdits

BUDGET = GroupBudget(rho=0.3, epsilon=1.5, delta=1e-6)


def test_every_third_edit_computes_the_model_anew() -> None:
    asked = []

    def learner(ids: torch.Tensor, epsilon: float, delta: float) -> torch.Tensor:
        asked.append((ids.tolist(), epsilon, delta))
        return ids.double().mean()

    state = CountedEdits.learn(BUDGET, learner, torch.arange(9))
    requests = [([8], []), ([], [9]), ([0], []), ([1], []), ([2], [10]), ([3, 4, 5, 6], [])]
    assert [state.edit(*request) for request in requests] == [False, False, True, False, True, True]
    assert state.edits == 0
    after = [[*range(9)], [*range(1, 8), 9], [*range(3, 8), 9, 10], [7, 9, 10]]
    assert asked == [(ids, BUDGET.learner_epsilon, BUDGET.learner_delta) for ids in after]
    assert float(state.model) == pytest.approx(26 / 3)


def test_over_a_stream_it_computes_at_most_twice_rho_times_as_often_as_there_are_edits() -> None:
    state = CountedEdits.learn(BUDGET, lambda ids, *_: ids, torch.arange(100))
    assert sum(state.edit([record], []) for record in range(90)) == 30 <= 2 * BUDGET.rho * 90


def test_a_request_that_does_not_fit_does_not_count() -> None:
    state = CountedEdits.learn(BUDGET, lambda ids, *_: ids, torch.arange(5))
    with pytest.raises(ParameterError, match="record 7 cannot be deleted"):
        state.edit([7], [])
    assert state.edits == 0


def largest_delta(budget: GroupBudget, *, divided: bool = True) -> float:
    """The exact delta at the wanted epsilon that a noisy sum reaches in a stream of deletions of records like (1, 0).

    The learner adds Gaussian noise to a sum of vectors of norm at most 1: its privacy is exactly Gaussian.
    """

    def learner(ids: Tensor, epsilon: float, delta: float) -> Tensor:
        sigma = 1 / mu_from_epsilon(epsilon if divided else budget.epsilon, delta)
        return torch.tensor([float(len(ids)), 0.0]).double() + sigma * Draws(len(ids)).normal(2)

    state, reached = CountedEdits.learn(budget, learner, torch.arange(40)), []
    sigma = 1 / mu_from_epsilon(budget.learner_epsilon if divided else budget.epsilon, budget.learner_delta)
    for record in range(30):
        state.edit([record], [])
        # The sum of whoever is there now is so far from that of those it was computed for.
        reached.append(delta_from_mu(state.edits / sigma, budget.epsilon) if state.edits else 0.0)
    return max(reached)


@pytest.mark.parametrize("rho", [0.05, 0.25, 0.4])
def test_a_model_that_stands_for_edits_is_indistinguishable_from_one_computed_anew(rho: float) -> None:
    budget = GroupBudget(rho=rho, epsilon=1.0, delta=1e-6)
    assert 0 < largest_delta(budget) <= budget.delta
    if budget.edits > 2:
        # It stands for two edits or more: without a share of epsilon for each of them it would not be.
        assert largest_delta(budget, divided=False) > budget.delta
