"""Two-class data sets with held-out records for the choice of constants; accuracies of models; summaries of trials."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import torch
from torch import Tensor

from certified_unlearning.data.sets import load
from certified_unlearning.engine.exact.gradients import LinearRecords

HELD_OUT = 6
"""One in this many training records is held out for the choice of constants."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """A data set of two classes; the last sixth of its training records is held out for the choice of constants.

    Training records are in random order.

    Attributes:
        name: Name of the data set.
        rows: Training records, shape ``(n, d)``.
        labels: Labels of the training records, -1 or +1.
        test_rows: Test records, shape ``(n_test, d)``.
        test_labels: Labels of the test records, -1 or +1.
    """

    name: str
    rows: Tensor
    labels: Tensor
    test_rows: Tensor
    test_labels: Tensor

    @classmethod
    def load(cls, name: str, seed: int) -> Self:
        """Return a built-in data set.

        Raises:
            DataError: The raw files of the data set cannot be found.
        """
        data = load(name, seed=seed)
        order = np.random.default_rng([seed, data.n]).permutation(data.n)
        return cls(
            name,
            torch.as_tensor(np.asarray(data.train_features)[order], dtype=torch.float64),
            torch.as_tensor(data.train_labels[order], dtype=torch.float64),
            torch.as_tensor(data.test_features, dtype=torch.float64),
            torch.as_tensor(data.test_labels, dtype=torch.float64),
        )

    @property
    def n(self) -> int:
        """Number of training records."""
        return len(self.rows)

    @property
    def first(self) -> int:
        """Number of training records that are not held out."""
        return self.n - self.n // HELD_OUT

    @cached_property
    def records(self) -> LinearRecords:
        """The training records, with the logistic loss."""
        return LinearRecords(self.rows, self.labels, loss="logistic")

    def validated(self, models: Tensor) -> float:
        """Return the share of held-out records with the right sign, as a mean over the models."""
        return float(accuracies(models, self.rows[self.first :], self.labels[self.first :]).mean())

    def tested(self, models: Tensor) -> Tensor:
        """Return the share of test records with the right sign for each model, shape ``(models,)``."""
        return accuracies(models, self.test_rows, self.test_labels)


def accuracies(models: Tensor, rows: Tensor, labels: Tensor) -> Tensor:
    """Return the share of records with the right sign for each model, shape ``(models,)``."""
    return ((models @ rows.T > 0) == (labels > 0)).double().mean(dim=1)


def with_error(name: str, values: Tensor) -> dict[str, float]:
    """Return the mean of a number over trials, and its standard error."""
    return {name: float(values.mean()), f"{name}_error": float(values.std() / len(values) ** 0.5)}


def with_spread(name: str, values: Tensor | Sequence[float]) -> dict[str, float]:
    """Return the mean of a number over trials, and its standard deviation."""
    numbers = torch.as_tensor(values, dtype=torch.float64)
    return {name: float(numbers.mean()), f"{name}_std": float(numbers.std())}
