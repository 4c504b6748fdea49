"""Streams on an anytime tree (section 5.6, Theorems 30 and 52): what edits cost, what is published at every time."""

import math

import pytest
import torch

from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import LinearRecords
from certified_unlearning.mechanisms.exact.balls import project
from certified_unlearning.mechanisms.exact.one_pass.dual_averaging import DualAveraging, DualAveragingSettings
from certified_unlearning.mechanisms.exact.one_pass.frank_wolfe import FrankWolfe, FrankWolfeSettings
from certified_unlearning.mechanisms.exact.one_pass.prefix_sums import (
    Order,
    PrefixSums,
    PrefixSumSettings,
    check_invariants,
)

TRIALS, RHO, FIRST, REQUESTS = 2000, 0.3, 6, 40
ROWS = project(Draws(1).normal(FIRST + REQUESTS, 3) / 2, 1.0)
LABELS = torch.where(ROWS[:, 0] + 0.2 * Draws(2).normal(len(ROWS)) > 0, 1, -1)
RADIUS = 2.0


def learners() -> dict[str, tuple[DualAveraging | FrankWolfe, float, int]]:
    """Return learners, what replacing a record moves a sum by, and gradients of an increment."""
    hinge = LinearRecords(ROWS, LABELS, loss="hinge")
    logistic = LinearRecords(ROWS, LABELS, loss="logistic")
    return {
        "dual averaging": (DualAveraging(hinge, DualAveragingSettings(1.0, RADIUS, anytime=True)), 2.0, 1),
        "Frank-Wolfe": (FrankWolfe(logistic, FrankWolfeSettings(RADIUS)), 2 * (0.25 * 2 * RADIUS + 1), 2),
    }


def requests() -> list[tuple[str, int]]:
    """Deletions and insertions by turns that were fixed before anything was learned."""
    present, found, coming = list(range(FIRST)), [], FIRST
    for number, drawn in enumerate(Draws(3).uniform(REQUESTS).tolist()):
        if number % 3 == 2:
            found.append(("delete", present.pop(int(drawn * len(present)))))
        else:
            found.append(("insert", coming))
            present.append(coming)
            coming += 1
    return found


@pytest.mark.parametrize("name", ["dual averaging", "Frank-Wolfe"])
@pytest.mark.parametrize("order", ["arrival", "random"])
def test_a_stream_computes_again_no_more_often_than_its_budget_says(order: Order, name: str) -> None:
    """``rho V`` of the deletions where records stay as they came, ``rho R`` of all requests where order is random.

    Sums over the stream, 6 standard errors of 2000 trials.
    """
    learner, sensitivity, each = learners()[name]
    settings = PrefixSumSettings.anytime("quadratic", rho=RHO, sensitivity=sensitivity, most_records=2**30, order=order)
    own = PrefixSums(learner, settings)
    state, _ = own.learn(torch.arange(FIRST), TRIALS, Draws.at(name, order))
    again, counted = torch.zeros(TRIALS), 0
    for number, (kind, record) in enumerate(requests()):
        work = getattr(own, kind)(state, record, Draws.at(name, order, number))
        assert torch.linalg.vector_norm(own.model(state), dim=1).max() <= RADIUS + 1e-12
        if order == "arrival" and kind == "insert":
            # One step of learning, whatever the size.
            assert work.gradients.unique().tolist() == [each]
            assert not bool(work.recomputations.any())
        else:
            counted += 1
        again += work.recomputations
    check_invariants(state)
    deletions = sum(kind == "delete" for kind, _ in requests())
    assert counted == (deletions if order == "arrival" else REQUESTS)
    assert 0 < float(again.mean()) < RHO * counted + 6 * float(again.std()) / math.sqrt(TRIALS)


def test_a_stream_of_insertions_is_learning_at_once_where_records_stay_as_they_came() -> None:
    """The same noise in the same order gives the same state, to the last bit."""
    learner, sensitivity, _ = learners()["dual averaging"]
    settings = PrefixSumSettings.anytime(
        "quadratic", rho=1.0, sensitivity=sensitivity, most_records=63, order="arrival"
    )
    own, draws = PrefixSums(learner, settings), Draws(4)
    state, _ = own.learn(torch.arange(1), 3, draws)
    for record in range(1, 20):
        own.insert(state, record, draws)
    at_once, _ = own.learn(torch.arange(20), 3, Draws(4))
    for name, tensor in at_once.tensors().items():
        assert torch.equal(tensor, state.tensors()[name]), name
