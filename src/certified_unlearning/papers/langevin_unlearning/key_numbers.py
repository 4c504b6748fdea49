"""The numbers by which presets and commits are compared: one point of Fig. 3a, one of Fig. 4."""

import pandas as pd

from certified_unlearning.reproduction.summaries import standard_point, summarise


def key_numbers(rows: pd.DataFrame) -> dict[str, float | int]:
    """Return privacy, quality and cost of one removal, at the standard point of each of two experiments.

    That is the target epsilon nearest to 1, by the tightest accountant (`summaries.standard_point`).

    Args:
        rows: The rows of runs of a preset (`rows.RUN_ROWS`).

    Returns:
        Where ``fig3a`` was run: the certified ``epsilon``, the ``sigma`` it takes, and ``accuracy``, ``auc`` and
        ``log_loss`` after one record was removed (means over trials), beside ``accuracy_of_retraining`` without noise
        and ``accuracy_of_majority``, of guessing the most frequent class. Where ``fig4`` was run: the
        ``unlearning_steps`` K that removing its largest group of records takes, beside ``retraining_steps``.

    Raises:
        DataError: The rows cannot be summarised.
    """
    numbers: dict[str, float | int] = {}
    run = set(rows["experiment"])
    if "fig3a" in run:
        numbers |= _quality(summarise(rows, "fig3a"))
    if "fig4" in run:
        numbers |= _cost(summarise(rows, "fig4"))
    return numbers


def _quality(summary: pd.DataFrame) -> dict[str, float | int]:
    point = standard_point(summary)
    if point is None:
        return {}
    noiseless = summary[(summary["mechanism"] == "retraining") & (summary["variant"] == "noiseless")].iloc[0]
    return {
        "epsilon": float(point["epsilon"]),
        "sigma": float(point["sigma"]),
        "accuracy": float(point["accuracy_mean"]),
        "auc": float(point["auc_mean"]),
        "log_loss": float(point["log_loss_mean"]),
        "accuracy_of_retraining": float(noiseless["accuracy_mean"]),
        "accuracy_of_majority": float(point["majority"]),
    }


def _cost(summary: pd.DataFrame) -> dict[str, float | int]:
    point = standard_point(summary)
    if point is None:
        return {}
    return {"unlearning_steps": int(point["unlearning_steps"]), "retraining_steps": int(point["learning_steps"])}
