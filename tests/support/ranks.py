"""Several processes that share a run, forked from the test's own: no imports, and faults can be planted."""

import multiprocessing
import os
import socket
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch

from certified_unlearning.engine.row_shards import RowShards, row_shards


def in_ranks(ranks: int, work: Callable[[RowShards], Any], *, of: int | None = None) -> list[Any]:
    """Return what each of so many processes makes of ``work``: what it returns, or the exception that it raises.

    Args:
        ranks: How many processes are started.
        work: Called with which process it is in.
        of: How many processes they take themselves for; by default as many as there are.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("fork")
    pipes, processes = [], []
    for rank in range(ranks):
        receiving, sending = context.Pipe(duplex=False)
        pipes.append(receiving)
        processes.append(context.Process(target=_rank, args=(rank, of or ranks, port, work, sending)))
        processes[-1].start()
        sending.close()
    results = []
    for receiving, process in zip(pipes, processes, strict=True):
        try:
            results.append(receiving.recv())
        except EOFError:
            results.append(None)  # It was killed.
        process.join()
    return results


def _rank(rank: int, ranks: int, port: int, work: Callable[[RowShards], Any], sending: Connection) -> None:
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    try:
        with row_shards() as shards:
            result = work(shards)
    except Exception as error:
        result = error
    sending.send(result)
