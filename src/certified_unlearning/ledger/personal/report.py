"""What can be said to one person: what was asked, what was done, what is guaranteed, what is not, how to check it.

Free of heavy imports: it reads the ledger and the current certificate, and neither data nor weights.
"""

import html
import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from certified_unlearning.certificate.base import Certificate, or_nothing
from certified_unlearning.data.tables.declaration import text_of
from certified_unlearning.errors import ParameterError
from certified_unlearning.ledger.directory import ModelDirectory, shell_command
from certified_unlearning.ledger.personal.plain_words import (
    EARLIER,
    LEFT_OUT,
    NEW_REACTIONS,
    SECRET_STATE,
    SECRET_STATE_BY_PASSES,
    comparison_in_plain_words,
    in_plain_words,
)
from certified_unlearning.ledger.proofs.head import head_of
from certified_unlearning.ledger.requests import current_certificate, look_for_leftovers
from certified_unlearning.ledger.state import State, Version, read_state
from certified_unlearning.ledger.store import Event, Ledger
from certified_unlearning.text import counted, noun_of
from certified_unlearning.version import code_version

Stage = Literal["no request", "waiting", "removed"]


class Section(NamedTuple):
    """A heading and the sentences below it."""

    heading: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class PersonalReport:
    """What can be said to one person.

    Attributes:
        identifier: Whose records the report is about.
        stage: Whether a removal was requested, and whether it was carried out.
        records: How many records the person had, or has.
        added: When the records were added to the model, in UTC; None where they were there from the start, or are not
            there yet.
        requested: When the removal was recorded, in UTC; None without a request.
        applied: When it was carried out, in UTC; None before.
        version: The version of the model that carried it out; None before.
        current: The version that is to be used now.
        share: How often a bet on whether the records were in the model can be right, at most; None where the
            certificate bounds no such share, or nothing was removed yet.
        certificate_sha256: Digest of the current certificate's file.
        head: The head of the log.
        sections: The text, for people.
        commands: The commands in it.
        like: An identifier that looks alike and whose records are in the data: for the operator, and on no page.
    """

    identifier: str
    stage: Stage
    records: int
    added: str | None
    requested: str | None
    applied: str | None
    version: int | None
    current: int
    share: float | None
    certificate_sha256: str
    head: str
    sections: tuple[Section, ...]
    commands: tuple[str, ...]
    like: str | None

    @property
    def title(self) -> str:
        """What the report is about."""
        if self.stage == "no request":
            return f"Records of {self.identifier} in a model"
        return f"Removal of the records of {self.identifier} from a model"

    def as_text(self) -> str:
        """Return the report as plain text."""
        blocks = [self.title]
        for heading, sentences in self.sections:
            blocks.append("\n".join([heading, *(f"  {sentence}" for sentence in sentences)]))
        return "\n\n".join(blocks)

    def as_html(self) -> str:
        """Return the report as a page that can be printed and needs no network."""
        body = [f"<h1>{html.escape(self.title)}</h1>"]
        for heading, sentences in self.sections:
            items = "".join(f"<li>{self._marked(sentence)}</li>" for sentence in sentences)
            body.append(f"<h2>{html.escape(heading)}</h2><ul>{items}</ul>")
        page = _PAGE.format(title=html.escape(self.title), body="\n".join(body))
        return page.encode("utf-8", "backslashreplace").decode("utf-8")  # Paths may be no UTF-8.

    def _marked(self, sentence: str) -> str:
        """Return a sentence as HTML, with its commands as code; identifiers may hold backticks, too."""
        text = html.escape(sentence)
        for command in self.commands:
            text = text.replace(html.escape(f"`{command}`"), f"<code>{html.escape(command)}</code>")
        return text


def report_on(path: Path, identifier: str) -> PersonalReport:
    """Return what can be said to one person; changes nothing.

    Args:
        path: The model directory.
        identifier: The person's, in any writing that the table's rules take for the same (7.0 is 7).

    Raises:
        ParameterError: Nobody has this identifier.
        DataError: There is no model, its ledger is damaged, or its certificate cannot be read.
        LedgerError: The certificate is not the one that the ledger recorded.
    """
    directory = ModelDirectory(path)
    name = str(text_of(identifier))
    # What was deleted from the ledger may still lie in its log.
    log = directory.ledger.with_name(f"{directory.ledger.name}-wal")
    unfinished = log.exists() and log.stat().st_size > 0
    try:
        with Ledger.opened(directory.ledger, read_only=True) as ledger:
            ledger.verify_chain()
            state, head = read_state(ledger), head_of(directory, ledger)
            request, present = ledger.request_of(name), ledger.count_records_of(name)
            row, like = ledger.row_of(name), None if present else ledger.like(name)
            if request is None and not present:
                like = like or ledger.requested_like(name)
                hint = "" if like is None else f" (did you mean {like!r}?)"
                raise ParameterError(
                    f"identifier {name!r} is not in the training data, and its removal was never requested{hint}"
                )
    except UnicodeEncodeError as error:
        raise ParameterError(f"{error.object!r} is no UTF-8 text") from error
    leftovers, is_busy = look_for_leftovers(directory, state)
    unfinished = unfinished or is_busy or bool(leftovers)
    answering = None if request is None else state.answering(request.sequence)
    records = present if request is None else int(request.payload["records"])
    came_with = state.added_with(row or 0) if request is None else int(request.payload.get("added_with", 1))
    stage: Stage = "no request" if request is None else "waiting" if answering is None else "removed"
    certified = current_certificate(directory, state)
    writer = _Writer(path, name, state, certified, records, came_with, request, answering, head, unfinished)
    return PersonalReport(
        identifier=name,
        stage=stage,
        records=records,
        added=state.time_of(came_with) if came_with > 1 else None,
        requested=None if request is None else request.time,
        applied=None if answering is None else answering.time,
        version=None if answering is None else answering.version,
        current=state.current.version,
        share=certified.right_guesses() if answering is not None else None,
        certificate_sha256=state.current.certificate_sha256,
        head=head,
        sections=writer.sections(),
        commands=writer.commands,
        like=like,
    )


@dataclass(frozen=True)
class _Writer:
    """The sentences of a report."""

    path: Path
    name: str
    state: State
    certified: Certificate
    records: int
    came_with: int
    request: Event | None
    answering: Version | None
    head: str
    unfinished: bool

    def sections(self) -> tuple[Section, ...]:
        scope = Section("What this page is", self._scope())
        if self.request is None:
            kept = (f"The training data hold {self._records()}.", *self._added())
            return (scope, Section("No removal was requested", (*kept, f"`{self.request_command}` requests it.")))
        asked = Section("What was asked", (*self._added(), self._asked(self.request)))
        if self.answering is None:
            it = noun_of(self.records, "record")
            waits = (
                f"The request waits. The current model, version {self.state.current.version}, was made with the {it}."
            )
            return (scope, asked, Section("What was done", (waits, f"`{self.apply_command}` carries it out.")))
        return (
            scope,
            asked,
            Section("What was done", self._done(self.answering)),
            Section("What the calculation shows", self._shown()),
            Section("What this rests on, and no software can check", self._assumed()),
            Section("What is not covered", self._not_covered()),
            Section("How to check it", self._checks()),
        )

    def _records(self) -> str:
        return f"{counted(self.records, 'record')} with the identifier {self.name}"

    def _added(self) -> tuple[str, ...]:
        """Return when the records were added, if they were."""
        if self.came_with == 1:
            return ()
        time, it = self.state.time_of(self.came_with), noun_of(self.records, "record")
        if time is None:
            begun = f"Version {self.came_with}, which adds the {it}, was begun and not finished"
            return (f"{begun}: `{self.apply_command}` finishes it.",)
        was = "was" if self.records == 1 else "were"
        return (f"The {it} {was} added to the model on {_day(time)}, with version {self.came_with}.",)

    def _scope(self) -> tuple[str, ...]:
        return (
            f"This page is about the model in the folder {self.path}, and about nothing else that is stored elsewhere. "
            "It can be attached to an answer. It is not the whole answer that a law may ask for, and no legal advice.",
            f"It was made on {_day(datetime.now(UTC).isoformat(timespec='seconds'))} with unlearn {code_version()}.",
        )

    def _asked(self, request: Event) -> str:
        return (
            f"On {_day(request.time)}, the removal of {self._records()} was recorded as entry {request.sequence:,} of "
            "the log of requests. It may have been received earlier."
        )

    def _done(self, answering: Version) -> tuple[str, ...]:
        current, batch = self.state.current, answering.batch
        later = "" if answering is current else f" Version {current.version} is the current one."
        it = noun_of(self.records, "record")
        sentences = [
            f"On {_day(answering.time)}, the request was carried out with version {answering.version} of the model."
            + later,
            f"The software's own copy of the data was overwritten where the {it} stood. The log keeps the identifier "
            f"{self.name}, as the record that a removal was requested. It does not show who asked.",
            self.certified.done(0 if batch is None else batch.steps, answering.reading),
        ]
        if self.unfinished:
            sentences.append(
                "Files of earlier versions, and where the records stood, may still be in the model's folder: "
                f"`{self.apply_command}` deletes them."
            )
        else:
            sentences.append(
                f"The numbers that make up earlier versions of the model were deleted from the model's folder. The log "
                f"no longer says where the {it} stood."
            )
        return tuple(sentences)

    def _shown(self) -> tuple[str, ...]:
        stated, meaning = self.certified.stated(), self.certified.meaning()
        scope = self.certified.scope(stated, "the current version")
        sentences = [] if meaning is None else [meaning]
        if self.certified.right_guesses() is not None:
            sentences.append(
                "For this person both answers are equally likely beforehand. The person has seen neither this page nor "
                "the log of requests."
            )
            sentences.append(
                "The number is not the chance that somebody finds a record, nor the share of the data that remains. It "
                "covers the current version, and all records removed from it together."
            )
        sentences.append(f"The comparison is with {comparison_in_plain_words(scope.compared_with)}.")
        if stated.epsilon is not None:
            mu = "" if stated.mu is None else f", and mu = {or_nothing(stated.mu)}, from which the number above follows"
            sentences.append(
                f"In the terms of the field: epsilon = {or_nothing(stated.epsilon)} at delta = "
                f"{or_nothing(stated.whole_delta)}{mu}."
            )
        sentences.append("All this holds if the software ran as described, and if the points below hold.")
        return tuple(sentences)

    def _assumed(self) -> tuple[str, ...]:
        return in_plain_words(each for each in self._assumptions if each not in LEFT_OUT)

    @property
    def _assumptions(self) -> list[str]:
        return [each.statement for each in self.certified.unchecked]

    def _not_covered(self) -> tuple[str, ...]:
        always: tuple[str, ...] = (
            EARLIER,
            "The original file and other copies of the data, such as backups, are not erased by this software.",
            "The model may still say what it learned from other people's records.",
        )
        if self.state.people_added:
            always += (NEW_REACTIONS,)
        left_out = [each for each in self._assumptions if each in LEFT_OUT]
        # The secret state is made anew with the model.
        anew = self.state.current.reading in ("scheduled", "unscheduled", "addition")
        made_anew = (SECRET_STATE, SECRET_STATE_BY_PASSES) if anew else ()
        promised = [each for each in self.certified.not_promised if each not in made_anew]
        return tuple(dict.fromkeys((*always, *in_plain_words([*left_out, *promised]))))

    def _checks(self) -> tuple[str, ...]:
        current = self.state.current
        return (
            f"With access to the model's folder: `{self.verify_command}` computes all numbers "
            "again, and shows whether an entry of the log was changed or dropped since this page was made. It does not "
            "prove that the steps were carried out.",
            f"With the certificate alone: `{self.verify_certificate_command}` computes the numbers again, but cannot "
            f"see whether the software ran as described. The file's SHA-256 is {current.certificate_sha256}.",
        )

    @property
    def commands(self) -> tuple[str, ...]:
        """All commands that sentences may name."""
        return (self.request_command, self.apply_command, self.verify_command, self.verify_certificate_command)

    @property
    def request_command(self) -> str:
        """What requests the removal."""
        return f"{shell_command('request', self.path)} --id {shlex.quote(self.name)}"

    @property
    def apply_command(self) -> str:
        """What carries requests out."""
        return shell_command("apply", self.path)

    @property
    def verify_command(self) -> str:
        """What checks the folder, and that the log still holds what it held."""
        return f"{shell_command('verify', self.path)} --head {self.head}"

    @property
    def verify_certificate_command(self) -> str:
        """What checks the certificate alone."""
        return f"unlearn verify {ModelDirectory(self.path).certificate(self.state.current.version).name}"


def _day(time: str) -> str:
    """Return a time of the ledger for people."""
    return f"{time.replace('T', ' at ').removesuffix('+00:00')} UTC"


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 42em; margin: 2em auto; padding: 0 1em; }}
h1 {{ font-size: 1.5em; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.1em; margin: 1.5em 0 .3em; break-after: avoid; }}
ul {{ margin: 0; padding-left: 1.2em; }}
li {{ margin: .3em 0; overflow-wrap: anywhere; break-inside: avoid; }}
code {{ font-size: .9em; overflow-wrap: anywhere; }}
@page {{ margin: 1.5cm; }}
@media print {{
  body {{ font-size: 9.5pt; line-height: 1.35; margin: 0; max-width: none; }}
  h2 {{ margin-top: .8em; }}
}}
</style>
</head>
<body>
{body}
</body>
</html>
"""
