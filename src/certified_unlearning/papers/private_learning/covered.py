"""How many deletions a private model covers at the accuracy of another system."""

import pandas as pd

CLOSE = 0.01
"""A model counts as equally accurate if its accuracy is less by at most this."""


def covered_deletions(rows: pd.DataFrame, *, beside: str) -> int:
    """Return the most deletions for which a private model is as accurate as another system, but for `CLOSE`.

    A model that covers more has more noise. Nothing is stated about numbers between two measured ones.

    Args:
        rows: Rows of `group_privacy`, for one data set and epsilon.
        beside: The other system.
    """
    table = rows.pivot_table(values="accuracy", index="deletions", columns="system")
    if beside not in table:
        return 0
    good = table.index[table["private"] >= table[beside] - CLOSE]
    return int(max(good, default=0))
