"""A start is refused while SLURM has jobs of an earlier one in the same directory."""

import re
from pathlib import Path

import pytest

from certified_unlearning.errors import StorageError
from certified_unlearning.reproduction.cluster import queued, read_queue, refuse_second_writers

LEARN = "rule_learn_wildcards_smoke_langevin_unlearning_fig3a_langevin"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A `squeue` that answers what it is told to, and nothing else on the path."""

    def answers(printed: str, status: int = 0) -> None:
        command = tmp_path / "bin" / "squeue"
        command.parent.mkdir(exist_ok=True)
        (tmp_path / "queue").write_text(printed)
        output = ">&2" if status else ""
        command.write_text(
            f'#!/bin/sh\n[ "$*" = "--noheader --format %i|%k|%Z" ] || exit 9\n'
            f'while read -r line; do echo "$line" {output}; done <{tmp_path}/queue\nexit {status}\n'
        )
        command.chmod(0o755)
        monkeypatch.setenv("PATH", str(command.parent))

    return answers


def test_only_jobs_of_snakemake_from_this_directory_count(slurm, tmp_path: Path) -> None:
    here = tmp_path / "the | project"
    here.mkdir()
    (tmp_path / "home").symlink_to(tmp_path)
    slurm(
        f"17|{LEARN}|{here}\n18_2|rule_unlearn|{tmp_path}/home/the | project\n19|(null)|{here}\n"
        f"20|{LEARN}|{tmp_path}\n21|rule_learn|{here}/deeper\n"
    )
    assert [job.number for job in queued(here)] == ["17", "18_2"]
    assert read_queue("", here) == []


def test_a_start_beside_running_jobs_is_refused_in_one_sentence(slurm, tmp_path: Path) -> None:
    slurm("".join(f"{number}|{LEARN}|{tmp_path}\n" for number in range(17, 22)))
    for required in (True, False):  # Also where jobs would run on this machine: their files are the same.
        with pytest.raises(StorageError, match="SLURM still has 5 jobs of an earlier start") as refused:
            refuse_second_writers(tmp_path, required=required)
    sentence = str(refused.value)
    assert "`scancel 17 18 19 20 21`" in sentence
    assert sentence.count(LEARN) == 3
    assert not re.search(r"[.\n] ", sentence.replace("...", ""))
    slurm(f"17|{LEARN}|{tmp_path}/elsewhere\n")
    refuse_second_writers(tmp_path, required=True)


def test_a_queue_that_does_not_answer_ends_a_start_on_the_cluster_and_no_other(slurm, tmp_path: Path) -> None:
    slurm("slurm_load_jobs error: Unable to contact slurm controller\n", status=1)
    with pytest.raises(StorageError, match="does not answer: slurm_load_jobs error: Unable to contact"):
        refuse_second_writers(tmp_path, required=True)
    refuse_second_writers(tmp_path, required=False)


def test_a_machine_without_slurm_submits_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StorageError, match="no `squeue` here"):
        refuse_second_writers(tmp_path, required=True)
    refuse_second_writers(tmp_path, required=False)
