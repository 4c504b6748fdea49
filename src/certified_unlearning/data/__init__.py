"""Data sets: fetched and checked (`fetch`), prepared (one module each), and the removal requests on them."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from certified_unlearning.errors import ParameterError

if TYPE_CHECKING:
    from certified_unlearning.data.prepared import PreparedData

_MODULES = {"digits": "digits", "mnist-3-vs-8": "mnist", "adult": "adult"}


def check_name(dataset: str) -> None:
    """Check that a data set of this name exists.

    Raises:
        ParameterError: It does not; the message lists those that do.
    """
    if dataset not in _MODULES:
        raise ParameterError(f"there is no data set {dataset!r}; known are {', '.join(_MODULES)}")


def prepare(dataset: str, raw_root: Path, seed: int) -> "PreparedData":
    """Prepare a data set from its raw files.

    Args:
        dataset: Its name.
        raw_root: The directory that `fetch.fetch` filled.
        seed: Of the split into training and test part, where the source has none.

    Raises:
        ParameterError: The name is unknown.
        DataError: A raw file is missing or damaged, or a record cannot be used.
    """
    check_name(dataset)
    # Imported here, so that importing the package does not cost scikit-learn's seconds.
    module = import_module(f"{__name__}.{_MODULES[dataset]}")
    prepared: PreparedData = module.prepare(raw_root, seed)
    return prepared
