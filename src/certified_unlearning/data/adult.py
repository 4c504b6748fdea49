"""UCI Adult: whether a person earns more than 50 000 dollars, from six numeric or all 14 columns of `adult.data`."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.data.dataset import DataSet
from certified_unlearning.data.fetch import check, read
from certified_unlearning.data.prepared import PreparedData, unit_rows
from certified_unlearning.data.raw_file import RawFile
from certified_unlearning.errors import DataError

RAW_FILES = (
    RawFile(
        "adult/adult.data",
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        "5d7c39d7b8804f071cdd1f2a7c460872",
        ("https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",),
    ),
)
RECORDS = 32_561
COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)
NUMERIC_COLUMNS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
WORD_COLUMNS = tuple(column for column in COLUMNS[:-1] if column not in NUMERIC_COLUMNS)
LABELS = {">50K": 1, "<=50K": -1}
MISSING = "?"
"""The spelling of an unknown value in `adult.data`."""


def prepare(raw_root: Path, seed: int) -> PreparedData:
    """Prepare >50K (+1) against <=50K (-1) from the numeric columns; 29 304 training and 3 257 test records.

    Args:
        raw_root: Directory where `fetch.fetch` put the file.
        seed: Seed of the split.

    Raises:
        DataError: The file is missing, damaged or not the published one.
    """
    values, _, labels = _parsed(raw_root)
    return split_and_scale(values, labels, seed)


def prepare_all_columns(raw_root: Path, seed: int) -> PreparedData:
    """Do the same as `prepare`, with all columns; each value of a column of words becomes a 0/1 feature.

    Args:
        raw_root: Directory where `fetch.fetch` put the file.
        seed: Seed of the split.

    Raises:
        DataError: The file is missing, damaged or not the published one.
    """
    values, words, labels = _parsed(raw_root)
    return split_and_scale(values, labels, seed, words)


def _parsed(raw_root: Path) -> tuple[NDArray[np.float64], NDArray[np.str_], NDArray[np.int8]]:
    (raw,) = RAW_FILES
    path = raw_root / raw.path
    content = read(raw, path)
    # Parse before checking the digest, because parsing errors say more than a wrong digest does.
    values, words, labels = parse(content, path)
    if len(labels) != RECORDS:
        raise DataError(f"{path} has {len(labels)} records, expected {RECORDS}")
    check(raw, content, path)
    return values, words, labels


def parse(content: bytes, where: str | Path) -> tuple[NDArray[np.float64], NDArray[np.str_], NDArray[np.int8]]:
    """Read the numeric columns, the columns of words, and the labels.

    Args:
        content: Lines of 15 comma-separated values, without a header.
        where: Name of the file in error messages.

    Returns:
        The values, shape ``(records, 6)``, NaN where the file has ``?``; the words, shape ``(records, 8)``; and the
        labels, -1 or +1.

    Raises:
        DataError: A line has a wrong number of columns, a value that is not a finite number, or an unknown label.
    """
    positions = [(column, COLUMNS.index(column)) for column in NUMERIC_COLUMNS]
    word_positions = [COLUMNS.index(column) for column in WORD_COLUMNS]
    values, words, labels = [], [], []
    for number, line in enumerate(content.decode("ascii", "replace").split("\n"), start=1):
        if not line.strip():
            continue  # The published file ends with an empty line.
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(COLUMNS):
            raise DataError(
                f"{where}, line {number}: {len(fields)} columns, expected the {len(COLUMNS)} columns "
                f"{', '.join(COLUMNS)}"
            )
        if fields[-1] not in LABELS:
            raise DataError(f"{where}, line {number}: income is {fields[-1]!r}, expected {' or '.join(LABELS)}")
        values.append([_number(fields[at], f"{where}, line {number}: {column}") for column, at in positions])
        words.append([fields[at] for at in word_positions])
        labels.append(LABELS[fields[-1]])
    return (
        np.array(values, np.float64).reshape(-1, len(NUMERIC_COLUMNS)),
        np.array(words, np.str_).reshape(-1, len(WORD_COLUMNS)),
        np.array(labels, np.int8),
    )


def split_and_scale(
    values: NDArray[np.float64], labels: NDArray[np.int8], seed: int, words: NDArray[np.str_] | None = None
) -> PreparedData:
    """Split 90/10, fill in medians, standardise, and scale each row to norm 1.

    Medians, means, standard deviations and the known values of words are taken from the training part only, so nothing
    about a test record enters a training record. (The paper's code standardises over all records before it splits.) An
    unknown value (``?``) counts as a separate word. A word that does not occur in the training part becomes all
    zeros.

    Args:
        values: Numeric columns.
        labels: -1 or +1.
        seed: Seed of the split.
        words: Columns of words, if requested.

    Raises:
        DataError: A column is constant or empty in the training part, or a class has no records.
    """
    # Imported here, because it takes seconds and the lists of data sets import this module.
    from sklearn.model_selection import train_test_split

    of_training, of_test = train_test_split(np.arange(len(labels)), test_size=0.1, random_state=seed)
    train, test = values[of_training], values[of_test]
    for column, known in zip(NUMERIC_COLUMNS, train.T, strict=True):
        if len(np.unique(known[~np.isnan(known)])) < 2:
            raise DataError(f"adult: column {column} has fewer than two different values in the training part")
    median = np.nanmedian(train, axis=0)
    train = np.where(np.isnan(train), median, train)
    test = np.where(np.isnan(test), median, test)
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    train, test = (train - mean) / deviation, (test - mean) / deviation
    indicators = ""
    if words is not None:
        train, test = (
            np.hstack([part, _indicators(words[chosen], words[of_training])])
            for part, chosen in ((train, of_training), (test, of_test))
        )
        indicators = f"{train.shape[1] - len(NUMERIC_COLUMNS)} indicators of words of the training part; "
    return PreparedData(
        name=(ADULT if words is None else ALL_COLUMNS).name,
        features="numeric columns" if words is None else "all columns",
        train_features=unit_rows(train, "adult, training part"),
        train_labels=labels[of_training],
        test_features=unit_rows(test, "adult, test part"),
        test_labels=labels[of_test],
        preprocessing=(
            ">50K = +1, <=50K = -1; 6 numeric columns, median-imputed and standardised on the training part; "
            f"{indicators}rows of norm 1; 90/10 split, seed {seed}"
        ),
    )


def _indicators(words: NDArray[np.str_], known: NDArray[np.str_]) -> NDArray[np.float64]:
    """Return a column for each known value of each column of words: 1 in rows with this value."""
    columns = zip(words.T, known.T, strict=True)
    return np.hstack([column[:, None] == np.unique(values) for column, values in columns]).astype(np.float64)


def _number(text: str, where: str) -> float:
    if text == MISSING:
        return float("nan")
    try:
        number = float(text)
    except ValueError as error:
        raise DataError(f"{where} is {text!r}, expected a number") from error
    if not np.isfinite(number):
        raise DataError(f"{where} is {text!r}, expected a finite number or {MISSING}")
    return number


ADULT = DataSet(
    "adult",
    "Adult",
    prepare,
    raw_files=RAW_FILES,
    learned_from="medians, means and scales of the training part are assumed to be public constants",
)
ALL_COLUMNS = DataSet(
    "adult-14",
    "Adult, all 14 columns",
    prepare_all_columns,
    raw_files=RAW_FILES,
    preset="exact",
    learned_from="medians, means, scales and words of the training part are assumed to be public constants",
)
