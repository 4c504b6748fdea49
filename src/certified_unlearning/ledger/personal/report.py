"""A page for one person: what was asked and done, what is and is not guaranteed, and how to check it.

The page is for that person and for lawyers. The operator's tasks are printed below the page, never on it.

The module has no heavy imports: it reads the ledger and the current certificate, but neither data nor weights.
"""

import html
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from certified_unlearning.data.tables.declaration import text_of
from certified_unlearning.errors import ParameterError
from certified_unlearning.ledger.database.events import Event
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.identifiers.names import UNNAMED
from certified_unlearning.ledger.log.setting import require_present
from certified_unlearning.ledger.personal.letter import Letter, Section
from certified_unlearning.ledger.proofs.head import head_of
from certified_unlearning.ledger.requests import current_certificate, look_for_leftovers
from certified_unlearning.ledger.state import State, read_state
from certified_unlearning.ledger.store import Ledger

Stage = Literal["no request", "on hold", "waiting", "removed", "lost"]
FOR_THE_OPERATOR = "For the operator of the model (not part of the page)"


@dataclass(frozen=True)
class PersonalReport:
    """The report for one person.

    Attributes:
        identifier: The identifier of the person.
        stage: Whether a removal was requested, and whether it was carried out; ``lost`` if a restore from a backup lost
            the records, so that nothing is left to remove.
        records: The number of records that the person has or had.
        added: The time when the records were added to the model, in UTC; None if they were there from the start, or are
            not there yet.
        requested: The time when the removal was recorded, in UTC; None without a request.
        applied: The time when the removal was carried out, in UTC; None if it was not.
        version: The number of the version that carried the removal out; None if there is none yet.
        current: The number of the current version.
        share: Upper bound on the share of right guesses about whether the records were in the model; None if the
            certificate states no such bound, or nothing was removed yet.
        certificate_sha256: Digest of the current certificate's file.
        head: The head of the log.
        sections: The sections of the page.
        operator: Sentences on what the operator can do and needs to know.
        commands: The commands that are named on the page and in the sentences for the operator.
        like: A similar identifier whose records are in the data. If only the pseudonym of the similar identifier is
            known, a phrase takes its place. This value is for the operator, and is not on the page.
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
        """The title of the page."""
        if self.stage == "no request":
            return f"Records of {self.identifier} in a model"
        if self.stage in ("waiting", "on hold"):
            return f"Request to remove the records of {self.identifier} from a model"
        return f"Removal of the records of {self.identifier} from a model"

    def as_text(self) -> str:
        """Return the page as plain text, followed by the part for the operator."""
        return f"{self._page}\n\n{self.for_operator}"

    @property
    def for_operator(self) -> str:
        """The part for the operator, as plain text."""
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
        return page.encode("utf-8", "backslashreplace").decode("utf-8")  # Paths may not be UTF-8.

    def _marked(self, sentence: str) -> str:
        """Return a sentence as HTML, with its commands as code. Other backticks may belong to an identifier."""
        text = html.escape(sentence)
        for command in self.commands:
            text = text.replace(html.escape(f"`{command}`"), f"<code>{html.escape(command)}</code>")
        return text


def report_on(path: Path, identifier: str) -> PersonalReport:
    """Return the report for one person. Nothing is changed.

    Args:
        path: The model directory.
        identifier: The person's identifier, in any spelling that the table's rules treat as equal (7.0 is 7).

    Raises:
        ParameterError: Nobody has this identifier.
        DataError: There is no model, its ledger is damaged, or its certificate cannot be read.
        LedgerError: The certificate differs from what the log records, or the directory was restored from a backup and
            the second copy of its log has more events.
    """
    directory = ModelDirectory(path)
    name = str(text_of(identifier))
    # Deleted rows of the ledger may still be in SQLite's own log.
    log = directory.ledger.with_name(f"{directory.ledger.name}-wal")
    unfinished = log.exists() and log.stat().st_size > 0
    try:
        with Ledger.opened(directory.ledger, read_only=True) as ledger:
            require_present(ledger)
            state, head = read_state(ledger), head_of(directory, ledger)
            hold, request, present = ledger.hold_of(name), ledger.request_of(name), ledger.owners.count_records_of(name)
            row, like = ledger.owners.row_of(name), None if present else ledger.owners.like(name)
            if like is None and request is None and not present:
                like = ledger.owners.requested_like(name)
            names, kept = ledger.names, ledger.names.kept
            absent = None if request is not None or present else ledger.answered_absent().get(names.stored(name))
            if absent is not None:
                raise ParameterError(
                    f"identifier {name!r} is not in the training data, and the log already contains this answer to the "
                    f"request: event {absent.sequence}, {absent.time}; `unlearn receipt` proves that the answer was "
                    "recorded"
                )
            if request is None and not present:
                hint = "" if like is None else f" (did you mean {names.in_words(name, like)}?)"
                raise ParameterError(
                    f"identifier {name!r} is not in the training data, and its removal was never requested{hint}"
                )
            like = None if like is None else names.recognised(name, like) or UNNAMED
    except UnicodeEncodeError as error:
        raise ParameterError(f"{error.object!r} is not UTF-8 text") from error
    leftovers, is_busy = look_for_leftovers(directory, state)
    unfinished = unfinished or is_busy or bool(leftovers)
    answering = None if request is None else state.answering(request.sequence)
    is_held = request is None and hold is not None
    # For a request that was released from a hold, the time of the hold is the time of the request.
    asked = hold or request
    # Present records are counted, if any: after the request, a restore may have lost them, and `add` added them again.
    records = present if asked is None or present else int(asked.payload["records"])
    came_with = state.added_with(row or 0) if asked is None or present else int(asked.payload.get("added_with", 1))
    stage: Stage = "on hold" if is_held else "waiting" if answering is None else "removed"
    if asked is None:
        stage = "no request"
    elif not present and state.is_gone(asked):
        stage = "lost"
    certified = current_certificate(directory, state)
    letter = Letter(
        path,
        name,
        state,
        certified,
        records,
        came_with,
        asked,
        is_held,
        answering,
        head,
        unfinished,
        kept,
        is_lost=stage == "lost",
        made_with=_made_with(state, came_with, request),
        lost_answers=() if request is None else tuple(state.answers_lost(request)),
    )
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
        sections=letter.sections(),
        operator=letter.operator(),
        commands=letter.commands,
        like=like,
    )


def _made_with(state: State, came_with: int, request: Event | None) -> tuple[int, ...]:
    """Return the versions that were made with a person's records, including those that a restore lost."""
    made = sorted((*state.versions, *state.lost), key=lambda version: version.event)
    return tuple(
        dict.fromkeys(
            version.version
            for version in made
            if version.version >= came_with
            and (request is None or version.batch is None or version.batch.up_to < request.sequence)
        )
    )


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
