"""Requests of exact unlearning: the time without recomputation for several n, in units of gradients, and relative to a
refit.

For each n, a model of one trial learns by noisy SGD (T = 200, m = 50, rows of 784 random numbers). Then records are
deleted one by one, until some deletions caused a recomputation and some did not. The medians of both are printed, with
the time of learning. Then the estimator is compared with scikit-learn's fit from scratch on MNIST's 3 against 8. Run it
on an idle machine with one thread: ``OMP_NUM_THREADS=1 python benchmarks/exact_unlearning.py``. MNIST needs
UNLEARNING_DATA.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from certified_unlearning.data.sets import load
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import LinearRecords
from certified_unlearning.errors import DataError
from certified_unlearning.estimators import ExactLogisticRegression
from certified_unlearning.files import write_json
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.noisy_sgd import NoisySgd
from timing import machine, seconds

SETTINGS = NoisySgd(steps=200, batch_size=50, step_size=4.0, sigma=0.01)


def by_size(n: int, deletions: int) -> dict[str, Any]:
    """Return the seconds of learning from ``n`` records, and of deletions with and without a recomputation."""
    draws = Draws(1)
    rows = draws.normal(n, 784)
    rows /= torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    descent = ExactDescent(SETTINGS, LinearRecords(rows, torch.where(rows[:, 0] > 0, 1, -1), loss="logistic"))
    learning = [seconds(lambda: descent.learn(torch.arange(n), draws)) for _ in range(3)]
    state = descent.learn(torch.arange(n), draws)
    kept, again, gradients, spent = [], [], 0, 0.0
    for record in range(deletions):
        start = time.perf_counter()
        work = descent.delete(state, record, draws)
        took = time.perf_counter() - start
        (again if int(work.recomputations[0]) else kept).append(took)
        gradients, spent = gradients + int(work.gradients[0]), spent + took
    learned = SETTINGS.steps * SETTINGS.batch_size
    return {
        "n": n,
        "learning, ms": 1e3 * float(np.median(learning)),
        "kept, ms": 1e3 * float(np.median(kept)),
        "again, ms": 1e3 * float(np.median(again)) if again else None,
        "share again": len(again) / deletions,
        "gradients / learning": gradients / deletions / learned,
        "seconds / learning": spent / deletions / float(np.median(learning)),
    }


def beside_scikit_learn(deletions: int) -> dict[str, Any]:
    """Return the milliseconds of fits and of the estimator's requests on MNIST, and the accuracies."""
    data = load("mnist-3-vs-8", seed=0)
    rows, labels = np.asarray(data.train_features, dtype=np.float64), data.train_labels
    cold = LogisticRegression(C=80 / len(rows), fit_intercept=False)
    exact = ExactLogisticRegression(fit_intercept=False)
    fits = {
        "scikit-learn": np.median([seconds(lambda: cold.fit(rows, labels)) for _ in range(3)]),
        "fit": np.median([seconds(lambda: exact.fit(rows, labels)) for _ in range(3)]),
    }
    requests = [seconds(lambda record=record: exact.unlearn([record])) for record in range(deletions)]
    return {
        **{name: 1e3 * float(took) for name, took in fits.items()},
        "request, mean": 1e3 * float(np.mean(requests)),
        "request, median": 1e3 * float(np.median(requests)),
        "accuracy": (
            cold.score(data.test_features, data.test_labels),
            exact.score(np.asarray(data.test_features), data.test_labels),
        ),
    }


def main() -> None:
    """Print both tables, and write them to a file if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deletions", type=int, default=300)
    parser.add_argument("--output", type=Path, help="JSON file for the results")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, Any] = {"machine": machine(), "sizes": []}
    for n in (15_000, 30_000, 60_000, 120_000):
        found["sizes"].append(by_size(n, arguments.deletions))
        print(json.dumps(found["sizes"][-1]), flush=True)
    try:
        found["mnist"] = beside_scikit_learn(arguments.deletions)
        print(json.dumps(found["mnist"]))
    except DataError as error:
        print(f"MNIST is left out: {error}")
    if arguments.output:
        write_json(arguments.output, found)


if __name__ == "__main__":
    main()
