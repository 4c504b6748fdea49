"""Rows that are streamed give the bits of rows in memory, and only blocks of them are read."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from certified_unlearning.data.stored_rows import StoredRows
from certified_unlearning.engine import descent, randomness
from certified_unlearning.engine.objectives.linear import LinearObjective
from certified_unlearning.engine.objectives.logistic import LogisticObjective
from certified_unlearning.engine.objectives.rows import StreamedRows
from certified_unlearning.engine.objectives.softmax import SoftmaxObjective
from certified_unlearning.errors import AssumptionError, DataError

N, D, TRIALS, ROWS_AT_ONCE, OFFSET = 203, 37, 5, 16, 11
REMOVED = torch.tensor([202, 17, 0, 16, 31, 100])


def features() -> np.ndarray:
    rows = np.random.default_rng(0).standard_normal((N, D))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def stored(path: Path) -> StoredRows:
    path.write_bytes(b"x" * OFFSET + features().tobytes() + b"what follows")
    return StoredRows(path, OFFSET, (N, D))


def replacements(dtype: torch.dtype, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    rows = torch.eye(len(REMOVED), D).to(dtype)
    rows[2] *= 0.5
    return REMOVED, rows, labels[REMOVED].roll(1)


def logistic(rows: Tensor | StreamedRows, lipschitz: float = 1.0) -> LogisticObjective:
    labels = torch.from_numpy(np.random.default_rng(1).choice([-1, 1], N))
    return LogisticObjective(
        rows,
        labels,
        strong_convexity=0.1,
        lipschitz=lipschitz,
        replacements=replacements(rows.dtype, labels),
        rows_at_once=ROWS_AT_ONCE,
    )


def clipping(rows: Tensor | StreamedRows) -> LogisticObjective:
    return logistic(rows, lipschitz=0.6)


def softmax(rows: Tensor | StreamedRows) -> SoftmaxObjective:
    labels = torch.from_numpy(np.random.default_rng(1).choice(3, N))
    return SoftmaxObjective(
        rows,
        labels,
        classes=3,
        strong_convexity=0.1,
        lipschitz=2.0,
        replacements=replacements(rows.dtype, labels),
        rows_at_once=ROWS_AT_ONCE,
    )


def run(objective: LinearObjective, dtype: torch.dtype, removals: tuple[int, ...] = (0, 2, 6, 3)) -> Tensor:
    phases = [
        descent.DescentPhase(
            removed=removed,
            steps=[3] * TRIALS,
            sigma=[0.05] * TRIALS,
            keys=[randomness.address("rows", phase, trial) for trial in range(TRIALS)],
        )
        for phase, removed in enumerate(removals)
    ]
    start = torch.ones(TRIALS, objective.d, dtype=dtype)
    return descent.run(objective, start, phases, step_size=2.0, measure=lambda weights: weights[:, 0]).weights


@pytest.mark.parametrize("make", [logistic, clipping, softmax])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_streamed_rows_give_the_bits_of_rows_in_memory(
    make: Callable[[Tensor | StreamedRows], LinearObjective], dtype: torch.dtype, tmp_path: Path
) -> None:
    source = stored(tmp_path / "rows")
    streamed = make(StreamedRows(source, dtype=dtype, device=torch.device("cpu")))
    held = make(torch.from_numpy(features()).to(dtype))
    weights = run(held, dtype)
    assert torch.equal(run(streamed, dtype), weights)
    assert not torch.equal(run(held, dtype, removals=(0, 2, 6, 2)), weights)
    assert not torch.equal(run(held, dtype, removals=(0, 0, 6, 3)), weights)


def test_a_forgotten_replacement_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = run(logistic(torch.from_numpy(features())), torch.float32)
    streamed = logistic(StreamedRows(stored(tmp_path / "rows"), dtype=torch.float32, device=torch.device("cpu")))
    monkeypatch.setattr(streamed._blocks, "remove", lambda count: None)
    assert not torch.equal(run(streamed, torch.float32), held)


class WatchedSource:
    """Remembers what is read."""

    shape = (N, D)

    def __init__(self) -> None:
        self.reads: list[tuple[int, int]] = []

    def read_into(self, out: np.ndarray, start: int) -> None:
        self.reads.append((start, len(out)))
        out[:] = features()[start : start + len(out)]


@pytest.mark.parametrize("make", [logistic, softmax])
def test_a_step_reads_every_row_once_and_no_more_than_a_block_at_a_time(
    make: Callable[[StreamedRows], LinearObjective],
) -> None:
    source = WatchedSource()
    objective = make(StreamedRows(source, dtype=torch.float32, device=torch.device("cpu")))
    objective.remove(3)
    assert max(rows for _, rows in source.reads) == ROWS_AT_ONCE
    source.reads.clear()
    objective.descend(torch.ones(TRIALS, objective.d), 1.0)
    starts = range(0, N, ROWS_AT_ONCE)
    assert source.reads == [(start, min(ROWS_AT_ONCE, N - start)) for start in starts]


class OneLongRow:
    """Rows of norm 1/2, but the first of norm 1."""

    shape = (N, D)

    def read_into(self, out: np.ndarray, start: int) -> None:
        out[:] = 0
        out[:, 0] = 0.5
        if start == 0:
            out[0, 0] = 1


def test_the_longest_row_counts_whatever_block_it_is_in() -> None:
    rows = StreamedRows(OneLongRow(), dtype=torch.float32, device=torch.device("cpu"))
    with pytest.raises(AssumptionError, match=r"lipschitz must be at least 1\.41421"):
        SoftmaxObjective(
            rows, torch.zeros(N), classes=3, strong_convexity=0.1, lipschitz=1.4, rows_at_once=ROWS_AT_ONCE
        )


def test_the_caller_s_rows_are_not_changed() -> None:
    rows = torch.from_numpy(features())
    for make in (logistic, softmax):
        make(rows).remove(6)
        assert np.array_equal(rows.numpy(), features())


def test_stored_rows_are_sliced_like_an_array(tmp_path: Path) -> None:
    rows = stored(tmp_path / "rows")
    for where in (
        slice(0, 1),
        slice(5, 20),
        slice(N - 2, N + 7),
        slice(None),
        slice(9, 9),
        slice(9, 3),
        slice(-3, None),
    ):
        assert np.array_equal(rows[where], features()[where])
    assert (rows.shape, rows.ndim, rows.dtype, len(rows)) == ((N, D), 2, np.float32, N)


def test_stored_rows_outlive_the_replacement_of_their_file_and_miss_what_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    rows = stored(path)
    (tmp_path / "other").write_bytes(b"other")
    (tmp_path / "other").replace(path)
    assert np.array_equal(rows[3:5], features()[3:5])
    cut = stored(path)
    with path.open("r+b") as file:
        file.truncate(OFFSET + 4 * D * 200)
    assert np.array_equal(cut[:200], features()[:200])
    with pytest.raises(DataError, match=r"rows is damaged: it ends before row 203 of 203"):
        cut[190:]
