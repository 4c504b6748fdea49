"""A fit of more than ten seconds is announced before it begins, with what takes less."""

import re
import warnings

import numpy as np
import pytest
from numpy.typing import NDArray

from certified_unlearning import (
    CertifiedLogisticRegression,
    CertifiedRidge,
    LangevinLogisticRegression,
    LangevinRidge,
    SecretStateDescentToDelete,
)
from certified_unlearning.estimators import advice

pytestmark = pytest.mark.filterwarnings("ignore:little can be learned")


def records(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rows = np.random.default_rng(0).standard_normal((n, 5))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, np.sign(rows[:, 0])


def said_by(model: object, n: int) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*records(n))  # type: ignore[attr-defined]
    assert all(each.filename == __file__ for each in caught)
    return [str(each.message) for each in caught if "learning will take" in str(each.message)]


@pytest.fixture
def planned_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is learned: what is said comes before."""
    for made in (LangevinLogisticRegression, LangevinRidge, SecretStateDescentToDelete):
        monkeypatch.setattr(made, "_learn_from", lambda *_: None)


@pytest.mark.usefixtures("planned_only")
@pytest.mark.parametrize(
    ("model", "advised"),
    [
        (LangevinLogisticRegression(), r"such as C = 0\.0005, needs fewer, and CertifiedLogisticRegression needs no"),
        (LangevinLogisticRegression(C=10, batch_size=None), "needs fewer, and CertifiedLogisticRegression needs no"),
        (SecretStateDescentToDelete(), "such as C = 0.0005, needs fewer, and CertifiedLogisticRegression"),
        (LangevinRidge(target_range=(-1, 1)), "0.01 to 0.1, such as alpha = 2e[+]03, needs fewer, and CertifiedRidge"),
    ],
)
def test_a_long_fit_says_how_long_and_what_takes_less(model: object, advised: str) -> None:
    (said,) = said_by(model, 200_000)
    assert re.match(r"learning will take about \d+ (seconds|minutes?|hours?), because (C|alpha) = ", said)
    assert re.search(advised, said)


@pytest.mark.usefixtures("planned_only")
def test_the_advice_is_quiet() -> None:
    assert said_by(LangevinLogisticRegression(C=0.0005), 200_000) == []


@pytest.mark.parametrize(
    "model",
    [
        LangevinLogisticRegression(C=0.1),
        LangevinRidge(alpha=100, target_range=(-1, 1)),
        CertifiedLogisticRegression(),
        CertifiedRidge(target_range=(-1, 1)),
    ],
)
def test_a_short_fit_is_quiet(model: object) -> None:
    assert said_by(model, 500) == []


def test_what_is_quick_for_sure_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "seconds_to_learn", None)
    assert said_by(LangevinLogisticRegression(C=0.1), 500) == []


@pytest.mark.usefixtures("planned_only")
def test_nobody_is_warned_of_ten_seconds_or_less(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds, warned in ((10.0, 0), (10.1, 1)):
        monkeypatch.setattr(advice, "seconds_to_learn", lambda *_, seconds=seconds: seconds)
        assert len(said_by(LangevinLogisticRegression(), 200_000)) == warned
