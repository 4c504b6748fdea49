"""What experiments on certified predictions learn from, by name."""

from certified_unlearning.data.sets import DATA_SETS, built_in

CLOUDS = {"near": (1.0, 0.75), "far": (1.25, 0.35)}
"""Two Gaussian clouds around (c, c) and (-c, -c): c and their standard deviation, as the authors' public examples."""
KNOWN = (*CLOUDS, *(each.name for each in DATA_SETS))
"""Clouds and data sets of the package."""


def title_of(name: str) -> str:
    """Return what figures and findings call the data."""
    if name in CLOUDS:
        return f"blobs, {name}"
    known = built_in(name)
    return known.title if known else name
