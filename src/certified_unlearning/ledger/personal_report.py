"""What can be said to one person: what was asked, what was done, what is guaranteed, what is not, how to check it.

Free of heavy imports: it reads the ledger and the current certificate, and neither data nor weights.
"""

import html
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from certified_unlearning.certificate.base import Certificate, or_nothing
from certified_unlearning.data.tables.declaration import text_of
from certified_unlearning.errors import ParameterError
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.plain_words import EARLIER, in_plain_words
from certified_unlearning.ledger.requests import current_certificate
from certified_unlearning.ledger.state import State, Version, read_state
from certified_unlearning.ledger.store import Event, Ledger
from certified_unlearning.text import counted, noun_of

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
        requested: When the removal was recorded, in UTC; None without a request.
        applied: When it was carried out, in UTC; None before.
        version: The version of the model that carried it out; None before.
        current: The version that is to be used now.
        share: How often a bet on whether the records were in the model can be right, at most; None where the
            certificate bounds no such share, or nothing was removed yet.
        certificate_sha256: Digest of the current certificate's file.
        receipt: The ledger's last hash.
        sections: The text, for people.
    """

    identifier: str
    stage: Stage
    records: int
    requested: str | None
    applied: str | None
    version: int | None
    current: int
    share: float | None
    certificate_sha256: str
    receipt: str
    sections: tuple[Section, ...]

    @property
    def title(self) -> str:
        """What the report is about."""
        return f"Records of {self.identifier}"

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
            items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)
            body.append(f"<h2>{html.escape(heading)}</h2><ul>{items}</ul>")
        return _PAGE.format(title=html.escape(self.title), body="\n".join(body))


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
    with Ledger.opened(directory.ledger, read_only=True) as ledger:
        state, head = read_state(ledger), ledger.head()
        request, present = ledger.request_of(name), ledger.count_records_of(name)
        if request is None and not present:
            like = ledger.like(name)
            hint = "" if like is None else f" (did you mean {like!r}?)"
            raise ParameterError(
                f"identifier {name!r} is not in the training data, and its removal was never requested{hint}"
            )
    current = state.current
    certified = current_certificate(directory, state)
    answering = None if request is None else state.answering(request.sequence)
    records = present if request is None else int(request.payload["records"])
    stage: Stage = "no request" if request is None else "waiting" if answering is None else "removed"
    share = certified.right_guesses() if answering is not None else None
    sections = _Writer(path, name, state, certified, records, request, answering).sections(head)
    return PersonalReport(
        identifier=name,
        stage=stage,
        records=records,
        requested=None if request is None else request.time,
        applied=None if answering is None else answering.time,
        version=None if answering is None else answering.version,
        current=current.version,
        share=share,
        certificate_sha256=current.certificate_sha256,
        receipt=head,
        sections=sections,
    )


@dataclass(frozen=True)
class _Writer:
    """The sentences of a report."""

    path: Path
    name: str
    state: State
    certified: Certificate
    records: int
    request: Event | None
    answering: Version | None

    def sections(self, head: str) -> tuple[Section, ...]:
        if self.request is None:
            kept = f"The training data hold {counted(self.records, 'record')} with the identifier {self.name}."
            return (Section("No removal was requested", (kept, f"{self._command('request')} requests it.")),)
        asked = Section("What was asked", (self._asked(self.request),))
        if self.answering is None:
            waits = "The request waits. The current model still knows the records."
            return (asked, Section("What was done", (waits, f"{self._command('apply')} carries it out.")))
        return (
            asked,
            Section("What was done", self._done(self.answering)),
            Section("What is guaranteed", self._guaranteed()),
            Section("What this rests on, and no software can check", self._assumed()),
            Section("What is not guaranteed", self._not_guaranteed()),
            Section("How to check it", self._checks(head)),
        )

    def _asked(self, request: Event) -> str:
        these = noun_of(self.records, "record")
        return (
            f"On {_day(request.time)}, the removal of {self.records:,} {these} with the identifier {self.name} was "
            f"recorded as entry {request.sequence:,} of the ledger."
        )

    def _done(self, answering: Version) -> tuple[str, ...]:
        current = self.state.current
        later = "" if answering is current else f" Version {current.version} is the current one."
        return (
            f"On {_day(answering.time)}, the request was carried out with version {answering.version} of the model."
            + later,
            "The training copy was overwritten where the person's records stood, and the ledger no longer knows which "
            "rows they were.",
            "The weights of all earlier versions were deleted from the model directory.",
            self.certified.removal,
        )

    def _guaranteed(self) -> tuple[str, ...]:
        stated = self.certified.stated()
        scope = self.certified.scope(stated, "the current version")
        meaning = self.certified.meaning()
        sentences = [] if meaning is None else [meaning]
        sentences.append(f"The comparison is with {scope.compared_with}.")
        if stated.epsilon is not None:
            sentences.append(
                f"In the terms of the field: epsilon = {or_nothing(stated.epsilon)} at delta = "
                f"{or_nothing(stated.whole_delta)}."
            )
        return tuple(sentences)

    def _assumed(self) -> tuple[str, ...]:
        return in_plain_words(each.statement for each in self.certified.unchecked)

    def _not_guaranteed(self) -> tuple[str, ...]:
        always = (
            EARLIER,
            "Copies of the data outside the model directory, such as the original file and backups, are not touched.",
            "What other people's records say about the same facts stays.",
        )
        return tuple(dict.fromkeys((*always, *in_plain_words(self.certified.not_promised))))

    def _checks(self, head: str) -> tuple[str, ...]:
        current = self.state.current
        return (
            f"{self._command('verify', f'--head {head}')} recomputes every number, and checks that nothing recorded "
            "until now was changed or dropped.",
            f"The certificate is {ModelDirectory(self.path).certificate(current.version).name}, with the SHA-256 "
            f"{current.certificate_sha256}. "
            "`unlearn verify` recomputes it without the model, too.",
            "The certificate is arithmetic: it does not prove that the steps were executed.",
        )

    def _command(self, name: str, rest: str = "") -> str:
        words = ["unlearn", name, shlex.quote(str(self.path))]
        if name == "request":
            words.append(f"--id {shlex.quote(self.name)}")
        return f"`{' '.join([*words, rest]).strip()}`"


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
@page {{ margin: 2cm; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""
