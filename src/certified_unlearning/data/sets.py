"""The list of the data sets of this package."""

from collections.abc import Iterable
from pathlib import Path

from certified_unlearning.data import adult, cifar10, digits, mnist
from certified_unlearning.data.dataset import DataSet
from certified_unlearning.data.fetch import fetch
from certified_unlearning.data.prepared import PreparedData
from certified_unlearning.errors import ParameterError

DATA_SETS = (
    digits.DIGITS,
    mnist.THREE_AGAINST_EIGHT,
    mnist.TEN_DIGITS,
    adult.ADULT,
    adult.ALL_COLUMNS,
    cifar10.CAT_AGAINST_SHIP,
    cifar10.TEN_CLASSES,
)
RAW_ROOT = Path("data/raw")
"""Directory where the project keeps raw files, unless UNLEARNING_DATA names another one."""


def built_in(name: str) -> DataSet | None:
    """Return the data set of this package with this name; None if there is none."""
    return next((each for each in DATA_SETS if each.name == name), None)


def find(name: str, data_sets: Iterable[DataSet] = DATA_SETS) -> DataSet:
    """Return the data set with this name.

    Raises:
        ParameterError: There is no such data set; the message lists the existing data sets.
    """
    known = {each.name: each for each in data_sets}
    if name not in known:
        raise ParameterError(f"there is no data set {name!r}; known data sets are {', '.join(known)}")
    return known[name]


def load(name: str, *, seed: int) -> PreparedData:
    """Prepare a data set of this package, for experiments that choose their own data set.

    Args:
        name: Name of the data set.
        seed: Seed of the split, if the source has no split.

    Raises:
        ParameterError: There is no data set with this name.
        DataError: The raw files of the data set cannot be found.
        StorageError: The raw files cannot be put in place.
    """
    known = find(name)
    fetch(known, RAW_ROOT)
    return known.prepare(RAW_ROOT, seed)
