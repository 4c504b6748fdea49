"""The ledger's ``C`` is the estimators', which is scikit-learn's."""

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.errors import InfeasibleError
from certified_unlearning.estimators import LangevinLogisticRegression
from certified_unlearning.ledger.initialisation import Contents, initialise
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from tests.ledger.conftest import Original
from tests.ledger.tables import FEATURES, LANGEVIN

C = 0.2


def planned(original: Original, path: Path, **parameters: object) -> tuple[str, LangevinLearner]:
    """Return what `initialise` says that it plans, and the learner, before it learns."""
    found: list[tuple[str, LangevinLearner]] = []

    def stop(contents: Contents) -> None:
        assert isinstance(contents.plan, LangevinLearner)
        found.append((contents.words.line, contents.plan))
        raise InfeasibleError("enough")

    table = Table(path=str(original.data), label="ill", identifier="person")
    with pytest.raises(InfeasibleError, match="enough"):
        initialise(path, table, **LANGEVIN, planned=stop, **parameters)  # type: ignore[arg-type]
    return found[0]


@pytest.mark.parametrize("intercept", [True, False])
def test_ledger_estimator_and_scikit_learn_minimise_the_same_objective(
    original: Original, tmp_path: Path, intercept: bool
) -> None:
    _, learner = planned(original, tmp_path / "model", C=C, intercept=intercept)
    features = original.table[list(FEATURES)].to_numpy()
    features = features / np.linalg.norm(features, axis=1, keepdims=True)
    labels = np.where(original.table["ill"] == "yes", 1, -1)

    estimator = LangevinLogisticRegression(C=C, fit_intercept=intercept, random_state=0).fit(features, labels)
    assert learner.regularisation == estimator._learner.regularisation

    rows = np.column_stack([features, np.ones(len(features))]) / np.sqrt(2) if intercept else features
    strength = learner.regularisation * learner.n

    def objective(weights: np.ndarray) -> float:
        return np.logaddexp(0, -labels * (rows @ weights)).mean() + strength / 2 * weights @ weights

    weights = minimize(objective, np.zeros(rows.shape[1]), tol=1e-12).x
    coefficients = weights / np.sqrt(2) if intercept else weights
    # Its solver liblinear regularises the intercept.
    plain = LogisticRegression(C=C, fit_intercept=intercept, solver="liblinear", tol=1e-10).fit(features, labels)
    expected = np.append(plain.coef_, plain.intercept_) if intercept else plain.coef_[0]
    np.testing.assert_allclose(coefficients, expected, atol=1e-4)


def test_without_C_it_is_100_divided_by_the_number_of_records(original: Original, tmp_path: Path) -> None:
    words, learner = planned(original, tmp_path / "model")
    assert words.startswith("C = 0.2222, C n = 100: ")
    assert learner == planned(original, tmp_path / "model", C=100 / 450)[1]
