"""A stream of deletions and insertions on noisy mini-batch SGD, for every sigma (Figs. C-2 and C-3)."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from certified_unlearning.accounting.tv.subsampling import subsampling_tv
from certified_unlearning.data.sets import load
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import LinearRecords
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.noisy_sgd import NoisySgd
from certified_unlearning.mechanisms.exact.work import Work
from certified_unlearning.papers.tv_stability.sweeps import Edits
from certified_unlearning.papers.tv_stability.theory.batch_edits import insertion_tv
from certified_unlearning.reproduction.simulation.held_out import accuracies, with_spread

INSERTION = -1


@dataclass(frozen=True, eq=False)
class _Task:
    records: LinearRecords
    learned: int
    edits: list[int]
    """The edits in their order: the removed record for a deletion, and `INSERTION` for an insertion.

    Insertions add, one after the other, the records that were not learned.
    """
    test_rows: Tensor
    test_labels: Tensor

    def accuracy(self, models: Tensor) -> Tensor:
        """Return each model's share of correctly classified records, shape ``(trials,)``."""
        if self.records.loss == "logistic":
            return accuracies(models, self.test_rows, self.test_labels)
        by_class = models.view(len(models), -1, self.records.classes)
        return ((self.test_rows @ by_class).argmax(dim=2) == self.test_labels).double().mean(dim=1)


def edits_table(sweep: Edits) -> pd.DataFrame:
    """Return the cost and the accuracy of a stream of edits: one row for each sigma.

    Learning does not see the last ``insertions`` records of a random order. Edits come in random order, and the deleted
    records are drawn from the learned records. The stream is the same for all values of sigma and all trials.

    Raises:
        ParameterError: There are not enough records.
        DataError: The raw files of the data set are missing.
    """
    task = _task(sweep)
    return pd.DataFrame([_of_sigma(sweep, task, sigma) for sigma in sweep.sigma]).assign(
        experiment="edits",
        n=task.learned,
        d=task.records.dimension,
        edits=len(task.edits),
        **sweep.model_dump(include={"data", "steps", "batch_size", "step_size", "trials", "seed"}),
        expected_without_noise=expected_without_noise(task.learned, task.edits, sweep.steps, sweep.batch_size),
    )


def expected_without_noise(n: int, edits: list[int], steps: int, batch_size: int) -> float:
    """Return the expected number of edits that cause a recomputation, for a stream without noise."""
    expected = 0.0
    for edit in edits:
        if edit == INSERTION:
            expected, n = expected + insertion_tv(n=n, batch_size=batch_size, steps=steps), n + 1
        else:
            expected, n = expected + subsampling_tv(n=n, batch_size=batch_size, steps=steps), n - 1
    return expected


def _task(sweep: Edits) -> _Task:
    data = load(sweep.data, seed=sweep.seed)
    learned = data.n - sweep.insertions
    if learned <= sweep.deletions + sweep.batch_size:
        raise ParameterError(
            f"deletions + insertions + batch_size must be below {data.n}, the number of records of {sweep.data}, got "
            f"{sweep.deletions} + {sweep.insertions} + {sweep.batch_size}"
        )
    generator = np.random.default_rng([sweep.seed, data.n])
    order, classes = generator.permutation(data.n), len(data.classes)
    leaving = generator.choice(learned, sweep.deletions, replace=False)
    edits = generator.permutation(np.concatenate([leaving, np.full(sweep.insertions, INSERTION)]))
    return _Task(
        LinearRecords(
            torch.as_tensor(np.asarray(data.train_features)[order], dtype=torch.float64),
            torch.as_tensor(data.train_labels[order].astype(np.int64)),
            loss="softmax" if classes > 2 else "logistic",
            classes=classes,
        ),
        learned,
        edits.tolist(),
        torch.as_tensor(data.test_features, dtype=torch.float64),
        torch.as_tensor(data.test_labels.astype(np.int64)),
    )


def _of_sigma(sweep: Edits, task: _Task, sigma: float) -> dict[str, Any]:
    # If rows are shorter by a factor, gradients are shorter, and models longer, by the same factor.
    settings = NoisySgd(
        steps=sweep.steps,
        batch_size=sweep.batch_size,
        step_size=sweep.step_size * sweep.row_scale**2,
        sigma=sigma / sweep.row_scale,
    )
    descent, draws = ExactDescent(settings, task.records), Draws.at(sweep.seed, "edits", str(settings))
    begun = time.monotonic()
    state = descent.learn(torch.arange(task.learned), draws, trials=sweep.trials)
    learning_seconds = time.monotonic() - begun
    learned_accuracy = task.accuracy(state.model())
    work, coming = Work.none(sweep.trials), task.learned
    begun = time.monotonic()
    for edit in task.edits:
        if edit == INSERTION:
            work += descent.insert(state, coming, draws)
            coming += 1
        else:
            work += descent.delete(state, edit, draws)
    seconds = time.monotonic() - begun
    return {
        "sigma": sigma,
        "learned_accuracy": float(learned_accuracy.mean()),
        **with_spread("accuracy", task.accuracy(state.model())),
        **with_spread("unstable_edits", work.recomputations.double()),
        **with_spread("iterations_run_again", work.iterations_run_again.double()),
        "gradients": float(work.gradients.double().mean()),
        "seconds": seconds,
        "learning_seconds": learning_seconds,
    }
