"""What can be said to one person: what was asked, what was done, what is guaranteed, what is not, how to check it.

The page is for that person and for lawyers. What the operator has to do is said beside it, and is on no page.

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
    REACTIONS,
    SECRET_STATES,
    comparison_in_plain_words,
    in_plain_words,
)
from certified_unlearning.ledger.proofs.head import head_of
from certified_unlearning.ledger.requests import current_certificate, look_for_leftovers
from certified_unlearning.ledger.state import State, Version, read_state
from certified_unlearning.ledger.store import Event, Ledger
from certified_unlearning.text import counted, noun_of
from certified_unlearning.version import code_version

Stage = Literal["no request", "on hold", "waiting", "removed"]
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
FOR_THE_OPERATOR = "For the operator of the model, and no part of the page"


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
        share: How many guesses of whether the records were in the model can be right, at most; None where the
            certificate bounds no such share, or nothing was removed yet.
        certificate_sha256: Digest of the current certificate's file.
        head: The head of the log.
        sections: The page.
        operator: What the operator can do, and needs to know.
        commands: The commands in both.
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
    operator: tuple[str, ...]
    commands: tuple[str, ...]
    like: str | None

    @property
    def title(self) -> str:
        """What the report is about."""
        if self.stage == "no request":
            return f"Records of {self.identifier} in a model"
        if self.stage == "waiting":
            return f"Request to remove the records of {self.identifier} from a model"
        return f"Removal of the records of {self.identifier} from a model"

    def as_text(self) -> str:
        """Return the page as plain text, and what is for the operator below it."""
        return f"{self._page}\n\n{self.for_operator}"

    @property
    def for_operator(self) -> str:
        """What is for the operator, as plain text."""
        return _in_lines(FOR_THE_OPERATOR, self.operator)

    @property
    def _page(self) -> str:
        return "\n\n".join([self.title, *(_in_lines(*section) for section in self.sections)])

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
            hold, request, present = ledger.hold_of(name), ledger.request_of(name), ledger.count_records_of(name)
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
    is_held = request is None and hold is not None
    # What was released from a hold was asked for when it was put there.
    asked = hold or request
    records = present if asked is None else int(asked.payload["records"])
    came_with = state.added_with(row or 0) if asked is None else int(asked.payload.get("added_with", 1))
    stage: Stage = "on hold" if is_held else "waiting" if answering is None else "removed"
    if asked is None:
        stage = "no request"
    certified = current_certificate(directory, state)
    writer = _Writer(path, name, state, certified, records, came_with, asked, is_held, answering, head, unfinished)
    return PersonalReport(
        identifier=name,
        stage=stage,
        records=records,
        added=state.time_of(came_with) if came_with > 1 else None,
        requested=None if asked is None else asked.time,
        applied=None if answering is None else answering.time,
        version=None if answering is None else answering.version,
        current=state.current.version,
        share=certified.right_guesses() if answering is not None else None,
        certificate_sha256=state.current.certificate_sha256,
        head=head,
        sections=writer.sections(),
        operator=writer.operator(),
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
    is_held: bool
    answering: Version | None
    head: str
    unfinished: bool

    def sections(self) -> tuple[Section, ...]:
        scope = Section("About this page", self._scope())
        if self.request is None:
            holds = f"The model was made with {self._records()}." if self._is_in else ""
            them = "it" if self.records == 1 else "them"
            kept = (*filter(None, (holds, *self._added())), f"The log holds no request to remove {them}.")
            return (scope, Section("No removal was requested", kept))
        asked = Section("What was asked", (self._asked(self.request), *self._added()))
        if self.answering is None:
            return (
                scope,
                asked,
                Section("What was done", self._waits()),
                Section("For experts", (self._last_entry(),)),
            )
        return (
            scope,
            asked,
            Section("What was done", self._done(self.answering)),
            Section("Under which conditions the result below holds", self._assumed()),
            Section("What the result is", self._shown()),
            Section("What the result does not cover", self._not_covered()),
            Section("How it can be checked", self._checks()),
            Section("For experts", (*self._terms(), self._last_entry())),
        )

    def operator(self) -> tuple[str, ...]:
        """Return what the operator can do, and needs to know."""
        folder = f"The model's folder is {self.path}."
        verifies = (
            f"`{self.verify_command}` calculates all numbers again, and shows whether an entry of the log was changed "
            "or dropped since now."
        )
        if self.request is None:
            finish = () if self._is_in else (f"`{self.apply_command}` finishes the addition.",)
            return (folder, *finish, f"`{self.request_command}` requests the removal.")
        kept = (
            f"The request is entry {self.request.sequence:,} of the log, which does not say who asked. No entry can be "
            "taken out alone: the identifier is kept as long as the folder is."
        )
        if self.is_held:
            why = f"The request is on hold ({self.request.payload.get('reason')}): `{self.release_command}` ends that."
            return (folder, why, kept, verifies)
        if self.answering is None:
            return (folder, f"`{self.apply_command}` carries the request out.", kept, verifies)
        unfinished = (f"`{self.apply_command}` deletes what is left of earlier versions.",) if self.unfinished else ()
        others = "Remove the records from the original file and all other copies, and stop the use of earlier versions."
        return (folder, *unfinished, others, kept, verifies)

    def _records(self) -> str:
        return f"{counted(self.records, 'record')} with the identifier {self.name}"

    @property
    def _it(self) -> str:
        return noun_of(self.records, "record")

    @property
    def _was(self) -> str:
        return "was" if self.records == 1 else "were"

    @property
    def _is_in(self) -> bool:
        """Whether a finished version was made with the records."""
        return self.state.time_of(self.came_with) is not None

    def _added(self) -> tuple[str, ...]:
        """Return when the records were added, if they were."""
        if self.came_with == 1:
            return ()
        time = self.state.time_of(self.came_with)
        if time is None:
            return (f"{counted(self.records, 'record')} with the identifier {self.name} is being added to the model.",)
        return (
            f"The {self._it} had been added to the model on {_day(time)}, with version {self.came_with}. Earlier "
            f"versions were made without the {self._it}.",
        )

    def _scope(self) -> tuple[str, ...]:
        name = self.path.resolve().name
        return (
            f'This page is about one model only, which its operator keeps under the name "{name}". A model is a set of '
            "numbers, calculated from many people's records, with which a computer makes predictions. Each time that "
            "records are removed or added, a new version of the model is made.",
            "This page can be attached to the answer to a request. It is not the whole answer that a law may ask for, "
            "and no legal advice.",
            f"It was made on {_day(datetime.now(UTC).isoformat(timespec='seconds'))} by the software "
            f"certified-unlearning, version {code_version()}.",
        )

    def _asked(self, request: Event) -> str:
        received = request.payload.get("received")
        when = (
            "The software does not know when the operator received the request."
            if received is None
            else f"As the operator recorded, the request was received on {_day(received)}."
        )
        return (
            f"On {_day(request.time)}, the operator recorded in a log that {self._records()} {self._is_to_be} removed. "
            f"{when}"
        )

    @property
    def _is_to_be(self) -> str:
        return "is to be" if self.records == 1 else "are to be"

    def _waits(self) -> tuple[str, ...]:
        made = f"was made {'with' if self._is_in else 'without'} the {self._it}"
        if self.is_held:
            return (
                "The request has not been carried out yet: the operator has put it on hold, and can give the reason. "
                f"The current version of the model, version {self.state.current.version}, {made}.",
                f"When the hold has ended and the operator carries the request out, a new version is made without the "
                f"{self._it}.",
            )
        return (
            "The request has not been carried out yet. The current version of the model, version "
            f"{self.state.current.version}, {made}.",
            f"When the operator carries the request out, a new version is made without the {self._it}.",
        )

    def _done(self, answering: Version) -> tuple[str, ...]:
        current, batch = self.state.current, answering.batch
        later = (
            ""
            if answering is current
            else f" The current version is version {current.version}, made without the {self._it} as well."
        )
        if self.unfinished:
            files = (
                "This work was interrupted: files of earlier versions, and notes where the records stood, may still be "
                "in the model's folder. The operator still has to delete them."
            )
        else:
            files = (
                "The files with the numbers of earlier versions were deleted from the model's folder. The log no "
                f"longer says where in the data the {self._it} stood."
            )
        return (
            f"On {_day(answering.time)}, the request was carried out: version {answering.version} of the model was "
            f"made.{later}",
            f"The software keeps its own copy of the data, from which the model is made. There, the {self._it} "
            f"{self._was} overwritten.",
            self.certified.done(0 if batch is None else batch.steps, answering.reading),
            files,
            f"The log keeps the identifier {self.name}, the number of records, and the dates. They document that the "
            "removal was requested and carried out. They also let the software refuse records with this identifier, so "
            "that they do not come back into the model, for example from a backup. The operator decides how long the "
            "log is kept.",
        )

    def _assumed(self) -> tuple[str, ...]:
        return (
            "No software can check the following points. The result holds if all of them are true, and if the software "
            "ran as described.",
            *in_plain_words(each for each in self._assumptions if each not in LEFT_OUT),
        )

    @property
    def _assumptions(self) -> list[str]:
        return [each.statement for each in self.certified.unchecked]

    def _shown(self) -> tuple[str, ...]:
        scope = self.certified.scope(self.certified.stated(), "the current version")
        comparison = (
            "The result compares the current version of the model with another model: "
            f"{comparison_in_plain_words(scope.compared_with)}."
        )
        share, meaning = self.certified.right_guesses(), self.certified.meaning()
        if share is None:
            return tuple(filter(None, (comparison, meaning)))
        assert meaning is not None
        return (
            comparison,
            meaning,
            "Before looking at the model, this person holds both answers for equally likely. This page and the log "
            "count as lists of removals: the person has not seen them.",
            *(() if share == 0.5 else (_NO_PROBABILITY,)),
            "The result is about the current version, and about all records together that were removed up to now.",
            *([self.certified.with_reactions()] if REACTIONS.keys() & {*self._assumptions} else []),
        )

    def _not_covered(self) -> tuple[str, ...]:
        earlier = f"{EARLIER} {self.certified.with_earlier_versions()}"
        always = (
            "The original data and other copies of them, such as backups, are not erased by this software.",
            "The model may still say of a person what it learned from other people's records.",
        )
        left_out = [each for each in self._assumptions if each in LEFT_OUT]
        # The secret state is made anew with the model.
        anew = self.state.current.reading in ("scheduled", "unscheduled", "addition")
        made_anew = SECRET_STATES if anew else ()
        promised = [each for each in self.certified.not_promised if each not in made_anew]
        said = {EARLIER, *in_plain_words(self._assumptions)} - set(in_plain_words(left_out))
        others = [each for each in in_plain_words([*promised, *left_out]) if each not in said]
        return (earlier, *always, *others)

    def _checks(self) -> tuple[str, ...]:
        return (
            f"The result is calculated from numbers in a file, {self._certificate}, which is called the certificate. "
            "The operator can give this file to an expert, who can then calculate the result again.",
            "That shows that the calculation is right. It does not show that the removal was really carried out as "
            "described: only somebody with access to the operator's computers can examine that.",
        )

    def _terms(self) -> tuple[str, ...]:
        """Return the numbers, for people who know their names."""
        mu = self.certified.stated().mu
        also = "" if mu is None else f"; mu = {or_nothing(mu)} for the current version"
        return (
            f"The certificate states: {self.certified.details()}{also}.",
            f"It compares with {self.certified.comparator}.",
            f"`{self.verify_certificate_command}` calculates the certificate's numbers again. The SHA-256 of this file "
            f"is {self.state.current.certificate_sha256}.",
        )

    def _last_entry(self) -> str:
        return (
            f"When this page was made, the hash of the log's last entry was {self.head}. With it, the operator can "
            "show that no entry up to then was changed or dropped later."
        )

    @property
    def commands(self) -> tuple[str, ...]:
        """All commands that sentences may name."""
        return (
            self.request_command,
            self.release_command,
            self.apply_command,
            self.verify_command,
            self.verify_certificate_command,
        )

    @property
    def request_command(self) -> str:
        """What requests the removal."""
        return f"{shell_command('request', self.path)} --id {shlex.quote(self.name)}"

    @property
    def release_command(self) -> str:
        """What ends the hold of the request."""
        return f"{shell_command('release', self.path)} --id {shlex.quote(self.name)}"

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
        return f"unlearn verify {self._certificate}"

    @property
    def _certificate(self) -> str:
        return ModelDirectory(self.path).certificate(self.state.current.version).name


_NO_PROBABILITY = (
    "The percentage is neither the probability that somebody finds a record, nor the part of the data that remains. It "
    "is an upper limit: fewer guesses may be right."
)


def _day(time: str) -> str:
    """Return a time or a day of the ledger for people."""
    moment = datetime.fromisoformat(time)
    day = f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"
    return f"{day} at {moment.astimezone(UTC):%H:%M} UTC" if "T" in time else day


def _in_lines(heading: str, sentences: tuple[str, ...]) -> str:
    return "\n".join([heading, *(f"  {sentence}" for sentence in sentences)])


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
