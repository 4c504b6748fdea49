"""What commands print: what was done is said even where nothing can be printed; data are UTF-8 everywhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from certified_unlearning.commands.output import after
from certified_unlearning.errors import Interrupted, OutputError, StorageError
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.verification import verify
from tests.ledger.conftest import Original, Unlearn
from tests.ledger.test_ledger_commands import FLAGS
from tests.support.waiting import PATIENCE

PROGRAM = (sys.executable, "-c", "from certified_unlearning.cli import main; main()")
ENCODINGS = (
    {"PYTHONIOENCODING": "ascii"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "POSIX"},
)


def run_with(redirection: str, *arguments: object) -> tuple[int, str]:
    """Run the program in a shell; return its exit status and what it says on standard error."""
    script = f'"$@" {redirection}'
    if redirection.startswith("|"):
        script += "; exit ${PIPESTATUS[0]}"
    command = ["bash", "-c", script, "bash", *PROGRAM, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    return ended.returncode, ended.stderr


needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")


@needs_full
@pytest.mark.parametrize(
    ("redirection", "reason"),
    [
        ("> /dev/full", "No space left on device"),
        ("| head -0", "Broken pipe"),
        (">&-", "Bad file descriptor"),
    ],
)
def test_a_recorded_request_whose_head_cannot_be_printed_is_said_on_standard_error(
    model: Path, redirection: str, reason: str
) -> None:
    status, errors = run_with(redirection, "request", model, "--id", "p3")
    found = re.fullmatch(
        rf"error: cannot write to standard output: {reason}; the request was recorded \(head: (\d+:[0-9a-f]{{64}})\)\n",
        errors,
    )
    assert status == 1
    assert found, errors
    assert requests.status(model).state.pending == 1
    verify(model, found[1])


@pytest.mark.sampled
@needs_full
def test_whatever_was_done_is_said_where_standard_output_is_full(
    original: Original, model: Path, tmp_path: Path
) -> None:
    requests.request(model, ["p3"])
    output, draft, schema = tmp_path / "predictions.csv", tmp_path / "draft.yaml", tmp_path / "schema.json"
    of_a_draft = ["--label", "ill", "--id", "person", "--output", draft]
    for arguments, said in (
        (["apply", model], r"version 2 was made \(head: \d+:[0-9a-f]{64}\)"),
        (["predict", model, original.data, "--output", output], f"{output} was written"),
        (["declare", original.data, *of_a_draft], f"{draft} was written"),
        (["schema", "--output", schema], f"{schema} was written"),
    ):
        status, errors = run_with("> /dev/full", *arguments)
        last = errors.splitlines()[-1]
        assert status == 1
        assert re.fullmatch(f"error: cannot write to standard output: No space left on device; {said}", last), errors
    assert output.exists()
    assert draft.exists()
    assert requests.status(model).state.current.version == 2


@needs_full
def test_init_that_cannot_say_what_it_begins_makes_nothing(original: Original, tmp_path: Path) -> None:
    status, errors = run_with("> /dev/full", "init", tmp_path / "model", "--data", original.data, *FLAGS)
    assert (status, errors) == (
        1,
        "error: cannot write to standard output: No space left on device; nothing was made\n",
    )
    assert list(tmp_path.iterdir()) == []


@needs_full
def test_an_error_is_not_hidden_by_a_full_standard_output(tmp_path: Path) -> None:
    status, errors = run_with("> /dev/full", "status", tmp_path)
    assert status == 1
    assert "is not a model directory" in errors


def test_an_interruption_while_it_is_printed_says_what_was_done() -> None:
    with pytest.raises(Interrupted) as ended, after("it was done"):
        raise Interrupted
    assert ended.value.known == "it was done"


@pytest.mark.parametrize("error", [StorageError("cannot write"), FileNotFoundError(2, "No such file", "there")])
def test_errors_of_files_are_not_taken_for_those_of_standard_output(error: OSError) -> None:
    with pytest.raises(type(error)) as ended, after("it was done"):
        raise error
    assert not isinstance(ended.value, OutputError)


@pytest.mark.sampled
@pytest.mark.parametrize("locale", ENCODINGS, ids=lambda locale: " ".join(locale))
def test_data_are_printed_as_utf_8_whatever_the_terminal_is(
    original: Original, tmp_path: Path, unlearn: Unlearn, locale: dict[str, str]
) -> None:
    data, model = tmp_path / "people.csv", tmp_path / "model"
    table = original.table.assign(person=[f"Jürgen {name}" for name in original.table["person"]])
    table.to_csv(data, index=False)
    unlearn("init", model, "--data", data, *FLAGS, "--no-quality")
    whole = tmp_path / "predictions.csv"
    unlearn("predict", model, data, "--output", whole)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONIOENCODING"} | locale

    def printed(*arguments: object) -> bytes:
        ended = subprocess.run(
            [*PROGRAM, *map(str, arguments)], env=environment, capture_output=True, check=True, timeout=PATIENCE
        )
        return ended.stdout

    assert printed("predict", model, data) == whole.read_bytes()
    assert "Jürgen p0" in whole.read_text(encoding="utf-8")
    pd.read_csv(data).rename(columns={"height": "größe"}).to_csv(data, index=False)
    assert "größe".encode() in printed("declare", data, "--label", "ill", "--id", "person")
