"""After edits, order, sums, noise and models have the law of learning afresh; each wrong variant is told apart.

Every comparison is of `functions` of the whole state, by Kolmogorov-Smirnov tests at `LEVEL`: 8 functions for each of
at most 12 comparisons that must agree, so all of them together fail a correct program with probability below 1e-7.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from certified_unlearning.engine.exact import prefix_tree
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.prefix_tree import PrefixTree
from certified_unlearning.mechanisms.exact.one_pass.prefix_sums import PrefixSums, PrefixSumSettings
from tests.support import couplings
from tests.support.laws import told_apart
from tests.support.prefix_sums import example

RUNS = 100_000
LEVEL = 1e-9
SETTINGS = PrefixSumSettings.equal(0.8, most_records=15)
STREAM = [("delete", 5), ("delete", 4), ("insert", 7)]
EDITS = {
    "one deletion": STREAM[:1],
    "two deletions": STREAM[:2],
    "an insertion": [("insert", 7)],
    "a stream": STREAM,
}


def run(edits: list[tuple[str, int]], settings: PrefixSumSettings = SETTINGS, seed: int = 1) -> PrefixTree:
    """Learn seven records, then edit."""
    mechanism = PrefixSums(example(), settings)
    draws = Draws.at("prefix sums", "edited", seed)
    tree, _ = mechanism.learn(torch.arange(7), RUNS, draws)
    for edit, record in edits:
        getattr(mechanism, edit)(tree, record, draws)
    return tree


def retrained(edits: list[tuple[str, int]], settings: PrefixSumSettings = SETTINGS) -> PrefixTree:
    """Learn what is left."""
    records = list(range(7))
    for edit, record in edits:
        records.append(record) if edit == "insert" else records.remove(record)
    draws = Draws.at("prefix sums", "retrained", len(records), records[-1], len(settings.sigmas))
    return PrefixSums(example(), settings).learn(torch.tensor(records), RUNS, draws)[0]


def functions(tree: PrefixTree) -> dict[str, Tensor]:
    """Return numbers of each run's state in which a fault shows."""
    size = tree.size
    present = slice(1, size + 1)
    noise = (tree.noisy - tree.sums)[:, present, 0]
    values = tree.method.values[tree.order[:, present]]  # type: ignore[attr-defined]
    weights = torch.cos(torch.arange(1, size + 1).double() * 1.7)
    models = tree.models[..., 0]
    return {
        "model": models[:, size + 1],
        "length of noise": (noise**2).sum(dim=1),
        "sum of noise": noise.sum(dim=1),
        "noise along sums": (noise * tree.sums[:, present, 0]).sum(dim=1),
        "order": (values * weights).sum(dim=1),
        "order and noise": (values * noise).sum(dim=1),
        "increments and models": (tree.increments[:, present, 0] * models[:, 2 : size + 2]).sum(dim=1),
        "last record and model": tree.noisy[:, 4, 0] * models[:, size + 1] + values[:, -1] * tree.noisy[:, size, 0],
    }


@pytest.fixture(scope="module")
def afresh() -> Callable[[str], dict[str, Tensor]]:
    known: dict[str, dict[str, Tensor]] = {}

    def of(name: str) -> dict[str, Tensor]:
        if name not in known:
            known[name] = functions(retrained(EDITS[name]))
        return known[name]

    return of


@pytest.mark.parametrize("name", EDITS)
def test_edits_leave_the_law_of_learning_afresh(name: str, afresh) -> None:
    assert told_apart(functions(run(EDITS[name])), afresh(name), level=LEVEL) == []


@pytest.mark.parametrize("name", ["two deletions", "an insertion"])
def test_noise_may_differ_by_height(name: str) -> None:
    settings = PrefixSumSettings.anytime("quadratic", rho=1.5, sensitivity=3.0, most_records=15)
    assert len(set(settings.sigmas)) == 4
    edited = functions(run(EDITS[name], settings))
    assert told_apart(edited, functions(retrained(EDITS[name], settings)), level=LEVEL) == []


def test_the_order_stays_uniform_and_the_new_record_may_be_last() -> None:
    """Counts of 7 or 8 places within 6 standard errors: 24 comparisons at 2e-9."""
    for name in ("two deletions", "an insertion", "a stream"):
        tree = run(EDITS[name])
        record = 7 if "insert" in dict(EDITS[name]) else 6
        counts = (tree.order[:, 1 : tree.size + 1] == record).sum(dim=0)
        assert bool(((counts / RUNS - 1 / tree.size).abs() < 6 * (1 / tree.size / RUNS) ** 0.5).all())


def test_the_rate_of_the_example() -> None:
    """0.544 printed; 5.5 standard errors are 0.0087."""
    mechanism = PrefixSums(example(), SETTINGS)
    tree, _ = mechanism.learn(torch.arange(7), RUNS, Draws.at("rate"))
    work = mechanism.delete(tree, 5, Draws.at("rate of", 5))
    assert abs(float(work.recomputations.double().mean()) - 0.544) < 0.0095
    without = (work.recomputations == 0) & (work.rejection_tests > 0)
    assert bool((work.gradients[without] == 1).all())


# --- Wrong variants, each by the change of one function ---------------------------------------------------------


@pytest.mark.parametrize("coupling", couplings.WRONG, ids=lambda each: each.__name__)
def test_a_wrong_coupling_is_told_apart(coupling: couplings.Coupling, afresh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix_tree, "reflection_step", coupling)
    assert told_apart(functions(run(EDITS["one deletion"])), afresh("one deletion"), level=LEVEL) != []


def test_an_insertion_that_is_never_last_is_told_apart(afresh, monkeypatch: pytest.MonkeyPatch) -> None:
    def existing(self: PrefixSums, tree: PrefixTree, draws: Draws) -> Tensor:
        return draws.integers(tree.size, tree.trials) + 1

    monkeypatch.setattr(PrefixSums, "_places", existing)
    found = told_apart(functions(run(EDITS["an insertion"])), afresh("an insertion"), level=LEVEL)
    assert "last record and model" in found


def test_an_insertion_that_appends_is_told_apart(afresh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrefixSums, "_places", lambda self, tree, draws: torch.full((tree.trials,), tree.size + 1))
    assert "order" in told_apart(functions(run(EDITS["an insertion"])), afresh("an insertion"), level=LEVEL)


def test_sums_that_stay_behind_are_told_apart(afresh, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that was accepted keeps its old sum: the next edit tests a value that was never drawn."""
    right = PrefixTree._test

    def stale(self: PrefixTree, rows: Tensor, nodes: Tensor, draws: Draws) -> Tensor:
        before = self.sums[rows, nodes]
        accepted = right(self, rows, nodes, draws)
        self.sums[rows[accepted], nodes[accepted]] = before[accepted]
        return accepted

    monkeypatch.setattr(PrefixTree, "_test", stale)
    assert told_apart(functions(run(EDITS["two deletions"])), afresh("two deletions"), level=LEVEL) != []


def test_a_model_that_does_not_follow_a_rejection_is_told_apart(afresh, monkeypatch: pytest.MonkeyPatch) -> None:
    right = PrefixTree._replace

    def stale(self: PrefixTree, *arguments: object) -> None:
        before = self.models.clone()
        right(self, *arguments)  # type: ignore[arg-type]
        self.models = before

    monkeypatch.setattr(PrefixTree, "_replace", stale)
    assert told_apart(functions(run(EDITS["one deletion"])), afresh("one deletion"), level=LEVEL) != []


def test_a_run_that_does_not_go_on_after_a_rejection_is_told_apart(afresh, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = Draws.at("prefix sums", "edited", 1)
    mechanism = PrefixSums(example(), SETTINGS)
    tree, _ = mechanism.learn(torch.arange(7), RUNS, draws)
    monkeypatch.setattr(PrefixTree, "_learn_from", lambda *arguments: None)
    mechanism.delete(tree, 5, draws)
    assert told_apart(functions(tree), afresh("one deletion"), level=LEVEL) != []


def test_a_record_that_is_dropped_with_the_order_closed_up_is_told_apart(afresh) -> None:
    """Deleting by moving all later records forward, the tree as it was: what the noise was drawn for has moved."""
    draws = Draws.at("prefix sums", "closed up", 1)
    tree, _ = PrefixSums(example(), SETTINGS).learn(torch.arange(7), RUNS, draws)
    kept = tree.order[tree.order != 5].reshape(RUNS, -1)
    tree._drop_last()
    tree.order[:, 1:7] = kept[:, 1:]
    assert told_apart(functions(tree), afresh("one deletion"), level=LEVEL) != []


def test_records_in_the_order_of_arrival_have_the_law_of_the_swapped_order() -> None:
    """Deletions in the weak mode: the law is that of the last record in the deleted one's place, not of closing up."""
    settings = PrefixSumSettings.equal(0.8, most_records=15, order="arrival")
    mechanism = PrefixSums(example(), settings)
    draws = Draws.at("arrival")
    for position, original in ((3, 0.05), (5, 0.2)):
        tree, _ = mechanism.learn(torch.arange(7), RUNS, draws)
        mechanism.delete(tree, position - 1, draws)
        swapped, _ = mechanism.learn(tree.order[0, 1:7], RUNS, Draws.at("swapped", position))
        assert told_apart(functions(tree), functions(swapped), level=LEVEL) == []
        closed = torch.tensor([record for record in range(7) if record != position - 1])
        original_order, _ = mechanism.learn(closed, RUNS, Draws.at("closed", position))
        models = tree.models[:, 7, 0], original_order.models[:, 7, 0]
        assert float((models[0].sort().values - models[1].sort().values).abs().mean()) > original
        mechanism.insert(tree, 7, draws)
        assert bool((tree.order[:, 7] == 7).all())
