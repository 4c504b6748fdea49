"""Sentences for the captions of Figures 2 to 4: the data and the sizes of the rows."""

from collections.abc import Iterable

import pandas as pd

from certified_unlearning.papers.gradient_certificates.names import title_of


def setting_of_batches(rows: pd.DataFrame) -> str:
    """Return the setting of the rows of ``batches``."""
    first = rows.iloc[0]
    return (
        f"Here: {_data(first)}, {_listed(rows['depth'])} hidden layers of {first['units']:,} units, k = "
        f"{first['k']:,}, γ = {first['gamma']:g}, {first['wanted']:.0%} wanted, one epoch."
    )


def setting_of_fine_tuning(rows: pd.DataFrame) -> str:
    """Return the setting of the rows of ``fine_tuning``."""
    first = rows.iloc[0]
    fixed = (
        f"convolutions of {_words(first['channels'].split('-'))} channels" if first["channels"] else "fixed features"
    )
    return (
        f"Here: {title_of(first['data'])}, {first['n']:,} training records of {first['new_class']}, {fixed}, "
        f"{first['units']:,} dense units, batches of {first['private']:,} private and {first['public']:,} public "
        f"records, {_epochs([first['epochs']])}, k = {_listed(rows['k'])}."
    )


def setting_of_head(rows: pd.DataFrame) -> str:
    """Return the setting of the rows of ``head``."""
    first = rows.iloc[0]
    units = f"hidden layers of {_words(first['hidden'].split('-'))} units" if first["hidden"] else "no hidden layer"
    return (
        f"Here: {_data(first)}, {units}, batches of {first['batch_size']:,}, γ = {first['gamma']:g}, "
        f"{_epochs(rows['epochs'])}, k = {_listed(rows['k'])}."
    )


def _data(row: "pd.Series") -> str:
    return f"{title_of(row['data'])} (n = {row['n']:,})"


def _epochs(values: Iterable[int]) -> str:
    distinct = sorted({*values})
    return f"{_listed(distinct)} epoch{'' if distinct == [1] else 's'}"


def _listed(values: Iterable[int]) -> str:
    """Return the distinct numbers, in increasing order, as text for a sentence: ``1, 2 and 3``."""
    return _words([f"{each:,}" for each in sorted({*values})])


def _words(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} and {values[-1]}"
