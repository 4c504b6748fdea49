"""As many edits compute again as exact formulas say: for every mechanism, over streams, counted.

Where gaps depend on models there is no closed form; then the probability is averaged along learned runs, given what was
drawn: a value stays with probability ``min(1, ratio)``. Elsewhere tested: noisy descent in closed form
(`test_noisy_sgd`), averages over all deletions of descent (`test_expected`), queries and prefix sums with constant gaps
(`queries`, `one_pass`), means (`test_means`), shards (`test_sisa`), by enumeration `test_without_noise`.

All comparisons: 6 standard errors, false-alarm rate 2e-9 each, 2e-8 together.
"""

import math
from collections.abc import Callable
from statistics import fmean
from typing import Any

import pytest
import torch
from torch import Tensor

from certified_unlearning.accounting.tv import tree as theory
from certified_unlearning.accounting.tv.distances import gaussian_tv
from certified_unlearning.accounting.tv.subsampling import subsampling_tv
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import GivenRecords
from certified_unlearning.engine.exact.prefix_tree import PrefixTree
from certified_unlearning.engine.exact.reflection import log_density_ratio
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.lean_subsample_gd import LeanSubsampleDescent
from certified_unlearning.mechanisms.exact.noisy_sgd import NoisySgd
from certified_unlearning.mechanisms.exact.one_pass.prefix_sums import PrefixSums, PrefixSumSettings
from certified_unlearning.mechanisms.exact.quantized_sgd import QuantizedSgd
from certified_unlearning.mechanisms.exact.queries.linear_queries import LinearQueries, LinearQuerySettings
from certified_unlearning.mechanisms.exact.queries.lloyd import Lloyd
from certified_unlearning.mechanisms.exact.subsample_gd import SubsampleDescent, SubsampleGd
from certified_unlearning.papers.tv_stability.theory import trees
from certified_unlearning.papers.tv_stability.theory.batch_edits import insertion_tv
from certified_unlearning.papers.tv_stability.theory.stability import recourse_bound
from tests.statistical import battery
from tests.support.prefix_sums import ClippedMeans

RUNS = 40_000
VALUES = torch.tensor([0.0, 0.3, -0.5, 1.2, 2.0, -1.0, 0.7, -1.4, 0.9], dtype=torch.float64)
RECORDS = GivenRecords(lambda w, z: w[:, None, :] - z[..., None], VALUES, dimension=1)
STREAM = [("delete", 4), ("insert", 7), ("delete", 5), ("insert", 8), ("delete", 7)]
SHAPE: dict[str, Any] = {"steps": 4, "batch_size": 2}


def off(counts: Tensor, expected: float) -> float:
    """Standard errors by which the mean of counts differs from what is expected."""
    return abs(float(counts.double().mean()) - expected) / (float(counts.double().std()) / math.sqrt(len(counts)))


@pytest.mark.parametrize(
    "own",
    [
        SubsampleDescent(SubsampleGd(**SHAPE, step_size=0.4), RECORDS),
        LeanSubsampleDescent(SubsampleGd(**SHAPE, step_size=0.4), RECORDS),
        ExactDescent(NoisySgd(**SHAPE, step_size=0.4, sigma=0.0), RECORDS),
    ],
    ids=["plain", "lean", "noisy with sigma = 0"],
)
def test_a_stream_of_plain_descent_computes_again_as_often_as_batches_have_the_record(own: Any) -> None:
    state, n, total, expected = own.learn(torch.arange(7), Draws(1), trials=RUNS), 7, torch.zeros(RUNS), 0.0
    for number, (kind, record) in enumerate(STREAM):
        due = subsampling_tv(n=n, **SHAPE) if kind == "delete" else insertion_tv(n=n, **SHAPE)
        n += 1 if kind == "insert" else -1
        counts = getattr(own, kind)(state, record, Draws.at("plain", number)).recomputations
        assert off(counts, due) < 6
        total, expected = total + counts, expected + due
    assert off(total, expected) < 6
    # Proposition 6, with rho of the fewest records that there were: five edits compute again no more often than this.
    assert expected <= recourse_bound(rho=subsampling_tv(n=6, **SHAPE), edits=5) / 2


def test_a_stream_of_quantized_descent_computes_again_as_often_as_cells_are_left() -> None:
    """Gaps do not depend on weights here: Lemma 31, exactly."""
    own = ExactDescent(QuantizedSgd(**SHAPE, step_size=0.4, quantum=1.3), RECORDS)
    state, present = own.learn(torch.arange(7), Draws(1), trials=RUNS), list(range(7))
    for number, (kind, record) in enumerate(STREAM):
        others = [each for each in present if each != record]
        moved = fmean(min(1.0, abs(float(VALUES[each] - VALUES[record])) / 2 / 1.3) for each in others)
        size = len(present) + (kind == "insert")
        expected = 1 - (1 - 2 / size * moved) ** 4
        counts = getattr(own, kind)(state, record, Draws.at("quantized", number)).recomputations
        assert off(counts, expected) < 6
        present = [*present, record] if kind == "insert" else others


def test_linear_queries_whose_gaps_depend_on_the_model() -> None:
    own = LinearQueries(Lloyd(battery.POINTS, battery.CENTRES, row_norm=2.3), LinearQuerySettings(steps=3, sigma=1.2))
    for sign, kind, ids, record in [(-1, "delete", range(7), 4), (1, "insert", range(6), 6)]:
        run, _ = own.learn(torch.tensor(list(ids)), RUNS, Draws.at("lloyd", kind))
        kept = torch.zeros(RUNS, dtype=torch.float64)
        for step in range(3):
            part = own.method.sums(step + 1, run.models[:, step], torch.tensor([record]))
            old = run.sums[:, step]
            kept += log_density_ratio(run.noisy[:, step], old, old + sign * part, 1.2).clamp(max=0)
        expected = 1 - kept.exp()
        fresh, _ = own.learn(torch.tensor(list(ids)), RUNS, Draws.at("lloyd again", kind))
        counts = getattr(own, kind)(fresh, record, Draws.at("lloyd edit", kind)).recomputations.double()
        error = math.sqrt(float(expected.var() + counts.var()) / RUNS)
        assert abs(float(expected.mean() - counts.mean())) < 6 * error


@pytest.mark.parametrize(
    "make",
    [lambda: PrefixSums(battery.hinges(), battery.tree_settings()), battery.anytime],
    ids=["dual averaging", "Frank-Wolfe, anytime"],
)
def test_prefix_sums_whose_gaps_depend_on_the_model(make: Callable[[], PrefixSums]) -> None:
    own, record, size = make(), 4, 7
    state, _ = own.learn(torch.arange(size), RUNS, Draws.at("tree"))
    expected = _expected_rejection(own, state, record)
    fresh, _ = own.learn(torch.arange(size), RUNS, Draws.at("tree", "again"))
    counts = own.delete(fresh, record, Draws.at("tree", "edit")).recomputations.double()
    assert 0.05 < float(counts.mean()) < 0.95
    error = math.sqrt(float(expected.var() + counts.var()) / RUNS)
    assert abs(float(expected.mean() - counts.mean())) < 6 * error


def _expected_rejection(own: PrefixSums, state: PrefixTree, record: int) -> Tensor:
    """Return how likely a deletion rejects, for each learned run, given its noise."""
    position = (state.order[:, 1:] == record).int().argmax(dim=1) + 1
    rows = torch.arange(state.trials)
    models, previous = state.models[rows, position], state.models[rows, position - 1]
    new = own.learner.increments(position, models, previous, state.order[:, state.size])
    change = new - state.increments[rows, position]
    kept = torch.zeros(state.trials, dtype=torch.float64)
    for node in range(1, state.size):
        above = torch.tensor([node in trees.nodes_of_position(each, node) for each in range(1, state.size + 1)])
        old, sigma = state.sums[:, node], float(state.sigmas[(node & -node).bit_length() - 1])
        ratio = log_density_ratio(state.noisy[:, node], old, old + change, sigma)
        kept += torch.where(above[position - 1], ratio.clamp(max=0), 0.0)
    return 1 - kept.exp()


class Fixed(ClippedMeans):
    """Increments are the records' values, whatever the model."""

    def increments(self, positions: Tensor, models: Tensor, previous: Tensor, records: Tensor) -> Tensor:
        return self.values[records][:, None]


@pytest.mark.parametrize("budget", ["printed", "quadratic", "equal"])
def test_a_stream_with_noise_by_height(budget: theory.Budget) -> None:
    """Records are alike but one; it comes and goes while the tree grows over a power of 2."""
    settings = PrefixSumSettings.anytime(budget, rho=0.8, sensitivity=1.0, most_records=15)
    own = PrefixSums(Fixed([0.0] * 10 + [1.0] * 3, step=1, largest=1, radius=1), settings)
    state, _ = own.learn(torch.arange(6), RUNS, Draws.at("heights", budget))
    taus = [gaussian_tv(1.0 / sigma) for sigma in settings.sigmas]
    counts, expected = torch.zeros(RUNS), 0.0
    for number, (kind, record, size) in enumerate(
        [("insert", 10, 7), ("insert", 6, 8), ("insert", 7, 9), ("delete", 10, 9), ("insert", 11, 9), ("delete", 11, 9)]
    ):
        work = getattr(own, kind)(state, record, Draws.at("heights", budget, number))
        if record >= 10:
            due = trees.recompute_probability_of_taus(taus, n=size)
            assert due <= 0.8
            assert off(work.recomputations, due) < 6
            counts, expected = counts + work.recomputations, expected + due
        elif number == 1:
            # A like record moves nothing but where it takes the place of the one that differs, which goes to the end.
            assert float(work.recomputations.double().mean()) < due
    assert off(counts, expected) < 6
