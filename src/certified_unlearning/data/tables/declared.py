"""A declared table as a prepared data set: split and written to disk block by block, so that it may exceed memory."""

from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np

from certified_unlearning.data.prepared import PreparedData
from certified_unlearning.data.stored_rows import StoredRows
from certified_unlearning.data.tables.declaration import Table, text_of
from certified_unlearning.data.tables.table import feature_names, preprocessing, read_blocks, resolve
from certified_unlearning.errors import DataError, ParameterError, StorageError

FEATURES = "declared columns"
"""Name of a declared table's features in the records of runs."""


def prepare_table(name: str, table: Table, seed: int, scratch: Path) -> PreparedData:
    """Prepare a user's own table. Its training rows stay on disk; its test rows must fit into memory.

    Args:
        name: Name of the data set.
        table: The declaration; it must have a split.
        seed: Seed of the split, if the split is drawn at random.
        scratch: A directory with room for the training rows. Nothing is left in it.

    Raises:
        ParameterError: The declaration contradicts itself or has no split.
        DataError: The file cannot be read, or a row cannot be used; the message names it.
        StorageError: There is no room in ``scratch``.
    """
    if table.split is None:
        raise ParameterError(
            f"tables.{name}.split is missing, but the pipeline needs test records: {{test: 0.2}} draws a fifth"
        )
    if table.is_regression:
        raise ParameterError(
            f"tables.{name}.target_range must be left out: the pipeline predicts only classes; `unlearn init` predicts "
            "numbers, too"
        )
    if table.text:
        raise ParameterError(
            f"tables.{name}.text must be left out: the pipeline does not accept text; `unlearn init` does"
        )
    declared = table.classes is not None
    found = "" if declared else "; classes as found in the file"
    table = resolve(table)
    d = len(feature_names(table))
    train_labels, test_labels = [np.empty(0, np.int8)], [np.empty(0, np.int8)]
    test_features = [np.empty((0, d), np.float32)]
    try:
        scratch.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=scratch, prefix=".rows.") as rows:
            for block in read_blocks(table, seed=seed):
                rows.write(block.features[~block.test].data)
                train_labels.append(block.labels[~block.test])
                test_features.append(block.features[block.test])
                test_labels.append(block.labels[block.test])
            rows.flush()
            labels = np.concatenate(train_labels)
            # The rows keep the file open, so it exists as long as they do.
            train_features = StoredRows(rows.name, 0, (len(labels), d))
    except OSError as error:
        raise StorageError(f"cannot write to {scratch}: {error.strerror or error}") from error
    _check_parts(name, table, len(labels), sum(map(len, test_labels)))
    return PreparedData(
        name=name,
        features=FEATURES,
        train_features=train_features,
        train_labels=labels,
        test_features=np.concatenate(test_features),
        test_labels=np.concatenate(test_labels),
        preprocessing=f"{preprocessing(table)}{found}; {_split(table, seed)}",
        classes=tuple(str(each) for each in table.classes or ()),
        classes_from="declaration" if declared else "records",
    )


def _split(table: Table, seed: int) -> str:
    assert table.split is not None
    if table.split.column is None:
        return f"each record is a test record with probability {table.split.test}, seed {seed}"
    return f"test records: {table.split.column} = {text_of(table.split.test)}"


def _check_parts(name: str, table: Table, train: int, test: int) -> None:
    assert table.split is not None
    for part, count in (("training", train), ("test", test)):
        if count == 0:
            raise DataError(
                f"{table.path} has no {part} records; tables.{name}.split has column {table.split.column} and test "
                f"{table.split.test!r}"
            )
