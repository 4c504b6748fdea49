"""Common parts of the captions, figures, tables and findings of this paper."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

ANEW = ("retraining", "scikit-learn")
"""Mechanisms that retrain and therefore do not depend on epsilon."""

SPREAD = (
    "Lines are means over trials. Bands are one sample standard deviation over trials either way, within [0, 1]: "
    "the spread of single trials, not of their mean. All trials share one split and the same removed records; "
    "noiseless retraining has one value. Dotted and dash-dotted lines are scikit-learn fitted again on what is left: "
    "from zero, which is retraining, and from its old weights, of which nothing is guaranteed. Where accuracies come "
    "so low, a thin line is what guessing the most frequent class gets right."
)


def seconds_of_one(rows: "pd.DataFrame", experiment: str) -> "pd.Series[float]":
    """Return the seconds that one model's answer took, for each point.

    The trials of a run are simulated together and share its seconds; scikit-learn answers once for all trials.
    """
    runs = (
        rows[rows["experiment"] == experiment]
        .groupby("point")
        .agg(seconds=("seconds", "first"), trials=("trial", "nunique"), mechanism=("mechanism", "first"))
    )
    return runs["seconds"] / runs["trials"].where(runs["mechanism"] != "scikit-learn", 1)
