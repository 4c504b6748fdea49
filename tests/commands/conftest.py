"""`unlearn plan ...`, called as a program is."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from certified_unlearning import cli

Plan = Callable[..., tuple[int, str, str]]


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Plan:
    """Run `unlearn plan ...` in this process; return its exit status, standard output and standard error."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*arguments: str | Path, kind: str = "removal") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["unlearn", "plan", kind, *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return run
