"""What networks learn in the experiments on certified predictions: clouds of two classes, and data sets of images."""

from dataclasses import dataclass

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor

from certified_unlearning.data import mnist
from certified_unlearning.data.sets import load
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.gradient_certificates.names import CLOUDS, KNOWN

CLOUD_RECORDS = 3200
CLOUD_TESTS = 800


@dataclass(frozen=True, eq=False)
class Task:
    """Records to learn from, and others to predict.

    Attributes:
        name: Of the data.
        rows: Shape ``(records, features)``, float64.
        labels: Shape ``(records,)``, whole numbers from 0.
        test_rows: Shape ``(test records, features)``.
        test_labels: Shape ``(test records,)``.
        classes: How many there are.
    """

    name: str
    rows: Tensor
    labels: Tensor
    test_rows: Tensor
    test_labels: Tensor
    classes: int

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def features(self) -> int:
        """Numbers of a record."""
        return self.rows.shape[1]


def task_of(name: str, *, seed: int, pooled: int = 1) -> Task:
    """Return the task of a name: clouds are drawn anew for every seed, data sets of the package are what they are.

    Args:
        name: One of `KNOWN`.
        seed: Of the clouds, or of a data set's split where its source has none.
        pooled: Side of the squares of pixels that images are averaged over; 1 for none.

    Raises:
        ParameterError: Images cannot be divided into such squares.
        DataError: A data set's raw files are found nowhere.
    """
    if name in CLOUDS:
        return clouds(name, seed=seed)
    data = load(name, seed=seed)
    labels, test_labels = (
        # Two classes are -1 and +1 there.
        torch.as_tensor(((each + 1) // 2 if len(data.classes) == 2 else each).astype(np.int64))
        for each in (data.train_labels, data.test_labels)
    )
    rows, test_rows = (
        _pooled(torch.as_tensor(np.asarray(each), dtype=torch.float64), pooled)
        for each in (data.train_features, data.test_features)
    )
    if name == mnist.TEN_DIGITS.name:
        rows, test_rows = _pixels(rows), _pixels(test_rows)
    return Task(name, rows, labels, test_rows, test_labels, len(data.classes))


def clouds(name: str, *, seed: int) -> Task:
    """Return two clouds of points in the plane, as `lifted` sees them; half of the points is of each class."""
    centre, deviation = CLOUDS[name]
    generator = np.random.default_rng([seed, KNOWN.index(name)])
    count = CLOUD_RECORDS + CLOUD_TESTS
    labels = generator.permutation(np.arange(count) % 2)
    points = np.where(labels[:, None] == 1, -centre, centre) + deviation * generator.standard_normal((count, 2))
    rows, numbers = lifted(torch.as_tensor(points)), torch.as_tensor(labels)
    first = slice(0, CLOUD_RECORDS), slice(CLOUD_RECORDS, None)
    return Task(name, rows[first[0]], numbers[first[0]], rows[first[1]], numbers[first[1]], 2)


def lifted(points: Tensor) -> Tensor:
    """Return points of the plane with squares and cubes of their coordinates, shape ``(points, 6)``."""
    return torch.cat([points, points**2, points**3], dim=1)


@dataclass(frozen=True, eq=False)
class Images:
    """Images of digits.

    Attributes:
        images: Shape ``(records, 1, side, side)``, pixels from 0 to 1, float64.
        digits: Shape ``(records,)``, 0 to 9.
        test_images: As ``images``.
        test_digits: As ``digits``.
    """

    images: Tensor
    digits: Tensor
    test_images: Tensor
    test_digits: Tensor


def images_of(name: str, *, seed: int) -> Images:
    """Return images of ten digits.

    Args:
        name: ``mnist-10``, or ``digits`` for those that scikit-learn embeds.
        seed: Of the split of the latter, 80 to 20.

    Raises:
        DataError: Raw files are found nowhere.
    """
    if name == mnist.TEN_DIGITS.name:
        task = task_of(name, seed=seed)
        square = (-1, 1, mnist.PIXELS, mnist.PIXELS)
        return Images(task.rows.reshape(square), task.labels, task.test_rows.reshape(square), task.test_labels)
    found = load_digits()
    order = np.random.default_rng([seed, len(found.target)]).permutation(len(found.target))
    pixels = torch.as_tensor(found.images[order] / 16, dtype=torch.float64)[:, None]
    digits = torch.as_tensor(found.target[order].astype(np.int64))
    first = len(order) * 4 // 5
    return Images(pixels[:first], digits[:first], pixels[first:], digits[first:])


def _pixels(rows: Tensor) -> Tensor:
    """Return pixels from 0 to 1, of those that `data.mnist` scales to rows of norm 1 at most."""
    return (mnist.PIXELS * rows).add_(1).div_(2).clamp_(0, 1)


def _pooled(rows: Tensor, side: int) -> Tensor:
    if side == 1:
        return rows
    pixels = round(rows.shape[1] ** 0.5)
    if pixels**2 != rows.shape[1] or pixels % side:
        raise ParameterError(f"pooled must divide the sides of square images, of {rows.shape[1]} pixels, got {side}")
    squares = rows.reshape(len(rows), pixels // side, side, pixels // side, side)
    return squares.mean(dim=(2, 4)).flatten(1)
