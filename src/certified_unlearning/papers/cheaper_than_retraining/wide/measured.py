"""Requests on wide rows, compared with scikit-learn's refits: seconds, rows read, and shares of certified bounds.

All models answer the same requests. After some of these requests, scikit-learn refits on the remaining records: from
zero, from its old weights at its own tolerance, and from its old weights at a tolerance with which a refit changes the
weights. The certificates are checked against the secret state. Separate code evaluates the gradient over the remaining
records, and its norm is compared with the certified bound. At the end, the distance from the result of scikit-learn's
most exact solver is compared with the certified distance.
"""

import functools
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from certified_unlearning.estimators import CertifiedLogisticRegression
from certified_unlearning.papers.cheaper_than_retraining.counting import Readings, counted
from certified_unlearning.papers.cheaper_than_retraining.measured import machine
from certified_unlearning.papers.cheaper_than_retraining.wide.sweep import Wide, WideTable
from certified_unlearning.papers.cheaper_than_retraining.wide.tables import Records, made
from certified_unlearning.version import code_version

Array = NDArray[np.float64]
Clock = Callable[[], float]
MOST_ITERATIONS = 1000
FINEST = 1e-12
"""The tolerance with which the minimiser is computed; distances are measured from this minimiser."""
NEAR = 0.02
"""The largest allowed error of the minimiser, computed from its gradient, as a share of the certified distance."""
_ROWS_AT_ONCE = 4096


def wide_table(sweep: Wide, clock: Clock = time.perf_counter) -> pd.DataFrame:
    """Return the cost of requests on every table: one row for each table and model.

    Args:
        sweep: The tables and the constants of the models.
        clock: The clock that measures seconds.

    Returns:
        Rows that follow `experiment.WIDE_ROWS`.
    """
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(sweep.threads)
        with threadpool_limits(sweep.threads), counted() as readings:
            rows = [row for table in sweep.tables for row in measured(table, sweep, readings, clock)]
    finally:
        torch.set_num_threads(threads)
    return pd.DataFrame(rows).assign(
        experiment="wide",
        records=sweep.records,
        requests=sweep.requests,
        epsilon=sweep.epsilon,
        delta=sweep.delta,
        seed=sweep.seed,
        machine=machine(sweep.threads),
        code_version=code_version(),
    )


@dataclass
class _Model:
    """A model and the observations of its answers: seconds, passes, and whether its weights moved."""

    model: Any
    fit_seconds: float
    fit_passes: float
    seconds: list[float]
    passes: list[float]
    moved: list[bool]
    memory: int


def measured(
    table: WideTable, sweep: Wide, readings: Readings, clock: Clock, *, again: bool = False
) -> list[dict[str, Any]]:
    """Return the rows of one table.

    Args:
        table: The table.
        sweep: The constants of the models.
        readings: A count of the rows that are read.
        clock: The clock that measures seconds.
        again: Whether memory and distances are known from an earlier run. They are then not measured, because this
            would take long and give the same values.
    """
    data = made(table, seed=sweep.seed)
    exact = data.rows.astype(np.float64)
    options: dict[str, Any] = {"C": table.strength / table.n, "fit_intercept": False}
    usual = CertifiedLogisticRegression(sweep.epsilon, sweep.delta, random_state=sweep.seed, **options)
    ours = {"certified": usual}
    if table.one_vs_rest:
        ours["one-vs-rest"] = clone(usual).set_params(strategy="one-vs-rest")
    refits = {
        "lbfgs-cold": LogisticRegression(**options, max_iter=MOST_ITERATIONS),
        "lbfgs-warm": LogisticRegression(**options, max_iter=MOST_ITERATIONS, warm_start=True),
        "lbfgs-warm-moving": LogisticRegression(
            **options, max_iter=MOST_ITERATIONS, warm_start=True, tol=table.tolerance
        ),
    }
    rows_of = {name: exact if name == "lbfgs-warm-moving" else data.rows for name in (*ours, *refits)}

    def fitted(name: str, model: Any) -> _Model:
        readings.take()
        seconds = _seconds(lambda: model.fit(rows_of[name], data.labels), clock)
        passes = readings.take() / table.n
        memory = 0 if again else _memory(model, rows_of[name], data.labels)
        return _Model(model, seconds, passes, [], [], [], memory)

    models = {name: fitted(name, model) for name, model in {**ours, **refits}.items()}
    order = np.random.default_rng([sweep.seed, table.n]).permutation(table.n)
    left = np.ones(table.n, dtype=bool)
    shares: dict[str, list[float]] = {name: [] for name in ours}
    for number in range(1, sweep.requests + 1):
        gone = order[(number - 1) * sweep.records : number * sweep.records]
        left[gone] = False

        for name, model in ours.items():
            _answer(models[name], functools.partial(_unlearn, model, gone), readings, table.n, clock)
            weights, bound = _secret(model)
            gradient = _gradient(table, data, left, weights, one_vs_rest=name == "one-vs-rest")
            shares[name].append(float(np.linalg.norm(gradient)) / bound)
        if number % sweep.refits_every == 0:
            for name, model in refits.items():
                refit = functools.partial(model.fit, rows_of[name][left], data.labels[left])
                _answer(models[name], refit, readings, int(left.sum()), clock)
    weights_of = {"certified": _secret(usual)[0], **{name: model.coef_.ravel() for name, model in refits.items()}}
    accuracy = {name: float(each.model.score(data.test_rows, data.test_labels)) for name, each in models.items()}
    certified = usual.certificate_.budget / usual.certificate_.strong_convexity
    minimiser = None if again else _minimiser(refits["lbfgs-warm-moving"], exact[left], data.labels[left])
    if minimiser is not None:
        error = float(np.linalg.norm(_gradient(table, data, left, minimiser))) * table.strength
        minimiser = minimiser if error <= NEAR * certified else None
    tolerances = {"lbfgs-cold": 1e-4, "lbfgs-warm": 1e-4, "lbfgs-warm-moving": table.tolerance}
    return [
        {
            "rows": table.rows,
            "n": table.n,
            "d": table.features,
            "classes": table.classes,
            "strength": table.strength,
            "system": name,
            "tolerance": tolerances.get(name),
            "data_bytes": _bytes(rows_of[name]),
            "answers": len(each.seconds),
            "answers_that_moved": sum(each.moved),
            "passes": float(np.mean(each.passes)),
            "fit_passes": each.fit_passes,
            "accuracy": accuracy[name],
            # The minimiser is that of softmax regression, so models of one class against the rest are left out.
            "distance_share": _distance(weights_of.get(name), minimiser, certified),
            "gradient_share": max(shares[name]) if name in shares else None,
            "seconds": float(np.mean(each.seconds)),
            "seconds_median": float(np.median(each.seconds)),
            "seconds_largest": max(each.seconds),
            "fit_seconds": each.fit_seconds,
            "memory_bytes": each.memory,
        }
        for name, each in models.items()
    ]


def _answer(
    model: _Model,
    action: Callable[[], object],
    readings: Readings,
    n: int,
    clock: Clock,
) -> None:
    before = model.model.coef_.copy()
    readings.take()
    with warnings.catch_warnings():
        # Rows are float32, so a fine tolerance may be out of reach: the solver stops when it cannot improve.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.seconds.append(_seconds(action, clock))
    model.passes.append(readings.take() / n)
    model.moved.append(not np.array_equal(before, model.model.coef_))


def _unlearn(model: CertifiedLogisticRegression, gone: NDArray[np.int64]) -> None:
    model.unlearn(gone).certificate_  # noqa: B018


def _distance(weights: Array | None, minimiser: Array | None, certified: float) -> float | None:
    if weights is None or minimiser is None:
        return None
    return float(np.linalg.norm(weights - minimiser)) / certified


def _seconds(action: Callable[[], object], clock: Clock) -> float:
    start = clock()
    action()
    return clock() - start


def _memory(model: Any, rows: Any, labels: NDArray[np.int64]) -> int:
    """Return the peak memory, in bytes, of fitting a new model with the same parameters; the rows are not counted."""
    again = type(model)(**model.get_params())
    tracemalloc.start()
    try:
        again.fit(rows, labels)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _secret(model: CertifiedLogisticRegression) -> tuple[Array, float]:
    """Return the weights without noise, and the certified bound on the gradient's norm at these weights."""
    return model._model.weights, model._model.residual


def _gradient(
    table: WideTable, data: Records, left: NDArray[np.bool_], weights: Array, *, one_vs_rest: bool = False
) -> Array:
    """Return the flattened gradient of all classes over the remaining records.

    The sum of the records' gradients is divided by the number of records at the start.
    """
    several = table.classes > 2
    by_class = weights.reshape(table.classes if several else 1, -1)
    total = by_class / table.strength
    for first in range(0, table.n, _ROWS_AT_ONCE):
        some = slice(first, first + _ROWS_AT_ONCE)
        rows = data.rows[some].astype(np.float64)
        scores, labels = rows @ by_class.T, data.labels[some]
        if one_vs_rest:
            slopes = expit(scores)
        else:
            slopes = softmax(scores if several else np.hstack([np.zeros_like(scores), scores]), axis=1)
        slopes[np.arange(len(labels)), labels] -= 1
        slopes[~left[some]] = 0
        total = total + (rows.T @ (slopes if several else slopes[:, 1:])).T / table.n
    return np.asarray(total).ravel()


def _minimiser(model: LogisticRegression, rows: Any, labels: NDArray[np.int64]) -> Array:
    """Return weights as near to the minimiser as scikit-learn gets, starting from a model's own weights."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # At this tolerance, the loss no longer distinguishes two weights.
        finest = model.set_params(solver="newton-cg", tol=FINEST).fit(rows, labels)
    return np.asarray(finest.coef_, np.float64).ravel()


def _bytes(rows: Any) -> int:
    if issparse(rows):
        return int(rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes)
    return int(rows.nbytes)
