"""Certified shares by batch size and depth."""

import time
from collections.abc import Iterator
from typing import Any

import pandas as pd

from certified_unlearning.papers.gradient_certificates.learning import CHANGES, accuracy, certified, learned
from certified_unlearning.papers.gradient_certificates.sweeps import Batches, Training
from certified_unlearning.papers.gradient_certificates.tasks import task_of
from certified_unlearning.reproduction.simulation.held_out import with_spread


def batches_table(sweep: Batches) -> pd.DataFrame:
    """Return shares of certified test predictions: one row for each depth, mode and batch size.

    Raises:
        ParameterError: A batch is larger than the data.
        DataError: The raw files of a data set are missing.
    """
    return pd.DataFrame(_rows(sweep)).assign(
        experiment="batches",
        **sweep.model_dump(include={"data", "units", "k", "gamma", "wanted", "trials", "seed"}),
    )


def _rows(sweep: Batches) -> Iterator[dict[str, Any]]:
    tasks = [task_of(sweep.data, seed=sweep.seed + trial) for trial in range(sweep.trials)]
    for depth in sweep.depth:
        for size in sweep.batch_size:
            training = Training(
                hidden=[sweep.units] * depth,
                batch_size=size,
                epochs=1,
                step_size=sweep.step_size,
                decay=sweep.decay,
                weight_decay=0,
            )
            for mode in CHANGES:
                begun = time.monotonic()
                shares, accuracies = [], []
                for trial, task in enumerate(tasks):
                    found = learned(task, training, mode=mode, gamma=sweep.gamma, k=[sweep.k], seed=sweep.seed + trial)
                    shares.append(float(certified(found, task.test_rows).double().mean()))
                    accuracies.append(accuracy(found, task.test_rows, task.test_labels))
                yield {
                    "n": len(tasks[0]),
                    "depth": depth,
                    "mode": mode,
                    "batch_size": size,
                    "updates": len(tasks[0]) // size,
                    **with_spread("share", shares),
                    **with_spread("accuracy", accuracies),
                    "seconds": time.monotonic() - begun,
                }
