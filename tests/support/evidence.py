"""Evidence for claims that is made of tables."""

from typing import Any

import pandas as pd


class Tables:
    """Evidence of tables by the names of experiments."""

    def __init__(self, **tables: pd.DataFrame) -> None:
        self._tables = tables

    def has_table(self, experiment: str) -> bool:
        """Return whether an experiment was run."""
        return experiment in self._tables

    def table(self, experiment: str) -> pd.DataFrame:
        """Return the rows of an experiment."""
        return self._tables[experiment]

    def changed(self, experiment: str, **columns: Any) -> "Tables":
        """Return the same with other columns of one experiment."""
        return Tables(**self._tables | {experiment: self._tables[experiment].assign(**columns)})
