"""Regression: compare a preset's records with a committed baseline, and show every change.

Names and whole numbers must be equal. Other numbers (epsilon, sigma, constants) are not random either, but other
library versions of minimisers and root finders change their last digits, so they must agree to `RELATIVE_TOLERANCE`.
Accuracies are random: `chance` says how unlikely their change is, at each sweep point and at all points with noise
together; all these tests raise a false alarm with probability `FALSE_ALARM_RATE` at most (Bonferroni's correction). One
test record that every trial of a single point gains or loses is tolerated (`ROUNDING`).
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, field_validator
from rich.console import Console
from rich.table import Table

from certified_unlearning.errors import DataError, UnlearningError
from certified_unlearning.files import read_json, read_model, write_text
from certified_unlearning.reproduction.rows import RUN_ROWS, read_table
from certified_unlearning.reproduction.summaries import CONSTANTS, summarise
from certified_unlearning.text import counted

FALSE_ALARM_RATE = 1e-6
"""Largest probability of an alarm from the accuracies of all sweep points if their distributions did not change."""
RELATIVE_TOLERANCE = 1e-6
"""Room for the last digits that another library version gives (about 1e-12); a changed formula moves far more."""
ROUNDING = 1
"""Test records by which a trial may change without weight: a record on the decision boundary falls to either side as
another machine rounds, and then in every trial of a run without noise."""
TOGETHER = "all points together"
"""The name of the test over all points with noise, where rounding does not move most points of a trial the same way."""

OF_THE_PRESET = ("preset", "dataset", "features", "data_sha256", "n", "d", "dtype", "seed")
"""The quantities that all records of a preset share."""
OF_A_POINT = tuple(name for name in CONSTANTS if name not in (*OF_THE_PRESET, "experiment", "request", "majority"))
"""The quantities that all trials of a sweep point and request share: steps, epsilon, sigma, L, m, M, ... (The majority
line follows from the data.)"""

Value: TypeAlias = str | int | float | None
"""A quantity; None if a record leaves it empty."""


class RegressionError(UnlearningError):
    """The records are not what the baseline says."""


class SweepPoint(BaseModel):
    """Expected values of a sweep point and request: constants, and how many test records each trial gets right."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    constants: dict[str, Value]
    correct: list[int]

    @field_validator("constants")
    @classmethod
    def _all_constants(cls, constants: dict[str, Value]) -> dict[str, Value]:
        return _with_exactly(constants, OF_A_POINT)


class Baseline(BaseModel):
    """Expected values of a preset's records.

    Attributes:
        constants: The quantities `OF_THE_PRESET`.
        test_records: The accuracies are multiples of one over this.
        points: The points by name, such as ``<experiment>: Langevin (lsi), K = 1, epsilon = 0.5, request 1``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    constants: dict[str, Value]
    test_records: int
    points: dict[str, SweepPoint]

    @field_validator("constants")
    @classmethod
    def _all_constants(cls, constants: dict[str, Value]) -> dict[str, Value]:
        return _with_exactly(constants, OF_THE_PRESET)


@dataclass(frozen=True)
class ChangedQuantity:
    """A quantity that changed.

    Attributes:
        point: The sweep point and request, or `TOGETHER`.
        quantity: A column of the records, ``trials``, or ``sweep point`` for one that is missing or new.
        baseline: The old value; for accuracy, the mean over the trials.
        now: The new value.
        chance: A bound on the probability of any such move of accuracy in the whole comparison; else None.
    """

    point: str
    quantity: str
    baseline: Value
    now: Value
    chance: float | None = None


def run(results: Path, preset: str, baseline: Path, accept: bool) -> str:
    """Compare a preset's records with its baseline, or make them the baseline.

    Args:
        results: Directory of all results.
        preset: The preset.
        baseline: The baseline's file (JSON).
        accept: Write the baseline instead of comparing with it.

    Returns:
        What was accepted, or that nothing moved, in words.

    Raises:
        RegressionError: Something moved, which is printed.
        DataError: A file is missing or damaged, or the records cannot be a baseline.
    """
    records = read_table(results / preset / "records.parquet", RUN_ROWS)
    if accept:
        test_records = read_json(results / preset / "data.json", keys=("n_test",))["n_test"]
        accepted = make_baseline(records, test_records)
        write_baseline(baseline, accepted)
        return f"accepted: {counted(len(accepted.points), 'point')}, in {baseline}"
    expected = read_model(baseline, Baseline, "a baseline of `unlearn regression --accept`")
    moves = compare(records, expected)
    if not moves:
        return f"nothing moved: {counted(len(expected.points), 'point')} compared"
    show(moves)
    raise RegressionError(
        f"{counted(len(moves), 'quantity')} moved away from {baseline}; if that is right, use --accept and commit "
        "the file"
    )


def make_baseline(records: pd.DataFrame, test_records: int) -> Baseline:
    """Return the baseline that the records of a preset define.

    Args:
        records: Rows that follow `rows.RUN_ROWS`.
        test_records: How many records the accuracies were measured on.

    Raises:
        DataError: Records of the same point contradict each other, accuracies are not multiples of
            ``1 / test_records``, or the trials are not numbered from 0 or too few for any accuracy to raise an alarm.
    """
    rows_of = _sweep_points(records)
    needed = math.ceil(1 + math.log2(_tests(len(rows_of)) / FALSE_ALARM_RATE))  # `chance` is at least 2^(1 - trials).
    points = {}
    for name, rows in rows_of.items():
        trials = sorted(rows["trial"])
        if trials != list(range(len(trials))):
            raise DataError(f"{name} has the trials {', '.join(map(str, trials))}, which are not numbered from 0")
        if len(trials) < needed:
            raise DataError(
                f"{name} has {counted(len(trials), 'trial')}, but a baseline of {counted(len(rows_of), 'point')} needs "
                f"{needed}: with fewer, no change of "
                f"an accuracy is as unlikely as the false-alarm rate {FALSE_ALARM_RATE:g}"
            )
        points[name] = SweepPoint(
            constants=_constants(name, rows, OF_A_POINT), correct=_correct(name, rows, test_records).tolist()
        )
    return Baseline(
        constants=_constants("the preset", records, OF_THE_PRESET), test_records=test_records, points=points
    )


def write_baseline(path: str | Path, baseline: Baseline) -> None:
    """Write a baseline as JSON, atomically; one quantity a line, so that a diff reads well."""
    text = baseline.model_dump_json(indent=2)
    write_text(path, re.sub(r"\[([\d,\s]+)\]", lambda numbers: f"[{' '.join(numbers[1].split())}]", text) + "\n")


def compare(records: pd.DataFrame, baseline: Baseline) -> list[ChangedQuantity]:
    """Return everything in which records differ from a baseline, whatever the order of the rows.

    Args:
        records: Rows that follow `rows.RUN_ROWS`.
        baseline: What is expected of them.

    Raises:
        DataError: There are no records, a trial occurs twice, two runs of an experiment have the same name, or an
            accuracy is none that the baseline's number of test records can give.
    """
    now = _sweep_points(records)
    changes: dict[str, pd.DataFrame] = {}
    moves = list(_moved_constants("all points", baseline.constants, records))
    for name in sorted(baseline.points.keys() | now.keys()):
        if name not in now:
            moves.append(ChangedQuantity(name, "sweep point", "present", "missing"))
        elif name not in baseline.points:
            moves.append(ChangedQuantity(name, "sweep point", "absent", "new"))
        else:
            moves += _moved_constants(name, baseline.points[name].constants, now[name])
            moves += _moved_trials(name, baseline.points[name], now[name])
            changes[name] = _changes(name, baseline, now[name])
            moves += _moved_accuracy(name, baseline, changes[name])
    return moves + list(_moved_together(baseline, changes))


def chance(differences: NDArray[np.int64], allowance: int = ROUNDING) -> float:
    """Return how unlikely the differences between two runs' trials are if nothing changed.

    The exact paired sign-flip test (Fisher, The Design of Experiments, 1935, section 21), two-sided. When the law of
    the trials did not change, each difference is as likely as its negative, be it rounding (same random numbers,
    another machine) or all of the noise (fresh random numbers): of the ``2^trials`` choices of signs, this is the
    share whose sum is at least as far from 0. That holds for every law of the trials. A t-test would not do: counts
    are whole numbers, and where all trials happen to differ equally its statistic is infinite.

    Power at 77 points and an allowance of `ROUNDING`: with the same random numbers, any change of all trials in one
    direction by more than that, from 28 trials on; with fresh ones, a shift by 2.5 standard deviations of a trial is
    seen by 84 % of comparisons of 32 trials, by more than 99 % of 40; a shift by 1.5, by 96 % of 64.

    Args:
        differences: Test records that each trial now gets right more than in the baseline, shape ``(trials,)``.
        allowance: What is taken off every difference, towards 0.

    Returns:
        The p-value: at least ``2^(1 - trials)``, and 1 when no difference is larger than the allowance.
    """
    sizes = np.maximum(np.abs(differences) - allowance, 0)
    distance = abs(int(np.sum(np.sign(differences) * sizes)))
    if distance == 0:
        return 1.0
    whole = int(np.sum(sizes))
    law = np.zeros(whole + 1)  # of the sum of the sizes with a plus sign; the others have a minus sign
    law[0] = 1.0
    for size in sizes:
        law = (law + np.roll(law, size)) / 2  # What np.roll moves from the end to the front is 0 so far.
    return min(1.0, 2 * float(np.sum(law[(whole + distance) // 2 :])))


def show(moves: Sequence[ChangedQuantity]) -> None:
    """Print a table of what moved."""
    table = Table("point", "quantity")
    table.add_column("baseline", justify="right", overflow="fold")
    table.add_column("now", justify="right", overflow="fold")
    table.add_column("by chance", justify="right", no_wrap=True)
    for move in moves:
        likelihood = "" if move.chance is None else f"{move.chance:.0e}"
        table.add_row(move.point, move.quantity, _shown(move.baseline), _shown(move.now), likelihood)
    console = Console(markup=False, highlight=False)
    console.width = max(console.width, 120)  # In a log, where the width is not known, it would be 80.
    console.print(table)
    if any(move.chance is not None for move in moves):
        console.print("By chance: at most the probability that the random numbers alone move any accuracy so much.")


def _with_exactly(constants: dict[str, Value], names: Sequence[str]) -> dict[str, Value]:
    if different := sorted(constants.keys() ^ set(names)):
        raise ValueError(f"{', '.join(different)} missing or superfluous")
    return constants


def _sweep_points(records: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of every sweep point and request by its name, in alphabetical order."""
    if records.empty:
        raise DataError("there are no records, so there is nothing to compare")
    points: dict[str, pd.DataFrame] = {}
    for (experiment, _), rows in records.groupby(["experiment", "run_key"]):
        requests = summarise(rows, str(experiment))
        for point, request in zip(requests["point"], requests["request"], strict=True):
            name = f"{experiment}: {point}, request {request}"
            if name in points:
                raise DataError(f"the records hold more than one run called {name!r}")
            points[name] = rows[rows["request"] == request]
    return dict(sorted(points.items()))


def _values(rows: pd.DataFrame, name: str) -> list[Value]:
    """Return the different values of a column."""
    return [None if pd.isna(value) else value for value in rows[name].unique().tolist()]


def _constants(where: str, rows: pd.DataFrame, names: Sequence[str]) -> dict[str, Value]:
    constants = {}
    for name in names:
        values = _values(rows, name)
        if len(values) > 1:
            raise DataError(f"{name} of {where} should have one value, but has {', '.join(map(str, values))}")
        constants[name] = values[0]
    return constants


def _moved_constants(where: str, expected: Mapping[str, Value], rows: pd.DataFrame) -> Iterator[ChangedQuantity]:
    """Yield the quantities that are not as expected in any of the rows."""
    for name, value in expected.items():
        different = [now for now in _values(rows, name) if not _agree(value, now)]
        if different:
            yield ChangedQuantity(where, name, value, different[0])


def _agree(expected: Value, now: Value) -> bool:
    if isinstance(expected, float) and isinstance(now, float):
        return math.isclose(expected, now, rel_tol=RELATIVE_TOLERANCE)
    return expected == now


def _moved_trials(name: str, expected: SweepPoint, rows: pd.DataFrame) -> Iterator[ChangedQuantity]:
    """Yield the number of trials if it changed."""
    if sorted(rows["trial"]) != list(range(len(expected.correct))):
        yield ChangedQuantity(name, "trials", len(expected.correct), len(rows))


def _changes(name: str, baseline: Baseline, rows: pd.DataFrame) -> pd.DataFrame:
    """Return how many test records the trials in common get right: columns ``before``, ``now``; the index is trials."""
    before = pd.Series(baseline.points[name].correct, name="before")
    now = pd.Series(_correct(name, rows, baseline.test_records), sorted(rows["trial"]), name="now")
    return pd.concat([before, now], axis=1, join="inner")


def _moved_accuracy(name: str, baseline: Baseline, trials: pd.DataFrame) -> Iterator[ChangedQuantity]:
    """Yield the accuracy if the trials say that it changed."""
    probability = chance((trials["now"] - trials["before"]).to_numpy()) * _tests(len(baseline.points))
    if probability <= FALSE_ALARM_RATE:
        before, now = (trials / baseline.test_records).mean()
        yield ChangedQuantity(name, "accuracy", before, now, chance=probability)


def _moved_together(baseline: Baseline, changes: Mapping[str, pd.DataFrame]) -> Iterator[ChangedQuantity]:
    """Yield the accuracy of all points together if more than half of them go the same way, trial after trial.

    A trial's difference is the number of points that gained minus the number that lost, whatever the size. Points that
    share random numbers move together, but the test takes a trial as one: its difference, of all points at once, is as
    likely as its negative. Points without noise are left out, because rounding moves all their trials alike; among
    those with noise, rounding moves few points of a trial, and half of the points are taken off.
    """
    noisy = {name: trials for name, trials in changes.items() if baseline.points[name].constants["sigma"] != 0}
    signs = pd.DataFrame({name: (trials["now"] - trials["before"]).clip(-1, 1) for name, trials in noisy.items()})
    differences = signs.dropna().sum(axis=1).to_numpy(np.int64)  # of the trials that all points have
    probability = chance(differences, math.ceil(len(noisy) / 2)) * _tests(len(baseline.points))
    if probability <= FALSE_ALARM_RATE:
        before, now = (pd.concat(noisy.values()) / baseline.test_records).mean()
        yield ChangedQuantity(TOGETHER, "accuracy", before, now, chance=probability)


def _tests(points: int) -> int:
    """Return how many tests of accuracies share the false-alarm rate: one each point, one of all together."""
    return points + 1


def _correct(name: str, rows: pd.DataFrame, test_records: int) -> NDArray[np.int64]:
    """Return how many test records each trial gets right, in the order of the trials."""
    correct: NDArray[np.float64] = rows.sort_values("trial")["accuracy"].to_numpy() * test_records
    whole: NDArray[np.float64] = np.rint(correct)
    possible = np.isclose(correct, whole, rtol=0.0, atol=0.01) & (whole >= 0) & (whole <= test_records)
    if not possible.all():
        accuracy = correct[~possible][0] / test_records
        raise DataError(
            f"{name} has an accuracy of {accuracy:g}, which is not a multiple of 1/{test_records} from 0 to 1"
        )
    return whole.astype(np.int64)


def _shown(value: Value) -> str:
    if value is None:
        return "empty"
    return f"{value:.9g}" if isinstance(value, float) else str(value)
