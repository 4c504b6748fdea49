"""Removal requests: adjacent data sets, uniform choice, one draw for every stream.

The four statistical tests have a false-alarm rate of 1e-8 each. Seeds are fixed: they fail always or never.
"""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from certified_unlearning.data.prepared import PreparedData
from certified_unlearning.data.requests import Removals, draw_removals
from certified_unlearning.errors import ParameterError

FALSE_ALARM = 1e-8


@pytest.mark.parametrize("adjacency", ["replace", "zero-out"])
@pytest.mark.parametrize("size", [1, 5])
def test_consecutive_data_sets_differ_in_the_requests_records_and_nothing_else(
    small: PreparedData, adjacency: str, size: int
) -> None:
    removals = draw_removals(small, records=20, adjacency=adjacency, seed=3)
    before = small.train_features, small.train_labels
    for removed in range(size, 21, size):
        after = removals.apply(small.train_features, small.train_labels, removed)
        changed = np.flatnonzero((before[0] != after[0]).any(axis=1) | (before[1] != after[1]))
        assert sorted(changed) == sorted(removals.indices[removed - size : removed])
        assert len(changed) == size
        before = after


def test_applying_leaves_the_original_alone(small: PreparedData) -> None:
    digest = small.sha256
    removals = draw_removals(small, records=5, adjacency="replace", seed=3)
    features, labels = removals.apply(small.train_features, small.train_labels, 0)
    features[:], labels[:] = 0, 0
    assert replace(small).sha256 == digest


def test_the_choice_the_replacements_and_their_labels_have_streams_of_their_own(small: PreparedData) -> None:
    """From one stream, the record that is chosen would tell which one comes in its place."""
    streams = [np.random.Generator(np.random.Philox(each)) for each in np.random.SeedSequence(3).spawn(3)]
    choice, gaussian, coin = streams
    drawn = draw_removals(small, records=40, adjacency="replace", seed=3)
    assert np.array_equal(drawn.indices, choice.permutation(40))
    normal = gaussian.standard_normal((40, small.d))
    np.testing.assert_allclose(drawn.features, normal / np.linalg.norm(normal, axis=1, keepdims=True), atol=1e-6)
    assert np.array_equal(drawn.labels, np.array(small.label_values)[coin.integers(2, size=40)])
    assert len({each.integers(2**63) for each in streams}) == 3


@pytest.mark.parametrize("adjacency", ["replace", "zero-out"])
def test_the_first_removals_are_the_same_however_many_are_drawn(small: PreparedData, adjacency: str) -> None:
    most = draw_removals(small, records=40, adjacency=adjacency, seed=3)
    assert sorted(most.indices) == list(range(40))
    for records in (0, 1, 2, 7, 39):
        fewer = draw_removals(small, records=records, adjacency=adjacency, seed=3)
        for name in ("indices", "features", "labels"):
            assert np.array_equal(getattr(fewer, name), getattr(most, name)[:records])


def test_another_seed_draws_other_records_features_and_labels(small: PreparedData) -> None:
    one, other = (draw_removals(small, records=40, adjacency="replace", seed=seed) for seed in (3, 4))
    assert not np.array_equal(one.indices, other.indices)
    assert not np.isclose(one.features, other.features).any()
    assert not np.array_equal(one.labels, other.labels)


def test_replacements_have_norm_one_and_zero_out_keeps_the_label(small: PreparedData) -> None:
    replaced = draw_removals(small, records=40, adjacency="replace", seed=3)
    np.testing.assert_allclose(np.linalg.norm(replaced.features.astype(np.float64), axis=1), 1, atol=1e-6)
    assert (replaced.features.dtype, replaced.labels.dtype) == (np.float32, np.int8)
    assert set(replaced.labels.tolist()) == {-1, 1}
    zeroed = draw_removals(small, records=40, adjacency="zero-out", seed=3)
    assert not zeroed.features.any()
    assert np.array_equal(zeroed.labels, small.train_labels[zeroed.indices])
    assert np.array_equal(zeroed.indices, replaced.indices)


@pytest.mark.parametrize(
    ("records", "adjacency", "message"),
    [
        (41, "replace", "41 records are to be removed, but small has 40 training records"),
        (-1, "replace", "-1 records are to be removed"),
        (1, "delete", "adjacency is 'delete', but must be one of replace, zero-out"),
    ],
)
def test_impossible_requests_are_refused(small: PreparedData, records: int, adjacency: str, message: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(message)):
        draw_removals(small, records=records, adjacency=adjacency, seed=3)


@pytest.mark.parametrize("removed", [-1, 6])
def test_no_more_can_be_applied_than_was_drawn(small: PreparedData, removed: int) -> None:
    removals = draw_removals(small, records=5, adjacency="replace", seed=3)
    with pytest.raises(ParameterError, match=f"{removed} records are to be removed, but only 5 were drawn"):
        removals.apply(small.train_features, small.train_labels, removed)


def choice_p_value(choose: Callable[[int], np.ndarray], n: int, records: int, draws: int) -> float:
    """Chi-square test that each of n records is among the chosen equally often.

    Without replacement the n counts have variance N p (1 - p) and correlation -1 / (n - 1), so that the sum of squares
    over N p (1 - p) n / (n - 1) is chi-square with n - 1 degrees of freedom.
    """
    counts = np.bincount(np.concatenate([choose(seed) for seed in range(draws)]), minlength=n)
    p = records / n
    statistic = np.sum((counts - draws * p) ** 2) / (draws * p * (1 - p) * n / (n - 1))
    return float(stats.chi2.sf(statistic, n - 1))


def test_records_are_chosen_uniformly(small: PreparedData) -> None:
    def choose(seed: int) -> np.ndarray:
        return draw_removals(small, records=5, adjacency="zero-out", seed=seed).indices

    def tail(seed: int) -> np.ndarray:  # What the published code does.
        return np.arange(35, 40)

    def slightly_biased(seed: int) -> np.ndarray:  # Record 0 goes half again as often as it should.
        generator = np.random.default_rng(seed)
        weights = np.where(np.arange(40) == 0, 1.6, 1.0)
        return generator.choice(40, 5, replace=False, p=weights / weights.sum())

    assert choice_p_value(choose, 40, 5, draws=2000) > FALSE_ALARM
    assert choice_p_value(tail, 40, 5, draws=2000) < FALSE_ALARM
    assert choice_p_value(slightly_biased, 40, 5, draws=2000) < FALSE_ALARM


def replacements(small: PreparedData) -> list[Removals]:
    return [draw_removals(small, records=40, adjacency="replace", seed=seed) for seed in range(250)]


def test_replacement_labels_are_a_fair_coin(small: PreparedData) -> None:
    labels = np.concatenate([each.labels for each in replacements(small)])
    assert stats.binomtest(int(np.sum(labels == 1)), labels.size).pvalue > FALSE_ALARM


def test_replacement_labels_of_three_classes_are_uniform_and_do_not_depend_on_the_number_drawn(
    three_classes: PreparedData,
) -> None:
    drawn = [draw_removals(three_classes, records=30, adjacency="replace", seed=seed).labels for seed in range(250)]
    counts = np.bincount(np.concatenate(drawn), minlength=3)
    assert len(counts) == 3
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    assert stats.chisquare(counts + np.array([0, 300, -300])).pvalue < FALSE_ALARM  # A bias of 4 % of the draws.
    fewer = draw_removals(three_classes, records=11, adjacency="replace", seed=3).labels
    assert fewer.dtype == np.int8
    assert np.array_equal(fewer, drawn[3][:11])


def test_replacement_features_have_a_uniform_direction(small: PreparedData) -> None:
    features = np.concatenate([each.features for each in replacements(small)]).astype(np.float64)
    # A coordinate u of a uniform direction in R^5 has (u + 1) / 2 ~ Beta(2, 2). Five coordinates: Bonferroni.
    for column in features.T:
        assert stats.kstest((column + 1) / 2, stats.beta(2, 2).cdf).pvalue > FALSE_ALARM / 5
    uniform = np.random.default_rng(0).uniform(-1, 1, features.shape)  # Directions of a cube, not of a Gaussian.
    uniform /= np.linalg.norm(uniform, axis=1, keepdims=True)
    assert stats.kstest((uniform[:, 0] + 1) / 2, stats.beta(2, 2).cdf).pvalue < FALSE_ALARM / 5
