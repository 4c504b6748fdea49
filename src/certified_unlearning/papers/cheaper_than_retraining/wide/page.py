"""The readable tables of the experiment ``wide``."""

from typing import Any

import pandas as pd

from certified_unlearning.papers.cheaper_than_retraining.wide.names import SYSTEMS, title_of
from certified_unlearning.reproduction.summaries import Row
from certified_unlearning.reproduction.tabulation import ShownTable

_COLUMNS = [
    "model",
    "mean ms of a request",
    "median; largest",
    "times the certified mean",
    "ms of fit",
    "passes a request",
    "answers that moved the model",
    "test accuracy",
    "distance to the minimiser / certified distance",
    "largest gradient / its bound",
    "largest memory while fitting, without the data (MB)",
]
MOVES_NOTHING = "moves nothing"


def page(rows: pd.DataFrame) -> ShownTable:
    """Return one readable table for each data set of the experiment ``wide``."""
    first = rows.iloc[0]
    facts = (
        f"Timings on this machine: {first['machine']}. {first['requests']} requests of {first['records']} records "
        f"each, epsilon = {first['epsilon']:g} at delta = {first['delta']:g}. A pass reads all rows once. scikit-learn "
        "stops when no entry of the gradient exceeds its tolerance."
    )
    groups = {}
    for title, own in rows.groupby(rows.apply(title_of, axis=1), sort=False):
        certified = float(own.loc[own["system"] == "certified", "seconds"].iloc[0])
        data = f", {own['data_bytes'].iloc[0] / 1e6:,.0f} MB"
        groups[f"{title}{data}"] = [_line(row, certified) for _, row in own.iterrows()]
    return ShownTable(facts, _COLUMNS, groups)


def name_of(row: Row) -> str:
    """Return a model's name and tolerance, followed by a remark if no answer changed the model's weights."""
    name = SYSTEMS.get(str(row["system"]), str(row["system"]))
    if pd.notna(row["tolerance"]):
        name += f", tolerance {row['tolerance']:g}"
    return f"{name}: {MOVES_NOTHING}" if row["answers_that_moved"] == 0 else name


def _line(row: "pd.Series[Any]", certified: float) -> list[str]:
    return [
        name_of(row),
        f"{1000 * row['seconds']:.3g}",
        f"{1000 * row['seconds_median']:.3g}; {1000 * row['seconds_largest']:.3g}",
        f"{row['seconds'] / certified:.2g}",
        f"{1000 * row['fit_seconds']:.3g}",
        f"{row['passes']:.3g}",
        f"{row['answers_that_moved']} of {row['answers']}",
        f"{row['accuracy']:.4f}",
        _share(row["distance_share"]),
        _share(row["gradient_share"]),
        f"{row['memory_bytes'] / 1e6:.3g}",
    ]


def _share(value: Any) -> str:
    return "–" if pd.isna(value) else f"{float(value):.2g}"
