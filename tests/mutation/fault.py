"""The faults: one file of YAML for each room, in `faults/`."""

from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
ROOMS = ("accounting", "certificate", "ledger", "engine", "data", "estimators")


@dataclass(frozen=True)
class Fault:
    """A change of one place in the sources that users would suffer from.

    Attributes:
        room: The room whose promise it breaks.
        name: What is wrong, in a sentence.
        file: Where, relative to the project's root.
        old: The text that is replaced; it occurs once in the file.
        new: What takes its place.
        harm: What a user would suffer.
        nearest: Directories or files of tests, or single tests, that are tried first.
        blind: Whether it was written without looking at the tests.
    """

    room: str
    name: str
    file: str
    old: str
    new: str
    harm: str
    nearest: tuple[str, ...]
    blind: bool = False


def read_faults() -> list[Fault]:
    """Return all faults, room by room."""
    directory = Path(__file__).parent / "faults"
    return [
        Fault(room=room, nearest=tuple(entry.pop("nearest")), **entry)
        for room in ROOMS
        for entry in yaml.safe_load((directory / f"{room}.yaml").read_text(encoding="utf-8"))
    ]


def chosen_faults(texts: list[str]) -> list[Fault]:
    """Return the faults whose names hold one of some texts, or all faults where there is no text.

    Raises:
        ValueError: No name holds one of the texts.
    """
    faults = read_faults()
    for text in texts:
        if not any(text.lower() in fault.name.lower() for fault in faults):
            raise ValueError(f"--only {text!r} is in the name of no fault; names are in tests/mutation/faults/")
    return [fault for fault in faults if not texts or any(text.lower() in fault.name.lower() for text in texts)]
