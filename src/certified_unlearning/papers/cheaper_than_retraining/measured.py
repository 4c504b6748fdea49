"""Timings of requests: all systems take turns and answer the same requests."""

import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from certified_unlearning.errors import DataError, StorageError, UnlearningError
from certified_unlearning.papers.cheaper_than_retraining.counting import Readings, counted
from certified_unlearning.papers.cheaper_than_retraining.sweeps import Cost
from certified_unlearning.papers.cheaper_than_retraining.systems import FULL_BATCH, MADE, NotRunError, Promise, System
from certified_unlearning.papers.cheaper_than_retraining.tables import Remaining, Table, prepared, synthetic
from certified_unlearning.version import code_version

LARGEST_SHARE = 0.1
"""The largest share of the records that all requests of one size may remove in total.

Because of this limit, most records are still present at the last request.
"""
_WARMED_UP_ON = 400
_NOTHING = Promise("none", "", "", adaptive=False)


def cost_table(sweep: Cost) -> pd.DataFrame:
    """Return the cost of requests: one row for each table, system and number of records per request.

    All systems are fitted once on a table. Then, for each number of records, requests come in rounds: in every round,
    each system answers the same request, in turn. Later requests remove other records; no record returns.

    Returns:
        Rows that follow `experiments.COST_ROWS`; for a system that was not run, ``skipped`` is the reason.

    Raises:
        ParameterError: A data set is unknown.
    """
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(sweep.threads)
        with threadpool_limits(sweep.threads), counted() as readings:
            _warm_up(sweep, readings)
            rows = [row for tables in _tables(sweep) for row in _measured(tables, sweep, readings)]
    finally:
        torch.set_num_threads(threads)
    return pd.DataFrame(rows).assign(
        experiment="cost",
        rounds=sweep.rounds,
        strength=sweep.strength,
        seed=sweep.seed,
        machine=machine(sweep.threads),
        code_version=code_version(),
    )


def machine(threads: int) -> str:
    """Return the machine and the versions of libraries, on which the timings depend."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = named[0] if named else platform.processor() or platform.machine()
    versions = f"scikit-learn {sklearn.__version__}, NumPy {np.__version__}, PyTorch {torch.__version__}"
    return f"{processor}, {threads} thread{'s' * (threads > 1)}, {versions}"


Made = tuple[str, int, int, Callable[[], Table]]
"""A table's name, its ``n`` and ``d`` if they are known (otherwise 0), and the function that makes the table."""


def _tables(sweep: Cost) -> Iterator[Made]:
    for spectrum, sizes in (("isotropic", sweep.isotropic), ("correlated", sweep.correlated)):
        for n in sizes:
            yield (
                spectrum,
                n,
                sweep.features,
                lambda spectrum=spectrum, n=n: synthetic(  # type: ignore[misc]
                    spectrum, n=n, features=sweep.features, seed=sweep.seed
                ),
            )
    for name in sweep.data:
        yield name, 0, 0, lambda name=name: prepared(name, seed=sweep.seed)  # type: ignore[misc]


def _measured(made: Made, sweep: Cost, readings: Readings) -> Iterator[dict[str, Any]]:
    name, n, d, make = made
    try:
        table = make()
    except (DataError, StorageError) as error:
        for system in MADE:
            for records in sweep.records:
                yield _skipped({"data": name, "n": n, "d": d, "system": system, "records": records}, str(error))
        return
    yield from _of_table(table, sweep, readings)


def _of_table(table: Table, sweep: Cost, readings: Readings) -> Iterator[dict[str, Any]]:
    systems, fits, reasons = _fitted(table, sweep, readings)
    test_rows, test_labels = table.test_rows, table.test_labels
    # From here on the table's rows move, because every system has been fitted.
    left = Remaining(table.rows, table.labels)
    order = iter(np.random.default_rng([sweep.seed, table.n]).permutation(table.n))
    for records in sweep.records:
        point = {"data": table.name, "n": table.n, "d": table.features, "records": records}
        too_many = records * sweep.rounds > LARGEST_SHARE * table.n
        measured: dict[str, list[dict[str, Any]]] = {name: [] for name in systems}
        for _ in range(0 if too_many else sweep.rounds):
            gone = np.array([next(order) for _ in range(records)])
            left.remove(gone)
            for name, system in list(systems.items()):
                before = system.scores(test_rows)
                readings.take()
                try:
                    seconds = _seconds(lambda system=system, gone=gone: system.forget(gone, left))  # type: ignore[misc]
                except UnlearningError as error:
                    reasons[name] = str(error)
                    del systems[name]
                    continue
                read, after = system.rows_read(), system.scores(test_rows)
                measured[name].append(
                    {
                        "seconds": seconds,
                        "read": read,
                        "moved": not np.array_equal(before, after),
                        "accuracy": float(np.mean((after > 0) == (test_labels > 0))),
                    }
                )
        for name in MADE:
            own = {**point, "system": name}
            if name in reasons:
                yield _skipped(own, reasons[name])
            elif too_many:
                yield _skipped(
                    own, f"{sweep.rounds} requests of {records} would remove more than a tenth of the records"
                )
            else:
                yield {**own, **_summary(measured[name], table.n), **fits[name], **_promised(systems[name].promise())}


def _fitted(
    table: Table, sweep: Cost, readings: Readings
) -> tuple[dict[str, System], dict[str, dict[str, float]], dict[str, str]]:
    """Return the fitted systems, the cost of fitting, and the reasons why other systems are not run."""
    systems, fits, reasons = {}, {}, {}
    for name, make in MADE.items():
        if name in FULL_BATCH and table.n > sweep.largest_full_batch:
            reasons[name] = (
                f"takes too long: not run above n = {sweep.largest_full_batch:,} (`largest_full_batch` in params.yaml)"
            )
            continue
        readings.take()
        try:
            system = make(table, sweep, readings)
            seconds = _seconds(system.fit)
        except (NotRunError, UnlearningError) as error:
            reasons[name] = str(error)
            continue
        systems[name] = system
        fits[name] = {"fit_seconds": seconds, "fit_passes": system.rows_read() / table.n}
    return systems, fits, reasons


def _summary(rounds: list[dict[str, Any]], n: int) -> dict[str, Any]:
    found = pd.DataFrame(rounds)
    low, median, high = np.quantile(found["seconds"], [0.25, 0.5, 0.75])
    return {
        "seconds": median,
        "seconds_low": low,
        "seconds_high": high,
        "passes": float(found["read"].mean()) / n,
        "requests_that_read": int((found["read"] > 0).sum()),
        "requests_that_moved": int(found["moved"].sum()),
        "accuracy": found["accuracy"].iloc[-1],
        "skipped": "",
    }


def _promised(promise: Promise) -> dict[str, Any]:
    return {
        "guarantee": promise.guarantee,
        "epsilon": promise.epsilon,
        "epsilon_all_releases": promise.epsilon_all,
        "delta": promise.delta,
        "comparator": promise.comparator,
        "observers": promise.observers,
        "adaptive": promise.adaptive,
        "epsilon_for_those_who_stay": promise.epsilon_stay,
        "private_for_those_who_stay": promise.epsilon_stay is not None,
    }


def _skipped(point: dict[str, Any], reason: str) -> dict[str, Any]:
    numbers = ("passes", "fit_passes", "accuracy", "seconds", "seconds_low", "seconds_high", "fit_seconds")
    counts = ("requests_that_read", "requests_that_moved")
    return {**point, **_promised(_NOTHING), **dict.fromkeys((*numbers, *counts)), "skipped": reason}


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _warm_up(sweep: Cost, readings: Readings) -> None:
    """Fit every system and let it answer one request.

    Imports and compilation on first use then do not count as the cost of a request.
    """
    table = synthetic("isotropic", n=_WARMED_UP_ON, features=sweep.features, seed=sweep.seed)
    systems, _, _ = _fitted(table, sweep.model_copy(update={"largest_full_batch": _WARMED_UP_ON}), readings)
    left, gone = Remaining(table.rows, table.labels), np.array([0])
    left.remove(gone)
    for system in systems.values():
        system.forget(gone, left)
        system.rows_read()
