"""The code blocks of a page: found, run in order, and compared with the output that the page shows."""

import doctest
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from tests.support.waiting import PATIENCE


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the page's line that its text begins at (from 0)."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    return [
        Block(token.info.split()[0] if token.info else "", token.content, token.map[0] + 1)
        for token in tokens
        if token.type == "fence" and token.map is not None
    ]


def run_page(page: Path, directory: Path) -> None:
    """Run a page's ``python`` blocks in one namespace and its ``console`` blocks as commands, from top to bottom.

    A ``sh`` block that is a script of its own is written to a file; its second line begins with the file's name. A
    ``text`` block right after a ``python`` block is what that prints; in a ``console`` block, the lines after a
    command. ``...`` stands for anything; all else, every digit included, must be what is printed. Round numbers that
    depend on how a machine rounds, or end them in ``...``.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    found = blocks(page)
    for block, following in zip(found, [*found[1:], None], strict=True):
        if block.language == "python":
            printed = _run_python(block, page, namespace)
            if following is not None and following.language == "text":
                _compare(following.text, printed, f"{page}:{block.line}")
        elif block.language == "sh" and block.text.startswith("#!"):
            (directory / block.text.splitlines()[1].split()[1]).write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            for command, shown in _commands(block.text):
                _compare(shown, _run_command(command, directory, page), f"{page}:{block.line}: {command}")


def _run_python(block: Block, page: Path, namespace: dict[str, Any]) -> str:
    # Empty lines in front, so that a traceback names the page's own lines.
    code = compile("\n" * block.line + block.text, str(page), "exec")
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(code, namespace)
    return printed.getvalue()


def _commands(text: str) -> Iterator[tuple[str, str]]:
    command, shown, lines = "", "", iter(text.splitlines(keepends=True))
    for line in lines:
        if not line.startswith("$ "):
            shown += line
            continue
        if command:
            yield command, shown
        command, shown = line[2:], ""
        while command.endswith("\\\n"):
            command += next(lines)
    if command:
        yield command.strip(), shown


def _run_command(command: str, directory: Path, page: Path) -> str:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, f"{page}: `{command}` ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


def _compare(shown: str, printed: str, place: str) -> None:
    options = doctest.ELLIPSIS | doctest.REPORT_NDIFF
    checker, example = doctest.OutputChecker(), doctest.Example("", shown)
    if not checker.check_output(shown, printed, options):
        raise AssertionError(f"{place}\n{checker.output_difference(example, printed, options)}")
