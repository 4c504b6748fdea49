"""scikit-learn fitted again: from zero the minimiser on what is left, warm from the weights that were there before."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from certified_unlearning.data.prepared import PreparedData, unit_rows
from certified_unlearning.data.requests import Removals, draw_removals
from certified_unlearning.mechanisms import scikit_learn
from certified_unlearning.mechanisms.mechanism import Refitted
from certified_unlearning.mechanisms.scikit_learn import FROM_ZERO, WARM_START, answer

N, D, STRONG_CONVEXITY = 240, 6, 0.2
C = 1 / (N * STRONG_CONVEXITY)
TOLERANCE = LogisticRegression().tol
"""scikit-learn stops where no number of the gradient of the mean loss and regulariser is larger."""
KINDS = pytest.mark.parametrize(
    ("classes", "adjacency"), [(2, "zero-out"), (2, "replace"), (3, "zero-out"), (3, "replace")]
)
BOTH = pytest.mark.parametrize("variant", [FROM_ZERO, WARM_START])


class Fit(NamedTuple):
    """One fit: what it began at (None for zero) and came to, its iterations, and how many rows it got."""

    before: np.ndarray | None
    weights: np.ndarray
    iterations: int
    rows: int


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[Fit]:
    """Every fit of scikit-learn during a test, noted as it is made."""
    noted: list[Fit] = []

    class Noting(LogisticRegression):
        def fit(self, X, y):
            before = self.coef_.copy() if self.warm_start and hasattr(self, "coef_") else None
            super().fit(X, y)
            noted.append(Fit(before, self.coef_.astype(np.float64), int(self.n_iter_[0]), len(X)))
            return self

    monkeypatch.setattr("sklearn.linear_model.LogisticRegression", Noting)
    return noted


def accuracies(answered: Refitted) -> list[float]:
    """The accuracy after each request."""
    return [float(of_one[0, 0]) for of_one in answered.judged]


def data_of(classes: int) -> PreparedData:
    draw = np.random.default_rng(classes)

    def part(count: int) -> tuple[np.ndarray, np.ndarray]:
        codes = np.arange(count) % classes
        rows = unit_rows(draw.normal(size=(count, D)) + 1.5 * np.eye(D)[codes], "test data")
        return rows, (2 * codes - 1 if classes == 2 else codes).astype(np.int8)

    names = ("-1", "+1") if classes == 2 else ("a", "b", "c")
    return PreparedData("digits", "synthetic", *part(N), *part(2000), "none", classes=names)


def removals_of(data: PreparedData, adjacency: str, records: int = 24) -> Removals:
    return draw_removals(data, records=records, adjacency=adjacency, seed=1)


def minimiser(data: PreparedData, removals: Removals, removed: int) -> np.ndarray:
    """Minimise the mean of all n losses and the regulariser, a removed record's loss left out or replaced.

    By scipy, in float64, of the softmax loss: for two classes that of the scores -w x / 2 and w x / 2.
    """
    binary = len(data.classes) == 2
    rows = data.train_features.astype(np.float64)
    codes = np.searchsorted(data.label_values, data.train_labels)
    counted = np.ones(N)
    gone = removals.indices[:removed]
    if removals.adjacency == "replace":
        rows[gone] = removals.features[:removed]
        codes[gone] = np.searchsorted(data.label_values, removals.labels[:removed])
    else:
        counted[gone] = 0
    right = np.eye(len(data.classes))[codes]
    halves = np.array([[-0.5], [0.5]])

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(-1, D)
        scores = rows @ (halves @ weights if binary else weights).T
        losses = logsumexp(scores, axis=1) - (scores * right).sum(axis=1)
        by_class = ((softmax(scores, axis=1) - right) * counted[:, None]).T @ rows / N
        gradient = (halves.T @ by_class if binary else by_class).ravel() + STRONG_CONVEXITY * flat
        return losses @ counted / N + STRONG_CONVEXITY / 2 * flat @ flat, gradient

    start = np.zeros(D if binary else D * len(data.classes))
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-10})
    assert np.abs(objective(found.x)[1]).max() < 1e-8
    return found.x.reshape(-1, D)


def allowed(fit: Fit) -> float:
    """Return how far from the minimiser a gradient within the tolerance can leave an m-strongly convex function.

    The mean over the rows that it got is ``n / rows`` times the mean over n: so is its strong convexity.
    """
    return np.sqrt(fit.weights.size) * TOLERANCE / (STRONG_CONVEXITY * N / fit.rows)


def check(fit: Fit, expected: np.ndarray) -> None:
    np.testing.assert_array_less(np.linalg.norm(fit.weights - expected), allowed(fit))


def changed(data: PreparedData, places: Sequence[int]) -> PreparedData:
    """The data set with other training records in some places."""
    rows, labels = data.train_features.copy(), data.train_labels.copy()
    rows[places] = rows[places, ::-1]
    labels[places] = np.roll(labels[places], 1)
    return PreparedData(
        "digits", "synthetic", rows, labels, data.test_features, data.test_labels, "none", classes=data.classes
    )


# From zero.


@KINDS
def test_from_zero_is_the_minimiser_of_the_objective_on_what_is_left(classes, adjacency, fits) -> None:
    data = data_of(classes)
    removals = removals_of(data, adjacency)
    answered = answer(data, removals, [1, 24], C, FROM_ZERO)
    assert [fit.before for fit in fits] == [None, None]
    assert [fit.rows for fit in fits] == ([N, N] if adjacency == "replace" else [N - 1, N - 24])
    for fit, removed in zip(fits, (1, 24), strict=True):
        check(fit, minimiser(data, removals, removed))
    assert len(answered.judged) == 2


@KINDS
def test_a_c_without_n_and_a_removal_that_is_forgotten_are_noticed(classes, adjacency, fits) -> None:
    data = data_of(classes)
    removals = removals_of(data, adjacency)
    expected = minimiser(data, removals, 24)
    for removed, wrong in ((24, 1 / STRONG_CONVEXITY), (24, 1 / (24 * STRONG_CONVEXITY)), (0, C), (20, C)):
        answer(data, removals, [removed], wrong, FROM_ZERO)
        with pytest.raises(AssertionError):
            check(fits[-1], expected)
    if adjacency == "zero-out":  # With C by the number of those left, the regulariser would change.
        answer(data, removals, [24], 1 / ((N - 24) * STRONG_CONVEXITY), FROM_ZERO)
        with pytest.raises(AssertionError):
            check(fits[-1], expected)


@KINDS
def test_from_zero_nothing_of_a_removed_record_is_left_to_the_last_bit(classes, adjacency, fits) -> None:
    data = data_of(classes)
    removals = removals_of(data, adjacency)
    others = changed(data, removals.indices)
    one, other = (answer(each, removals, [24], C, FROM_ZERO) for each in (data, others))
    assert np.array_equal(fits[0].weights, fits[1].weights)
    assert accuracies(one) == accuracies(other)
    # One record more than is removed is seen.
    for each in (data, others):
        answer(each, removals, [23], C, FROM_ZERO)
    assert not np.array_equal(fits[2].weights, fits[3].weights)


# Warm starts.


@KINDS
def test_a_warm_start_begins_at_the_weights_of_all_records_and_then_at_its_own(classes, adjacency, fits) -> None:
    data = data_of(classes)
    removals = removals_of(data, adjacency)
    answer(data, removals, [1, 24], C, WARM_START)
    first, second, third = fits
    assert first.before is None
    check(first, minimiser(data, removals, 0))
    assert np.array_equal(second.before, first.weights)
    assert np.array_equal(third.before, second.weights)
    for fit, removed in ((second, 1), (third, 24)):
        check(fit, minimiser(data, removals, removed))


@KINDS
def test_a_warm_start_saves_the_iterations_that_old_weights_are_worth(classes, adjacency, fits) -> None:
    data = data_of(classes)
    removals = removals_of(data, adjacency)
    answer(data, removals, [0, 1], C, WARM_START)
    *_, nothing_removed, one_removed = fits
    assert nothing_removed.iterations == 0
    answer(data, removals, [1], C, FROM_ZERO)
    assert one_removed.iterations < fits[-1].iterations


@KINDS
def test_a_warm_start_still_tells_removed_records_apart(classes, adjacency, fits) -> None:
    data = data_of(classes)
    removals = removals_of(data, adjacency)
    for each in (data, changed(data, removals.indices)):
        answer(each, removals, [24], C, WARM_START)
    one, other = fits[1], fits[3]
    assert not np.array_equal(one.weights, other.weights)
    assert np.linalg.norm(one.weights - other.weights) < 2 * allowed(one)


# What both say.


@BOTH
@KINDS
def test_accuracies_are_those_of_each_requests_weights_on_the_test_records(classes, adjacency, variant, fits) -> None:
    data = data_of(classes)
    answered = answer(data, removals_of(data, adjacency, 120), [1, 60, 120], C, variant)
    for fit, accuracy in zip(fits[-3:], accuracies(answered), strict=True):
        scores = data.test_features @ fit.weights.T
        codes = scores[:, 0] > 0 if classes == 2 else scores.argmax(axis=1)
        assert accuracy == pytest.approx(np.mean(np.array(data.label_values)[codes.astype(int)] == data.test_labels))
    assert len(set(accuracies(answered))) > 1


@BOTH
def test_seconds_are_those_of_the_requests_without_what_was_learned_before_them(variant, monkeypatch) -> None:
    data, clock = data_of(2), [0.0]

    class Slow(LogisticRegression):
        def fit(self, X, y):
            clock[0] += len(X)
            return super().fit(X, y)

        def score(self, X, y):
            clock[0] += 1000
            return super().score(X, y)

    removals = removals_of(data, "zero-out")
    assert 0 < answer(data, removals, [1], C, variant).seconds < 10
    monkeypatch.setattr("sklearn.linear_model.LogisticRegression", Slow)
    monkeypatch.setattr(scikit_learn, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    assert answer(data, removals, [1, 24], C, variant).seconds == (N - 1) + (N - 24)


@BOTH
def test_rows_that_stay_in_their_file_give_the_same(variant, fits, tmp_path) -> None:
    data = data_of(3)
    data.save(tmp_path / "data.safetensors")
    stored = PreparedData.load(tmp_path / "data.safetensors", in_memory=False)
    for adjacency in ("zero-out", "replace"):
        fits.clear()
        for each in (data, stored):
            answer(each, removals_of(data, adjacency), [24], C, variant)
        half = len(fits) // 2
        for one, other in zip(fits[:half], fits[half:], strict=True):
            assert np.array_equal(one.weights, other.weights)


@BOTH
def test_a_fit_that_does_not_get_to_its_tolerance_is_an_error_and_no_answer(variant, monkeypatch) -> None:
    data = data_of(2)
    monkeypatch.setattr(scikit_learn, "MOST_ITERATIONS", 1)
    with pytest.raises(ConvergenceWarning, match="failed to converge"):
        answer(data, removals_of(data, "replace"), [24], C, variant)
