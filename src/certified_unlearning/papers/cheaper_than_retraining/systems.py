"""Systems that answer requests: a new fit by scikit-learn, SISA, and the estimators of this package.

All systems minimise ``C sum_i log(1 + exp(-y_i w.(x_i, 1))) + |w|^2 / 2``. ``C n`` is fixed when learning begins, and
the intercept is regularised. Estimators of this package scale rows, together with their intercept, to norm 1, which
gives the same objective.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, SGDClassifier

from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.cyclic.stream import curve as cyclic_curve
from certified_unlearning.accounting.langevin.accountants import initial_epsilon
from certified_unlearning.estimators import (
    CertifiedLogisticRegression,
    LangevinLogisticRegression,
    SecretStateDescentToDelete,
)
from certified_unlearning.mechanisms.learners.minibatch import mini_batches_for
from certified_unlearning.papers.cheaper_than_retraining.counting import Readings
from certified_unlearning.papers.cheaper_than_retraining.sweeps import Asked
from certified_unlearning.papers.cheaper_than_retraining.tables import Array, Remaining, Table

Indices = NDArray[np.int64]
MOST_ITERATIONS = 1000


class NotRunError(Exception):
    """A system is not run on a table; the message is the reason."""


@dataclass(frozen=True)
class Promise:
    """The guarantee for an answered request.

    Attributes:
        guarantee: ``exact``, ``upper bound`` or ``none``.
        comparator: The model with which the guarantee compares the unlearned model.
        observers: The observers for whom the guarantee holds.
        adaptive: Whether requests may depend on published models.
        epsilon: Epsilon of the latest published model; None if nothing is guaranteed.
        epsilon_all: Epsilon of all releases together; None if nothing is stated about them.
        delta: Delta of each of these epsilons.
        epsilon_stay: Epsilon of the latest published model, compared with the model of a run in which one remaining
            record's loss was 0. None if this epsilon is unknown.
    """

    guarantee: str
    comparator: str
    observers: str
    adaptive: bool
    epsilon: float | None = None
    epsilon_all: float | None = None
    delta: float | None = None
    epsilon_stay: float | None = None


_LAST, _ALL = "last model", "last model; all releases"
RETRAINED = Promise(
    "exact", "retraining: a request retrains", _ALL, adaptive=True, epsilon=0.0, epsilon_all=0.0, delta=0.0
)
WARM = Promise(
    "none", "nothing: the fit starts from weights that depend on the records, and stops at a tolerance", "nobody", False
)
SHARDED = Promise(
    "exact",
    "retraining of all shards, with the same records in each shard",
    _ALL,
    adaptive=False,
    epsilon=0.0,
    epsilon_all=0.0,
    delta=0.0,
)


class System(ABC):
    """A way to answer requests on one table.

    Args:
        table: The records. `fit` may keep views of them until the first request.
        sweep: The constants of the system.
        readings: A count of the rows that solvers read.
    """

    def __init__(self, table: Table, sweep: Asked, readings: Readings) -> None:
        self.table, self.sweep, self.readings = table, sweep, readings
        self.strength = sweep.strength / table.n

    @abstractmethod
    def fit(self) -> None:
        """Learn from all records."""

    @abstractmethod
    def forget(self, gone: Indices, left: Remaining) -> None:
        """Answer a request; the time of this call is measured.

        Args:
            gone: The numbers of the removed records.
            left: The remaining records.
        """

    @abstractmethod
    def scores(self, rows: Array) -> Array:
        """Return the scores of rows without an intercept column."""

    @abstractmethod
    def promise(self) -> Promise:
        """Return the current guarantee."""

    def rows_read(self) -> int:
        """Return how many rows were read since the last call."""
        return self.readings.take()


class Refit(System):
    """A new fit by scikit-learn on the remaining records."""

    solver = "lbfgs"
    warm = False
    exact = False

    def fit(self) -> None:
        """Learn from all records."""
        self._model = self._made()
        self._model.fit(self.table.rows, self.table.labels)

    def forget(self, gone: Indices, left: Remaining) -> None:
        """Fit again."""
        if not self.warm:
            self._model = self._made()
        self._model.fit(left.rows, left.labels)

    def scores(self, rows: Array) -> Array:
        """Return the scores of rows."""
        return _scores(self._model, rows)

    def promise(self) -> Promise:
        """Return the guarantee."""
        return WARM if self.warm else RETRAINED

    def _made(self) -> Any:
        tolerance = {"tol": self.sweep.tolerance} if self.exact else {}
        return LogisticRegression(
            C=self.strength,
            solver=self.solver,
            fit_intercept=False,
            warm_start=self.warm,
            max_iter=MOST_ITERATIONS,
            **tolerance,
        )


class WarmRefit(Refit):
    """A new fit by scikit-learn from the old weights."""

    warm = True


class ExactWarmRefit(WarmRefit):
    """A new fit from the old weights, with a tolerance so small that a single record can move the weights."""

    exact = True


class NewtonRefit(Refit):
    """A new fit by scikit-learn's solver ``newton-cholesky``."""

    solver = "newton-cholesky"


class WarmNewtonRefit(NewtonRefit):
    """A new fit by ``newton-cholesky`` from the old weights."""

    warm = True


class StochasticRefit(Refit):
    """A new fit by scikit-learn's `SGDClassifier`."""

    def rows_read(self) -> int:
        """Return how many rows were read; each epoch reads all rows."""
        return int(self._model.n_iter_) * self._read

    def fit(self) -> None:
        """Learn from all records."""
        super().fit()
        self._read = self.table.n

    def forget(self, gone: Indices, left: Remaining) -> None:
        """Fit again."""
        super().forget(gone, left)
        self._read = len(left.rows)

    def _made(self) -> Any:
        return SGDClassifier(
            loss="log_loss",
            alpha=1 / self.sweep.strength,
            fit_intercept=False,
            max_iter=MOST_ITERATIONS,
            random_state=self.sweep.seed,
        )


class Sharded(System):
    """SISA without slices: the score is the mean over all shards, and a request fits the affected shards anew.

    Bourtoule et al., Machine unlearning (2021). The seed assigns records to shards, and every shard has the same ``C
    n``. Requests that depend on published models may reveal this assignment: Gupta et al., Adaptive machine unlearning
    (2021).
    """

    def fit(self) -> None:
        """Learn from all records."""
        order = np.random.default_rng(self.sweep.seed).permutation(self.table.n)
        self._shard_of = np.empty(self.table.n, dtype=np.int64)
        self._number_in = np.empty(self.table.n, dtype=np.int64)
        self._shards, self._sizes, self._models = [], [], []
        for number, records in enumerate(np.array_split(order, self.sweep.shards)):
            self._shard_of[records], self._number_in[records] = number, np.arange(len(records))
            self._shards.append(Remaining(self.table.rows[records], self.table.labels[records]))
            self._sizes.append(len(records))
            self._models.append(self._fitted(number))

    def forget(self, gone: Indices, left: Remaining) -> None:
        """Fit the shards of these records again."""
        for number in np.unique(self._shard_of[gone]).tolist():
            self._shards[number].remove(self._number_in[gone[self._shard_of[gone] == number]])
            self._models[number] = self._fitted(number)

    def scores(self, rows: Array) -> Array:
        """Return the mean score over shards."""
        found: Array = np.mean([_scores(model, rows) for model in self._models], axis=0)
        return found

    def promise(self) -> Promise:
        """Return the guarantee."""
        return SHARDED

    def _fitted(self, number: int) -> Any:
        shard, strength = self._shards[number], self.sweep.strength / self._sizes[number]
        return LogisticRegression(C=strength, fit_intercept=False, max_iter=MOST_ITERATIONS).fit(
            shard.rows, shard.labels
        )


class Unlearning(System):
    """An estimator of this package; a request calls `unlearn` and then makes the certificate."""

    def __init__(self, table: Table, sweep: Asked, readings: Readings) -> None:
        super().__init__(table, sweep, readings)
        self._estimator = self._made()
        # A user's table has no column of ones and is contiguous in memory.
        self._features: Array | None = np.ascontiguousarray(table.rows[:, :-1])

    def fit(self) -> None:
        """Learn from all records."""
        self._estimator.fit(self._features, self.table.labels)
        self._features = None

    def forget(self, gone: Indices, left: Remaining) -> None:
        """Unlearn records, and state the certificate."""
        self._estimator.unlearn(gone)
        self._certificate = self._estimator.certificate_

    def scores(self, rows: Array) -> Array:
        """Return the scores of rows."""
        found: Array = self._estimator.decision_function(rows)
        return found

    @abstractmethod
    def _made(self) -> Any:
        """Return the estimator before fitting."""


class NoisySteps(Unlearning):
    """An estimator that continues gradient descent; every row that a step uses is counted as read."""

    def fit(self) -> None:
        """Learn from all records."""
        super().fit()
        self._done = 0

    def rows_read(self) -> int:
        """Return how many rows were read since the last call."""
        estimator = self._estimator
        steps = estimator._learner.learning_steps + sum(each.steps for each in estimator.removals_)
        first, self._done = self._done, steps
        return self._rows_of(first, steps)

    def _rows_of(self, first: int, last: int) -> int:
        """Return how many rows the steps from ``first`` to ``last`` read."""
        return (last - first) * self.table.n

    def promise(self) -> Promise:
        """Return the guarantee that the certificate states."""
        stated = self._certificate
        everything = stated.epsilon_all_published
        return Promise(
            stated.guarantee,
            stated.comparator,
            _LAST if everything is None else _ALL,
            adaptive=False,
            epsilon=stated.epsilon,
            epsilon_all=everything,
            delta=stated.delta + stated.extra_delta,
            epsilon_stay=self._epsilon_stay(),
        )

    def _epsilon_stay(self) -> float | None:
        return None


class FullBatch(NoisySteps):
    """Langevin unlearning with all records in every step."""

    def _made(self) -> Any:
        return self._langevin(None)

    def _epsilon_stay(self) -> float | None:
        learner, steps = self._estimator._learner, sum(each.steps for each in self._estimator.removals_)
        return initial_epsilon(
            learner.problem,
            sigma=learner.sigma,
            delta=self.sweep.delta,
            records=1,
            learning_steps=learner.learning_steps + steps,
            accountant=learner.accountant,
        )

    def _langevin(self, batch_size: Literal["auto"] | None) -> Any:
        return LangevinLogisticRegression(
            self.sweep.epsilon,
            self.sweep.delta,
            C=self.strength,
            batch_size=batch_size,
            random_state=self.sweep.seed,
        )


class MiniBatches(FullBatch):
    """Langevin unlearning with one mini-batch in each step."""

    def _made(self) -> Any:
        n, features = self.table.rows.shape
        planned = mini_batches_for(n, features=features, C=self.strength, classes=2, intercept=True)
        if planned is None:
            raise NotRunError("too few records for mini-batches: batch_size='auto' uses all of them in every step")
        self._batch_size = planned.batch_size
        return self._langevin("auto")

    def _rows_of(self, first: int, last: int) -> int:
        n, size = self.table.n, self._batch_size
        # The last batch is shorter, unless the batch size divides the number of records.
        short = range(n // size, last, -(-n // size)) if n % size else range(0)
        missing = sum(step >= first for step in short) * (size - n % size)
        return (last - first) * size - missing

    def _epsilon_stay(self) -> float | None:
        learner, steps = self._estimator._learner, sum(each.steps for each in self._estimator.removals_)
        schedule = replace(learner.schedule([]), learning_steps=learner.learning_steps + steps)
        mu = cyclic_curve(learner.problem, schedule.followed_by(records=1, steps=0)).mu
        return epsilon_from_mu(mu, self.sweep.delta)


class Descent(NoisySteps):
    """Descent-to-Delete with a secret state."""

    def _made(self) -> Any:
        return SecretStateDescentToDelete(
            self.sweep.epsilon, self.sweep.delta, C=self.strength, random_state=self.sweep.seed
        )


class NewtonRemoval(Unlearning):
    """Removal by one Newton step per request.

    A request reads only the removed records, unless all data have to be read.
    """

    records_between_reads: int | None = None

    def _made(self) -> Any:
        return CertifiedLogisticRegression(
            self.sweep.epsilon,
            self.sweep.delta,
            C=self.strength,
            random_state=self.sweep.seed,
            records_between_reads=self.records_between_reads,
        )

    def promise(self) -> Promise:
        """Return the guarantee that the certificate states."""
        stated = self._certificate
        everything, extra = stated.epsilon_all_releases, stated.extra_delta_all_releases
        return Promise(
            stated.guarantee,
            stated.comparator,
            _LAST if everything is None else _ALL,
            adaptive=everything is not None,
            epsilon=stated.epsilon,
            epsilon_all=everything,
            delta=stated.delta + (stated.extra_delta if extra is None else extra),
        )


class CertifiedRefit(NewtonRemoval):
    """A refit at every request, which reads the data until the certified gradient is within the budget."""

    records_between_reads = 0


MADE: dict[str, Callable[[Table, Asked, Readings], System]] = {
    "lbfgs-cold": Refit,
    "lbfgs-warm": WarmRefit,
    "lbfgs-warm-exact": ExactWarmRefit,
    "newton-cholesky-cold": NewtonRefit,
    "newton-cholesky-warm": WarmNewtonRefit,
    "sgd": StochasticRefit,
    "sisa": Sharded,
    "langevin-full": FullBatch,
    "langevin-minibatch": MiniBatches,
    "descent-to-delete": Descent,
    "certified-refit": CertifiedRefit,
    "newton-removal": NewtonRemoval,
}
"""The class of each system, by the name in the column ``system``, in the order in which systems take turns."""
FULL_BATCH = ("langevin-full", "descent-to-delete")
"""The systems that read all records in every step."""


def _scores(model: Any, rows: Array) -> Array:
    weights = model.coef_[0]
    found: Array = rows @ weights[:-1] + weights[-1]
    return found
