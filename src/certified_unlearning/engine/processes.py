"""Start of the processes that share a run on this machine; PyTorch's launcher starts them.

PyTorch is imported only when processes are started.
"""

import json
import logging
import os
import signal
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from certified_unlearning.errors import DivergedError, ProcessError

_STARTED_BY_US = "UNLEARNING_LAUNCHED"
_ERROR_FILE = "TORCHELASTIC_ERROR_FILE"
_GOES_ON = "to continue from the last checkpoint, start the run again"


def is_launched() -> bool:
    """Return whether this process was started to share a run, by our launcher or by `torchrun`."""
    return "WORLD_SIZE" in os.environ


def launch(processes: int, arguments: Sequence[str]) -> None:
    """Run the command ``unlearn`` with these arguments in several processes of this machine, as `torchrun` does.

    Raises:
        ProcessError: A process ended before its work was done; all other processes were then terminated as well.
    """
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    logging.disable(logging.ERROR)  # The error below reports failures in one sentence.
    os.environ[_STARTED_BY_US] = "1"
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=str(uuid.uuid4()),
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        local_addr="localhost",
        max_restarts=0,
    )
    program = "from certified_unlearning.cli import main; main()"
    try:
        elastic_launch(config, sys.executable)("-c", program, *arguments)
    except ChildFailedError as error:
        raise ProcessError(_sentence(error.failures, processes)) from None
    except SignalException as stopped:
        sys.exit(128 + stopped.sigval)


def tell_launcher(error: Exception) -> bool:
    """Pass an error's message to the launcher, the process that started this process; the launcher prints the message.

    Return whether a launcher started this process.
    """
    if _STARTED_BY_US not in os.environ or _ERROR_FILE not in os.environ:
        return False
    follows = isinstance(error, ProcessError) and not isinstance(error, DivergedError)
    content = {"message": str(error), "timestamp": str(int(time.time())), "follows": follows}
    Path(os.environ[_ERROR_FILE]).write_text(json.dumps(content), encoding="utf-8")
    return True


def _sentence(failures: Mapping[int, Any], processes: int) -> str:
    """Return why the run ended: which process was killed first, or, if none was killed, the error of a process."""
    for rank, failure in failures.items():
        if failure.exitcode < 0 and failure.exitcode != -signal.SIGTERM:
            name = f"signal {-failure.exitcode} ({failure.signal_name()})"
            return f"process {rank} of the {processes} that share this run was ended by {name}; {_GOES_ON}"
    own = {rank: each for rank, each in failures.items() if not each.error_file_data.get("follows", False)}
    for failure in (own or failures).values():
        if failure.error_file_data.get("timestamp"):
            return str(failure.message)
    rank, failure = next(iter((own or failures).items()))
    how = f"signal {-failure.exitcode}" if failure.exitcode < 0 else f"exit status {failure.exitcode}"
    return f"process {rank} of the {processes} that share this run ended with {how}; {_GOES_ON}"
