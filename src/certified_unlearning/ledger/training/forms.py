"""The form of a directory's training copy, dense or sparse, and how its files are made."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.training.copies import TrainingCopy, Writer
from certified_unlearning.ledger.training.dense import DenseCopy, DenseFiles


def copy_of(directory: ModelDirectory, features: int, version: int) -> TrainingCopy:
    """Return the training copy of a version, in the directory's form."""
    if directory.is_sparse:
        from certified_unlearning.ledger.training.sparse import SparseCopy  # Not at the top: dense rows need no SciPy.

        return SparseCopy(directory, features, version)
    return DenseCopy(directory, features, version)


@contextmanager
def beginning(directory: ModelDirectory, *, sparse: bool, targets: bool) -> Iterator[Writer]:
    """Yield a writer of the first version's training copy. The copy is durable after the block.

    Args:
        directory: The model directory.
        sparse: Whether rows are sparse.
        targets: Whether the labels are numeric targets, not classes.
    """
    if sparse:
        with _sparse_file(directory.sparse_rows(1)) as writer:
            yield writer
        return
    directory.features.parent.mkdir()
    with _dense_files(directory.features, directory.targets if targets else directory.labels) as writer:
        yield writer


@contextmanager
def adding(directory: ModelDirectory, version: int) -> Iterator[Writer]:
    """Yield a writer for the files that hold the new rows of a version until the version is made.

    The rows are durable after the block.
    """
    if directory.is_sparse:
        with _sparse_file(directory.added_rows(version)) as writer:
            yield writer
        return
    with _dense_files(directory.added_features(version), directory.added_labels(version)) as writer:
        yield writer


@contextmanager
def _sparse_file(path: Path) -> Iterator[Writer]:
    from certified_unlearning.ledger.training.sparse import SparseFile

    writer = SparseFile()
    yield writer
    writer.save(path)


@contextmanager
def _dense_files(features: Path, labels: Path) -> Iterator[Writer]:
    with features.open("wb") as feature_file, labels.open("wb") as label_file:
        writer = DenseFiles(feature_file, label_file)
        yield writer
        writer.synchronise()
