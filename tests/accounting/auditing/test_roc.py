"""Areas and rates as scikit-learn computes them, and intervals that count models, not observations."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import roc_auc_score, roc_curve

from certified_unlearning.accounting.auditing.roc import Roc
from certified_unlearning.errors import DataError


def gaussian(
    models: int, records: int, mu: float, rng: np.random.Generator, shared: float = 0.0, *, whole: bool = False
) -> Roc:
    """Scores of variance 1, those of positives shifted by ``mu``, with a share of the variance that is each model's.

    Positive is half of the records of each model, or all records of every second model.
    """
    positive = np.argsort(rng.random((models, records)), axis=1) < records // 2
    if whole:
        positive = np.tile(np.arange(models)[:, None] % 2 == 0, records)
    own, of_model = rng.standard_normal((models, records)), rng.standard_normal((models, 1))
    return Roc(np.sqrt(1 - shared) * own + np.sqrt(shared) * of_model + mu * positive, positive)


@pytest.mark.parametrize("decimals", [1, 8])
def test_areas_and_rates_are_those_of_scikit_learn_with_equal_scores_too(decimals: int) -> None:
    found = gaussian(40, 30, 1.0, np.random.default_rng(0))
    found = Roc(found.scores.round(decimals), found.positive)
    labels, scores = found.positive.ravel(), found.scores.ravel()
    assert found.area().value == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)
    false_positives, true_positives, _ = roc_curve(labels, scores, drop_intermediate=False)
    for rate in (0.05, 0.1, 0.5):
        expected = true_positives[false_positives <= rate].max()
        measured = found.rate(rate)
        assert measured is not None
        assert measured.value == pytest.approx(expected)
        assert measured.low <= measured.value <= measured.high


@pytest.mark.parametrize("mu", [0.0, 0.5, 1.0, 2.0])
def test_a_gaussian_shift_has_the_area_and_the_rates_that_are_computed(mu: float) -> None:
    """100 000 observations of 1000 models; intervals of 1e-6 each, about. Seeded."""
    found = gaussian(1000, 100, mu, np.random.default_rng(1))
    area = found.area(1e-6)
    assert area.low <= stats.norm.cdf(mu / 2**0.5) <= area.high
    assert area.high - area.low < 0.03
    for rate in (0.01, 0.001):
        measured = found.rate(rate, 1e-6)
        assert measured is not None
        assert measured.low <= stats.norm.cdf(stats.norm.ppf(rate) + mu) <= measured.high
        assert measured.high - measured.low < 0.2


def missed(mu: float, audits: int, *, shared: float, whole: bool, by_model: bool = True) -> NDArray[Any]:
    """Return how many intervals of 95 % miss the area, and how many the rate at 20 % false positives."""
    rng, found = np.random.default_rng(2), np.zeros(2, dtype=int)
    area, rate = stats.norm.cdf(mu / 2**0.5), stats.norm.cdf(stats.norm.ppf(0.2) + mu)
    for _ in range(audits):
        roc = gaussian(40, 40, mu, rng, shared, whole=whole)
        if not by_model:  # Planted: every observation counts as a model of its own.
            roc = Roc(roc.scores.reshape(-1, 1), roc.positive.reshape(-1, 1))
        measured = roc.area(), roc.rate(0.2)
        assert measured[1] is not None
        found += [not each.low <= truth <= each.high for each, truth in zip(measured, (area, rate), strict=True)]
    return found


SOME = {"shared": 0.3, "whole": False}
WHOLE = {"shared": 0.3, "whole": True}


@pytest.mark.parametrize(
    ("mu", "audits", "layout"),
    [
        (1.0, 100, SOME),
        (1.0, 100, WHOLE),
        *(pytest.param(mu, 1000, each, marks=pytest.mark.statistical) for mu in (0.0, 2.0) for each in (SOME, WHOLE)),
    ],
)
def test_intervals_miss_the_truth_as_rarely_as_they_say(mu: float, audits: int, layout: dict[str, Any]) -> None:
    """.05 of them, and .02 more for what is approximate: more than tested have probability 1e-6 then."""
    assert (missed(mu, audits, **layout) <= stats.binom.isf(1e-6, audits, 0.07)).all()


def test_intervals_that_take_observations_of_a_model_for_independent_ones_miss_the_truth() -> None:
    """Planted. Seeded."""
    assert (missed(1.0, 100, **WHOLE, by_model=False) > stats.binom.isf(1e-6, 100, 0.07)).all()


def test_where_all_models_agree_models_are_counted() -> None:
    positive = np.tile([True, False], (30, 10))
    area = Roc(positive * 1.0, positive).area()
    assert (area.value, area.high) == (1.0, 1.0)
    assert area.low == pytest.approx(0.025 ** (1 / 30))
    assert Roc(1.0 - positive, positive).area()[::2] == (0.0, pytest.approx(1 - 0.025 ** (1 / 30)))
    assert Roc(np.zeros(positive.shape), positive).area().value == 0.5


def test_rates_are_left_out_where_there_are_too_few_negatives() -> None:
    """At 1 % false positives and 95 % it takes ln(80) / .01 = 438 independent ones."""
    rng = np.random.default_rng(3)
    assert gaussian(40, 20, 1.0, rng).rate(0.01) is None
    assert gaussian(400, 20, 1.0, rng).rate(0.01) is not None
    assert gaussian(400, 20, 1.0, rng).rate(0.0001) is None


def test_too_few_models_are_refused() -> None:
    positive = np.tile([True, False], (3, 10))
    with pytest.raises(DataError, match="at least 4 models with positive records"):
        Roc(positive * 1.0, positive)
