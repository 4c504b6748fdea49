"""What experiments on certified predictions learn from, by name."""

from pathlib import PurePath

from certified_unlearning.data.sets import DATA_SETS, built_in

CLOUDS = {"near": (1.0, 0.75), "far": (1.25, 0.35)}
"""Two Gaussian clouds around (c, c) and (-c, -c): c and their standard deviation, as the authors' public examples."""
KNOWN = (*CLOUDS, *(each.name for each in DATA_SETS))
"""Clouds and data sets of the package."""
FILE_ENDINGS = (".npz", ".parquet")
"""What the name of a features file ends in (`features_file`)."""


def is_file(name: str) -> bool:
    """Return whether the data are in a features file."""
    return name.endswith(FILE_ENDINGS)


def title_of(name: str) -> str:
    """Return what figures and findings call the data."""
    if name in CLOUDS:
        return f"blobs, {name}"
    if is_file(name):
        return PurePath(name).name
    known = built_in(name)
    return known.title if known else name
