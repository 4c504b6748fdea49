"""Counts of the rows that solvers read.

An evaluation of the loss with its gradient, or of the Hessian, reads rows once.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from sklearn.linear_model._linear_loss import LinearModelLoss

from certified_unlearning.engine.objectives.float64 import LogisticRegression64, SoftmaxRegression64

FREE = ("blocks", "sample")
"""Methods of a loss whose calls are not counted.

Rows from ``blocks`` are counted when a loss is evaluated. The method ``sample`` returns another loss, whose evaluations
are counted, too.
"""


class Readings:
    """A count of the rows that were read.

    Attributes:
        rows: The number of rows that were read; a row that was read twice counts twice.
        inside: Whether an evaluation is being counted.
    """

    def __init__(self) -> None:
        self.rows, self.inside = 0, False

    def take(self) -> int:
        """Return the number of rows, and restart the count at 0."""
        taken, self.rows = self.rows, 0
        return taken


@contextmanager
def counted() -> Iterator[Readings]:
    """Count the rows that are read, in any thread, by certified refits and scikit-learn's L-BFGS and Newton solvers.

    An evaluation of scikit-learn's loss, with its gradient or its Hessian, reads its rows once. Each evaluation of our
    loss, compiled or not, also reads the loss's rows once, and so does each product of a vector with a Hessian from the
    loss's ``hessian_at``. Counting takes a microsecond for each reading.
    """
    readings = Readings()
    with ExitStack() as patches:
        for name in ("loss_gradient", "gradient_hessian"):
            original = getattr(LinearModelLoss, name)
            counting = _counting(readings, original, lambda loss, coef, X, *others, **named: int(X.shape[0]))
            patches.enter_context(mock.patch.object(LinearModelLoss, name, counting))
        for kind in (LogisticRegression64, SoftmaxRegression64):
            for name, original in inspect.getmembers(kind, inspect.isfunction):
                if not name.startswith("_") and name not in FREE:
                    counting = _counting(readings, original, lambda loss, *others, **named: int(loss.rows.shape[0]))
                    patches.enter_context(mock.patch.object(kind, name, counting))
        yield readings


def _counting(readings: Readings, original: Callable[..., Any], rows_of: Callable[..., int]) -> Callable[..., Any]:
    def read(action: Callable[..., Any], rows: int) -> Any:
        """Count an evaluation, but not the evaluations inside it."""
        if readings.inside:
            return action()
        readings.rows, readings.inside = readings.rows + rows, True
        try:
            return action()
        finally:
            readings.inside = False

    def evaluate(*arguments: Any, **named: Any) -> Any:
        rows = rows_of(*arguments, **named)
        found = read(lambda: original(*arguments, **named), rows)
        return (lambda vector: read(lambda: found(vector), rows)) if callable(found) else found

    return evaluate
