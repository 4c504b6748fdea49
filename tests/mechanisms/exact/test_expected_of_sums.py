"""Average costs of deletions from noisy sums, along what was learned, against deletions that were made and counted.

Within 6 standard errors: 12 comparisons, a false alarm once in 4e7 seeds.
"""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.exact.expected import ExpectedWork
from certified_unlearning.mechanisms.exact.one_pass import expected as of_prefix_sums
from certified_unlearning.mechanisms.exact.one_pass.expected import expected_deletion_of_prefix_sums
from certified_unlearning.mechanisms.exact.one_pass.prefix_sums import PrefixSums, PrefixSumSettings
from certified_unlearning.mechanisms.exact.queries import expected as of_queries
from certified_unlearning.mechanisms.exact.queries.expected import expected_deletion_of_queries
from certified_unlearning.mechanisms.exact.queries.full_batches import FullBatches, FullBatchSettings
from certified_unlearning.mechanisms.exact.queries.linear_queries import LinearQueries, LinearQuerySettings
from certified_unlearning.papers.tv_stability.theory import trees
from tests.statistical import battery
from tests.support.prefix_sums import ClippedMeans

TRIALS, COUNTED = 1500, 20_000
FIELDS = ("gradients", "rejection_tests", "recompute_probability", "iterations_run_again")
FULL = FullBatches(battery.MEANS, FullBatchSettings(0.5, 7, radius=1.0))


def queries() -> LinearQueries:
    return LinearQueries(FULL, LinearQuerySettings(4, 2.0))


SYSTEMS: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], ExpectedWork]]] = {
    "dual averaging": (
        lambda: PrefixSums(battery.hinges(), battery.tree_settings()),
        expected_deletion_of_prefix_sums,
    ),
    "Frank-Wolfe, anytime": (battery.anytime, expected_deletion_of_prefix_sums),
    "full batches": (queries, lambda own, state: expected_deletion_of_queries(own, state, FULL.parts)),
}


def standard_errors_apart(name: str) -> list[float]:
    """Return how far averages are from counts of deletions of every record, in standard errors."""
    make, averages = SYSTEMS[name]
    own, ids = make(), torch.arange(7)
    computed = averages(own, own.learn(ids, TRIALS, Draws.at(name))[0])
    counted: dict[str, list[Tensor]] = {field: [] for field in FIELDS}
    for record in range(7):
        state, _ = own.learn(ids, COUNTED, Draws.at(name, record))
        work = own.delete(state, record, Draws.at(name, record, "edit"))
        for field in FIELDS:
            counted[field].append(getattr(work, field.replace("recompute_probability", "recomputations")).double())
    apart = []
    for field in FIELDS:
        average, counts = getattr(computed, field), torch.stack(counted[field])
        variance = float(average.var()) / TRIALS + float((counts.var(dim=1) / COUNTED).mean()) / len(counts)
        apart.append(abs(float(average.mean() - counts.mean())) / math.sqrt(variance))
    return apart


@pytest.mark.parametrize("name", SYSTEMS)
def test_averages_are_those_of_deletions_that_were_made(name: str) -> None:
    assert max(standard_errors_apart(name)) < 6


@pytest.mark.parametrize(
    ("name", "module"), [("dual averaging", of_prefix_sums), ("full batches", of_queries)], ids=["tree", "queries"]
)
def test_a_test_of_too_little_noise_is_seen(name: str, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = module.log_density_ratio
    monkeypatch.setattr(module, "log_density_ratio", lambda value, old, new, sigma: right(value, old, new, 0.8 * sigma))
    assert max(standard_errors_apart(name)) > 10


def test_where_gaps_are_the_same_the_average_is_that_of_theory() -> None:
    """Records alike but one, of which increments are the values: over all records, 2 of 8 deletions move a sum."""

    class Fixed(ClippedMeans):
        def increments(self, positions: Tensor, models: Tensor, previous: Tensor, records: Tensor) -> Tensor:
            return self.values[records][:, None]

    own = PrefixSums(Fixed([0.0] * 7 + [0.5], step=1, largest=1, radius=1), PrefixSumSettings.equal(1, most_records=8))
    work = expected_deletion_of_prefix_sums(own, own.learn(torch.arange(8), TRIALS, Draws.at("theory"))[0])
    # The record itself, or another one while it stands last and comes into its place.
    one = trees.mean_recompute_probability(n=8, sigma=1.0, sensitivity=0.5)
    found = work.recompute_probability
    assert abs(float(found.mean()) - 2 * one / 8) < 6 * float(found.std()) / math.sqrt(TRIALS)


def test_what_has_no_average_is_refused() -> None:
    tree = PrefixSums(battery.hinges(), PrefixSumSettings.equal(1.0, most_records=7, order="arrival"))
    quiet = PrefixSums(battery.hinges(), PrefixSumSettings.equal(0.0, most_records=7))
    for own in (tree, quiet):
        with pytest.raises(ParameterError, match="in random order, with noise at every height"):
            expected_deletion_of_prefix_sums(own, own.learn(torch.arange(5), 2, Draws(1))[0])
    without = LinearQueries(FULL, LinearQuerySettings(4, 0.0))
    with pytest.raises(ParameterError, match="two or more records, if sums have noise"):
        expected_deletion_of_queries(without, without.learn(torch.arange(5), 2, Draws(1))[0], FULL.parts)
