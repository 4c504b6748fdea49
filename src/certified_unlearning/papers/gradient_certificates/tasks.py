"""The data of the experiments: clouds of two classes, data sets of images, and features files."""

from dataclasses import dataclass

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor

from certified_unlearning.data import mnist
from certified_unlearning.data.sets import load
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.papers.gradient_certificates import features_file
from certified_unlearning.papers.gradient_certificates.names import CLOUDS, KNOWN, is_file

CLOUD_RECORDS = 3200
CLOUD_TESTS = 800


@dataclass(frozen=True, eq=False)
class Task:
    """Records to learn from, and other records to predict.

    Attributes:
        name: The name of the data.
        rows: The training rows, shape ``(records, features)``, float64.
        labels: The training labels, shape ``(records,)``, whole numbers from 0.
        test_rows: The test rows, shape ``(test records, features)``.
        test_labels: The test labels, shape ``(test records,)``.
        classes: The number of classes.
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
        """The number of features of a record."""
        return self.rows.shape[1]


def task_of(name: str, *, seed: int, pooled: int = 1) -> Task:
    """Return the task with this name.

    Clouds are drawn anew for every seed; data sets of the package are fixed.

    Args:
        name: One of `KNOWN`, or the path of a features file.
        seed: The seed of the clouds, or of a data set's split if its source has none.
        pooled: The side of the squares of pixels over which images are averaged; 1 for no averaging.

    Raises:
        ParameterError: Images cannot be divided into squares of this side.
        DataError: The raw files of a data set are missing, or a features file cannot be used.
    """
    if name in CLOUDS:
        return clouds(name, seed=seed)
    if is_file(name):
        return _task_in(name, pooled)
    data = load(name, seed=seed)
    labels, test_labels = (
        # Those data sets label two classes by -1 and +1.
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
    """Return two clouds of points in the plane, transformed by `lifted`; each class has half of the points."""
    centre, deviation = CLOUDS[name]
    generator = np.random.default_rng([seed, KNOWN.index(name)])
    count = CLOUD_RECORDS + CLOUD_TESTS
    labels = generator.permutation(np.arange(count) % 2)
    points = np.where(labels[:, None] == 1, -centre, centre) + deviation * generator.standard_normal((count, 2))
    rows, numbers = lifted(torch.as_tensor(points)), torch.as_tensor(labels)
    first = slice(0, CLOUD_RECORDS), slice(CLOUD_RECORDS, None)
    return Task(name, rows[first[0]], numbers[first[0]], rows[first[1]], numbers[first[1]], 2)


def lifted(points: Tensor) -> Tensor:
    """Return points of the plane with the squares and cubes of their coordinates, shape ``(points, 6)``."""
    return torch.cat([points, points**2, points**3], dim=1)


@dataclass(frozen=True, eq=False)
class NewClass:
    """Records of classes that pre-training sees, and of a new class that it does not see.

    Attributes:
        rows: Images of shape ``(records, channels, height, width)``, from which convolutions compute features, or rows
            of shape ``(records, features)``, float64.
        labels: The labels, shape ``(records,)``, whole numbers from 0.
        new: Whether each record is of the new class, shape ``(records,)``.
        test_rows: The test rows, in the same form as ``rows``.
        test_labels: The test labels.
        test_new: Whether each test record is of the new class.
        classes: The number of labels.
        name: The name of the new class.
    """

    rows: Tensor
    labels: Tensor
    new: Tensor
    test_rows: Tensor
    test_labels: Tensor
    test_new: Tensor
    classes: int
    name: str

    @property
    def are_images(self) -> bool:
        """Whether convolutions must compute features of the rows."""
        return self.rows.ndim == 4


def new_class_of(name: str, *, seed: int, held_back: int) -> NewClass:
    """Return digit images, labelled odd or even, with one new digit; or return the contents of a features file.

    Args:
        name: ``mnist-10``, ``digits`` for the digits in scikit-learn, or the path of a features file.
        seed: The seed of the split of scikit-learn's digits into 80 % and 20 %.
        held_back: The new digit.

    Raises:
        DataError: Raw files are missing, or a features file cannot be used or does not say which records are new.
    """
    if is_file(name):
        return _new_class_in(name)
    images, digits, test_images, test_digits = _digits(name, seed=seed)
    return NewClass(
        images,
        digits % 2,
        digits == held_back,
        test_images,
        test_digits % 2,
        test_digits == held_back,
        2,
        str(held_back),
    )


def _digits(name: str, *, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return training images, shape ``(records, 1, side, side)``, and digits, then test images and digits."""
    if name == mnist.TEN_DIGITS.name:
        task = task_of(name, seed=seed)
        square = (-1, 1, mnist.PIXELS, mnist.PIXELS)
        return task.rows.reshape(square), task.labels, task.test_rows.reshape(square), task.test_labels
    found = load_digits()
    order = np.random.default_rng([seed, len(found.target)]).permutation(len(found.target))
    pixels = torch.as_tensor(found.images[order] / 16, dtype=torch.float64)[:, None]
    digits = torch.as_tensor(found.target[order].astype(np.int64))
    first = len(order) * 4 // 5
    return pixels[:first], digits[:first], pixels[first:], digits[first:]


def _new_class_in(path: str) -> NewClass:
    found = features_file.read(path)
    if found.new is None:
        raise DataError(f"{path} has no array or column `new`, which must say which records are of the new class")
    parts = (found.rows, found.labels, found.new)
    rows, labels, new = (torch.as_tensor(each[~found.test]) for each in parts)
    test_rows, test_labels, test_new = (torch.as_tensor(each[found.test]) for each in parts)
    return NewClass(rows, labels, new, test_rows, test_labels, test_new, found.classes, "the new class")


def _task_in(path: str, pooled: int) -> Task:
    found = features_file.read(path)
    rows = _pooled(torch.as_tensor(found.rows).flatten(1), pooled)
    labels, test = torch.as_tensor(found.labels), torch.as_tensor(found.test)
    return Task(path, rows[~test], labels[~test], rows[test], labels[test], found.classes)


def _pixels(rows: Tensor) -> Tensor:
    """Return pixels from 0 to 1, from rows that `data.mnist` scales to norm at most 1."""
    return (mnist.PIXELS * rows).add_(1).div_(2).clamp_(0, 1)


def _pooled(rows: Tensor, side: int) -> Tensor:
    if side == 1:
        return rows
    pixels = round(rows.shape[1] ** 0.5)
    if pixels**2 != rows.shape[1] or pixels % side:
        raise ParameterError(
            f"`pooled` must divide the side of square images, got pooled = {side} and images of {rows.shape[1]} pixels"
        )
    squares = rows.reshape(len(rows), pixels // side, side, pixels // side, side)
    return squares.mean(dim=(2, 4)).flatten(1)
