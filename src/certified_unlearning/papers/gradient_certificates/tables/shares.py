"""Certified shares of several networks that are trained with boxes, in many trials."""

import time
from collections.abc import Iterator
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from certified_unlearning.papers.gradient_certificates.learning import accuracy, certified, learned
from certified_unlearning.papers.gradient_certificates.sweeps import Case, Shares
from certified_unlearning.papers.gradient_certificates.tasks import task_of


def shares_table(sweep: Shares) -> pd.DataFrame:
    """Return shares of certified test predictions: one row for each case, gamma, bounding method and k.

    Raises:
        ParameterError: A batch is larger than the data, or images cannot be divided into the squares of ``pooled``.
        DataError: The raw files of a data set are missing.
    """
    rows = [row for case in sweep.cases for row in _of_case(case, sweep)]
    return pd.DataFrame(rows).assign(experiment="shares", trials=sweep.trials, seed=sweep.seed)


def _of_case(case: Case, sweep: Shares) -> Iterator[dict[str, Any]]:
    for gamma in case.gamma:
        for bounds in case.bounds:
            begun = time.monotonic()
            shares, certain, accuracies = [], [], []
            for trial in range(sweep.trials):
                task = task_of(case.data, seed=sweep.seed + trial, pooled=case.pooled)
                found = learned(
                    task, case, mode=case.mode, gamma=gamma, k=case.k, seed=sweep.seed + trial, bounds=bounds
                )
                sure = certified(found, task.test_rows, bounds)
                right = found.classes(task.test_rows) == task.test_labels
                shares.append(sure.double().mean(dim=1))
                certain.append((sure & right).double().mean(dim=1))
                accuracies.append(accuracy(found, task.test_rows, task.test_labels))
            share, spread = _moments(torch.stack(shares))
            common = {
                "case": case.name,
                "data": case.data,
                "hidden": "-".join(map(str, case.hidden)),
                "parameters": found.network.size,
                "n": len(task),
                "batch_size": case.batch_size,
                "updates": case.epochs * (len(task) // case.batch_size),
                "step_size": case.step_size,
                "mode": case.mode,
                "gamma": gamma,
                "bounds": bounds,
                "accuracy": float(torch.tensor(accuracies).mean()),
                "accuracy_std": float(torch.tensor(accuracies).std()),
                "seconds": time.monotonic() - begun,
            }
            sure_and_right = torch.stack(certain).mean(dim=0)
            for place, k in enumerate(case.k):
                yield {
                    **common,
                    "k": k,
                    "share": float(share[place]),
                    "share_std": float(spread[place]),
                    "certain_accuracy": float(sure_and_right[place]),
                }


def _moments(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return means and standard deviations over the first axis."""
    return values.mean(dim=0), values.std(dim=0)
