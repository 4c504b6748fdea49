"""Runs that several processes share: the same bits for any number of processes; what ends them."""

import hashlib
import math
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from certified_unlearning.accounting.core import rounding
from certified_unlearning.engine import board, descent, randomness, row_shards
from certified_unlearning.engine.checkpoint import Checkpoint
from certified_unlearning.engine.minibatch import NUMBERS_AT_ONCE, CyclicObjective
from certified_unlearning.engine.objectives.linear import LinearObjective
from certified_unlearning.engine.objectives.logistic import LogisticObjective
from certified_unlearning.engine.objectives.rows import Scratch, StreamedRows
from certified_unlearning.engine.objectives.sharded import ShardedCycle, ShardedObjective
from certified_unlearning.engine.objectives.softmax import SoftmaxObjective
from certified_unlearning.engine.row_cut import LEAST_ROWS, MOST_BLOCKS, cut
from certified_unlearning.engine.row_shards import ALONE, RowShards, SharedCheckpoint
from certified_unlearning.errors import DivergedError, ProcessError
from tests.support.ranks import in_ranks

N, D, TRIALS, STRENGTH = 8 * LEAST_ROWS + 11, 5, 3, 0.1
BATCH = 4 * LEAST_ROWS + 1
"""The last of three batches is shorter than a quarter: some of its blocks have no records."""
REMOVED = torch.tensor([8202, 17, 0, 5000, 1024, 4100])
FEATURES = np.random.default_rng(0).standard_normal((N, D))
FEATURES = np.asarray(FEATURES / np.linalg.norm(FEATURES, axis=1, keepdims=True), np.float32)
LABELS = {classes: torch.from_numpy(np.random.default_rng(1).choice(classes, N)) for classes in (2, 3)}
LABELS[2] = 2 * LABELS[2] - 1


class Source:
    """Rows as in a file; it notes which were read."""

    shape = (N, D)

    def __init__(self) -> None:
        self.read: set[int] = set()

    def read_into(self, out: np.ndarray, start: int) -> None:
        out[:] = FEATURES[start : start + len(out)]
        self.read |= set(range(start, start + len(out)))


def replacements(classes: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    return REMOVED, 0.5 * torch.eye(len(REMOVED), D).to(dtype), LABELS[classes][REMOVED].roll(1)


def loss(classes: int, lipschitz: float) -> Callable[..., LinearObjective]:
    if classes == 2:
        return partial(LogisticObjective, strong_convexity=STRENGTH, lipschitz=lipschitz)
    return partial(SoftmaxObjective, classes=classes, strong_convexity=STRENGTH, lipschitz=lipschitz)


def full_batch(
    shards: RowShards, dtype: torch.dtype, classes: int, lipschitz: float = 2.0, source: Source | None = None
) -> ShardedObjective:
    one_loss = loss(classes, lipschitz)
    return ShardedObjective(
        torch.from_numpy(FEATURES).to(dtype)
        if source is None
        else StreamedRows(source, dtype=dtype, device=torch.device("cpu")),
        LABELS[classes],
        loss=lambda rows, labels, gone: one_loss(rows, labels, replacements=gone),
        d=D * (1 if classes == 2 else classes),
        strong_convexity=STRENGTH,
        replacements=replacements(classes, dtype),
        shards=shards,
    )


def mini_batches(shards: RowShards | None, dtype: torch.dtype, classes: int) -> ShardedCycle | CyclicObjective:
    rows, others = torch.from_numpy(FEATURES).to(dtype), replacements(classes, dtype)
    if classes == 2:
        rows, others = -LABELS[2][:, None] * rows, (others[0], -others[2][:, None] * others[1], others[2])
    made: Any = CyclicObjective if shards is None else partial(ShardedCycle, shards=shards)
    labels = LABELS[classes].clone()
    options = {"classes": classes, "batch_size": BATCH, "strong_convexity": STRENGTH, "replacements": others}
    objective: ShardedCycle | CyclicObjective = made(rows, labels, **options)
    return objective


OBJECTIVES: dict[str, Callable[[RowShards, torch.dtype], descent.Objective]] = {
    "logistic": partial(full_batch, classes=2),
    "clipped logistic": partial(full_batch, classes=2, lipschitz=0.6),
    "softmax": partial(full_batch, classes=3),
    "mini-batches, logistic": partial(mini_batches, classes=2),
    "mini-batches, softmax": partial(mini_batches, classes=3),
}
DTYPES = (torch.float32, torch.float64)


def run(
    objective: descent.Objective, dtype: torch.dtype, checkpoint: Checkpoint | None = None
) -> descent.DescentResult:
    cyclic = isinstance(objective, (ShardedCycle, CyclicObjective))
    phases = [
        descent.DescentPhase(
            removed=removed,
            steps=[7, 20, 5],
            sigma=[0.05] * TRIALS,
            keys=[randomness.address("row shards", number, trial) for trial in range(TRIALS)],
            place=20 * number if cyclic else None,
            measure_at=[4, 16],
        )
        for number, removed in enumerate((0, 2, 6, 3))
    ]
    return descent.run(
        objective,
        torch.ones(TRIALS, objective.d, dtype=dtype),
        phases,
        step_size=1.5,
        measure=lambda weights: weights[:, 0].double(),
        radius=4.0,
        checkpoint=checkpoint,
    )


def digest(trajectory: descent.DescentResult) -> str:
    content = hashlib.sha256(trajectory.weights.numpy().tobytes())
    for values in (*trajectory.published, *(trajectory.curve[place] for place in sorted(trajectory.curve))):
        content.update(values.tobytes())
    return content.hexdigest()


def every_digest(shards: RowShards) -> dict[tuple[str, str], str]:
    return {
        (name, str(dtype)): digest(run(make(shards, dtype), dtype))
        for name, make in OBJECTIVES.items()
        for dtype in DTYPES
    }


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def alone() -> dict[tuple[str, str], str]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    made = every_digest(ALONE)
    torch.set_num_threads(before)
    return made


@pytest.mark.parametrize("ranks", [2, 3])
def test_the_number_of_processes_changes_no_bit(ranks: int, alone) -> None:
    results = in_ranks(ranks, every_digest)
    for result in results:
        assert result == alone
    assert len(set(alone.values())) == len(OBJECTIVES) * len(DTYPES)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_it_is_the_same_function_as_that_of_one_process_up_to_rounding(name: str) -> None:
    classes = 3 if "softmax" in name else 2
    dtype = torch.float64
    if "mini" in name:
        expected: Any = mini_batches(None, dtype, classes)
    else:
        rows, labels = torch.from_numpy(FEATURES).to(dtype), LABELS[classes]
        lipschitz = 0.6 if "clipped" in name else 2.0
        expected = loss(classes, lipschitz)(rows, labels, replacements=replacements(classes, dtype))
    found = run(OBJECTIVES[name](ALONE, dtype), dtype).weights
    torch.testing.assert_close(found, run(expected, dtype).weights, rtol=0, atol=1e-12)


def test_streamed_rows_give_the_same_bits_and_a_process_reads_its_own_rows_only(alone) -> None:
    def work(shards: RowShards) -> tuple[str, set[int]]:
        source = Source()
        objective = full_batch(shards, torch.float32, 3, source=source)
        return digest(run(objective, torch.float32)), source.read

    results = in_ranks(3, work)
    assert {found for found, _ in results} == {alone["softmax", "torch.float32"]}
    blocks = cut(N)
    for rank, (_, read) in enumerate(results):
        own = [blocks[block] for block in RowShards(rank, 3).own(len(blocks))]
        assert read == set(range(own[0].start, own[-1].stop))
    assert sum(len(read) for _, read in results) == N


def test_a_shared_run_goes_on_from_a_checkpoint_with_another_number_of_processes(alone, tmp_path: Path) -> None:
    """Of three processes one is killed after 50 steps; two go on from what the first one wrote."""
    path = tmp_path / "state"

    def work(shards: RowShards, last: int) -> str:
        # Only the first process may read or write: the others are given a place where nothing can be.
        place = path if shards.rank == 0 else tmp_path / "nowhere" / "state"
        checkpoint = SharedCheckpoint(Checkpoint(place, "key", every_seconds=0.0), shards)
        objective = OBJECTIVES["mini-batches, softmax"](shards, torch.float32)
        take, taken = objective.descend, 0

        def descend(weights: Tensor, step_size: float) -> None:
            nonlocal taken
            taken += 1
            if taken > last and shards.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            take(weights, step_size)

        objective.descend = descend  # type: ignore[method-assign]
        found = digest(run(objective, torch.float32, checkpoint))
        return f"{found} after {taken} steps"

    first, killed, third = in_ranks(3, partial(work, last=50))
    assert killed is None
    for survivor in (first, third):
        assert isinstance(survivor, ProcessError), survivor
        assert str(survivor) == (
            "another of the 3 processes of this run ended or cannot be reached; "
            "to continue from the last checkpoint, start the run again"
        )
    expected = f"{alone['mini-batches, softmax', 'torch.float32']} after 33 steps"  # Of 80, 47 were kept.
    assert in_ranks(2, partial(work, last=1000)) == [expected] * 2


# Sums that are left in memory of one machine, or sent


def sums_of(shards: RowShards, rounds: int) -> list[float]:
    """Sums of what both processes have, round after round, in growing sizes; one of them is always late to read."""
    found, scratch = [], Scratch()
    for number in range(rounds):
        weights = torch.full((2, 3 + number // 20), float(number))
        given = weights + shards.rank + 1
        total = shards.total(2, lambda block, given=given: given, weights, scratch)  # type: ignore[misc]
        found.append(float(total.sum()) / total.numel() - 2 * number)
    return found


MEMORIES = ["of one machine", "none", "full", "larger than allowed", "of another machine", "not to be mapped"]


@pytest.mark.parametrize("memory", MEMORIES)
def test_sums_are_the_same_wherever_they_lie(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(shards: RowShards) -> tuple[list[float], int, list[str]]:
        sizes: list[int] = []
        gather = row_shards.distributed.all_gather

        def watched(received: list[Tensor], sent: Tensor) -> None:
            sizes.append(sent.numel())
            gather(received, sent)

        monkeypatch.setattr(row_shards.distributed, "all_gather", watched)
        if memory == "none":
            monkeypatch.delattr(os, "memfd_create", raising=False)
        elif memory == "full":
            monkeypatch.setattr(os, "posix_fallocate", _no_room)
        elif memory == "larger than allowed":
            monkeypatch.setattr(board, "SHARE", 1 << 60)
        elif memory == "of another machine":  # What is open there by that number is another file.
            monkeypatch.setattr(board, "_address_of", _address_of_another)
        elif memory == "not to be mapped" and shards.rank:
            monkeypatch.setattr(board.mmap, "mmap", _no_room)
        found = sums_of(shards, 100)
        shards.close()
        return found, max(sizes, default=0), open_memories()

    ((one, sent, open_one), (two, sent_too, open_two)) = in_ranks(2, work)
    assert one == two == [3.0] * 100
    shared = memory == "of one machine" and board._is_suitable()
    assert (sent == sent_too == 0) == shared
    # What is mapped has a descriptor of its own until nobody looks at the sums any more.
    assert shared or open_one == open_two == []


def _address_of_another(descriptor: int) -> bytes:
    """Return the address of a file in memory, where a file of another name and the same size is found."""
    another = os.memfd_create("of another run")
    os.ftruncate(another, os.fstat(descriptor).st_size)
    return f"/proc/{os.getpid()}/fd/{another}\n{Path(f'/proc/self/fd/{descriptor}').readlink()}".encode()


def open_memories() -> list[str]:
    """Return the nameless files in memory that this process has open."""
    here = Path("/proc/self/fd")
    links = [os.readlink(here / name) for name in os.listdir(here) if (here / name).is_symlink()]  # noqa: PTH115, PTH208
    return [link for link in links if "unlearning-" in link]


def test_a_gradient_that_failed_may_be_asked_for_again() -> None:
    def work(shards: RowShards) -> list[float]:
        weights, scratch, failures, found = torch.zeros(1, 3), Scratch(), [3] if shards.rank else [], []

        def gradient_of(number: int, block: int) -> Tensor:
            if failures == [number]:
                failures.clear()
                raise MemoryError
            return torch.full((1, 3), 10.0**number)

        for number in range(6):
            try:
                total = shards.total(2, partial(gradient_of, number), weights, scratch)
            except MemoryError:
                total = shards.total(2, partial(gradient_of, number), weights, scratch)
            found.append(float(total[0, 0]))
        return found

    assert in_ranks(2, work) == [[2.0 * 10**number for number in range(6)]] * 2


def test_after_a_wait_that_was_interrupted_nothing_is_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    if not board._is_suitable():
        pytest.skip("processes share memory on Linux and x86-64 only")
    monkeypatch.setattr(board, "ASKING", 0.01)

    def interrupt() -> None:
        raise KeyboardInterrupt

    def work(shards: RowShards) -> list[float]:
        weights, scratch, found = torch.zeros(1, 3), Scratch(), []
        for number in (0, 1, 2, 2, 3) if shards.rank == 0 else (0, 1, 2, 3):
            with monkeypatch.context() as patched:
                if len(found) == 2 and shards.rank == 0:
                    patched.setattr(os, "sched_yield", interrupt)
                elif len(found) == 2:
                    time.sleep(0.2)
                try:
                    total = shards.total(2, lambda block, of=10.0**number: torch.full((1, 3), of), weights, scratch)  # type: ignore[misc]
                    found.append(float(total[0, 0]))
                except KeyboardInterrupt:
                    found.append(math.nan)
        return found

    interrupted, other = in_ranks(2, work)
    assert isinstance(interrupted, ProcessError), interrupted
    assert isinstance(other, ProcessError), other


@pytest.mark.parametrize(
    "of_second", [((2, 3), torch.float64, 2), ((3, 2), torch.float32, 2), ((2, 3), torch.float32, 4)]
)
def test_processes_with_weights_of_another_shape_or_type_do_not_compute_the_same(
    of_second: tuple[tuple[int, int], torch.dtype, int],
) -> None:
    """Zeros have equal sums of bits, whatever they are."""

    def work(shards: RowShards) -> float:
        sums_of(shards, 90)  # Room for either.
        shape, dtype, blocks = of_second if shards.rank else ((2, 3), torch.float32, 2)
        weights = torch.zeros(shape, dtype=dtype)
        return float(shards.total(blocks, lambda block: weights + 1, weights, Scratch()).sum())

    if not board._is_suitable():
        pytest.skip("messages of other sizes end in an error of their own")
    assert all(isinstance(each, DivergedError) for each in in_ranks(2, work))


def _no_room(*given: Any) -> None:
    raise OSError("no space left on device")


def test_one_side_of_memory_for_all_sums_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that goes on at once would write where another one still reads."""
    if not board._is_suitable():
        pytest.skip("processes share memory on Linux and x86-64 only")
    joined = row_shards._joined

    def one_side(self: board.Board) -> Tensor:
        return self._sides[0]

    def work(shards: RowShards, faulty: bool) -> list[float]:
        def late(*given: Any) -> Tensor:
            if shards.rank:
                time.sleep(0.01)
            return joined(*given)

        monkeypatch.setattr(row_shards, "_joined", late)
        if faulty:
            monkeypatch.setattr(board.Board, "turn", one_side)
        return sums_of(shards, 30)

    assert in_ranks(2, partial(work, faulty=False)) == [[3.0] * 30] * 2
    # Other sums, or marks that do not fit, which end one process and then the other.
    assert in_ranks(2, partial(work, faulty=True)) != [[3.0] * 30] * 2


def test_a_process_that_ends_is_seen_by_one_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "ASKING", 0.01)

    def work(shards: RowShards, *, raises: bool) -> Any:
        sums_of(shards, 3)
        if shards.rank:
            time.sleep(0.2)
            if raises:
                raise ValueError("not this process")
            os.kill(os.getpid(), signal.SIGKILL)
        return sums_of(shards, 3)

    for raises in (False, True):
        waiting, ended = in_ranks(2, partial(work, raises=raises))
        assert isinstance(waiting, ProcessError), waiting
        assert "ended or cannot be reached" in str(waiting)
        assert (ended is None) != raises


# Planted faults


def test_noise_that_depends_on_the_process_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    fill = randomness.fill_blocks

    def work(shards: RowShards) -> str:
        def faulty(out: Tensor, keys: list[int], first: int) -> None:
            fill(out, [key + shards.rank for key in keys], first)

        monkeypatch.setattr(randomness, "fill_blocks", faulty)
        return digest(run(full_batch(shards, torch.float32, 2), torch.float32))

    for result in in_ranks(2, work):
        assert isinstance(result, DivergedError), result
        assert "the 2 processes of this run have different weights" in str(result)


def test_one_bit_of_one_weight_is_a_difference() -> None:
    def work(shards: RowShards) -> Tensor:
        weights = torch.ones(2, 3)
        if shards.rank:
            weights[1, 1] = torch.nextafter(weights[1, 1], torch.tensor(2.0))
        return shards.total(2, lambda block: weights, weights, Scratch())

    assert all(isinstance(result, DivergedError) for result in in_ranks(2, work))


@pytest.mark.parametrize("fault", ["cut by ranks", "sum in the order of ranks"])
def test_sums_that_depend_on_the_number_of_processes_would_be_seen(
    fault: str, monkeypatch: pytest.MonkeyPatch, alone
) -> None:
    def cut_by_ranks(rows: int) -> list[slice]:
        blocks = 4  # As many as a process has would be: of three processes other blocks than of one.
        return [slice(rows * block // blocks, rows * (block + 1) // blocks) for block in range(blocks)]

    def in_order(node: tuple[int, int], known: dict[tuple[int, int], Tensor], scratch: Scratch) -> Tensor:
        return torch.stack([known[each] for each in sorted(known)]).sum(dim=0)

    def work(shards: RowShards) -> str:
        if fault == "cut by ranks":
            monkeypatch.setattr("certified_unlearning.engine.objectives.sharded.cut", cut_by_ranks)
        else:
            monkeypatch.setattr(row_shards, "_joined", in_order)
        return digest(run(full_batch(shards, torch.float32, 2), torch.float32))

    found = in_ranks(3, work)
    assert len(set(found)) == 1
    assert found[0] != alone["logistic", "torch.float32"]


# What is cut, who has it, and what rounding counts


@pytest.mark.parametrize("rows", [1, 2047, 2048, 11_982, 65_536, 10**6, 10**9])
def test_blocks_cover_all_rows_once_and_depend_on_their_number_alone(rows: int) -> None:
    blocks = cut(rows)
    assert blocks[0].start == 0
    assert blocks[-1].stop == rows
    assert all(before.stop == after.start for before, after in pairwise(blocks))
    lengths = {block.stop - block.start for block in blocks}
    assert max(lengths) - min(lengths) <= 1
    assert len(blocks) & (len(blocks) - 1) == 0
    assert len(blocks) == 1 or min(lengths) >= LEAST_ROWS
    assert len(blocks) == MOST_BLOCKS or rows < 2 * len(blocks) * LEAST_ROWS


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8, 64])
@pytest.mark.parametrize("blocks", [2, 8, 64])
def test_every_block_has_one_process(blocks: int, ranks: int) -> None:
    owned = [block for rank in range(ranks) for block in RowShards(rank, ranks).own(blocks)]
    assert owned == list(range(blocks))
    assert all(RowShards(rank, ranks).own(1) == range(1) for rank in range(ranks))


def longest_sum(rows: int, rows_at_once: int) -> int:
    """How many numbers are added one after another at most, in the sum over all rows."""
    blocks = cut(rows)
    block = max(each.stop - each.start for each in blocks)
    part = min(rows_at_once, block)
    constant = 1
    return part + math.ceil(block / part) + constant + int(math.log2(len(blocks)))


def test_rounding_counts_as_many_numbers_as_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    gamma = rounding._gamma
    monkeypatch.setattr(rounding, "_gamma", lambda count, unit: counted.append(count) or gamma(count, unit))
    sizes = [1, 2, 3, 1023, 2047, 2048, 2049, 4095, 4096, 11_982, 65_535, 65_536, 65_537, 131_073, 10**6, 10**7]
    for rows in sizes:
        counted.clear()
        rounding.rounding(
            n=rows, features=1, classes=3, strong_convexity=0.1, lipschitz=2.0, step_size=0.5, dtype="float64"
        )
        for rows_at_once in (1024, 16_384, 65_536):  # of full batches
            assert longest_sum(rows, rows_at_once) <= max(counted)
        for features in (1, 784, NUMBERS_AT_ONCE):  # of mini-batches
            block = max(each.stop - each.start for each in cut(rows))
            least = rounding.LEAST_BLOCK if block > rounding.ROWS_IN_A_ROW else 1
            at_once = min(rounding.ROWS_IN_A_ROW, max(least, NUMBERS_AT_ONCE // features))
            assert longest_sum(rows, at_once) <= max(counted)
