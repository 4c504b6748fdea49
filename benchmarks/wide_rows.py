"""A head on embeddings: requests to `CertifiedLogisticRegression` beside scikit-learn's refits, cold and warm.

Rows look like embeddings: variances fall as 1 / k, norms are 1; classes, two or more (``--classes``), are those of the
largest of as many scores, with noise. Every round takes ten records out by a request, its
certificate included, and lets scikit-learn refit without them from its old weights: at its own tolerance, with which it
makes no iteration and moves nothing, and at one with which it gets as near to the minimiser as a release must be. Also,
requests to a model without passes, which learns anew instead. Memory is the most that fitting holds at once beyond the
data. With ``--one-vs-rest 5 20`` it is each class against the rest, beside refits of as many models of two classes, and
of softmax regression. All is measured in one process; ratios are to the mean request. Run on an idle machine, one
thread: ``OMP_NUM_THREADS=1 python benchmarks/wide_rows.py``.
"""

import argparse
import functools
import itertools
import json
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from certified_unlearning.engine.objectives.float64 import SoftmaxRegression64
from certified_unlearning.estimators import CertifiedLogisticRegression
from certified_unlearning.files import write_json
from certified_unlearning.mechanisms import refit_plan
from timing import machine, seconds

DELTA = 1e-6
READ_EVERY_TIME = 5
"""So many requests are enough where each learns anew."""
RECORDS = 10
"""Records of a request."""
MOVES = {100.0: 1e-6}
"""By ``C n``: the largest of 1e-4, 1e-6 and 1e-8 with which a warm refit of 20 000 records ends near enough; with more
classes none does, and it is the same."""


def embeddings(n: int, d: int, classes: int = 2, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return rows of norm 1 with a falling spectrum, and labels that a direction of all of them tells, with noise.

    Of more than two classes there is a direction each.
    """
    draw = np.random.default_rng(seed)
    rows = draw.standard_normal((n, d), dtype=np.float32) / np.sqrt(np.arange(1, d + 1, dtype=np.float32))
    rows @= np.linalg.qr(draw.standard_normal((d, d)))[0].astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    if classes > 2:
        of_classes = rows @ draw.standard_normal((d, classes)).astype(np.float32)
        return rows, (of_classes + 0.3 * of_classes.std() * draw.standard_normal(of_classes.shape)).argmax(axis=1)
    scores = rows @ draw.standard_normal(d).astype(np.float32)
    return rows, (scores + 0.3 * scores.std() * draw.standard_normal(n) > 0).astype(np.int64)


@contextmanager
def passes_counted(n: int) -> Iterator[list[int]]:
    """Yield a list that grows with every gradient of softmax regression over so many rows."""
    passes: list[int] = []
    right = SoftmaxRegression64.gradient

    def counted(objective: SoftmaxRegression64, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        passes.extend([1] * (len(objective.labels) == n))
        return right(objective, weights)

    with mock.patch.object(SoftmaxRegression64, "gradient", counted):
        yield passes


def peak_megabytes(action: Callable[[], object]) -> float:
    """Return how much memory ``action`` held at once beyond what there was."""
    tracemalloc.start()
    action()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return peak


def measure(n: int, d: int, strength: float, classes: int, rounds: int, clock: Callable[[], float]) -> dict[str, Any]:
    """Return the seconds of every request and of every refit of scikit-learn's, and what the certificate counts."""
    took = functools.partial(seconds, clock=clock)
    rows, labels = embeddings(n + 5000, d, classes)
    rows, labels, test, test_labels = rows[:n], labels[:n], rows[n:], labels[n:]
    wide = rows.astype(np.float64)
    C = strength / n
    options = {"C": C, "fit_intercept": False}
    cold, still, moving = (
        LogisticRegression(**options),
        LogisticRegression(**options, warm_start=True),
        LogisticRegression(**options, warm_start=True, tol=MOVES.get(strength, 1e-8), max_iter=1000),
    )
    ours, anew = (CertifiedLogisticRegression(1, DELTA, **options) for _ in range(2))
    dear, refit_plan.DEAR = refit_plan.DEAR, np.inf
    anew.fit(rows, labels)
    refit_plan.DEAR = dear
    times: dict[str, list[float]] = {
        "fit": [took(lambda: ours.fit(rows, labels)) for _ in range(3)],
        "cold": [took(lambda: cold.fit(rows, labels)) for _ in range(3)],
        "request": [],
        "anew": [],
        "warm": [],
        "moving": [],
    }
    peak = peak_megabytes(lambda: CertifiedLogisticRegression(1, DELTA, **options).fit(rows, labels))
    still.fit(rows, labels)
    moving.fit(wide, labels)
    order, softmax_passes = np.random.default_rng(1).permutation(n), 0
    for number in range(rounds):
        gone, kept = order[number * RECORDS : (number + 1) * RECORDS], order[(number + 1) * RECORDS :]

        def unlearn(model: CertifiedLogisticRegression, gone: NDArray[np.int64] = gone) -> None:
            model.unlearn(gone).certificate_  # noqa: B018

        with passes_counted(n) as some:
            times["request"].append(took(lambda: unlearn(ours)))
        softmax_passes += len(some)
        if number < (rounds if strength < n and classes == 2 else READ_EVERY_TIME):
            times["anew"].append(took(lambda: unlearn(anew)))
        if number % 5 == 0:
            left, left_labels, left_wide = rows[kept], labels[kept], wide[kept]
            times["warm"].append(took(functools.partial(still.fit, left, left_labels)))
            times["moving"].append(took(functools.partial(moving.fit, left_wide, left_labels)))
    stated = ours.certificate_
    return {
        "n": n,
        "features": d,
        "classes": classes,
        "C n": strength,
        "seconds": times,
        "passes of a request": softmax_passes / rounds if classes > 2 else None,
        "megabytes of a fit": peak,
        "reads": {"scheduled": stated.scheduled_reads, "unscheduled": stated.unscheduled_reads},
        "passes": getattr(stated, "passes", None),
        "accuracy": {"ours": ours.score(test, test_labels), "scikit-learn": cold.score(test, test_labels)},
    }


class Refits:
    """scikit-learn's models of each class against the rest; its `OneVsRestClassifier` never starts from old weights."""

    def __init__(self, classes: int, **options: Any) -> None:
        self.models = [LogisticRegression(**options) for _ in range(classes)]

    def fit(self, rows: NDArray[Any], labels: NDArray[np.int64]) -> None:
        for each, model in enumerate(self.models):
            model.fit(rows, labels == each)

    def score(self, rows: NDArray[Any], labels: NDArray[np.int64]) -> float:
        scores = [model.decision_function(rows) for model in self.models]
        return float((np.argmax(scores, axis=0) == labels).mean())


def measure_one_vs_rest(
    n: int, d: int, classes: int, strength: float, rounds: int, clock: Callable[[], float]
) -> dict[str, Any]:
    """Return what `measure` does, of each class against the rest."""
    took = functools.partial(seconds, clock=clock)
    rows, labels = embeddings(n + 20_000, d, classes=classes)  # Of 5000, noise would move .003 either way.
    rows, labels, test, test_labels = rows[:n], labels[:n], rows[n:], labels[n:]
    wide = rows.astype(np.float64)
    options = {"C": strength / n, "fit_intercept": False}
    finely = {"warm_start": True, "tol": MOVES.get(strength, 1e-8), "max_iter": 1000}
    ours = CertifiedLogisticRegression(1, DELTA, strategy="one-vs-rest", **options)
    cold = Refits(classes, **options)
    theirs: dict[str, tuple[Any, NDArray[Any]]] = {
        "warm": (Refits(classes, **options, warm_start=True), rows),
        "moving": (Refits(classes, **options, **finely), wide),
        "softmax, warm": (LogisticRegression(**options, warm_start=True), rows),
        "softmax, moving": (LogisticRegression(**options, **finely), wide),
    }
    times: dict[str, list[float]] = {
        "fit": [took(lambda: ours.fit(rows, labels))],
        "cold": [took(lambda: cold.fit(rows, labels)) for _ in range(2)],
        "softmax, cold": [took(lambda: LogisticRegression(**options).fit(rows, labels)) for _ in range(2)],
        "request": [],
    } | {name: [] for name in theirs}
    for model, of_type in theirs.values():
        model.fit(of_type, labels)
    order = np.random.default_rng(1).permutation(n)
    for number in range(rounds):
        gone, kept = order[number * RECORDS : (number + 1) * RECORDS], order[(number + 1) * RECORDS :]

        def unlearn(gone: NDArray[np.int64] = gone) -> None:
            ours.unlearn(gone).certificate_  # noqa: B018

        times["request"].append(took(unlearn))
        if number % 10 == 0:
            for name, (model, of_type) in theirs.items():
                left, left_labels = of_type[kept], labels[kept]
                times[name].append(took(functools.partial(model.fit, left, left_labels)))
    stated = ours.certificate_
    return {
        "n": n,
        "features": d,
        "classes": classes,
        "C n": strength,
        "seconds": times,
        "reads": {"scheduled": stated.scheduled_reads, "unscheduled": stated.unscheduled_reads},
        "passes": getattr(stated, "passes", None),
        "accuracy": {"ours": ours.score(test, test_labels), "scikit-learn": cold.score(test, test_labels)},
    }


def print_one_vs_rest(found: dict[str, Any]) -> None:
    """Print a table's head and line."""
    times = {name: 1000 * np.array(each) for name, each in found["seconds"].items()}
    request, fit = times.pop("request"), times.pop("fit")[0]
    mean = float(request.mean())
    print(
        f"| n x d, C n, classes | request, ms: mean; median; max | {' | '.join(times)} | fit | passes, reads "
        "| accuracy |"
    )
    print("|---|" + "---:|" * (len(times) + 4))
    others = " | ".join(f"{each.mean():.0f} ({each.mean() / mean:.2g} x)" for each in times.values())
    print(
        f"| {found['n']} x {found['features']}, {found['C n']:g}, {found['classes']} against the rest "
        f"| {mean:.2f}; {np.median(request):.2f}; {request.max():.1f} | {others} "
        f"| {fit:.0f} ({fit / np.median(times['cold']):.2g} cold) "
        f"| {found['passes']}, {sum(found['reads'].values())} of {len(request)} "
        f"| {found['accuracy']['ours']:.4f} / {found['accuracy']['scikit-learn']:.4f} |",
        flush=True,
    )


def main() -> None:
    """Measure and print a table; write where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[20_000])
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--strengths", type=float, nargs="*", default=[100.0, 0.0], help="C n; 0 for C = 1")
    parser.add_argument("--classes", type=int, nargs="*", default=[2, 5, 20])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--output", type=Path, help="JSON file for the results")
    parser.add_argument("--busy", action="store_true", help="count the processor's time, where others use the machine")
    parser.add_argument(
        "--one-vs-rest", type=int, nargs="*", default=[], help="so many classes, such as 5 20, instead of two"
    )
    arguments = parser.parse_args()
    clock = time.process_time if arguments.busy else time.perf_counter
    warnings.simplefilter("ignore")
    results = []
    if not arguments.one_vs_rest:
        print(
            "| n x d, classes, C n | request, ms: mean; median; max | anew | warm | moving | cold | fit, memory "
            "| passes, reads | accuracy |"
        )
        print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    usual = () if arguments.one_vs_rest else arguments.sizes
    for n, classes, strength in itertools.product(usual, arguments.classes, arguments.strengths):
        found = measure(n, arguments.features, strength or float(n), classes, arguments.rounds, clock)
        results.append(found)
        times = {name: 1000 * np.array(each) for name, each in found["seconds"].items()}
        request, mean = times["request"], float(times["request"].mean())
        others = " | ".join(
            f"{times[name].mean():.0f} ({times[name].mean() / mean:.2g} x)"
            for name in ("anew", "warm", "moving", "cold")
        )
        fit, cold = np.median(times["fit"]), np.median(times["cold"])
        passes = found["passes of a request"]
        each = "" if passes is None else f", {passes:.2f} passes each"
        print(
            f"| {n} x {found['features']}, {classes}, {found['C n']:g} "
            f"| {mean:.2f}; {np.median(request):.2f}; {request.max():.1f} "
            f"| {others} | {fit:.0f} ({fit / cold:.2g} cold), {found['megabytes of a fit']:.0f} MB "
            f"| {found['passes']}{each}, {sum(found['reads'].values())} of {len(request)} "
            f"| {found['accuracy']['ours']:.4f} / {found['accuracy']['scikit-learn']:.4f} |",
            flush=True,
        )
    of_each = itertools.product(arguments.one_vs_rest, arguments.sizes, arguments.strengths)
    for classes, n, strength in of_each:
        results.append(
            measure_one_vs_rest(n, arguments.features, classes, strength or float(n), arguments.rounds, clock)
        )
        print_one_vs_rest(results[-1])
    if arguments.output is not None:
        write_json(arguments.output, {**machine(), "delta": DELTA, "records": RECORDS, "tables": results})
    print(json.dumps(machine()))


if __name__ == "__main__":
    main()
