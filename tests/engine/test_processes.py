"""The one sentence that a run of several processes ends with, when one of them does."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from certified_unlearning.engine import processes
from certified_unlearning.errors import DataError, DivergedError, ProcessError


def failure(exitcode: int, **told: Any) -> SimpleNamespace:
    name = {-9: "SIGKILL", -15: "SIGTERM"}.get(exitcode, "")
    return SimpleNamespace(
        exitcode=exitcode, error_file_data=told, message=told.get("message", ""), signal_name=lambda: name
    )


FOLLOWS = {"message": "another of the 3 processes ended", "timestamp": "1", "follows": True}
OWN = {"message": "the file is damaged", "timestamp": "1", "follows": False}


@pytest.mark.parametrize(
    ("failures", "sentence"),
    [
        ({0: failure(1, **FOLLOWS), 2: failure(-9)}, "process 2 of the 3 that share this run was ended by signal 9"),
        ({0: failure(-15), 1: failure(1, **FOLLOWS), 2: failure(1, **OWN)}, "the file is damaged"),
        ({0: failure(1, **FOLLOWS), 1: failure(1)}, "process 1 of the 3 that share this run ended with exit status 1"),
        ({0: failure(1, **FOLLOWS)}, "another of the 3 processes ended"),
        ({1: failure(3)}, "process 1 of the 3 that share this run ended with exit status 3"),
        ({1: failure(-15)}, "process 1 of the 3 that share this run ended with signal 15"),
    ],
)
def test_what_was_killed_comes_first_then_what_failed_for_a_reason_of_its_own(
    failures: dict[int, Any], sentence: str
) -> None:
    assert processes._sentence(failures, 3).startswith(sentence)


@pytest.mark.parametrize(
    ("error", "follows"),
    [(DataError("damaged"), False), (ProcessError("another"), True), (DivergedError("other weights"), False)],
)
def test_a_process_tells_what_started_it_and_nobody_else(
    error: Exception, follows: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UNLEARNING_LAUNCHED", raising=False)
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))
    assert not processes.tell_launcher(error)  # Under another launcher it says it itself.
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv("UNLEARNING_LAUNCHED", "1")
    assert processes.tell_launcher(error)
    told = json.loads((tmp_path / "error.json").read_text())
    assert (told["message"], told["follows"]) == (str(error), follows)
