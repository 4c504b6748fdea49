"""Regression test: compare a preset's records with a committed baseline, and show every change.

Names and whole numbers must be equal. Epsilon, sigma and other constants are not random. But their last digits depend
on the versions of the libraries' minimisers and root finders, so these constants must agree only up to
`RELATIVE_TOLERANCE`. Accuracies are random. `chance` computes how unlikely a change of accuracies is. This function is
applied to each sweep point separately, and jointly to all points that have noise. The probability that any of these
tests raises a false alarm is at most `FALSE_ALARM_RATE` (Bonferroni's correction). In the test of a single sweep
point, a change by one correct test record in every trial is tolerated (`ROUNDING`).
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
"""Largest probability that any test of accuracies raises an alarm although no distribution has changed."""
RELATIVE_TOLERANCE = 1e-6
"""Tolerance for the last digits that another library version changes (about 1e-12); a changed formula changes far
more.
"""
ROUNDING = 1
"""Largest change in a trial's number of correct test records that is not counted as a change. A record on the decision
boundary can fall on either side on another machine, and without noise, this happens in every trial of a run.
"""
TOGETHER = "all points together"
"""Name of the joint test of all points that have noise. Within one trial, rounding alone does not change a majority of
the points with noise in the same direction.
"""

OF_THE_PRESET = ("preset", "dataset", "features", "data_sha256", "n", "d", "dtype", "seed")
"""Quantities that all records of a preset share."""
OF_A_POINT = tuple(name for name in CONSTANTS if name not in (*OF_THE_PRESET, "experiment", "request", "majority"))
"""Quantities that all trials of a sweep point and request share: steps, epsilon, sigma, L, m, M, ... (The accuracy of
guessing is left out, because it is computed from the data.)
"""

Value: TypeAlias = str | int | float | None
"""Value of a quantity; None if it is empty in a record."""


class RegressionError(UnlearningError):
    """The records differ from the baseline."""


class SweepPoint(BaseModel):
    """The expected values of one request at one sweep point.

    Attributes:
        constants: Values of the quantities `OF_A_POINT`.
        correct: Number of test records that each trial classifies correctly.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    constants: dict[str, Value]
    correct: list[int]

    @field_validator("constants")
    @classmethod
    def _all_constants(cls, constants: dict[str, Value]) -> dict[str, Value]:
        return _with_exactly(constants, OF_A_POINT)


class Baseline(BaseModel):
    """The expected values of a preset's records.

    Attributes:
        constants: Values of the quantities `OF_THE_PRESET`.
        test_records: Number of test records; accuracies are multiples of its reciprocal.
        points: Points by name, such as ``<experiment>: Langevin (lsi), K = 1, epsilon = 0.5, request 1``.
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
        point: Sweep point and request, or `TOGETHER`.
        quantity: Column of the records, or ``trials``, or ``sweep point`` for a point that is missing or new.
        baseline: Old value; for accuracy, the mean over the trials.
        now: New value.
        chance: Upper bound on the probability that any accuracy in the whole comparison changes that much by chance;
            None for other quantities.
    """

    point: str
    quantity: str
    baseline: Value
    now: Value
    chance: float | None = None


def run(results: Path, preset: str, baseline: Path, accept: bool) -> str:
    """Compare a preset's records with its baseline, or make them the new baseline.

    Args:
        results: Directory of all results.
        preset: Name of the preset.
        baseline: File of the baseline (JSON).
        accept: Whether to write a new baseline instead of comparing.

    Returns:
        A text that says what was accepted, or that nothing changed.

    Raises:
        RegressionError: Something changed; the changes are printed.
        DataError: A file is missing or damaged, or the records cannot become a baseline.
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
        f"{counted(len(moves), 'quantity')} moved away from {baseline}; if these changes are right, use --accept and "
        "commit the file"
    )


def make_baseline(records: pd.DataFrame, test_records: int) -> Baseline:
    """Return the baseline that the records of a preset define.

    Args:
        records: Rows with the columns `rows.RUN_ROWS`.
        test_records: Number of records on which the accuracies were measured.

    Raises:
        DataError: Records of the same point contradict each other; accuracies are not multiples of ``1 /
            test_records``; the trials are not numbered from 0; or there are too few trials for any accuracy to raise an
            alarm.
    """
    rows_of = _sweep_points(records)
    needed = math.ceil(1 + math.log2(_tests(len(rows_of)) / FALSE_ALARM_RATE))  # `chance` is at least 2^(1 - trials).
    points = {}
    for name, rows in rows_of.items():
        trials = sorted(rows["trial"])
        if trials != list(range(len(trials))):
            given = ", ".join(map(str, trials))
            raise DataError(f"{name} has the trials {given}, but trials must be numbered from 0 without gaps")
        if len(trials) < needed:
            raise DataError(
                f"{name} has {counted(len(trials), 'trial')}, but a baseline of {counted(len(rows_of), 'point')} needs "
                f"{needed}: with fewer trials, the probability that chance alone causes even the largest change of an "
                f"accuracy is above the false-alarm rate {FALSE_ALARM_RATE:g}"
            )
        points[name] = SweepPoint(
            constants=_constants(name, rows, OF_A_POINT), correct=_correct(name, rows, test_records).tolist()
        )
    return Baseline(
        constants=_constants("the preset", records, OF_THE_PRESET), test_records=test_records, points=points
    )


def write_baseline(path: str | Path, baseline: Baseline) -> None:
    """Write a baseline as JSON, atomically, with one quantity in each line, so that a diff is readable."""
    text = baseline.model_dump_json(indent=2)
    write_text(path, re.sub(r"\[([\d,\s]+)\]", lambda numbers: f"[{' '.join(numbers[1].split())}]", text) + "\n")


def compare(records: pd.DataFrame, baseline: Baseline) -> list[ChangedQuantity]:
    """Return all differences between records and a baseline, whatever the order of the rows.

    Args:
        records: Rows with the columns `rows.RUN_ROWS`.
        baseline: Expected values.

    Raises:
        DataError: There are no records; a trial occurs twice; two runs of an experiment have the same name; or an
            accuracy is impossible with the baseline's number of test records.
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
    """Return how unlikely the differences between the trials of two runs are if nothing changed.

    This is the exact paired sign-flip test (Fisher, The Design of Experiments, 1935, section 21), two-sided. If the
    distribution of the trials did not change, each difference is as likely as its negative. This is true for rounding
    (same random numbers, another machine) and for noise (fresh random numbers). The result is the share of the
    ``2^trials`` choices of signs for which the sum is at least as far from 0 as the observed sum. The test is valid for
    every distribution of the trials. A t-test would not be valid, because counts are whole numbers: if all differences
    happen to be equal, its statistic is infinite.

    The power for 77 points and an allowance of `ROUNDING` is as follows. With the same random numbers and at least 28
    trials, the test detects every change that moves all trials in the same direction by more than the allowance. With
    fresh random numbers, a shift by 2.5 standard deviations of a trial is detected in 84 % of comparisons of 32 trials,
    and in more than 99 % with 40 trials. A shift by 1.5 standard deviations is detected in 96 % with 64 trials.

    Args:
        differences: Number of test records that each trial classifies correctly, minus the number in the baseline,
            shape ``(trials,)``.
        allowance: Number that is subtracted from the absolute value of every difference.

    Returns:
        The p-value. It is at least ``2^(1 - trials)``, and it is 1 if no difference is larger than the allowance.
    """
    sizes = np.maximum(np.abs(differences) - allowance, 0)
    distance = abs(int(np.sum(np.sign(differences) * sizes)))
    if distance == 0:
        return 1.0
    whole = int(np.sum(sizes))
    law = np.zeros(whole + 1)  # Distribution of the sum of sizes with a plus sign; other sizes have a minus.
    law[0] = 1.0
    for size in sizes:
        law = (law + np.roll(law, size)) / 2  # All that np.roll moves from the end to the front is still 0.
    return min(1.0, 2 * float(np.sum(law[(whole + distance) // 2 :])))


def show(moves: Sequence[ChangedQuantity]) -> None:
    """Print a table of the changes."""
    table = Table("point", "quantity")
    table.add_column("baseline", justify="right", overflow="fold")
    table.add_column("now", justify="right", overflow="fold")
    table.add_column("by chance", justify="right", no_wrap=True)
    for move in moves:
        likelihood = "" if move.chance is None else f"{move.chance:.0e}"
        table.add_row(move.point, move.quantity, _shown(move.baseline), _shown(move.now), likelihood)
    console = Console(markup=False, highlight=False)
    console.width = max(console.width, 120)  # Without this, a log, whose width is unknown, would have 80 columns.
    console.print(table)
    if any(move.chance is not None for move in moves):
        console.print("By chance: upper bound on the probability that random numbers alone move an accuracy that much.")


def _with_exactly(constants: dict[str, Value], names: Sequence[str]) -> dict[str, Value]:
    if different := sorted(constants.keys() ^ set(names)):
        raise ValueError(f"{', '.join(different)} missing or superfluous")
    return constants


def _sweep_points(records: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of every sweep point and request, keyed and sorted by the name of the point and request."""
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
    """Yield the quantities that differ from the expected ones in any of the rows."""
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
    """Return the number of correct test records of each common trial, in columns ``before`` and ``now``."""
    before = pd.Series(baseline.points[name].correct, name="before")
    now = pd.Series(_correct(name, rows, baseline.test_records), sorted(rows["trial"]), name="now")
    return pd.concat([before, now], axis=1, join="inner")


def _moved_accuracy(name: str, baseline: Baseline, trials: pd.DataFrame) -> Iterator[ChangedQuantity]:
    """Yield the accuracy if the trials show that it changed."""
    probability = chance((trials["now"] - trials["before"]).to_numpy()) * _tests(len(baseline.points))
    if probability <= FALSE_ALARM_RATE:
        before, now = (trials / baseline.test_records).mean()
        yield ChangedQuantity(name, "accuracy", before, now, chance=probability)


def _moved_together(baseline: Baseline, changes: Mapping[str, pd.DataFrame]) -> Iterator[ChangedQuantity]:
    """Yield the mean accuracy of all points with noise if the trials show that most of them changed in one direction.

    A trial's difference is the number of points that gained minus the number of points that lost, whatever the amounts.
    Points that share random numbers change together. The test allows for this, because it uses one difference for each
    trial, over all points; that difference is as likely as its negative. Points without noise are left out, because
    rounding changes all their trials in the same way. Among points with noise, rounding changes only a few points of a
    trial. Therefore, the test allows for rounding by subtracting half of the number of points from the size of each
    difference.
    """
    noisy = {name: trials for name, trials in changes.items() if baseline.points[name].constants["sigma"] != 0}
    signs = pd.DataFrame({name: (trials["now"] - trials["before"]).clip(-1, 1) for name, trials in noisy.items()})
    differences = signs.dropna().sum(axis=1).to_numpy(np.int64)  # Only trials that all points have are used.
    probability = chance(differences, math.ceil(len(noisy) / 2)) * _tests(len(baseline.points))
    if probability <= FALSE_ALARM_RATE:
        before, now = (pd.concat(noisy.values()) / baseline.test_records).mean()
        yield ChangedQuantity(TOGETHER, "accuracy", before, now, chance=probability)


def _tests(points: int) -> int:
    """Return the number of accuracy tests that share the false-alarm rate: one for each point, one for all together."""
    return points + 1


def _correct(name: str, rows: pd.DataFrame, test_records: int) -> NDArray[np.int64]:
    """Return the number of test records that each trial classifies correctly, in the order of the trials."""
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
