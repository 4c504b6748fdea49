"""The number of deletions that a private model covers with about the same accuracy as another system."""

import pandas as pd

CLOSE = 0.01
"""The largest loss in accuracy with which a model still counts as equally accurate."""


def covered_deletions(rows: pd.DataFrame, *, beside: str) -> int:
    """Return the largest number of deletions at which a private model is about as accurate as another system.

    The accuracy of the private model must be at least that of the other system minus `CLOSE`. A model that covers more
    deletions has more noise. Numbers of deletions between two measured numbers are not considered.

    Args:
        rows: The rows of `group_privacy` for one data set and epsilon.
        beside: The name of the other system.
    """
    table = rows.pivot_table(values="accuracy", index="deletions", columns="system")
    if beside not in table:
        return 0
    good = table.index[table["private"] >= table[beside] - CLOSE]
    return int(max(good, default=0))
