"""After edits, sums, noise and models have the law of learning afresh; each wrong variant is told apart.

Kolmogorov-Smirnov tests of 5 functions of the state at `LEVEL`, for 4 comparisons that must agree: all together fail a
correct program with probability below 1e-7.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.mechanisms.exact.queries import linear_queries
from certified_unlearning.mechanisms.exact.queries.federated_averaging import (
    FederatedAveraging,
    FederatedAveragingSettings,
)
from certified_unlearning.mechanisms.exact.queries.linear_queries import LinearQueries, LinearQuerySettings, QueryRun
from tests.support import couplings
from tests.support.laws import told_apart

RUNS = 60_000
LEVEL = 1e-9
VALUES = torch.tensor([0.2, -0.7, 1.5, 0.9, 2.5, -0.3], dtype=torch.float64)
STREAM = [("delete", 4), ("delete", 1), ("insert", 5)]
EDITS = {"one deletion": STREAM[:1], "two deletions": STREAM[:2], "an insertion": STREAM[2:], "a stream": STREAM}


def mechanism() -> LinearQueries:
    """Five clients, each of which moves the model half the way to its value, by 1 at most."""

    def train(models: Tensor, clients: Tensor) -> Tensor:
        return (models[:, None] + VALUES[clients][:, None]) / 2

    settings = FederatedAveragingSettings(clip=1.0, nominal_clients=5)
    method = FederatedAveraging(train, torch.zeros(1).double(), settings)
    return LinearQueries(method, LinearQuerySettings(steps=4, sigma=0.9))


def run(edits: list[tuple[str, int]]) -> QueryRun:
    draws = Draws.at("linear queries", "edited")
    state, _ = mechanism().learn(torch.arange(5), RUNS, draws)
    for edit, record in edits:
        getattr(mechanism(), edit)(state, record, draws)
    return state


def functions(state: QueryRun) -> dict[str, Tensor]:
    noise = (state.noisy - state.sums)[..., 0]
    sums, models = state.sums[..., 0], state.models[..., 0]
    return {
        "model": models[:, -1],
        "length of noise": (noise**2).sum(dim=1),
        "sum of noise": noise.sum(dim=1),
        "noise along sums": (noise * sums).sum(dim=1),
        "sums and models": (sums * models[:, 1:]).sum(dim=1),
    }


@pytest.fixture(scope="module")
def afresh() -> Callable[[str], dict[str, Tensor]]:
    def of(name: str) -> dict[str, Tensor]:
        records = list(range(5))
        for edit, record in EDITS[name]:
            records.append(record) if edit == "insert" else records.remove(record)
        state, _ = mechanism().learn(torch.tensor(records), RUNS, Draws.at("linear queries", "afresh", name))
        return functions(state)

    return of


@pytest.mark.parametrize("name", EDITS)
def test_edits_leave_the_law_of_learning_afresh(name: str, afresh) -> None:
    state = run(EDITS[name])
    mechanism().check_invariants(state)
    assert told_apart(functions(state), afresh(name), level=LEVEL) == []


@pytest.mark.parametrize("coupling", couplings.WRONG, ids=lambda each: each.__name__)
def test_a_wrong_coupling_is_told_apart(coupling: couplings.Coupling, afresh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_queries, "reflection_step", coupling)
    assert told_apart(functions(run(EDITS["one deletion"])), afresh("one deletion"), level=LEVEL) != []


def test_sums_that_stay_behind_are_told_apart(afresh, monkeypatch: pytest.MonkeyPatch) -> None:
    right = LinearQueries._edit

    def stale(self: LinearQueries, state: QueryRun, record: int, sign: int, draws: Draws) -> object:
        before = state.sums.clone()
        work = right(self, state, record, sign, draws)
        state.sums[work.recomputations == 0] = before[work.recomputations == 0]
        return work

    monkeypatch.setattr(LinearQueries, "_edit", stale)
    assert told_apart(functions(run(EDITS["two deletions"])), afresh("two deletions"), level=LEVEL) != []


def test_a_model_that_does_not_follow_a_rejection_is_told_apart(afresh, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = Draws.at("linear queries", "edited")
    state, _ = mechanism().learn(torch.arange(5), RUNS, draws)
    monkeypatch.setattr(LinearQueries, "_update", lambda *arguments: None)
    mechanism().delete(state, 4, draws)
    assert told_apart(functions(state), afresh("one deletion"), level=LEVEL) != []
