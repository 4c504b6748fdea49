"""Plans meet what is wanted, and nothing smaller does."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting.tv import planning, tree
from certified_unlearning.accounting.tv.distances import gaussian_tv
from certified_unlearning.accounting.tv.recomputation import (
    noisy_recompute_probability,
    quantised_recompute_probability,
    query_recompute_probability,
)
from certified_unlearning.accounting.tv.subsampling import subsampling_tv
from certified_unlearning.errors import InfeasibleError, ParameterError
from certified_unlearning.papers.tv_stability.theory import trees

WANTED = st.floats(1e-6, 0.999)
RUNS = st.tuples(st.integers(2, 10**6), st.floats(0, 1), st.integers(1, 10**4)).map(
    lambda each: {"n": each[0], "batch_size": max(1, int(each[0] * each[1] ** 3)), "steps": each[2]}
)
LESS = 1 - 1e-6


@given(st.integers(1, 10**6), st.floats(0, 1), WANTED)
def test_most_steps_are_the_most(n: int, share: float, wanted: float) -> None:
    case = {"n": n, "batch_size": max(1, int(n * share**3))}
    steps = planning.most_steps(**case, recompute_probability=wanted)
    assert subsampling_tv(**case, steps=steps) <= wanted < subsampling_tv(**case, steps=steps + 1)


@given(st.integers(2, 10**6), st.integers(1, 1000), WANTED)
def test_the_largest_batch_is_the_largest(n: int, steps: int, wanted: float) -> None:
    try:
        batch_size = planning.largest_batch(n=n, steps=steps, recompute_probability=wanted)
    except InfeasibleError:
        assert subsampling_tv(n=n, batch_size=1, steps=steps) > wanted
        return
    assert subsampling_tv(n=n, batch_size=batch_size, steps=steps) <= wanted
    assert subsampling_tv(n=n, batch_size=batch_size + 1, steps=steps) > wanted


STEPS_TO_SPARE = 1e-9
"""A probability next to the wanted one may be on either side of it."""


@given(RUNS, st.floats(0.01, 100), st.floats(1e-3, 1e3), WANTED)
def test_most_noisy_steps_are_the_most(run: dict[str, int], lipschitz: float, sigma: float, wanted: float) -> None:
    case = {"n": run["n"], "batch_size": run["batch_size"], "sigma": sigma}
    gap = 2 * lipschitz / run["batch_size"]
    try:
        most = planning.most_noisy_steps(**case, lipschitz=lipschitz, recompute_probability=wanted)
    except InfeasibleError:
        assert noisy_recompute_probability(**case, steps=planning.MOST_STEPS, gap=gap) <= wanted * (1 + STEPS_TO_SPARE)
        return
    assert noisy_recompute_probability(**case, steps=most, gap=gap) <= wanted
    assert noisy_recompute_probability(**case, steps=most + 1, gap=gap) > wanted


@given(RUNS, st.integers(1, 1000), st.floats(1e-3, 1e3), WANTED)
def test_most_quantised_steps_are_the_most(run: dict[str, int], d: int, resolution: float, wanted: float) -> None:
    case = {"n": run["n"], "batch_size": run["batch_size"], "resolution": resolution, "dimension": d}
    gap = 2 / run["batch_size"]
    try:
        most = planning.most_quantised_steps(**case, lipschitz=1.0, recompute_probability=wanted)
    except InfeasibleError:
        assert quantised_recompute_probability(**case, steps=planning.MOST_STEPS, gap=gap) <= wanted * (
            1 + STEPS_TO_SPARE
        )
        return
    assert quantised_recompute_probability(**case, steps=most, gap=gap) <= wanted
    assert quantised_recompute_probability(**case, steps=most + 1, gap=gap) > wanted


@given(st.floats(0.01, 1e5), WANTED)
def test_most_queries_are_the_most(sigma: float, wanted: float) -> None:
    most = planning.most_queries(sigma=sigma, bound=1.0, recompute_probability=wanted)
    assert query_recompute_probability(queries=most, sigma=sigma, bound=1.0) <= wanted
    assert query_recompute_probability(queries=most + 1, sigma=sigma, bound=1.0) > wanted


def test_more_steps_than_anybody_takes_are_refused() -> None:
    with pytest.raises(InfeasibleError, match=r"recompute_probability = 0\.5 would allow more than 10,000,000 steps"):
        planning.most_queries(sigma=1e9, bound=1.0, recompute_probability=0.5)


def test_too_many_steps_are_refused_with_how_many_would_do() -> None:
    with pytest.raises(
        InfeasibleError, match=r"recompute_probability = 0\.01; raise recompute_probability, or take at most 1 steps"
    ):
        planning.largest_batch(n=100, steps=50, recompute_probability=0.01)


@given(RUNS, st.floats(0.01, 100), WANTED)
def test_noise_of_noisy_sgd_is_the_least(run: dict[str, int], lipschitz: float, wanted: float) -> None:
    plan = planning.plan_noisy_sgd(**run, lipschitz=lipschitz, recompute_probability=wanted)
    gap = 2 * lipschitz / run["batch_size"]
    assert noisy_recompute_probability(**run, sigma=plan.noise, gap=gap) == plan.recompute_probability <= wanted
    assert noisy_recompute_probability(**run, sigma=plan.published_noise, gap=gap) <= wanted
    if plan.noise:
        assert noisy_recompute_probability(**run, sigma=LESS * plan.noise, gap=gap) > wanted
        assert plan.noise <= math.sqrt(2 / math.pi) * run["steps"] * lipschitz / (run["n"] * wanted) * (1 + 1e-9)
    else:
        assert subsampling_tv(**run) <= wanted * (1 + 1e-12)


@pytest.mark.parametrize("nearly", [1 - 1e-15, 1.0, 1 + 1e-15])
def test_noise_is_found_where_batches_alone_just_do_or_just_do_not(nearly: float) -> None:
    for batch_size in range(1, 40):
        run = {"n": 97, "batch_size": batch_size, "steps": 7}
        wanted = subsampling_tv(**run) * nearly
        plan = planning.plan_noisy_sgd(**run, lipschitz=1.0, recompute_probability=wanted)
        gap = 2 / batch_size
        assert noisy_recompute_probability(**run, sigma=plan.noise, gap=gap) <= wanted
        assert plan.noise <= gap
        plan = planning.plan_quantised_sgd(**run, lipschitz=1.0, dimension=3, recompute_probability=wanted)
        assert plan.recompute_probability <= wanted
        assert plan.noise == pytest.approx(math.sqrt(3) * gap)


@given(RUNS, st.integers(1, 1000), WANTED)
def test_the_grid_of_quantised_sgd_is_the_finest(run: dict[str, int], dimension: int, wanted: float) -> None:
    plan = planning.plan_quantised_sgd(**run, lipschitz=1.0, dimension=dimension, recompute_probability=wanted)
    case = run | {"dimension": dimension, "gap": 2 / run["batch_size"]}
    assert quantised_recompute_probability(**case, resolution=plan.noise) == plan.recompute_probability <= wanted
    finer = quantised_recompute_probability(**case, resolution=LESS * plan.noise)
    assert finer > wanted or subsampling_tv(**run) <= wanted * (1 + 1e-12)


@given(st.integers(1, 10**4), st.floats(0.01, 100), WANTED)
def test_noise_of_linear_queries_is_the_least(queries: int, bound: float, wanted: float) -> None:
    plan = planning.plan_queries(queries=queries, bound=bound, recompute_probability=wanted)
    case = {"queries": queries, "bound": bound}
    assert query_recompute_probability(**case, sigma=plan.noise) <= wanted
    assert query_recompute_probability(**case, sigma=LESS * plan.noise) > wanted
    assert plan.noise < plan.published_noise


@given(st.integers(2, 10**6), st.integers(2, 10**6), st.floats(0.01, 100), WANTED)
def test_noise_of_prefix_sums_is_enough_at_every_size(n: int, size: int, sensitivity: float, wanted: float) -> None:
    size = min(n, size)
    plan = planning.plan_tree(n=n, sensitivity=sensitivity, recompute_probability=wanted)
    case = {"sigma": plan.noise, "sensitivity": sensitivity}
    assert trees.mean_recompute_probability(n=size, **case) <= wanted * (1 + 1e-12)
    assert tree.recompute_probability_up_to(n, gaussian_tv(sensitivity / (LESS * plan.noise))) > wanted
    by_arrival = planning.plan_tree(n=n, sensitivity=sensitivity, recompute_probability=wanted, order="arrival")
    assert tree.worst_recompute_probability(n=size, sigma=by_arrival.noise, sensitivity=sensitivity) <= wanted
    fewer = tree.worst_recompute_probability(n=n, sigma=LESS * by_arrival.noise, sensitivity=sensitivity)
    assert fewer > wanted
    assert plan.noise <= by_arrival.noise * (1 + 1e-12) <= 2 * plan.published_noise


def test_half_a_wanted_share_needs_a_fortieth_of_the_published_noise() -> None:
    plan = planning.plan_tree(n=1024, sensitivity=1.0, recompute_probability=0.5)
    assert plan.published_noise == pytest.approx(160)
    assert plan.noise == pytest.approx(3.27281, rel=5e-6)


@pytest.mark.parametrize("wanted", [0.0, 1.0, -0.1, math.nan])
def test_what_is_no_probability_is_refused(wanted: float) -> None:
    with pytest.raises(ParameterError, match="recompute_probability must lie strictly between 0 and 1"):
        planning.plan_noisy_sgd(n=10, batch_size=2, steps=3, lipschitz=1.0, recompute_probability=wanted)
    with pytest.raises(ParameterError, match="recompute_probability must lie strictly between 0 and 1"):
        planning.plan_tree(n=10, sensitivity=1.0, recompute_probability=wanted)
