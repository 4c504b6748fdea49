"""Promises of the estimators on real data: UCI Adult, six columns, well conditioned by C = 0.003 (C n = 88)."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from certified_unlearning import certificate
from certified_unlearning.engine.objectives import logistic
from certified_unlearning.estimators import LangevinLogisticRegression
from certified_unlearning.mechanisms.learners.minibatch import MiniBatchLearner
from tests.support.adult_table import adult

pytestmark = pytest.mark.exhaustive

C = 0.003
STEPS = 32
TRIALS = 200


def test_it_is_as_accurate_as_scikit_learn_and_unlearns_a_hundred_records_in_a_twentieth_of_the_steps() -> None:
    """The mean over 200 models; one model's accuracy has a standard deviation of 0.012, so the mean's is 0.001.

    Thousands of steps on all 29 304 records of Adult.
    """
    rows, labels, test_rows, test_labels = adult()
    theirs = LogisticRegression(C=C).fit(rows, labels).score(test_rows, test_labels)
    model = LangevinLogisticRegression(delta="1/n", C=C, records=100, steps=STEPS, batch_size=None, random_state=0)
    fitted = model.fit(rows, labels)
    learner = fitted._learner
    assert learner.epsilon == 1
    assert learner.delta == 1 / len(rows)

    training = fitted._tensors(fitted._store.rows, fitted._store.labels)
    weights = learner.learn(*training, keys=range(TRIALS))
    tested = torch.from_numpy(fitted._rows(test_rows)), torch.from_numpy(np.where(test_labels, 1, -1))
    assert abs(float(logistic.accuracy(weights, *tested).mean()) - theirs) < 0.01

    fitted.unlearn(np.random.default_rng(0).choice(len(rows), 100, replace=False))
    assert fitted.removals_[0].steps == STEPS
    assert learner.learning_steps >= 20 * STEPS
    assert fitted.certificate_.epsilon <= 1


def test_mini_batches_are_as_accurate_after_the_same_request() -> None:
    """The mean over 200 models, as above: learned in a few epochs, unlearned by as many models at once."""
    rows, labels, test_rows, test_labels = adult()
    theirs = LogisticRegression(C=C).fit(rows, labels).score(test_rows, test_labels)
    fitted = LangevinLogisticRegression(C=C, random_state=0).fit(rows, labels)
    learner = fitted._learner
    assert isinstance(learner, MiniBatchLearner)
    assert learner.learning_steps <= 12 * learner.cycle.batches
    tensors = torch.from_numpy(fitted._store.rows), torch.from_numpy(fitted._store.labels)
    learned = learner.learn(*tensors, keys=range(TRIALS))
    fitted.unlearn(np.random.default_rng(0).choice(len(rows), 100, replace=False))
    certificate.verify(fitted.certificate_)
    assert fitted.certificate_.epsilon <= 1
    weights = learner.unlearn(learned, *tensors, fitted.removals_, range(TRIALS))
    tested = torch.from_numpy(fitted._rows(test_rows)), torch.from_numpy(np.where(test_labels, 1, -1))
    assert abs(float(logistic.accuracy(weights, *tested).mean()) - theirs) < 0.01
