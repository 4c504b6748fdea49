"""Learning from prefix sums: settings, refusals, counts, means in closed form, and states that are not of a run."""

import math

import pytest
import torch

from certified_unlearning.accounting.tv import tree as theory
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.prefix_tree import PrefixTree
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.mechanisms.exact.one_pass.prefix_sums import PrefixSums, PrefixSumSettings, check_invariants
from certified_unlearning.papers.tv_stability.theory import trees
from tests.support.prefix_sums import ClippedMeans, example

SETTINGS = PrefixSumSettings.equal(0.8, most_records=15)


def edited(trials: int = 200):
    mechanism = PrefixSums(example((-0.3, 0.8)), SETTINGS)
    draws = Draws.at("invariants")
    tree, _ = mechanism.learn(torch.arange(7), trials, draws)
    for edit, record in [("delete", 5), ("insert", 7), ("insert", 8), ("delete", 0), ("delete", 7)]:
        getattr(mechanism, edit)(tree, record, draws)
        check_invariants(tree)
    return mechanism, tree


def test_states_keep_their_invariants_through_a_stream() -> None:
    _, tree = edited()
    assert sorted(tree.order[0, 1 : tree.size + 1].tolist()) == [1, 2, 3, 4, 6, 8]


def _swap(tree):
    tree.order[0, 1], tree.order[0, 2] = tree.order[0, 2].clone(), tree.order[0, 1].clone()


def _twice(tree):
    tree.order[0, 1] = tree.order[0, 2]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (_twice, "same records"),
        (_swap, "increments"),
        (lambda tree: tree.sums[7, 2].add_(1e-6), "sums of nodes"),
        (lambda tree: tree.increments[7, 6].add_(1e-6), "sums of nodes"),
        (lambda tree: tree.noisy[7, 3].add_(1e-5), "models"),
        (lambda tree: tree.models[7, tree.size + 1].add_(1e-6), "models"),
        (lambda tree: tree.models[7, 0].add_(1e-6), "models"),
    ],
)
def test_a_state_that_no_run_leaves_is_found(fault, said: str) -> None:
    _, tree = edited()
    fault(tree)
    with pytest.raises(DataError, match=said):
        check_invariants(tree)


def _inner_nodes_untested(monkeypatch: pytest.MonkeyPatch) -> None:
    right = PrefixTree._test

    def leaf_only(self, rows, nodes, draws):
        inner = nodes % 2 == 0
        accepted = torch.ones_like(inner)
        accepted[~inner] = right(self, rows[~inner], nodes[~inner], draws) if bool((~inner).any()) else True
        return accepted

    monkeypatch.setattr(PrefixTree, "_test", leaf_only)


def _stale_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    right = PrefixTree._test

    def stale(self, rows, nodes, draws):
        before = self.sums[rows, nodes]
        accepted = right(self, rows, nodes, draws)
        self.sums[rows[accepted], nodes[accepted]] = before[accepted]
        return accepted

    monkeypatch.setattr(PrefixTree, "_test", stale)


def _old_increments(monkeypatch: pytest.MonkeyPatch) -> None:
    right = PrefixTree._replace

    def kept(self, rows, positions, *others):
        before = self.increments[rows, positions]
        right(self, rows, positions, *others)
        self.increments[rows, positions] = before

    monkeypatch.setattr(PrefixTree, "_replace", kept)


def _old_models(monkeypatch: pytest.MonkeyPatch) -> None:
    right = PrefixTree._replace

    def kept(self, *arguments):
        before = self.models.clone()
        right(self, *arguments)
        self.models = before

    monkeypatch.setattr(PrefixTree, "_replace", kept)


def _no_relearning(monkeypatch: pytest.MonkeyPatch) -> None:
    right = PrefixTree._learn_from
    monkeypatch.setattr(
        PrefixTree, "_learn_from", lambda self, restarts, *others: right(self, restarts.clamp(min=self.size), *others)
    )


@pytest.mark.parametrize("fault", [_inner_nodes_untested, _stale_sums, _old_increments, _old_models, _no_relearning])
def test_faults_of_code_leave_states_that_no_run_leaves(fault, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = PrefixSums(example(), SETTINGS)
    tree, _ = mechanism.learn(torch.arange(7), 300, Draws.at("fault"))
    fault(monkeypatch)
    mechanism.delete(tree, 5, Draws.at("fault", 1))
    with pytest.raises(DataError, match="from recomputed values"):
        check_invariants(tree)


def test_nothing_before_the_first_rejection_moves() -> None:
    mechanism = PrefixSums(example(), SETTINGS)
    tree, _ = mechanism.learn(torch.arange(7), 500, Draws.at("still"))
    noisy, models, order = tree.noisy.clone(), tree.models.clone(), tree.order.clone()
    work = mechanism.delete(tree, 5, Draws.at("still", 1))
    kept = work.recomputations == 0
    assert 100 < int(kept.sum()) < 400
    assert torch.equal(tree.noisy[kept, :7], noisy[kept, :7])
    assert torch.equal(tree.models[kept, :8], models[kept, :8])
    # Rejected at node t: positions before t, and models up to t, are what they were.
    for trial in (~kept).nonzero()[:, 0].tolist():
        first = 7 - int(work.iterations_run_again[trial]) - 1
        assert torch.equal(tree.noisy[trial, :first], noisy[trial, :first])
        assert torch.equal(tree.models[trial, : first + 1], models[trial, : first + 1])
        assert not torch.equal(tree.noisy[trial, first], noisy[trial, first])
        place = (order[trial] == 5).nonzero().item()
        assert first in trees.nodes_of_position(place, 6)


def test_what_edits_cost() -> None:
    mechanism = PrefixSums(example(), SETTINGS)
    tree, learned = mechanism.learn(torch.arange(7), 400, Draws.at("cost"))
    assert bool((learned.gradients == 7).all())
    assert int(learned.recomputations.sum() + learned.iterations_run_again.sum() + learned.rejection_tests.sum()) == 0
    place = (tree.order[:, 1:] == 5).int().argmax(dim=1) + 1
    tested = torch.tensor([len(trees.nodes_of_position(each, 6)) for each in place.tolist()])
    deleted = mechanism.delete(tree, 5, Draws.at("cost", 1))
    kept = deleted.recomputations == 0
    assert torch.equal(deleted.rejection_tests[kept], tested[kept])
    assert bool((deleted.rejection_tests <= tested).all())
    assert torch.equal(deleted.gradients, (tested > 0) + deleted.iterations_run_again)
    inserted = mechanism.insert(tree, 7, Draws.at("cost", 2))
    last = inserted.rejection_tests == 0
    assert torch.equal(inserted.gradients, 2 - last.long() + inserted.iterations_run_again)


def test_where_records_stay_as_they_came_an_insertion_costs_one_increment() -> None:
    mechanism = PrefixSums(example(), PrefixSumSettings.equal(0.8, most_records=15, order="arrival"))
    tree, _ = mechanism.learn(torch.arange(7), 30, Draws(1))
    work = mechanism.insert(tree, 7, Draws(2))
    assert work.gradients.unique().tolist() == [1]
    assert int(work.rejection_tests.sum() + work.recomputations.sum() + work.iterations_run_again.sum()) == 0
    assert bool((tree.order[:, 1:9] == torch.arange(8)).all())
    mechanism.delete(tree, 2, Draws(3))
    assert bool((tree.order[:, 1:8] == torch.tensor([0, 1, 7, 3, 4, 5, 6])).all())
    check_invariants(tree)


def test_gradients_are_counted_for_each_increment() -> None:
    method = example()
    method.gradients_per_increment = 2
    _, work = PrefixSums(method, SETTINGS).learn(torch.arange(7), 3, Draws(1))
    assert work.gradients.tolist() == [14, 14, 14]


def test_means_without_clipping() -> None:
    """Noise has mean 0 and so has each order: 40 000 runs, 6 standard errors."""
    method = ClippedMeans(example().values.tolist(), step=0.6, largest=math.inf, radius=math.inf)
    mechanism = PrefixSums(method, SETTINGS)
    tree, _ = mechanism.learn(torch.arange(7), 40_000, Draws.at("mean"))
    for expected in (0.427869, 0.0829920):
        models = mechanism.model(tree)[:, 0]
        assert abs(float(models.mean()) - expected) < 6 * float(models.std()) / 200
        if expected > 0.1:
            mechanism.delete(tree, 5, Draws.at("mean", 1))


def test_recomputation_has_the_probability_of_theory() -> None:
    """All records equal but the deleted one, increments that depend on no model: 50 000 runs, 6 standard errors."""

    class Fixed(ClippedMeans):
        def increments(self, positions, models, previous, records):
            return self.values[records][:, None]

    mechanism = PrefixSums(Fixed([0.0] * 7 + [0.5], step=1, largest=1, radius=1), SETTINGS.equal(1, most_records=8))
    tree, _ = mechanism.learn(torch.arange(8), 50_000, Draws.at("theory"))
    work = mechanism.delete(tree, 7, Draws.at("theory", 1))
    expected = trees.mean_recompute_probability(n=8, sigma=1.0, sensitivity=0.5)
    assert expected == pytest.approx(0.267852, rel=5e-6)
    rate = float(work.recomputations.double().mean())
    assert abs(rate - expected) < 6 * math.sqrt(0.25 / 50_000)
    again = theory.positions_run_again(n=8, sigma=1.0, sensitivity=0.5)
    positions = work.iterations_run_again.double()
    assert abs(float(positions.mean()) - again) < 6 * float(positions.std()) / math.sqrt(50_000)
    queries = work.gradients.double()
    computed = theory.deletion_queries(n=8, sigma=1.0, sensitivity=0.5)
    assert abs(float(queries.mean()) - computed) < 6 * float(queries.std()) / math.sqrt(50_000)
    work = mechanism.insert(tree, 7, Draws.at("theory", 2))
    assert abs(float(work.recomputations.double().mean()) - expected) < 6 * math.sqrt(0.25 / 50_000)


def test_settings_for_streams_keep_to_the_wanted_probability() -> None:
    settings = PrefixSumSettings.anytime("quadratic", rho=0.2, sensitivity=3.0, most_records=2**40)
    assert len(settings.sigmas) == 41
    mechanism = PrefixSums(example([0.1 * number for number in range(40)]), settings)
    tree, _ = mechanism.learn(torch.arange(7), 4000, Draws.at("stream"))
    for record in range(7, 40):
        rate = float(mechanism.insert(tree, record, Draws.at("stream", record)).recomputations.double().mean())
        assert rate < 0.2 + 6 * math.sqrt(0.16 / 4000)
    check_invariants(tree)


def test_a_stored_state_is_restored_with_its_settings_only() -> None:
    mechanism, tree = edited()
    again = mechanism.restore(tree.tensors())
    assert torch.equal(mechanism.model(again), mechanism.model(tree))
    other = PrefixSums(example(), PrefixSumSettings.equal(0.7, most_records=15))
    with pytest.raises(ParameterError, match="an edit must use the settings of learning"):
        other.restore(tree.tensors())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PrefixSumSettings(()), "sigmas must hold a finite number"),
        (lambda: PrefixSumSettings((1.0, -1.0)), "sigmas must hold a finite number"),
        (lambda: PrefixSumSettings((math.nan,)), "sigmas must hold a finite number"),
        (lambda: PrefixSumSettings((1.0,), "sorted"), "order must be one of random, arrival, got 'sorted'"),
        (
            lambda: PrefixSums(example(), SETTINGS).learn(torch.tensor([1, 1]), 2, Draws(1)),
            r"names: distinct whole numbers of at least 0, .* shape \(n,\), got shape \(2,\) with 1 distinct",
        ),
        (lambda: PrefixSums(example(), SETTINGS).learn(torch.tensor([-1, 1]), 2, Draws(1)), "numbers of at least 0"),
        (lambda: PrefixSums(example(), SETTINGS).learn(torch.tensor([]).long(), 2, Draws(1)), r"got shape \(0,\)"),
        (
            lambda: PrefixSums(example(), SETTINGS).learn(torch.arange(16), 2, Draws(1)),
            "noise for 4 heights suffices for 1 to 15 records, got 16",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(call, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
