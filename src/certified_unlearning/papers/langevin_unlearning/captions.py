"""Common parts of the captions, figures, tables and findings of this paper."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

ANEW = ("retraining", "scikit-learn")
"""Mechanisms that retrain and therefore do not depend on epsilon."""

SPREAD = (
    "Lines are means over trials. Bands extend one sample standard deviation of the trials above and below the mean, "
    "and are cut off at 0 and 1. They show the spread of single trials, not of the mean. All trials have the same "
    "split and the same removed records, so noiseless retraining gives the same value in all of them. Black dotted and "
    "dash-dotted lines are new fits by scikit-learn on the remaining records. The dotted fit starts from zero, which "
    "is retraining; the dash-dotted fit starts from the old weights, which guarantees nothing. If some accuracies are "
    "close to that of always guessing the most frequent class, a thin line shows the accuracy of these guesses."
)


def seconds_of_one(rows: "pd.DataFrame", experiment: str) -> "pd.Series[float]":
    """Return the seconds that each point took for one model.

    The trials of a run are simulated together and share the run's seconds; scikit-learn fits one model for all trials.
    """
    runs = (
        rows[rows["experiment"] == experiment]
        .groupby("point")
        .agg(seconds=("seconds", "first"), trials=("trial", "nunique"), mechanism=("mechanism", "first"))
    )
    return runs["seconds"] / runs["trials"].where(runs["mechanism"] != "scikit-learn", 1)
