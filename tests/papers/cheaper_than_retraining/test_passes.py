"""Rows that are read are counted right: by counts of one's own, in other places."""

import numpy as np
import pytest
import scipy.optimize
from sklearn.linear_model import LogisticRegression

from certified_unlearning.engine.compiled import minibatch as compiled
from certified_unlearning.engine.minibatch import CyclicObjective
from certified_unlearning.engine.objectives.float64 import LogisticRegression64
from certified_unlearning.engine.objectives.logistic import LogisticObjective
from certified_unlearning.mechanisms.newton_removal import NewtonRemoval
from certified_unlearning.papers.cheaper_than_retraining.counting import Readings, counted
from certified_unlearning.papers.cheaper_than_retraining.systems import MADE
from certified_unlearning.papers.cheaper_than_retraining.tables import Remaining, synthetic
from tests.support.planning import sweep_of

SWEEP = sweep_of("smoke", "cost", seed=5)


def answered(name, n, records=3):
    """Return a system, rows that fitting read, and rows that one request read."""
    table = synthetic("isotropic", n=n, features=SWEEP.features, seed=5)
    with counted() as readings:
        system = MADE[name](table, SWEEP, readings)
        system.fit()
        learned = system.rows_read()
        left = Remaining(table.rows, table.labels)
        gone = np.arange(records)
        left.remove(gone)
        system.forget(gone, left)
        return system, learned, system.rows_read()


def test_readings_of_lbfgs_are_the_evaluations_that_scipy_counts(monkeypatch):
    evaluations, minimize = [], scipy.optimize.minimize

    def counting(*arguments, **named):
        found = minimize(*arguments, **named)
        evaluations.append(found.nfev)
        return found

    monkeypatch.setattr(scipy.optimize, "minimize", counting)
    _, learned, read = answered("lbfgs-cold", 1000)
    assert [learned / 1000, read / 997] == evaluations


def test_nothing_is_counted_outside():
    with counted() as readings:
        pass
    table = synthetic("isotropic", n=500, features=3, seed=1)
    LogisticRegression().fit(table.rows, table.labels)
    assert readings.rows == 0


def test_steps_of_full_batches_read_all_rows(monkeypatch):
    read = []
    monkeypatch.setattr(LogisticObjective, "descend", counting(LogisticObjective.descend, lambda own: own.n, read))
    _, learned, of_request = answered("langevin-full", 1000)
    assert abs(sum(read) - (learned + of_request)) <= 3 * of_request / 1000  # Three rows fewer a step of the request.


def test_steps_of_mini_batches_read_one_batch(monkeypatch):
    read = []
    original = CyclicObjective._block

    def block(self, first, size):
        read.append(size)
        return original(self, first, size)

    monkeypatch.setattr(CyclicObjective, "_block", block)
    monkeypatch.setattr(compiled, "takes", lambda *_, **__: False)  # Compiled steps are not seen from here.
    system, learned, of_request = answered("langevin-minibatch", 10_001)
    assert 10_001 % system._batch_size > 0
    steps = system._estimator.removals_[-1].steps
    assert (sum(read[:-steps]), sum(read[-steps:])) == (learned, of_request)


def test_readings_of_a_certified_refit_are_its_evaluations(monkeypatch):
    read = []
    for name in ("value", "gradient", "gradient_and_hessian"):
        original = getattr(LogisticRegression64, name)
        monkeypatch.setattr(LogisticRegression64, name, counting(original, lambda own: len(own.rows), read))
    hessian_at = LogisticRegression64.hessian_at

    def counted_hessian(self, weights):
        read.append(len(self.rows))
        product = hessian_at(self, weights)
        return lambda vector: (read.append(len(self.rows)), product(vector))[1]

    monkeypatch.setattr(LogisticRegression64, "hessian_at", counted_hessian)
    _, learned, of_request = answered("certified-refit", 1000)
    assert sum(read) == learned + of_request
    assert of_request >= 1000


def test_newton_removal_reads_nothing_and_is_counted_so(monkeypatch):
    reads = []
    monkeypatch.setattr(NewtonRemoval, "fit", counting(NewtonRemoval.fit, lambda own: 1, reads))
    _, learned, of_request = answered("newton-removal", 30_000)
    assert learned > 30_000
    assert (len(reads), of_request) == (1, 0)


@pytest.mark.parametrize("records", [1, 30])
def test_sisa_reads_the_shards_that_a_request_hits(records):
    system, _, read = answered("sisa", 1000, records)
    hit = len(set(system._shard_of[:records].tolist()))
    sizes = [len(shard.rows) for shard in system._shards]
    assert sum(sizes) == 1000 - records
    assert hit * min(sizes) <= read <= 30 * hit * max(sizes)
    assert hit == (1 if records == 1 else 10)


def test_epochs_of_sgd_read_all_rows():
    system, _, read = answered("sgd", 1000)
    assert read == system._model.n_iter_ * 997


def counting(original, amount, into):
    def called(self, *arguments, **named):
        into.append(amount(self))
        return original(self, *arguments, **named)

    return called


def test_counts_are_taken_once():
    readings = Readings()
    readings.rows += 7
    assert (readings.take(), readings.take()) == (7, 0)
