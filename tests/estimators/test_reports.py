"""A privacy report opens with what the guarantee means, in the sentence that the certificate's summary opens with."""

import numpy as np
import pytest

from certified_unlearning import estimators
from certified_unlearning.estimators import CertifiedMLPClassifier

PARAMETERS = {
    "ExactLogisticRegression": {"steps": 20, "batch_size": 8},
    "LangevinRidge": {"alpha": 100.0},
    "PrivateLinearRegression": {"epsilon": 100.0},
    "PrivateLogisticRegression": {"epsilon": 100.0},
}
"""Those without which learning takes long, or says that there is nothing but noise."""
WITHOUT_REMOVALS = ("PrivateLinearRegression", "PrivateLogisticRegression")
"""What these guarantee holds before any record is removed."""


@pytest.fixture
def table():
    """Rows in the unit ball, their classes, and their targets."""
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, size=(120, 3))
    return rows, (rows[:, 0] > 0).astype(int), rows[:, 0]


def fitted(name, table):
    rows, classes, targets = table
    made = getattr(estimators, name)
    defaults = {"C": 0.1} if "C" in made().get_params() else {}
    estimator = made(**{**defaults, **PARAMETERS.get(name, {})}, random_state=0)
    if "target_range" in estimator.get_params():
        return estimator.set_params(target_range=(-1, 1)).fit(rows, targets)
    return estimator.fit(rows, classes)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [name for name in estimators.__all__ if name != "CertifiedMLPClassifier"])
def test_a_report_opens_with_what_the_guarantee_means(name, table):
    model = fitted(name, table)
    before = model.certificate_.meaning()
    assert (before is not None) == (name in WITHOUT_REMOVALS)
    if before is None:
        assert model.privacy_report().startswith("Learned from ")
    stated = model.unlearn([3, 5]).certificate_
    assert model.privacy_report().startswith(f"{stated.meaning()}\nLearned from ")
    assert stated.meaning().startswith("Someone sees the ")
    assert stated.summary().startswith(stated.meaning())


def test_a_network_has_no_such_sentence_for_its_certificates_bound_no_guesses(table):
    rows, classes, _ = table
    model = CertifiedMLPClassifier((4,), epochs=2, budgets=(1, 2), random_state=0).fit(rows, classes).unlearn([3])
    assert model.certificate(rows[:5]).meaning() is None
    assert model.privacy_report().startswith("Removed: 1 record")
