"""Data sets: fetched, checked (`fetch`), prepared (one module each; `table`: your own), and removal requests."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from certified_unlearning.errors import ParameterError

if TYPE_CHECKING:
    from certified_unlearning.data.prepared import PreparedData


class _DataSet(NamedTuple):
    """Where a data set is prepared, and which features of its images there are, the usual one first."""

    module: str
    function: str = "prepare"
    features: tuple[str, ...] = ()


_DATA_SETS = {
    "digits": _DataSet("digits"),
    "mnist-3-vs-8": _DataSet("mnist"),
    "adult": _DataSet("adult"),
    "cifar10-cat-vs-ship": _DataSet("cifar10", "cat_vs_ship", ("hog", "resnet18")),
    "cifar10": _DataSet("cifar10", "ten_classes", ("hog", "resnet18")),
}


def check_name(dataset: str) -> None:
    """Check that a data set of this name exists.

    Raises:
        ParameterError: It does not; the message lists those that do.
    """
    if dataset not in _DATA_SETS:
        raise ParameterError(f"there is no data set {dataset!r}; known are {', '.join(_DATA_SETS)}")


def prepare(dataset: str, raw_root: Path, seed: int, features: str | None = None) -> "PreparedData":
    """Prepare a data set from its raw files.

    Args:
        dataset: Its name.
        raw_root: The directory that `fetch.fetch` filled.
        seed: Of the split into training and test part, where the source has none.
        features: For data sets of images that offer a choice: "hog" or "resnet18". None: the only or usual ones.

    Raises:
        ParameterError: The name is unknown, or the data set has no such features, or an extra is not installed.
        DataError: A raw file is missing or damaged, or a record cannot be used.
    """
    check_name(dataset)
    # Imported here, so that importing the package does not cost scikit-learn's seconds.
    module, function, choice = _DATA_SETS[dataset]
    if features is not None and features not in choice:
        known = f"has {' and '.join(choice)}" if choice else "offers no choice"
        raise ParameterError(f"there are no features {features!r} of {dataset}, which {known}")
    chosen = {} if features is None else {"features": features}
    prepared: PreparedData = getattr(import_module(f"{__name__}.{module}"), function)(raw_root, seed, **chosen)
    return prepared
