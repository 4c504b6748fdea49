"""Sentences and key numbers about runs of Langevin unlearning: the cost of a request, and the quality of the model."""

import pandas as pd

from certified_unlearning.mechanisms.scikit_learn import FROM_ZERO
from certified_unlearning.papers.langevin_unlearning.captions import seconds_of_one
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.summaries import Row, standard_point, summarise
from certified_unlearning.text import counted, rounded_up, unbroken


def findings(evidence: Evidence) -> list[str]:
    """Return sentences on a removal: its cost (``fig4``) and the model's quality (``fig3a``), if these were run.

    Both sentences are about the target epsilon nearest to 1. The cost is that of the largest removed group, as in the
    report's tables.

    Raises:
        MissingEvidence: There are no complete rows.
        DataError: The rows are damaged.
    """
    rows = evidence.records
    run = set(rows["experiment"])
    sentences = []
    if "fig4" in run:
        sentences.append(cost(evidence.summary("fig4"), seconds_of_one(rows, "fig4"), evidence.preset))
    if "fig3a" in run:
        sentences.append(quality(evidence.summary("fig3a"), evidence.preset))
    return sentences


def newcomers(evidence: Evidence) -> list[str]:
    """Return the findings for readers who do not know the paper.

    Steps are compared with retraining, and accuracy with scikit-learn.

    Raises:
        MissingEvidence: There are no complete rows.
        DataError: The rows are damaged.
    """
    run, sentences = set(evidence.records["experiment"]), []
    if "fig4" in run:
        largest = _of_most_records(evidence.summary("fig4"))
        fewest = _nearest_to_1(largest[largest["mechanism"] == "langevin"]).sort_values("unlearning_steps").iloc[0]
        steps, anew = int(fewest["unlearning_steps"]), int(_retraining(largest)["learning_steps"])
        sentences.append(
            f"Removing {_removed(fewest)} takes {counted(steps, 'step')} of Langevin unlearning at "
            f"{_epsilon(fewest)}. Learning again without these records takes {anew:,} steps."
        )
    if "fig3a" in run:
        summary = evidence.summary("fig3a")
        best, again = _least_noise(summary), _fitted_again(summary)
        sentences.append(
            f"After a removal at {_epsilon(best)} the model is correct on {best['accuracy_mean']:.1%} of test records. "
            f"scikit-learn, fitted again without noise, is correct on {again['accuracy_mean']:.1%}; always guessing "
            f"the most frequent class is correct on {best['majority']:.1%}."
        )
    return sentences


def cost(summary: pd.DataFrame, seconds: pd.Series, preset: str) -> str:
    """Return a removal's steps and time, compared with retraining's steps and time and with scikit-learn's time."""
    largest = _of_most_records(summary)
    langevin = _nearest_to_1(largest[largest["mechanism"] == "langevin"]).sort_values("unlearning_steps")
    fewest, most = langevin.iloc[0], langevin.iloc[-1]
    retraining, again = _retraining(largest), _fitted_again(largest)
    steps, anew = int(fewest["unlearning_steps"]), int(retraining["learning_steps"])
    others = f" ({most['unlearning_steps']:,} by {most['accountant']})" if len(langevin) > 1 else ""
    times = f", {anew / steps:.3g} times as many" if steps else ""
    return (
        f"{preset}: removing {_removed(fewest)} at {_guarantee(fewest)} takes {counted(steps, 'step')} of Langevin "
        f"unlearning by the accountant {fewest['accountant']}{others}; retraining takes {anew:,}"
        f"{times}. If all trials run together, unlearning takes {_seconds(seconds[fewest['point']])} per model and "
        f"retraining takes {_seconds(seconds[retraining['point']])}; scikit-learn fits a model again in "
        f"{_seconds(seconds[again['point']])}{_why(seconds[fewest['point']], seconds[again['point']])}."
    )


def quality(summary: pd.DataFrame, preset: str) -> str:
    """Return the accuracies of the certified model with the least noise, of guessing, and of scikit-learn."""
    best, again = _least_noise(summary), _fitted_again(summary)
    accuracy, guessed, steps = best["accuracy_mean"], best["majority"], counted(best["unlearning_steps"], "step")
    compared = (
        "This is no better than always guessing the most frequent class, which has"
        if accuracy <= guessed
        else "Always guessing the most frequent class has"
    )
    return (
        f"{preset}: with the least noise (accountant {best['accountant']}), test accuracy is {accuracy:.4f} ± "
        f"{best['accuracy_std']:.4f} after removing {_removed(best)} at {_guarantee(best)} in {steps}. {compared} "
        f"accuracy {guessed:.4f}. scikit-learn, fitted again without noise, has accuracy "
        f"{again['accuracy_mean']:.4f}."
    )


def key_numbers(rows: pd.DataFrame) -> dict[str, float | int]:
    """Return privacy, quality and cost of one removal, at the standard point of each of two experiments.

    The standard point is the target epsilon nearest to 1 with the tightest accountant (`summaries.standard_point`).

    Args:
        rows: The rows of a preset's runs (`rows.RUN_ROWS`).

    Returns:
        If ``fig3a`` was run: the certified ``epsilon``, its ``sigma`` and its ``unlearning_steps`` K,
        ``accuracy``, ``auc`` and ``log_loss`` after one record was removed (means over trials), and for comparison
        ``accuracy_of_retraining`` without noise and ``accuracy_of_majority``, the accuracy of always guessing the most
        frequent class. If ``fig4`` was run: the number of records in the ``largest_request``, its
        ``steps_for_the_largest_request``, and the ``retraining_steps``.

    Raises:
        DataError: The rows cannot be summarised.
    """
    numbers: dict[str, float | int] = {}
    run = set(rows["experiment"])
    if "fig3a" in run:
        numbers |= _numbers_of_quality(summarise(rows, "fig3a"))
    if "fig4" in run:
        numbers |= _numbers_of_cost(summarise(rows, "fig4"))
    return numbers


def _nearest_to_1(summary: pd.DataFrame) -> pd.DataFrame:
    nearest = min(map(float, summary["epsilon_target"]), key=lambda target: abs(target - 1))
    rows: pd.DataFrame = summary[summary["epsilon_target"] == nearest]
    return rows


def _of_most_records(summary: pd.DataFrame) -> pd.DataFrame:
    rows: pd.DataFrame = summary[summary["records_removed"] == summary["records_removed"].max()]
    return rows


def _retraining(summary: pd.DataFrame) -> Row:
    return summary[summary["variant"] == "noisy"].iloc[-1]


def _fitted_again(summary: pd.DataFrame) -> Row:
    return summary[(summary["mechanism"] == "scikit-learn") & (summary["variant"] == FROM_ZERO)].iloc[0]


def _least_noise(summary: pd.DataFrame) -> Row:
    langevin = _nearest_to_1(summary[summary["mechanism"] == "langevin"])
    return langevin.sort_values("sigma", kind="stable").iloc[0]


def _why(unlearning: float, again: float) -> str:
    """Return the reason why unlearning is no faster than a new fit, or an empty text if it is faster."""
    if unlearning < again:
        return ""
    return " (here, every step reads all records; the experiment named cost measures mechanisms whose steps do not)"


def _epsilon(row: Row) -> str:
    target = f"{row['epsilon_target']:g}"
    return unbroken(f"ε = {target}")


def _removed(row: Row) -> str:
    return f"{row['records_removed']:,} of {counted(row['n'], 'record')}"


def _guarantee(row: Row) -> str:
    delta = rounded_up(float(row["delta"] + row["extra_delta"]), 2)
    return f"{_epsilon(row)} and {unbroken(f'δ = {delta}')}"


def _seconds(value: float) -> str:
    return unbroken(f"{value:.2g} s")


def _numbers_of_quality(summary: pd.DataFrame) -> dict[str, float | int]:
    point = standard_point(summary)
    if point is None:
        return {}
    noiseless = summary[(summary["mechanism"] == "retraining") & (summary["variant"] == "noiseless")].iloc[0]
    return {
        "epsilon": float(point["epsilon"]),
        "sigma": float(point["sigma"]),
        "unlearning_steps": int(point["unlearning_steps"]),
        "accuracy": float(point["accuracy_mean"]),
        "auc": float(point["auc_mean"]),
        "log_loss": float(point["log_loss_mean"]),
        "accuracy_of_retraining": float(noiseless["accuracy_mean"]),
        "accuracy_of_majority": float(point["majority"]),
    }


def _numbers_of_cost(summary: pd.DataFrame) -> dict[str, float | int]:
    point = standard_point(summary)
    if point is None:
        return {}
    return {
        "largest_request": int(point["records_removed"]),
        "steps_for_the_largest_request": int(point["unlearning_steps"]),
        "retraining_steps": int(point["learning_steps"]),
    }
