"""The tree of noisy prefix sums: the trace by hand, nodes and prefixes, what an edit touches."""

import math

import pytest
import torch

from certified_unlearning.accounting.tv.tree import nodes_of_prefix
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.prefix_tree import PrefixTree, heights
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.tv_stability.theory.trees import nodes_of_position
from tests.support.prefix_sums import ClippedMeans, Given, example

ONE = torch.ones(4, dtype=torch.float64)
TRACE = ClippedMeans([1, -2, 0.5, 3, -1, 0.7], step=0.5, largest=2, radius=1)
NEVER, ALWAYS = 1 - 1e-12, 1e-300


def learned() -> PrefixTree:
    tree, _ = PrefixTree.learn(TRACE, ONE, torch.arange(5)[None], Given([0.2, -0.1, 0.4, 0.3, -0.5]))
    return tree


def at(tensor: torch.Tensor, first: int, last: int) -> object:
    return pytest.approx(tensor[0, first : last + 1].flatten().tolist())


def test_learning_by_hand() -> None:
    tree = learned()
    assert at(tree.increments, 1, 5) == [-1, 2, -0.95, -2, 1.825]
    assert at(tree.sums, 1, 5) == [-1, 1, -0.95, -1.95, 1.825]
    assert at(tree.noisy, 1, 5) == [-0.8, 0.9, -0.55, -1.65, 1.325]
    assert at(tree.models, 2, 6) == [0.4, -0.45, -0.175, 0.825, 0.1625]
    prefixes = tree.prefixes(torch.zeros(5, dtype=torch.int64), torch.arange(1, 6))
    assert prefixes.flatten().tolist() == pytest.approx([-0.8, 0.9, 0.35, -1.65, -0.325])


@pytest.mark.parametrize(
    ("record", "nodes", "sums", "ratios", "reflected"),
    [
        (0, [1, 2, 4], [1, 3, 0.05], [0.201897, 0.110803, 0.246597], [0.8, 3.1, -0.25]),
        (1, [2, 4], [0.4, -2.55], [0.886920, 0.697676], [0.5, -2.85]),
    ],
)
def test_the_nodes_of_a_deletion_by_hand(
    record: int, nodes: list[int], sums: list[float], ratios: list[float], reflected: list[float]
) -> None:
    assert nodes_of_position(record + 1, 4) == nodes
    for place in range(len(nodes)):
        for above in (False, True):
            # Nodes below this one are kept; this one just so, or just not.
            uniforms = [ALWAYS] * place + [ratios[place] * (1 + 1e-5 * (1 if above else -1))]
            tree = learned()
            draws = Given([0.0] * 9, uniforms + ([] if above else [ALWAYS] * 3))
            work = tree.delete(record, draws)
            assert bool(work.rejections[0]) is above
            assert work.tests.tolist() == [place + 1 if above else len(nodes)]
            node = nodes[place]
            assert at(tree.sums, node, node) == sums[place : place + 1]
            before = learned().noisy[0, node].item()
            assert at(tree.noisy, node, node) == [reflected[place] if above else before]


def test_a_rejected_inner_node_by_hand() -> None:
    tree = learned()
    draws = Given([0.4, 0.3], [0.88693])
    work = tree.delete(1, draws)
    assert draws.left == 0
    assert at(tree.models, 3, 3) == [-0.25]
    assert tree.order[0, 1:5].tolist() == [0, 4, 2, 3]
    assert at(tree.increments, 1, 4) == [-1, 1.4, -0.75, -2]
    assert at(tree.sums, 1, 4) == [-1, 0.4, -0.75, -2.35]
    assert at(tree.noisy, 1, 4) == [-0.8, 0.5, -0.35, -2.05]
    assert (work.queries.item(), work.tests.item(), work.learned_again.item()) == (3, 1, 2)


def test_deleting_the_last_record_tests_nothing() -> None:
    tree, before = learned(), learned()
    work = tree.delete(4, Given())
    assert (work.queries.item(), work.tests.item(), work.rejections.item()) == (0, 0, 0)
    assert tree.size == 4
    for name in ("noisy", "sums", "increments", "models"):
        assert torch.equal(getattr(tree, name)[:, :5], getattr(before, name)[:, :5])


def test_nothing_of_a_dropped_position_is_kept() -> None:
    tree = learned()
    tree.delete(2, Given([0.0] * 9, [ALWAYS] * 9))
    assert tree.order[0, 5] == -1
    assert all(not bool(tensor[:, 5].any()) for tensor in (tree.increments, tree.sums, tree.noisy))
    assert not bool(tree.models[:, 6].any())
    assert all(2 not in tensor for tensor in (tree.order, tree.tensors()["order"]))


def test_inserting_at_a_position_moves_its_record_to_the_end() -> None:
    tree = learned()
    draws = Given([0.1], [ALWAYS] * 9)
    work = tree.insert(5, torch.tensor([3]), draws)
    assert tree.order[0, 1:7].tolist() == [0, 1, 5, 3, 4, 2]
    assert (work.queries.item(), work.tests.item(), work.rejections.item()) == (2, 2, 0)
    assert work.learned_again.item() == 0
    assert at(tree.noisy, 1, 5) == [-0.8, 0.9, -0.55, -1.65, 1.325]
    # Node 6 sums positions 5 and 6, and has noise 0.1.
    increments = tree.increments[0, :, 0]
    assert tree.noisy[0, 6].item() == pytest.approx(float(increments[5] + increments[6]) + 0.1)


def test_inserting_at_the_end_learns_one_position() -> None:
    tree = learned()
    work = tree.insert(5, torch.tensor([6]), Given([0.1]))
    assert tree.order[0, 1:7].tolist() == [0, 1, 2, 3, 4, 5]
    assert (work.queries.item(), work.tests.item(), work.learned_again.item()) == (1, 0, 0)


def test_a_rejected_insertion_learns_again_from_the_node_on() -> None:
    tree = learned()
    work = tree.insert(5, torch.tensor([2]), Given([0.0] * 9, [NEVER]))
    assert work.rejections.item() == 1
    assert work.learned_again.item() == 3  # Positions 3 to 5; 6 is new.
    assert work.queries.item() == 1 + 4


def test_a_prefix_is_the_sum_of_its_nodes() -> None:
    method = ClippedMeans(torch.arange(100).double().tolist(), step=0.1, largest=9, radius=9)
    order = Draws(1).orders(torch.arange(100), 3)
    tree, _ = PrefixTree.learn(method, torch.ones(7).double(), order, Draws(2))
    for length in (0, 1, 6, 7, 64, 99, 100):
        expected = sum((tree.noisy[:, node] for node in nodes_of_prefix(length)), torch.zeros(3, 1).double())
        found = tree.prefixes(torch.arange(3), torch.full((3,), length))
        torch.testing.assert_close(found, expected)


def test_heights_are_exact() -> None:
    nodes = torch.cat([torch.arange(1, 5000), 2 ** torch.arange(40)])
    assert heights(nodes).tolist() == [(node & -node).bit_length() - 1 for node in nodes.tolist()]


def test_each_height_has_its_noise() -> None:
    """The mean square of 20 000 draws at each height; a factor of 1 +- 0.06 is left with probability 2e-9 each."""
    sigmas = torch.tensor([0.5, 2.0, 7.0]).double()
    tree, _ = PrefixTree.learn(example(), sigmas, torch.arange(7).repeat(20_000, 1), Draws(4))
    noise = (tree.noisy - tree.sums)[:, 1:, 0]
    for position in range(1, 8):
        sigma = float(sigmas[int(heights(torch.tensor(position)))])
        assert float((noise[:, position - 1] ** 2).mean()) == pytest.approx(sigma**2, rel=0.06)


def test_trials_do_not_touch_each_other() -> None:
    """Orders that differ: each trial's state is the one it has alone, given the noise it drew."""
    order = torch.tensor([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]])
    tree, _ = PrefixTree.learn(TRACE, ONE, order, Given([0.2, 0.1, -0.1, 0.2, 0.4, 0.3, 0.3, 0.4, -0.5, 0.5]))
    alone, _ = PrefixTree.learn(TRACE, ONE, order[1:], Given([0.1, 0.2, 0.3, 0.4, 0.5]))
    assert torch.equal(tree.models[1:], alone.models)
    # Record 1 is at positions 2 and 4: the first trial tests nodes 2 and 4, the second node 4.
    work = tree.delete(1, Given([0.0] * 20, [ALWAYS, ALWAYS, ALWAYS]))
    assert work.tests.tolist() == [2, 1]
    assert tree.order[:, 1:5].tolist() == [[0, 4, 2, 3], [4, 3, 2, 0]]


def test_a_deletion_without_noise_is_a_run_on_the_new_order() -> None:
    method = example()
    tree, _ = PrefixTree.learn(method, torch.zeros(3).double(), Draws(1).orders(torch.arange(7), 50), Draws(2))
    tree.delete(5, Draws(3))
    tree.insert(7, torch.full((50,), 2), Draws(4))
    tree.delete(0, Draws(5))
    fresh, _ = PrefixTree.learn(method, torch.zeros(3).double(), tree.order[:, 1 : tree.size + 1], Draws(6))
    for name, tensor in fresh.tensors().items():
        torch.testing.assert_close(tree.tensors()[name], tensor, rtol=0, atol=1e-12)


def test_a_stored_state_goes_on_as_the_one_that_was_kept() -> None:
    tree, _ = PrefixTree.learn(example(), ONE, Draws(1).orders(torch.arange(7), 20), Draws(2))
    tree.delete(3, Draws(3))
    again = PrefixTree.from_tensors(example(), tree.tensors())
    for each in (tree, again):
        each.insert(7, torch.full((20,), 3), Draws(4))
        each.delete(1, Draws(5))
    for name, tensor in tree.tensors().items():
        assert torch.equal(tensor, again.tensors()[name])


def test_what_makes_no_sense_is_refused() -> None:
    tree = learned()
    with pytest.raises(ParameterError, match="record 9 is not among the 5 records"):
        tree.delete(9, Given())
    with pytest.raises(ParameterError, match="record 3 was learned already"):
        tree.insert(3, torch.tensor([1]), Given())
    for position in (0, 7):
        with pytest.raises(ParameterError, match=rf"positions must be from 1 to 6, got \[{position}\]"):
            tree.insert(5, torch.tensor([position]), Given())
    small, _ = PrefixTree.learn(TRACE, ONE[:1], torch.tensor([[0]]), Given([0.1]))
    with pytest.raises(ParameterError, match="record 0 is the only one left"):
        small.delete(0, Given())
    with pytest.raises(ParameterError, match="noise for 1 heights suffices for 1 to 1 records, got 2"):
        small.insert(1, torch.tensor([1]), Given())
    stored = tree.tensors()
    with pytest.raises(ParameterError, match="the stored tree lacks these tensors: noisy"):
        PrefixTree.from_tensors(TRACE, {name: stored[name] for name in stored if name != "noisy"})
    with pytest.raises(ParameterError, match=r"models must have shape \(1, 7, 1\)"):
        PrefixTree.from_tensors(TRACE, stored | {"models": stored["models"][:, 1:]})
    assert math.isclose(float(tree.models[0, 6]), 0.1625)
