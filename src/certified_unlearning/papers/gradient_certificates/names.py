"""The names of the data in the experiments on certified predictions."""

from pathlib import PurePath

from certified_unlearning.data.sets import DATA_SETS, built_in

CLOUDS = {"near": (1.0, 0.75), "far": (1.25, 0.35)}
"""The authors' centre ``c`` and standard deviation of two Gaussian clouds around (c, c) and (-c, -c)."""
KNOWN = (*CLOUDS, *(each.name for each in DATA_SETS))
"""The clouds, and the data sets of the package."""
FILE_ENDINGS = (".npz", ".parquet")
"""The file-name extensions of features files (`features_file`)."""


def is_file(name: str) -> bool:
    """Return whether the data are in a features file."""
    return name.endswith(FILE_ENDINGS)


def title_of(name: str) -> str:
    """Return the name of the data in figures and findings."""
    if name in CLOUDS:
        return f"blobs, {name}"
    if is_file(name):
        return PurePath(name).name
    known = built_in(name)
    return known.title if known else name
