"""What stable methods are compared with."""

import math
from itertools import product

import numpy as np
import pytest

from certified_unlearning.accounting.tv.distances import gaussian_tv
from certified_unlearning.papers.tv_stability.theory import baselines


@pytest.mark.parametrize(("shards", "slices"), [(1, 1), (3, 4), (5, 10)])
def test_shards_by_enumerating_where_the_record_is(shards: int, slices: int) -> None:
    """Stage i of a shard trains on its first i slices; a record of slice i makes stages i to R run again."""
    stages = range(1, slices + 1)
    again = [sum(stage for stage in stages if stage >= first) for _, first in product(range(shards), stages)]
    speedup = shards * sum(stages) / np.mean(again)
    assert baselines.sharding_speedup(shards=shards, slices=slices) == pytest.approx(speedup)
    assert speedup <= 1.5 * shards
    last = shards * sum(stages) / slices
    assert baselines.sharding_speedup(shards=shards, slices=slices, printed=True) == pytest.approx(last)


def test_noisy_means_are_as_stable_as_wanted() -> None:
    sigma = baselines.noisy_mean_sigma(n=100, rho=0.01)
    assert sigma == pytest.approx(0.797885, rel=5e-6)
    assert gaussian_tv(2 / (100 * sigma)) == pytest.approx(0.01, rel=1e-4)
    assert gaussian_tv(2 / (100 * sigma)) <= 0.01
    assert math.isclose(baselines.noisy_mean_sigma(n=200, rho=0.01), sigma / 2)
