"""A private model is computed anew after every g-th edit, on the records that are there then."""

import pytest
import torch

from certified_unlearning.accounting.core.groups import GroupBudget
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
