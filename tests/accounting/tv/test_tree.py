"""How often prefix sums are computed again: paths, sharp forms against sums over positions, published tables."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting.tv import tree
from certified_unlearning.accounting.tv.distances import gap_of_tv, gaussian_tv
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.tv_stability.theory import trees


@pytest.mark.parametrize(
    ("position", "nodes"),
    [
        (1, [1, 2, 4, 8]),
        (2, [2, 4, 8]),
        (3, [3, 4, 8]),
        (5, [5, 6, 8]),
        (8, [8]),
        (12, [12]),
        (15, [15]),
        (16, []),
    ],
)
def test_nodes_of_a_position_among_sixteen(position: int, nodes: list[int]) -> None:
    assert trees.nodes_of_position(position, 15) == nodes
    assert trees.tested_nodes(16)[position - 1] == len(nodes)


def test_nodes_of_a_prefix() -> None:
    assert tree.nodes_of_prefix(7) == [7, 6, 4]


@given(st.integers(1, 300), st.integers(1, 300))
def test_a_prefix_reads_one_node_of_each_position_in_it(position: int, length: int) -> None:
    """Nodes above a position that are read: exactly one if the position is in the prefix, none otherwise."""
    above = set(trees.nodes_of_position(position, 512))
    assert len(above & set(tree.nodes_of_prefix(length))) == (position <= length)


@pytest.mark.parametrize(("n", "mean"), [(8, 1.5), (16, 2), (1024, 5), (4096, 6), (65536, 8)])
def test_mean_number_of_nodes(n: int, mean: float) -> None:
    assert trees.tested_nodes(n).mean() == mean


@given(st.integers(2, 5000))
def test_no_position_tests_more_nodes_than_there_are_heights(n: int) -> None:
    assert trees.tested_nodes(n).max() == tree.heights(n - 1)


@pytest.mark.parametrize(
    ("n", "rho", "logarithm", "sigma", "mean", "worst", "positions"),
    [
        (1024, 0.5, "2", 160, 0.0123972, 0.0246559, 6.33498),
        (1024, 0.5, "e", 110.904, 0.0178411, 0.0353951, 9.11678),
        (65536, 0.1, "2", 1280, 0.00249048, 0.00497514, 81.6055),
        (1024, 0.5, None, 8.77673, 0.205283, 0.371829, 104.900),
        (65536, 0.1, None, 67.8202, 0.0460345, 0.0900765, 1508.41),
    ],
)
def test_the_table(
    n: int, rho: float, logarithm: tree.Logarithm | None, sigma: float, mean: float, worst: float, positions: float
) -> None:
    chosen = (
        tree.theorem_25_sigma(n=n, rho=rho, sensitivity=3, logarithm=logarithm)
        if logarithm
        else trees.calibrated_sigma(n=n, rho=rho, sensitivity=3)
    )
    case = {"n": n, "sigma": chosen, "sensitivity": 3}
    assert chosen / 3 == pytest.approx(sigma, rel=5e-6)
    assert trees.mean_recompute_probability(**case) == pytest.approx(mean, rel=5e-6)
    assert tree.worst_recompute_probability(**case) == pytest.approx(worst, rel=5e-6)
    assert tree.positions_run_again(**case) == pytest.approx(positions, rel=5e-6)
    assert tree.deletion_queries(**case) / n <= 2 / n + trees.mean_recompute_probability(**case)
    assert trees.mean_recompute_probability(**case) <= tree.lemma_38(n=n, rho=rho)


def test_published_noise_of_the_second_example() -> None:
    assert tree.theorem_25_sigma(n=65536, rho=0.25, sensitivity=1) == pytest.approx(512)
    assert tree.theorem_25_sigma(n=65536, rho=0.25, sensitivity=1, logarithm="e") == pytest.approx(354.891, rel=5e-6)


def test_eight_records_of_which_one_differs() -> None:
    tau = gaussian_tv(0.5)
    for nodes, probability in enumerate((0.197413, 0.355854, 0.483016), start=1):
        assert 1 - (1 - tau) ** nodes == pytest.approx(probability, rel=5e-6)
    mean = trees.mean_recompute_probability(n=8, sigma=2.0, sensitivity=1.0)
    assert mean == pytest.approx(0.267852, rel=5e-6)


@given(st.integers(1, 3000), st.floats(0.01, 100))
def test_the_mean_is_a_mean_over_positions(n: int, sigma: float) -> None:
    kept = 1 - gaussian_tv(1 / sigma)
    positions = 1 - kept ** trees.tested_nodes(n)
    mean = trees.mean_recompute_probability(n=n, sigma=sigma, sensitivity=1.0)
    assert mean == pytest.approx(positions.mean(), rel=1e-9, abs=1e-12)
    assert mean <= tree.worst_recompute_probability(n=n, sigma=sigma, sensitivity=1.0) + 1e-12
    assert tree.worst_recompute_probability(n=n, sigma=sigma, sensitivity=1.0) == pytest.approx(positions.max())


@given(st.integers(1, 600), st.lists(st.floats(0, 1), min_size=10, max_size=10))
def test_heights_may_have_their_own_probabilities(n: int, taus: list[float]) -> None:
    heights = [(node & -node).bit_length() - 1 for node in range(n + 1)]
    each = [1 - math.prod(1 - taus[heights[t]] for t in trees.nodes_of_position(j, n - 1)) for j in range(1, n + 1)]
    assert trees.recompute_probability_of_taus(taus, n=n) == pytest.approx(np.mean(each), rel=1e-9, abs=1e-12)


@given(st.integers(1, 3000), st.integers(1, 3000), st.floats(0.001, 0.999))
def test_the_bound_for_all_sizes_is_above_every_size(n: int, larger: int, tau: float) -> None:
    larger = max(n, larger)
    sigma = 1 / gap_of_tv(tau)
    mean = trees.mean_recompute_probability(n=n, sigma=sigma, sensitivity=1.0)
    assert mean <= tree.recompute_probability_up_to(larger, tau) * (1 + 1e-9)


def test_the_bound_for_all_sizes_is_met_just_after_a_power_of_two() -> None:
    mean = trees.mean_recompute_probability(n=1025, sigma=4.0, sensitivity=1.0)
    assert mean == pytest.approx(tree.recompute_probability_up_to(2048, gaussian_tv(0.25)), rel=1e-3)
    assert mean > trees.mean_recompute_probability(n=2048, sigma=4.0, sensitivity=1.0)


@given(st.integers(1, 40), st.floats(0.01, 2))
def test_budgets_never_add_up_to_more_than_rho(count: int, rho: float) -> None:
    for budget in ("printed", "quadratic", "equal"):
        assert sum(tree.height_budgets(budget, rho=rho, count=count)) <= rho * (1 + 1e-12)


@given(st.integers(2, 4000), st.sampled_from(["printed", "quadratic", "equal"]))
def test_budgets_bound_what_the_tree_computes_again(n: int, budget: tree.Budget) -> None:
    sigmas = tree.height_sigmas(budget, rho=0.3, sensitivity=2.0, count=tree.heights(4000))
    taus = [gaussian_tv(2.0 / sigma) for sigma in sigmas]
    assert trees.recompute_probability_of_taus(taus, n=n) <= 0.3
    assert 1 - math.prod(1 - tau for tau in taus) <= 0.3


@pytest.mark.parametrize(
    ("length", "budget", "noise"),
    [
        (1024, "printed", 1634.07),
        (1024, "quadratic", 158.809),
        (1023, "printed", 943.429),
        (1023, "quadratic", 208.897),
    ],
)
def test_noise_of_anytime_prefix_sums(length: int, budget: tree.Budget, noise: float) -> None:
    sigmas = tree.height_sigmas(budget, rho=0.5, sensitivity=1.0, count=11)
    found = trees.prefix_noise(length, sigmas)
    assert found == pytest.approx(noise, rel=5e-6)
    if length == 1024:
        assert found / length == pytest.approx({"printed": 1.59577, "quadratic": 0.155086}[budget], rel=5e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tree.theorem_25_sigma(n=9, rho=0.1, sensitivity=1, logarithm="10"), "logarithm must be '2' or 'e'"),
        (lambda: tree.height_budgets("free", rho=0.1, count=2), "budget must be one of printed, quadratic, equal"),
        (lambda: trees.prefix_noise(8, [1.0]), "at least 4 numbers, one for each height, got 1"),
        (lambda: trees.recompute_probability_of_taus([0.1], n=4), "at least 3 probabilities, one for each"),
        (lambda: tree.recompute_probability_up_to(4, 1.5), "tau must lie between 0 and 1, got 1.5"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
