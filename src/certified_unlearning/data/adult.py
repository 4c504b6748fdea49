"""UCI Adult: does a person earn more than 50 000 dollars, from the six numeric columns of `adult.data`."""

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
LABELS = {">50K": 1, "<=50K": -1}
MISSING = "?"
"""How `adult.data` writes an unknown value."""


def prepare(raw_root: Path, seed: int) -> PreparedData:
    """Prepare >50K (+1) against <=50K (-1); 29 304 training and 3 257 test records.

    Args:
        raw_root: Where `fetch.fetch` put the file.
        seed: Of the split.

    Raises:
        DataError: The file is missing, damaged or not the published one.
    """
    (raw,) = RAW_FILES
    path = raw_root / raw.path
    content = read(raw, path)
    values, labels = parse(content, path)  # First: it says more than a wrong digest does.
    if len(labels) != RECORDS:
        raise DataError(f"{path} has {len(labels)} records, expected {RECORDS}")
    check(raw, content, path)
    return split_and_scale(values, labels, seed)


def parse(content: bytes, where: str | Path) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Read the numeric columns and the labels.

    Args:
        content: Lines of 15 comma-separated values, without a header.
        where: What an error message calls the file.

    Returns:
        The values, shape ``(records, 6)``, NaN where the file says ``?``; and the labels, -1 or +1.

    Raises:
        DataError: A line has another number of columns, a value that is no finite number, or another label.
    """
    positions = [(column, COLUMNS.index(column)) for column in NUMERIC_COLUMNS]
    values = []
    labels = []
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
        labels.append(LABELS[fields[-1]])
    return np.array(values, np.float64).reshape(-1, len(NUMERIC_COLUMNS)), np.array(labels, np.int8)


def split_and_scale(values: NDArray[np.float64], labels: NDArray[np.int8], seed: int) -> PreparedData:
    """Split 90/10, fill in medians, standardise, and scale each row to norm 1.

    Medians, means and standard deviations are those of the training part: nothing about a test record enters
    a training record. (The paper's code standardises over all records before it splits.)

    Raises:
        DataError: A column is constant or empty in the training part, or a class has no records.
    """
    from sklearn.model_selection import train_test_split  # Not at the top: it takes seconds, and lists import this.

    train, test, train_labels, test_labels = train_test_split(values, labels, test_size=0.1, random_state=seed)
    for column, known in zip(NUMERIC_COLUMNS, train.T, strict=True):
        if len(np.unique(known[~np.isnan(known)])) < 2:
            raise DataError(f"adult: column {column} has no two different values in the training part")
    median = np.nanmedian(train, axis=0)
    train = np.where(np.isnan(train), median, train)
    test = np.where(np.isnan(test), median, test)
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    return PreparedData(
        name="adult",
        features="numeric columns",
        train_features=unit_rows((train - mean) / deviation, "adult, training part"),
        train_labels=train_labels,
        test_features=unit_rows((test - mean) / deviation, "adult, test part"),
        test_labels=test_labels,
        preprocessing=(
            ">50K = +1, <=50K = -1; 6 numeric columns, median-imputed and standardised on the training part; "
            f"rows of norm 1; 90/10 split, seed {seed}"
        ),
    )


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
    learned_from="medians, means and scales of the training part are taken for public constants",
)
