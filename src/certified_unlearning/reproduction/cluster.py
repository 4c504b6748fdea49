"""A check of a cluster's queue before a run begins, so that no file ever has two writers."""

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from certified_unlearning.errors import StorageError
from certified_unlearning.text import counted

_FORMAT = "%i|%k|%Z"
"""The output format of `squeue`: number, comment, working directory. The directory comes last because it may contain
any character.
"""
_SECONDS = 60
_SHOWN = 3


class QueuedJob(NamedTuple):
    """A job that SLURM is running or will run.

    Attributes:
        number: SLURM's job number.
        about: Snakemake's comment on the job: its rule and its wildcards.
    """

    number: str
    about: str


def queued(directory: Path) -> list[QueuedJob]:
    """Return the jobs of all users in SLURM's queue that Snakemake submitted from a directory.

    Raises:
        StorageError: The queue does not answer.
    """
    command = ["squeue", "--noheader", "--format", _FORMAT]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise StorageError(f"SLURM's queue did not answer within {_SECONDS} s (`squeue`)") from error
    if asked.returncode:
        raise StorageError(f"SLURM's queue does not answer: {' '.join(asked.stderr.split())}")
    return read_queue(asked.stdout, directory)


def read_queue(printed: str, directory: Path) -> list[QueuedJob]:
    """Return the jobs that Snakemake submitted from a directory, according to the output of `squeue`.

    A directory has several names if folders are mounted or linked; jobs under all these names are included. Jobs that
    Snakemake did not submit, such as the job that runs Snakemake itself, are not included.
    """
    wanted = {str(directory), str(directory.resolve())}
    found = []
    for line in printed.splitlines():
        number, about, place = line.split("|", 2)
        if about.startswith("rule_") and not wanted.isdisjoint({place, str(Path(place).resolve())}):
            found.append(QueuedJob(number, about))
    return found


def refuse_second_writers(directory: Path, *, required: bool) -> None:
    """Raise an error if SLURM still has jobs of an earlier run whose Snakemake was killed.

    The jobs of the earlier run would write the same files as the new run.

    Args:
        directory: Directory in which the run begins.
        required: Whether the queue must answer, because jobs will be submitted. Otherwise, if there is no SLURM or its
            queue does not answer, the function assumes that there are no such jobs.

    Raises:
        StorageError: The queue has jobs of an earlier run; or ``required`` is true, and the queue does not answer.
    """
    if shutil.which("squeue") is None:
        if required:
            raise StorageError("there is no `squeue` here: start on a machine that can submit jobs to SLURM")
        return
    try:
        jobs = queued(directory)
    except StorageError:
        if required:
            raise
        return
    if jobs:
        raise StorageError(
            f"SLURM still has {counted(len(jobs), 'job')} of an earlier start in this directory "
            f"({_named(jobs)}), and no file may have two writers: wait until `squeue` no longer shows these jobs, "
            f"or end them with `scancel {' '.join(job.number for job in jobs)}`; then start again"
        )


def _named(jobs: list[QueuedJob]) -> str:
    names = [f"{job.number}: {job.about}" for job in jobs[:_SHOWN]]
    return ", ".join([*names, *(["..."] if len(jobs) > _SHOWN else [])])
