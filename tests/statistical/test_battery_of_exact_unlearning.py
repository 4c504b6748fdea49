"""Every mechanism of exact unlearning, model and state, against retraining by the battery; and every wrong variant.

All comparisons of `RUNS` runs that must agree raise a false alarm with probability `battery.FALSE_ALARMS`, together; so
do those of `MANY_RUNS`. Faults are planted at the smaller size, and must be as far as that size tells.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from certified_unlearning.engine.exact import couplings, prefix_tree
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.prefix_tree import PrefixTree
from certified_unlearning.errors import DataError
from certified_unlearning.mechanisms.exact import means, noisy_sgd, subsample_gd
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.one_pass.prefix_sums import PrefixSums
from certified_unlearning.mechanisms.exact.quantized_sgd import QuantizedSgd
from certified_unlearning.mechanisms.exact.queries import linear_queries
from certified_unlearning.mechanisms.exact.queries.linear_queries import LinearQueries
from certified_unlearning.mechanisms.exact.sisa import Shards
from tests.engine.exact import wrong_steps
from tests.mechanisms.exact import wrong_descents
from tests.statistical import battery
from tests.statistical.battery import ACCELERATED, LEFT, MANY_RUNS, MEANS, MECHANISMS, PLAIN, QUANTIZED, RUNS
from tests.support import couplings as wrong_couplings

AFRESH: dict[tuple[str, int], dict[str, Tensor]] = {}
"""Runs that learned what is left, of each mechanism and so many: made once for all tests of this module."""


def afresh(name: str, runs: int = RUNS) -> dict[str, Tensor]:
    if (name, runs) not in AFRESH:
        AFRESH[name, runs] = MECHANISMS[name]().afresh(runs)
    return AFRESH[name, runs]


@pytest.fixture(scope="module", autouse=True)
def _forget():
    yield
    AFRESH.clear()


looked_at: Counter[int] = Counter()
"""How many distances, by the number of runs."""


@pytest.mark.parametrize("runs", [RUNS, pytest.param(MANY_RUNS, marks=pytest.mark.statistical)])
@pytest.mark.parametrize("scenario", battery.SCENARIOS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_model_and_state_have_the_law_of_retraining(name: str, scenario: str, runs: int) -> None:
    own = MECHANISMS[name]()
    found = battery.distances(own.functionals(own.edited(scenario, runs)), afresh(name, runs))
    looked_at[runs] += len(found)
    assert looked_at[runs] <= battery.COMPARISONS
    assert max(found.values()) < battery.critical(runs), found


Patch = Callable[[pytest.MonkeyPatch], Any]


def coupled_by(module: Any, step: Callable[..., Any]) -> Patch:
    return lambda patch: patch.setattr(module, "reflection_step", step)


def nothing(patch: pytest.MonkeyPatch) -> None:
    """The mechanism itself is wrong."""


def bias_of_before(patch: pytest.MonkeyPatch) -> None:
    """An inserted record joins with probability m / n instead of m / (n + 1)."""
    patch.setattr(couplings, "join_probability", lambda free, n: free / (n - 1))


def always_the_same_leaves(patch: pytest.MonkeyPatch) -> None:
    """The member that leaves for an inserted record is not drawn."""
    patch.setattr(
        couplings, "_shuffled_slots", lambda batches, *_: torch.arange(batches.shape[1]).expand(batches.shape)
    )


def anybody_comes(patch: pytest.MonkeyPatch) -> None:
    """A deleted record may be replaced by one that is in the batch already."""

    def replace_first(batches: Tensor, places: Tensor, alive: Any, draws: Draws) -> None:
        batches[:, 0] = alive.ids[draws.integers(len(alive), len(batches))]

    patch.setattr(couplings, "_replace_first", replace_first)


def after_the_first_use(patch: pytest.MonkeyPatch) -> None:
    """Sub-sample-GD goes on after the batch that had the record, instead of with it."""
    right = couplings.first_uses
    patch.setattr(
        subsample_gd, "first_uses", lambda batches, record: right(batches, record).add(1).clamp(max=batches.shape[1])
    )


def never_last(patch: pytest.MonkeyPatch) -> None:
    """Section D.6.2: a new record comes to the place of one that is there, never to the end."""
    patch.setattr(PrefixSums, "_places", lambda self, tree, draws: draws.integers(tree.size, tree.trials) + 1)


def always_last(patch: pytest.MonkeyPatch) -> None:
    """A new record is appended, though the order is random."""
    patch.setattr(PrefixSums, "_places", lambda self, tree, draws: torch.full((tree.trials,), tree.size + 1))


def stale_sums(patch: pytest.MonkeyPatch) -> None:
    """A node that keeps its value keeps its old sum as well."""
    right = PrefixTree._test

    def stale(self: PrefixTree, rows: Tensor, nodes: Tensor, draws: Draws) -> Tensor:
        before = self.sums[rows, nodes]
        accepted = right(self, rows, nodes, draws)
        self.sums[rows[accepted], nodes[accepted]] = before[accepted]
        return accepted

    patch.setattr(PrefixTree, "_test", stale)


def noise_of_leaves(patch: pytest.MonkeyPatch) -> None:
    """All nodes are tested as if they had the noise of leaves."""
    right = PrefixTree._test

    def test(self: PrefixTree, rows: Tensor, nodes: Tensor, draws: Draws) -> Tensor:
        own, self.sigmas = self.sigmas, torch.full_like(self.sigmas, float(self.sigmas[0]))
        accepted = right(self, rows, nodes, draws)
        self.sigmas = own
        return accepted

    patch.setattr(PrefixTree, "_test", test)


def only_leaves(patch: pytest.MonkeyPatch) -> None:
    """Inner nodes get their new sums and are not tested."""
    right = PrefixTree._test

    def leaf_only(self: PrefixTree, rows: Tensor, nodes: Tensor, draws: Draws) -> Tensor:
        inner = nodes % 2 == 0
        self.sums[rows[inner], nodes[inner]] = self._sums_below(rows[inner], nodes[inner]) if inner.any() else 0.0
        accepted = torch.ones_like(inner)
        if not bool(inner.all()):
            accepted[~inner] = right(self, rows[~inner], nodes[~inner], draws)
        return accepted

    patch.setattr(PrefixTree, "_test", leaf_only)


def old_model(patch: pytest.MonkeyPatch) -> None:
    """The model after a rejected node is not made anew."""
    right = PrefixTree._replace

    def replace(self: PrefixTree, *arguments: Any) -> None:
        before = self.models.clone()
        right(self, *arguments)
        self.models = before

    patch.setattr(PrefixTree, "_replace", replace)


def stale_sums_of_queries(patch: pytest.MonkeyPatch) -> None:
    """Where all values are kept, sums are kept as well."""
    right = LinearQueries._edit

    def stale(self: LinearQueries, state: Any, *arguments: Any) -> Any:
        before = state.sums.clone()
        work = right(self, state, *arguments)
        kept = work.recomputations == 0
        state.sums[kept] = before[kept]
        return work

    patch.setattr(LinearQueries, "_edit", stale)


def from_the_next_slice(patch: pytest.MonkeyPatch) -> None:
    """SISA learns again from the slice after the record's."""
    right = Shards.relearn

    def relearn(state: Shards, trial: Tensor, shard: Tensor, first: Tensor, draws: Draws) -> Any:
        edited = len(state.alive) == len(LEFT)
        return right(state, trial, shard, (first + edited).clamp(max=1), draws)

    patch.setattr(Shards, "relearn", relearn)


def of_descent(step: Callable[..., Any], scenario: str = "a deletion") -> tuple[str, str, Patch]:
    return "accelerated noisy SGD", scenario, coupled_by(noisy_sgd, step)


DELETION, INSERTION, STREAM = "a deletion", "an insertion", "three requests"
FAULTS: dict[str, tuple[str, str, Patch]] = {
    "inverted ratio": of_descent(wrong_steps.inverted_ratio),
    "inverted ratio, not accelerated": ("noisy SGD", DELETION, coupled_by(noisy_sgd, wrong_steps.inverted_ratio)),
    "printed reflection, away": of_descent(wrong_steps.moved_away),
    "printed reflection, along": of_descent(wrong_steps.moved_along),
    "redrawn": of_descent(wrong_steps.redrawn),
    "never rejecting": of_descent(wrong_steps.never_rejecting),
    "stale noise": of_descent(wrong_steps.stale_noise),
    "stale noise, insertion": of_descent(wrong_steps.stale_noise, INSERTION),
    "stale noise, stream": of_descent(wrong_steps.stale_noise, STREAM),
    "bias of before": ("noisy SGD", INSERTION, bias_of_before),
    "bias of before, sub-sample-GD": ("sub-sample-GD", INSERTION, bias_of_before),
    "bias of before, lean": ("lean sub-sample-GD", INSERTION, bias_of_before),
    "bias of before, stream": ("quantized SGD", STREAM, bias_of_before),
    "always the same leaves": ("noisy SGD", INSERTION, always_the_same_leaves),
    "a member comes twice": ("noisy SGD", DELETION, anybody_comes),
    "after the first use": ("sub-sample-GD", DELETION, after_the_first_use),
    "fresh offset": (
        "quantized SGD",
        DELETION,
        lambda patch: patch.setattr(QuantizedSgd, "couple", wrong_descents.with_fresh_offset),
    ),
    "cell never left": (
        "quantized SGD",
        DELETION,
        lambda patch: patch.setattr(QuantizedSgd, "couple", wrong_descents.never_leaving),
    ),
    **{
        f"{step.__name__}, tree": ("dual averaging", DELETION, coupled_by(prefix_tree, step))
        for step in wrong_couplings.WRONG
    },
    **{
        f"{step.__name__}, queries": ("federated averaging", DELETION, coupled_by(linear_queries, step))
        for step in wrong_couplings.WRONG
    },
    "bias of before, mean": ("sub-sampled mean", INSERTION, bias_of_before),
    **{
        f"{step.__name__}, mean": ("noisy mean", DELETION, coupled_by(means, step))
        for step in (wrong_couplings.inverted, wrong_couplings.noise_kept)
    },
    "never last": ("dual averaging", INSERTION, never_last),
    "always last": ("dual averaging", INSERTION, always_last),
    "stale sums": ("dual averaging", DELETION, stale_sums),
    "noise of leaves": ("Frank-Wolfe, anytime", DELETION, noise_of_leaves),
    "only leaves": ("dual averaging", DELETION, only_leaves),
    "old model": ("Frank-Wolfe, anytime", DELETION, old_model),
    "stale sums of queries": ("Lloyd", INSERTION, stale_sums_of_queries),
    "from the next slice": ("SISA", DELETION, from_the_next_slice),
}


def largest(own: battery.Mechanism, scenario: str, theirs: dict[str, Tensor]) -> float:
    return max(battery.distances(own.functionals(own.edited(scenario, RUNS)), theirs).values())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_variant_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, scenario, patch = FAULTS[fault]
    theirs = afresh(name)
    patch(monkeypatch)
    assert largest(MECHANISMS[name](), scenario, theirs) > 1.1 * battery.critical(RUNS)


@pytest.mark.parametrize(
    ("wrong", "settings", "name", "scenario"),
    [
        (wrong_descents.WithoutProjection, ACCELERATED, "accelerated noisy SGD", DELETION),
        (wrong_descents.RelearningOnOldData, ACCELERATED, "accelerated noisy SGD", INSERTION),
        (wrong_descents.LastFirst, ACCELERATED, "accelerated noisy SGD", DELETION),
        (wrong_descents.BatchDrawnAnew, PLAIN, "sub-sample-GD", INSERTION),
        (wrong_descents.FromTheStart, QUANTIZED, "quantized SGD", DELETION),
        (wrong_descents.FreshIteration, QUANTIZED, "quantized SGD", DELETION),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_a_wrong_descent_is_caught(wrong: type[ExactDescent], settings: Any, name: str, scenario: str) -> None:
    found = largest(battery.descent(wrong(settings, MEANS)), scenario, afresh(name))
    assert found > 1.1 * battery.critical(RUNS)


def test_the_battery_does_not_see_a_step_from_elsewhere_but_the_invariant_does() -> None:
    """Algorithm 10 steps from ``w`` instead of ``y``: the laws are too close, each run is wrong."""
    own = wrong_descents.WithoutExtrapolation(ACCELERATED, MEANS)
    state = battery.descent(own).edited(DELETION, RUNS)
    found = battery.distances(battery.descent(own).functionals(state), afresh("accelerated noisy SGD"))
    assert max(found.values()) < battery.critical(RUNS)
    with pytest.raises(DataError, match="weights after iteration"):
        own.check(state)


def test_weak_unlearning_has_the_law_of_the_swapped_order_and_not_of_the_closed_one() -> None:
    own = MECHANISMS["dual averaging, weak"]()
    first, ((_, deleted),) = battery.SCENARIOS[DELETION]
    closed = [record for record in first if record != deleted]
    assert sorted(closed) == sorted(LEFT) != closed
    found = largest(own, DELETION, own.afresh(RUNS, closed))
    assert found > 1.1 * battery.critical(RUNS)
