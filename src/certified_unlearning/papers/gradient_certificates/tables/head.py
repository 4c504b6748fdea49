"""A head on fixed features, certified after each of several training lengths."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from certified_unlearning.papers.gradient_certificates.learning import CHANGES, accuracy, certified, learned
from certified_unlearning.papers.gradient_certificates.sweeps import Head, Recipe, Training
from certified_unlearning.papers.gradient_certificates.tasks import Task, task_of
from certified_unlearning.reproduction.simulation.held_out import with_spread


def head_table(sweep: Head) -> pd.DataFrame:
    """Return certified shares and bounds of accuracy: one row for each mode, number of epochs and k.

    Raises:
        ParameterError: A batch is larger than the data.
        DataError: The raw files of a data set are missing.
    """
    found = task_of(sweep.data, seed=sweep.seed)
    task = replace(found, rows=sweep.scale * found.rows, test_rows=sweep.scale * found.test_rows)
    rows = [row for mode in CHANGES for epochs in sweep.epochs for row in _after(task, sweep, mode, epochs)]
    return pd.DataFrame(rows).assign(
        experiment="head",
        hidden="-".join(map(str, sweep.hidden)),
        n=len(task),
        **sweep.model_dump(include={"data", "batch_size", "gamma", "trials", "seed"}),
    )


def _after(task: Task, sweep: Head, mode: str, epochs: int) -> Iterator[dict[str, Any]]:
    begun = time.monotonic()
    shares, accuracies, bounds = [], [], []
    training = Training(**sweep.model_dump(include={*Recipe.model_fields}), epochs=epochs)
    for trial in range(sweep.trials):
        found = learned(task, training, mode=mode, gamma=sweep.gamma, k=sweep.k, seed=sweep.seed + trial)
        shares.append(certified(found, task.test_rows).double().mean(dim=1))
        accuracies.append(accuracy(found, task.test_rows, task.test_labels))
        bounds.append(found.accuracy_bounds(task.test_rows, task.test_labels))
    seconds = time.monotonic() - begun
    for place, k in enumerate(sweep.k):
        yield {
            "mode": mode,
            "epochs": epochs,
            "updates": epochs * (len(task) // sweep.batch_size),
            "parameters": found.network.size,
            "k": k,
            **with_spread("share", [float(each[place]) for each in shares]),
            **with_spread("accuracy", accuracies),
            "least_accuracy": sum(each[place][0] for each in bounds) / len(bounds),
            "largest_accuracy": sum(each[place][1] for each in bounds) / len(bounds),
            "seconds": seconds,
        }
