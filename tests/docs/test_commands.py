"""Commands that are shown but take too long to run in a test: what they name exists."""

import functools
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
import yaml

from certified_unlearning.cli import app
from certified_unlearning.papers import parameters
from tests.docs.code_blocks import blocks

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of every command, without variables that are set in front of it."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        while words:
            end = next((at for at, word in enumerate(words) if word.endswith(";") or word in ("&&", "|", "||")), None)
            command, words = (words, []) if end is None else (words[: end + 1], words[end + 1 :])
            while command and re.match(r"[A-Z_]+=", command[0]):
                command = command[1:]
            if command:
                yield command


def typed(console: str) -> str:
    """What is typed in a console, without what it prints."""
    return "\n".join(line for line in console.replace("\\\n", " ").splitlines() if line.startswith("$ "))


def shown_commands() -> list[tuple[str, list[str]]]:
    return [
        (f"{page.relative_to(ROOT)}:{block.line}", command)
        for page in PAGES
        for block in blocks(page)
        if block.language in ("sh", "console")
        for command in commands(block.text if block.language == "sh" else typed(block.text))
    ]


@functools.cache
def presets_of_pages() -> set[str]:
    """Return the presets that pages declare as examples."""
    declared = (yaml.safe_load(block.text) for page in PAGES for block in blocks(page) if block.language == "yaml")
    return {name for content in declared for name in content.get("presets", {})}


@functools.cache
def committed() -> parameters.Parameters:
    return parameters.load(ROOT / "params.yaml")


def unknown_names(command: list[str]) -> list[str]:
    """Return what a command names and does not exist: a subcommand, an option, a preset, a target, an extra.

    Of `unlearn` also what is missing, unless ``...`` stands for it.
    """
    program, *words = command
    if program == "unlearn":
        return _unknown_to_typer(words)
    if program == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
        variables = set(re.findall(r"^([A-Z]+) :?\??=", makefile, re.MULTILINE))
        return [word for word in words if word not in targets and word.partition("=")[0] not in variables]
    if program == "snakemake":
        known = committed()
        named = [word.removeprefix("preset=") for word in words if word.startswith("preset=")]
        return [name for name in named if name not in (*known.presets, *known.collections, *presets_of_pages())]
    if program == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
            "optional-dependencies"
        ]
        asked = [name for word in words for name in re.findall(r"\[(.*)\]", word)]
        return [name for names in asked for name in names.split(",") if name not in extras]
    return []


def _unknown_to_typer(words: list[str]) -> list[str]:
    command = typer.main.get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]  # type: ignore[attr-defined]
    if hasattr(command, "commands"):
        return words[:1]
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    unknown = [word for word in words if word.startswith("--") and word not in {*options, "--help"}]
    if unknown or not {"...", "--help"}.isdisjoint(words):
        return unknown
    end = next((at for at, word in enumerate(words) if word in (";", "&&", "|", "||", ">", "2>", "2>&1")), None)
    try:
        command.make_context(command.name, [word.rstrip(";") for word in words[:end]])
    except Exception as error:  # Typer has a Click of its own, or not.
        return [error.format_message()]  # type: ignore[attr-defined]
    return []


def inline_commands() -> list[tuple[str, list[str]]]:
    """Return commands of `unlearn` within sentences, which may leave out arguments."""
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES}
    return [
        (f"{page.relative_to(ROOT)}", [*shlex.split(found), "..."])
        for page, text in texts.items()
        for found in re.findall(r"`(unlearn [^`]+)`", text)
    ]


def test_every_command_that_is_shown_exists():
    shown = shown_commands()
    assert {"unlearn", "make", "snakemake", "pip"} <= {command[0] for _, command in shown}
    shown += inline_commands()
    unknown = {f"{place}: {' '.join(command)}": unknown_names(command) for place, command in shown}
    assert {place: names for place, names in unknown.items() if names} == {}


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("unlearn forget", ["forget"]),
        ("unlearn data forget", ["forget"]),
        ("unlearn verify --twice file", ["--twice"]),
        ("unlearn data fetch", ["Missing argument 'dataset'."]),
        ("unlearn data prepare digits --seed 1", ["Missing option '--output'."]),
        ("unlearn data prepare digits ...", []),
        ("A=1 make everything", ["everything"]),
        ("snakemake --cores all --config preset=nothing", ["nothing"]),
        ('pip install -e ".[images,nothing]"', ["nothing"]),
    ],
)
def test_a_command_that_does_not_exist_is_found(text, unknown):
    assert [unknown_names(command) for command in commands(text)] == [unknown]


def test_each_preset_has_a_section_with_the_time_that_the_table_of_presets_states():
    page = (ROOT / "docs" / "howto" / "presets.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    rows = re.findall(r"^\| (`.*?) \|.*\| (.*?) \|$", sections["All presets"], re.MULTILINE)
    known = parameters.load(ROOT / "params.yaml")
    named = {name for names, _ in rows for name in re.findall(r"`(.+?)`", names)}
    assert named == {*known.presets, *known.collections}
    for names, time in rows:
        heading = ", ".join(re.findall(r"`(.+?)`", names))
        assert time.lower() in " ".join(sections[heading].split()).lower(), f"{heading}: the table says {time!r}"
