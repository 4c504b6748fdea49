"""Likelihood-ratio attacks: leaks are found, exact removals are not, and the list of hard records is kept secret."""

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier

from certified_unlearning import CertifiedLogisticRegression, CertifiedRidge
from certified_unlearning.audit import AttackResult, attack_scores, likelihood_ratio_attack
from certified_unlearning.errors import DataError, ParameterError
from tests.audit.conftest import Records

C = 100 / 1797


def nothing(model: Any, X: NDArray[Any], y: NDArray[Any], gone: NDArray[Any]) -> Any:
    """Planted: a removal that does nothing."""
    return model


def refit(model: Any, X: NDArray[Any], y: NDArray[Any], gone: NDArray[Any]) -> Any:
    return model.fit(np.delete(X, gone, axis=0), np.delete(y, gone))


def mislabelled(digits: Records, records: int = 20) -> dict[str, Any]:
    """Return 300 records, of which the first have wrong labels."""
    X, y = digits.X[:300], digits.y[:300].copy()
    y[:records] = 1 - y[:records]
    return {"X": X, "y": y, "records": np.arange(records)}


def gaussian(mu: float, models: int, records: int = 50, seed: int = 0) -> AttackResult:
    """Attack a Gaussian mechanism: means of their own for all records, and a shift of those that were unlearned."""
    rng = np.random.default_rng(seed)
    unlearned = np.argsort(rng.random((models, records)), axis=1) < records // 2
    means, scales = 5 * rng.standard_normal(records), rng.uniform(1, 3, records)
    return attack_scores(means + scales * (rng.standard_normal((models, records)) + mu * unlearned), unlearned)


@pytest.mark.parametrize("mu", [0.0, 1.0, 2.0])
def test_a_gaussian_mechanism_shows_what_the_best_attack_does(mu: float) -> None:
    """AUC = Phi(mu / sqrt(2)), TPR = Phi(Phi^-1(FPR) + mu). Intervals of 95 %, seeded."""
    found = gaussian(mu, 4000)
    assert found.area.low <= stats.norm.cdf(mu / 2**0.5) <= found.area.high
    assert found.area.high - found.area.low < 0.02
    for rate in (0.01, 0.001):
        measured = found.true_positives(rate)
        assert measured is not None
        assert measured.low <= stats.norm.cdf(stats.norm.ppf(rate) + mu) <= measured.high


def test_intervals_of_models_that_forgot_hold_one_half() -> None:
    """95 % of them should: of 200, 26 or more that do not would have probability 1e-5 at .05. Seeded."""
    areas = [gaussian(0.0, 64, records=20, seed=seed).area for seed in range(200)]
    assert sum(not each.low <= 0.5 <= each.high for each in areas) <= stats.binom.isf(1e-5, 200, 0.05)
    assert abs(np.mean([each.value for each in areas]) - 0.5) < 0.01


def test_models_that_are_attacked_say_nothing_of_what_is_usual() -> None:
    """Planted: Gaussians of the attacked models themselves find much where there is nothing. Seeded."""
    rng = np.random.default_rng(1)
    scores, unlearned = rng.standard_normal((40, 200)), rng.random((40, 200)) < 0.5
    honest = attack_scores(scores, unlearned)
    assert honest.area.low < 0.5 < honest.area.high
    twice = attack_scores(np.tile(scores[20:], (2, 1)), np.tile(unlearned[20:], (2, 1)))
    assert twice.area.low > 0.55
    other = attack_scores(np.concatenate([scores[:20] + 100, scores[20:]]), unlearned)
    np.testing.assert_array_equal(other.after.positive, honest.after.positive)
    assert (honest.fitted, honest.models) == (20, 20)


def test_removals_that_do_nothing_are_found_and_fits_from_zero_are_not(digits: Records) -> None:
    """A nearest neighbour knows its records by heart. Intervals of fits from zero miss .5 in one of twenty; seeded."""
    leak = likelihood_ratio_attack(KNeighborsClassifier(1), **mislabelled(digits), unlearn=nothing, models=32)
    assert leak.area.value > 0.99
    assert leak.area == leak.area_before
    honest = likelihood_ratio_attack(
        LogisticRegression(C=1000), **mislabelled(digits), unlearn=refit, models=64, random_state=0
    )
    assert honest.area.low <= 0.5 <= honest.area.high
    assert honest.area_before is not None
    assert honest.area_before.low > 0.9


class Forgetful(CertifiedRidge):
    """Planted: a removal that changes nothing but the noise."""

    def _without(self, gone_rows, gone_labels):
        return self._model, "none"


def test_our_estimators_are_attacked_as_they_learn_and_unlearn(digits: Records) -> None:
    """An honest interval ends .044 on either side: it is above .55 with probability 2e-5. Twice."""
    found = likelihood_ratio_attack(CertifiedLogisticRegression(C=C), *digits, records=20, models=64)
    assert found.area.low < 0.55
    assert "CertifiedLogisticRegression: 20 records" in str(found)
    targets = digits.X @ np.random.default_rng(0).standard_normal(64)
    targets[:40] = np.where(np.arange(40) % 2, 3, -3)
    given = {"alpha": 1, "target_range": (-3, 3), "sigma": 1e-4}
    planted, honest = (
        likelihood_ratio_attack(each(**given), digits.X, targets, records=np.arange(40), models=64)
        for each in (Forgetful, CertifiedRidge)
    )
    assert planted.area.low > 0.7
    assert honest.area.low < 0.55
    assert honest.area_before is not None
    assert honest.area_before.low > 0.7


def test_methods_of_ones_own_are_attacked_by_a_confidence_of_ones_own(digits: Records) -> None:
    seen = []

    def learn(X: NDArray[Any], y: NDArray[Any]) -> Any:
        return Ridge(alpha=0.01).fit(X, y)

    def confidence(model: Any, X: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
        seen.append(len(X))
        return -np.abs(model.predict(X) - y)

    given = mislabelled(digits)
    found = likelihood_ratio_attack(learn=learn, unlearn=nothing, confidence=confidence, **given, models=32)
    assert found.area.low > 0.8
    assert seen == [20] * 64


def test_half_of_the_records_are_learned_and_removed_by_each_model(digits: Records) -> None:
    rows = []

    def learn(X: NDArray[Any], y: NDArray[Any]) -> int:
        rows.append(X[280:])
        return 0

    def unlearn(model: int, X: NDArray[Any], y: NDArray[Any], gone: NDArray[Any]) -> int:
        assert gone.tolist() == list(range(280, 290))
        assert (X[:280] == digits.X[20:300]).all()
        return model

    likelihood_ratio_attack(
        learn=learn, unlearn=unlearn, **mislabelled(digits), models=16,
        confidence=lambda model, X, y: np.random.default_rng(len(rows)).random(20),
    )  # fmt: skip
    learned = np.array([[(each == row).all(axis=1).any() for row in digits.X[:20]] for each in rows])
    assert (learned.sum(axis=1) == 10).all()
    # Those that are not attacked come in pairs, which have all records together.
    assert (learned[0:8:2] ^ learned[1:8:2]).all()


@pytest.mark.parametrize(
    ("estimator", "given"),
    [
        (CertifiedLogisticRegression(C=C), {}),
        (ExtraTreesClassifier(5), {"unlearn": refit}),
        (LogisticRegression(C=1000), {"unlearn": nothing}),
    ],
)
def test_a_seed_repeats_an_attack(estimator: Any, given: dict[str, Any], digits: Records) -> None:
    given = mislabelled(digits) | {"models": 16} | given
    first, second, other = (likelihood_ratio_attack(estimator, **given, random_state=seed) for seed in (1, 1, 2))
    assert first.to_dict(records=5) == second.to_dict(records=5)
    assert first.area != other.area
    assert estimator.get_params()["random_state"] is None


def test_models_of_an_attack_do_not_share_their_noise(digits: Records) -> None:
    """Planted: with one seed for all models an exact removal with noise would leave equal scores."""
    found = likelihood_ratio_attack(CertifiedLogisticRegression(C=C), **mislabelled(digits), models=16, random_state=1)
    assert len(np.unique(found.after.scores)) == found.after.scores.size


def test_which_records_are_hardest_to_forget_is_told_only_to_those_that_ask(digits: Records, tmp_path: Path) -> None:
    y, records = digits.y.copy(), np.arange(1301, 1321)
    y[records[:5]] = 1 - y[records[:5]]  # Their neighbours say otherwise, so these five are hard.
    given = {"records": records, "unlearn": nothing, "models": 64}
    # Seeded, because with 64 models the lower end below is at most 0.7 in one draw of thirty.
    found = likelihood_ratio_attack(KNeighborsClassifier(1), digits.X, y, **given, random_state=1)
    hardest = found.hardest_records(5)
    assert {each.record for each in hardest} == set(records[:5].tolist())
    assert hardest[0].area is not None
    assert hardest[0].area.low > 0.7
    said = f"{found!s} {found!r} {json.dumps(found.to_dict())} {found.secret!r}"
    # Whole numbers only: the digits of 0.9130434 are no record's.
    assert not set(re.findall(r"(?<![\d.])\d+(?!\.?\d)", said)) & {str(each) for each in records}
    assert "because it identifies people: hardest_records() returns it" in str(found)
    path = tmp_path / "attack.json"
    path.touch(mode=0o644)
    old = os.umask(0)
    try:
        found.save(path, records=5)
        assert path.stat().st_mode & 0o777 == 0o600
        saved = json.loads(path.read_text())
        assert [each["record"] for each in saved["hardest_records"]] == [each.record for each in hardest]
        assert "Keep it secret" in saved["warning"]
        found.save(path)
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text()) == found.to_dict()


def test_an_attack_is_called_an_attack_and_proves_nothing() -> None:
    found = gaussian(0.0, 200)
    said = str(found)
    assert said.startswith("attack (no bound): area under the curve 0.")
    assert "at a false-positive rate of 1.0%, " in said
    assert "at a false-positive rate of 0.1%: too few models to say" in said
    assert "An attack that finds nothing proves nothing" in said
    assert "passed" not in said
    after = found.to_dict()["after"]
    assert after["true_positives_at_false_positives"]["0.001"] is None
    assert after["true_positives_at_false_positives"]["0.01"] == found.true_positives(0.01)._asdict()
    assert found.true_positives(0.001) is found.true_positives(before=True) is None


def test_a_result_is_drawn_on_logarithmic_axes_with_its_intervals() -> None:
    found = gaussian(1.0, 400)
    axes = found.plot()
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_title() == "the given models: likelihood-ratio attack"
    drawn = {line.get_label(): line for line in axes.get_lines()}
    at, rates = drawn["after unlearning"].get_data()
    assert (np.diff(rates) >= 0).all()
    assert rates[np.searchsorted(at, 0.1)] > 0.3
    assert len(axes.collections) == 1
    assert "95% interval" in axes.get_legend().get_title().get_text()
    assert axes.get_xlabel().startswith("false positives")
    assert found.plot(axes) is axes


MODELS, KINDS = np.zeros((16, 3)), np.tile([[True, False, True], [False, True, False]], (8, 1))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"X": None}, ParameterError, "give X and y"),
        ({"unlearn": None}, ParameterError, "cannot unlearn: give a function `unlearn"),
        ({"models": 15}, ParameterError, "models must be"),
        ({"attacked": 1.0}, ParameterError, "attacked must lie"),
        (
            {"records": 1},
            ParameterError,
            "must be from 2 to 1796, because X has 1797 records and some of them must stay; got 1",
        ),
        ({"records": 1797}, ParameterError, "got 1797"),
        ({"records": 2.5}, ParameterError, "got 2.5"),
        ({"records": [3, 5, 3]}, DataError, "record 3 is named twice"),
        ({"records": [3, 1797]}, DataError, "positions from 0 to 1796"),
        (
            {"y": np.maximum(2 - np.arange(1797) // 2, 0), "records": [0, 1]},
            DataError,
            "have the class 2, which no other",
        ),
        ({"request_size": 0}, ParameterError, "request_size"),
        ({"confidence": lambda model, X, y: np.zeros(3)}, DataError, "each of the 50 records, got shape"),
        ({"confidence": lambda model, X, y: np.full(50, np.inf)}, DataError, "with inf"),
        ({"unlearn": lambda *_: None}, ParameterError, "got None"),
    ],
)
def test_what_no_attack_can_be_is_refused_in_a_sentence(
    given: dict[str, Any], error: type[Exception], words: str, digits: Records
) -> None:
    with pytest.raises(error, match=words):
        likelihood_ratio_attack(
            LogisticRegression(), **{"X": digits.X, "y": digits.y, "unlearn": nothing, "models": 16} | given
        )


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"scores": MODELS[:15]}, DataError, "at least 16 models"),
        ({"scores": MODELS[:, 0]}, DataError, "shape"),
        ({"unlearned": KINDS * 1.0}, DataError, "True or False for each of the scores"),
        ({"unlearned": KINDS[:, :2]}, DataError, "True or False for each of the scores"),
        ({"before": MODELS[:, :2]}, DataError, "`before` must have the same shape as `scores`"),
        ({"scores": MODELS * np.nan}, DataError, "`scores` must hold finite numbers, got nan"),
        ({"before": MODELS + np.inf}, DataError, "`before` must hold finite numbers, got inf"),
        ({"unlearned": np.ones((16, 3), dtype=bool)}, DataError, "two models that unlearned it, and two"),
        ({"unlearned": np.arange(16)[:, None] < [6, 6, 6]}, DataError, "at least 4 models with positive records"),
        ({"attacked": 0.0}, ParameterError, "attacked must lie"),
    ],
)
def test_scores_that_cannot_be_attacked_are_refused_in_a_sentence(
    given: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        attack_scores(**{"scores": MODELS, "unlearned": KINDS} | given)
