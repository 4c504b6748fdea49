"""Steps of one process with two threads, compared with two processes with one thread each that share the rows.

It prints the median time of a step, and the share of it in which a process waits for the other's sums. Sums are
exchanged through shared memory, or sent with ``--messages``, which counts sending as waiting. It also prints the
processor time of a step, which depends less on the load of the machine. Waiting threads and processes use processor
time, too. Run: ``python benchmarks/row_shards.py`` (``--help`` for sizes). Each configuration has its rows in memory
once.
"""

import argparse
import json
import os
import socket
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed

from certified_unlearning.engine import board, descent, randomness
from certified_unlearning.engine.objectives.logistic import LogisticObjective
from certified_unlearning.engine.objectives.sharded import ShardedObjective
from certified_unlearning.engine.row_cut import cut
from certified_unlearning.engine.row_shards import RowShards, row_shards
from certified_unlearning.files import write_json
from timing import machine

STRENGTH, SIGMA = 0.01, 0.03


def rows_of(n: int, d: int, wanted: list[slice]) -> Tensor:
    """Return rows of norm 1; no memory is used for rows that are not wanted."""
    rows = torch.empty(n, d)
    generator = torch.Generator().manual_seed(1)
    for block in wanted:
        for start in range(block.start, block.stop, 16_384):
            some = rows[start : min(start + 16_384, block.stop)]
            some.normal_(generator=generator)
            some.div_(torch.linalg.vector_norm(some, dim=1, keepdim=True))
    return rows


def objective_of(n: int, d: int, shards: RowShards | None) -> descent.Objective:
    labels = 2 * (torch.arange(n) % 2) - 1
    if shards is None:
        rows = rows_of(n, d, [slice(0, n)])
        return LogisticObjective(rows, labels, strong_convexity=STRENGTH, lipschitz=1.0)
    blocks = cut(n)
    gone = torch.empty(0, dtype=torch.int64), torch.empty(0, d), labels[:0]
    return ShardedObjective(
        rows_of(n, d, [blocks[number] for number in shards.own(len(blocks))]),
        labels,
        loss=lambda own, their, of_block: LogisticObjective(
            own, their, strong_convexity=STRENGTH, lipschitz=1.0, replacements=of_block
        ),
        d=d,
        strong_convexity=STRENGTH,
        replacements=gone,
        shards=shards,
    )


def take(objective: descent.Objective, trials: int, steps: int) -> tuple[float, float]:
    """Return the wall time of a step in seconds, including noise, and this process's processor time."""
    keys = [randomness.address("row shards", trial) for trial in range(trials)]
    phase = descent.DescentPhase(removed=0, steps=[steps] * trials, sigma=[SIGMA] * trials, keys=keys)
    start = torch.zeros(trials, objective.d)
    before, busy_before = time.perf_counter(), time.process_time()
    descent.run(objective, start, [phase], step_size=1 / (0.25 + STRENGTH))
    return (time.perf_counter() - before) / steps, (time.process_time() - busy_before) / steps


def serve(rank: int, ranks: int, threads: int, port: int, size: dict[str, int], pipe: Connection) -> None:
    """Take steps on request, and answer with the seconds of a step, of processor time and of waiting."""
    torch.set_num_threads(threads)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    waiting = 0.0

    def watched(wait: Callable[..., None]) -> Callable[..., None]:
        def timed(*given: Any) -> None:
            nonlocal waiting
            before = time.perf_counter()
            wait(*given)
            waiting += time.perf_counter() - before

        return timed

    distributed.all_gather, board.Board.wait = watched(distributed.all_gather), watched(board.Board.wait)
    if size["messages"]:
        board._is_suitable = lambda: False
    with row_shards() as shards:
        objective = objective_of(size["records"], size["features"], None if threads > 1 else shards)
        pipe.send("ready")
        while (steps := pipe.recv()) is not None:
            waiting = 0.0
            taken = take(objective, size["trials"], steps)
            pipe.send([*taken, waiting / steps])


class Configuration:
    """Processes that take steps on request."""

    def __init__(self, ranks: int, threads: int, size: dict[str, int]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        context = get_context("spawn")
        self._pipes, self._processes = [], []
        for rank in range(ranks):
            own, theirs = context.Pipe()
            process = context.Process(target=serve, args=(rank, ranks, threads, port, size, theirs))
            process.start()
            self._pipes.append(own)
            self._processes.append(process)
        for pipe in self._pipes:
            pipe.recv()

    def steps(self, count: int) -> list[float]:
        """Return the first process's seconds of a step, of processor time and of waiting."""
        for pipe in self._pipes:
            pipe.send(count)
        answers: list[list[float]] = [pipe.recv() for pipe in self._pipes]
        return answers[0]

    def close(self) -> None:
        """End the processes."""
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            pipe.send(None)
            process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=11_982)
    parser.add_argument("--features", type=int, default=784)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--steps", type=int, default=16, help="number of steps in a round")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument(
        "--one-rank", action="store_true", help="also time one process with one thread, on the same blocks"
    )
    parser.add_argument("--messages", action="store_true", help="send sums, as processes on two machines do")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/row_shards.json"))
    options = parser.parse_args()

    size = {"records": options.records, "features": options.features, "trials": options.trials}
    size["messages"] = int(options.messages)
    made = {"1 process, 2 threads": (1, 2), "2 processes, 1 thread": (2, 1)}
    made |= {"1 process, 1 thread, blocks": (1, 1)} if options.one_rank else {}
    all_of = {name: Configuration(*each, size) for name, each in made.items()}
    for each in all_of.values():
        each.steps(1)
    rounds = [{name: each.steps(options.steps) for name, each in all_of.items()} for _ in range(options.rounds)]
    loads = os.getloadavg()
    for each in all_of.values():
        each.close()

    times, busy = ({name: np.array([each[name][column] for each in rounds]) for name in made} for column in (0, 1))
    ratio = times["2 processes, 1 thread"] / times["1 process, 2 threads"]
    result: dict[str, Any] = {"torch": machine()["torch"], "cores": os.cpu_count(), "load": loads, "size": size}
    result["step_ms"] = {
        name: {"median": 1e3 * float(np.median(each)), "best": 1e3 * float(each.min())} for name, each in times.items()
    }
    result["processor_ms_of_a_process"] = {name: 1e3 * float(np.median(each)) for name, each in busy.items()}
    best = times["2 processes, 1 thread"].min() / times["1 process, 2 threads"].min()
    result["processes_to_threads"] = {
        "median": float(np.median(ratio)),
        "quartiles": np.quantile(ratio, [0.25, 0.75]).tolist(),
        "best": float(best),
    }
    shares = [each["2 processes, 1 thread"][2] / each["2 processes, 1 thread"][0] for each in rounds]
    result["waiting_share"] = float(np.median(shares))
    write_json(options.output, result)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
