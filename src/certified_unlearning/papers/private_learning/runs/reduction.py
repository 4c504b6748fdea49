"""X15 and X16: Algorithm 8, which makes the error of any private learner independent of columns of zeros."""

from collections.abc import Callable, Sequence

import pandas as pd
import torch
from torch import Tensor

from certified_unlearning.accounting.private.learners import NoisyDescent
from certified_unlearning.accounting.private.losses import LinearProblem
from certified_unlearning.accounting.private.recursive import RecursiveRegularisation
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.mechanisms.private import noisy_descent, recursive
from certified_unlearning.papers.private_learning.runs.instances import gaussian_matrix, logistic_labels, sphere_rows
from certified_unlearning.papers.private_learning.runs.population import LOGISTIC
from certified_unlearning.papers.private_learning.runs.table import each_trial, trial_rows
from certified_unlearning.papers.private_learning.sweeps import PrivateGradients

ACTIVE = 10
"""The number of columns that are not zero."""
BEST = 2.0
"""The norm of the best weights, which is also the radius for which learners are planned."""
STAGE_STEPS = 100
DESCENT_STEPS = 200
Learn = Callable[[LinearProblem, BoundedRecords, Sequence[int]], Tensor]
"""A private learner, as a function that returns the weights of all trials.

Its arguments are the bounds of records, the records, and each trial's address.
"""


def embedded(
    learn: Learn, problem: LinearProblem, records: BoundedRecords, matrix: Tensor, keys: Sequence[int]
) -> Tensor:
    """Return the weights of Algorithm 8: a learner on projected rows, with its weights mapped back.

    Algorithm 8 is as private as its learner, because the bound on projected rows is enforced again. Privacy does not
    depend on the effect of the matrix on the rows.

    Args:
        learn: Any private learner.
        problem: The bounds of the original records.
        records: Records within these bounds.
        matrix: The projection, shape ``(k, features)``, drawn independently of the records.
        keys: The keys of the trials.
    """
    short = problem.embedded(len(matrix))
    rows = BoundedRecords(
        noisy_descent.embedded(matrix, records.rows), records.targets, loss=records.loss, row_norm=short.row_norm
    )
    return learn(short, rows, keys) @ matrix


def reduction_rows(sweep: PrivateGradients) -> pd.DataFrame:
    """Return the rows of X15: two learners on rows with more and more columns of zeros, and on embedded rows."""
    records, tables = _records(sweep, min(sweep.reduction_n)), []
    for name, learn in _learners(sweep).items():
        for features in sweep.reduction_features:
            wide = _with_zeros(records, features)
            keys = [address(sweep.seed, "X15", name, features, trial) for trial in range(sweep.trials)]
            found = learn(_problem(len(records), features), wide, keys)
            tables.append(_table("X15", f"{name}, all columns", records, found[:, :ACTIVE], features))
        for columns in sweep.reduction_columns:
            tables.append(_embedded("X15", name, learn, records, columns, sweep))
    return pd.concat(tables)


def reduction_records_rows(sweep: PrivateGradients) -> pd.DataFrame:
    """Return the rows of X16: recursive regularisation on embeddings, against the number of records."""
    learn, columns = _learners(sweep)["recursive"], min(sweep.reduction_columns)
    return pd.concat(
        _embedded("X16", "recursive", learn, _records(sweep, n), columns, sweep) for n in sweep.reduction_n
    )


def _embedded(
    part: str, name: str, learn: Learn, records: BoundedRecords, columns: int, sweep: PrivateGradients
) -> pd.DataFrame:
    """Return the results of an embedding; its matrix is drawn only for features that are not zero."""
    problem, found = _problem(len(records), ACTIVE), []
    for trial in range(sweep.trials):
        where = (sweep.seed, part, name, len(records), columns, trial)
        matrix = gaussian_matrix(columns, ACTIVE, Draws.at(*where, "matrix"))
        found.append(embedded(learn, problem, records, matrix, [address(*where)]))
    return _table(part, f"{name}, embedding", records, torch.cat(found), columns)


def _table(part: str, method: str, records: BoundedRecords, weights: Tensor, features: int) -> pd.DataFrame:
    norms = torch.linalg.vector_norm(records.mean_gradients(weights), dim=1)
    zero = records.mean_gradients(torch.zeros(1, ACTIVE, dtype=torch.float64))
    return trial_rows(
        part, method, n=len(records), features=features, errors=each_trial(norms.tolist()),
        at_zero=float(torch.linalg.vector_norm(zero)),
    )  # fmt: skip


def _learners(sweep: PrivateGradients) -> dict[str, Learn]:
    epsilon, delta = sweep.epsilon, sweep.delta

    def recursion(problem: LinearProblem, records: BoundedRecords, keys: Sequence[int]) -> Tensor:
        plan = RecursiveRegularisation.plan(problem, epsilon=epsilon, delta=delta, steps=STAGE_STEPS)
        return recursive.learn(plan, records, keys)

    def descent(problem: LinearProblem, records: BoundedRecords, keys: Sequence[int]) -> Tensor:
        plan = NoisyDescent.plan(problem, epsilon=epsilon, delta=delta, steps=DESCENT_STEPS)
        return noisy_descent.learn(plan, records, keys)

    return {"recursive": recursion, "noisy descent": descent}


def _records(sweep: PrivateGradients, n: int) -> BoundedRecords:
    draws = Draws.at(sweep.seed, "X15", n)
    rows = sphere_rows(n, ACTIVE, draws)
    best = torch.full((ACTIVE,), BEST / ACTIVE**0.5, dtype=torch.float64)
    return BoundedRecords(rows, logistic_labels(rows, best, draws), loss=LOGISTIC, row_norm=1.0)


def _with_zeros(records: BoundedRecords, features: int) -> BoundedRecords:
    rows = torch.nn.functional.pad(records.rows, (0, features - ACTIVE))
    return BoundedRecords(rows, records.targets, loss=records.loss, row_norm=records.row_norm)


def _problem(n: int, features: int) -> LinearProblem:
    return LinearProblem(n=n, features=features, row_norm=1.0, loss=LOGISTIC, radius=BEST)
