"""Common parts of the captions, figures, tables and findings of this paper."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

ANEW = ("retraining", "scikit-learn")
"""Mechanisms that retrain and therefore do not depend on epsilon."""

SPREAD = (
    "Lines are means over trials. Bands are one sample standard deviation of the trials to both sides, cut off at 0 "
    "and 1: they show the spread of single trials, not of the mean. All trials have the same split and the same "
    "removed records; noiseless retraining has one value. Dotted and dash-dotted lines are new fits by scikit-learn "
    "on the remaining records: from zero, which is retraining, and from its old weights, which guarantees nothing. "
    "If accuracies fall that low, a thin line shows the accuracy of always guessing the most frequent class."
)


def seconds_of_one(rows: "pd.DataFrame", experiment: str) -> "pd.Series[float]":
    """Return the seconds that one model's answer took, for each point.

    The trials of a run are simulated together and share the run's seconds; scikit-learn answers once for all trials.
    """
    runs = (
        rows[rows["experiment"] == experiment]
        .groupby("point")
        .agg(seconds=("seconds", "first"), trials=("trial", "nunique"), mechanism=("mechanism", "first"))
    )
    return runs["seconds"] / runs["trials"].where(runs["mechanism"] != "scikit-learn", 1)
