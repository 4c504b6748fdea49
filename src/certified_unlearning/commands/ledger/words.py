"""Texts and JSON that several commands of a ledger print: versions, guarantees, classes, the head."""

from pathlib import Path
from typing import Any

from certified_unlearning.ledger.directory import shell_command
from certified_unlearning.ledger.state import Version
from certified_unlearning.text import counted, with_commas
from certified_unlearning.vocabulary import ClassesFrom


def labels_in_words(origin: ClassesFrom | None, target_range: tuple[float, float] | None) -> str:
    """Return a text on the origin of the list of classes or, for regression, on the declared range of the labels."""
    if target_range is not None:
        return f"predicts numbers: from {with_commas(target_range[0])} to {with_commas(target_range[1])}, as declared"
    if origin == "declaration":
        return "classes: declared"
    if origin == "records":
        return (
            "classes: taken from the records; the list stays as it is after a removal, and may show that a removed "
            "record existed"
        )
    return "classes: declared or taken from the records; the release that made this model did not record which"


def guarantee_as_json(version: Version) -> dict[str, Any] | None:
    """Return the guarantee of a version, with the unrounded numbers of its certificate; None before any removal."""
    if not version.has_removed:
        return None
    scope, stated = version.scope, version.stated
    everything = stated.epsilon_all_published
    return {
        "version": version.version,
        "compared_with": scope.compared_with,
        "epsilon": stated.epsilon,
        "delta": stated.whole_delta,
        "epsilon_all_versions": everything,
        "delta_all_versions": None if everything is None else stated.delta,
        "adaptive_requests": scope.adaptive,
    }


def version_in_words(version: Version) -> str:
    """Return a description of how a version was made."""
    if version.batch is None:
        return f"version 1 ({version.time}): learned"
    batch = version.batch
    done = []
    if batch.addition is not None:
        done.append(f"added {records_of_people(batch.addition.records, batch.addition.people)}")
    if batch.requests:
        done.append(f"removed {records_of_people(batch.records, batch.requests)}")
    if batch.requests or version.reading is not None:
        done[-1] += f" by {version.certificate.removed_by(batch.steps, version.reading)}"
    return f"version {version.version} ({version.time}): {' and '.join(done)}"


def records_of_people(records: int, people: int) -> str:
    """Return the numbers of records and people as text, such as "3 records of 2 people"."""
    return f"{counted(records, 'record')} of {counted(people, 'person')}"


def guarantee_in_words(version: Version) -> str:
    """Return the guarantee of a version, as a sentence."""
    if not version.has_removed:
        return "nothing was removed yet, so there is nothing to guarantee"
    return version.scope.sentence


def command(name: str, model_dir: Path) -> str:
    """Return a command on a model directory, with its arguments, in the form in which messages quote it."""
    return f"`{shell_command(name, model_dir)}`"


def print_head(head: str) -> None:
    """Print the head of the log, as the last line of a command's output."""
    print(f"head: {head}")
