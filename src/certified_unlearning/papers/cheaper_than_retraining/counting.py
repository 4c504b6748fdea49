"""Rows that solvers read, counted where they are read: the loss with its gradient, or the Hessian, is one reading."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from sklearn.linear_model._linear_loss import LinearModelLoss

from certified_unlearning.engine.objectives.float64 import LogisticRegression64


class Readings:
    """How many rows were read.

    Attributes:
        rows: So many, one that was read twice counted twice.
    """

    def __init__(self) -> None:
        self.rows = 0

    def take(self) -> int:
        """Return the number, and count from 0 again."""
        taken, self.rows = self.rows, 0
        return taken


@contextmanager
def counted() -> Iterator[Readings]:
    """Count readings of scikit-learn's L-BFGS and Newton solvers and of certified refits, whatever thread.

    An evaluation of scikit-learn's loss is one reading of the rows that it is given, with its gradient or its Hessian;
    so is each round over the blocks of ours. A count costs a microsecond a reading.
    """
    readings = Readings()

    def counting(original: Callable[..., Any], rows: Callable[..., int]) -> Callable[..., Any]:
        def evaluate(*arguments: Any, **named: Any) -> Any:
            readings.rows += rows(*arguments, **named)
            return original(*arguments, **named)

        return evaluate

    with ExitStack() as patches:
        for owner, name, rows in (
            (LinearModelLoss, "loss_gradient", lambda loss, coef, X, *others, **named: len(X)),
            (LinearModelLoss, "gradient_hessian", lambda loss, coef, X, *others, **named: len(X)),
            (LogisticRegression64, "blocks", lambda objective: len(objective.rows)),
        ):
            patches.enter_context(mock.patch.object(owner, name, counting(getattr(owner, name), rows)))
        yield readings
