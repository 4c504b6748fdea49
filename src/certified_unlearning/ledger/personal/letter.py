"""The sentences of one person's answer: what was asked and done, what the result is, and what the operator can do.

Each sentence follows from the log and from the current certificate. A sentence that holds under conditions only says
so, or stands below them.
"""

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from certified_unlearning.certificate.base import Certificate
from certified_unlearning.certificate.guesses import so_many_are_right, so_many_of_1000_are_right
from certified_unlearning.ledger.directory import ModelDirectory, shell_command
from certified_unlearning.ledger.personal.plain_words import (
    EARLIER,
    LEFT_OUT,
    REACTIONS,
    SECRET_STATES,
    comparison_in_plain_words,
    in_plain_words,
    without_law,
)
from certified_unlearning.ledger.state import State, Version
from certified_unlearning.ledger.store import Event
from certified_unlearning.text import counted, noun_of
from certified_unlearning.version import code_version

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_NO_PROBABILITY = (
    "The percentage is neither the probability that somebody finds a record, nor the part of the data that remains. It "
    "is an upper limit: fewer guesses may be right. Closer to 50 % is better; 100 % would be certainty."
)
_HALF = (
    "The half is neither the probability that somebody finds a record, nor the part of the data that remains. Nothing "
    "is better than half; all would be certainty."
)


class Section(NamedTuple):
    """A heading and the sentences below it."""

    heading: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Letter:
    """The sentences of a report.

    Attributes:
        path: The model directory.
        name: The person's identifier.
        state: What the log says.
        certified: The current certificate.
        records: How many records the person had, or has.
        came_with: The version that the records came with.
        request: The event of the request, or of its hold; None without one.
        is_held: Whether the request is on hold.
        answering: The version that carried the request out; None before.
        head: The head of the log.
        unfinished: Whether something of earlier versions may be left.
    """

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
        """Return the page."""
        scope = Section("About this page", self._scope())
        if self.request is None:
            return (scope, Section("No request is recorded", self._stays()))
        asked = Section("What was asked", (self._asked(self.request), *self._added()))
        if self.answering is None:
            done = Section("What was done", self._waits())
            return (scope, asked, done, Section("How it can be checked", self._last_entry()))
        return (
            Section("In short", self._in_short(self.answering)),
            scope,
            asked,
            Section("What was done", self._done(self.answering)),
            Section("Under which conditions the result below holds", self._conditions()),
            Section("What the result is", self._shown()),
            Section("What the result does not cover", self._not_covered(self.answering)),
            Section("How it can be checked, and numbers for experts", (*self._checks(), *self._terms())),
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

    def _in_short(self, answering: Version) -> tuple[str, str, str]:
        return (
            f"On {_date(answering.time)}, {self._records()} {self._was} removed from this software's copy of the data, "
            f"and version {answering.version} of the model was made.",
            self._result_in_short(),
            "Whether the conditions are met, and what happened to other copies of the data and to earlier versions of "
            "the model, is the operator's matter, and the operator's answer should say it.",
        )

    def _result_in_short(self) -> str:
        share, meaning = self.certified.share(), self.certified.meaning()
        if share is None:
            if meaning is None:
                return "No limit is given for what the model may still show of the removed records."
            return f"If the conditions below are met, {meaning[0].lower()}{meaning[1:]}"
        return (
            "If the conditions below are met, of 1,000 guesses from the current version whether the removed records "
            "(those of all people removed so far) were ever used to make it or an earlier version, "
            f"{so_many_of_1000_are_right(share)}."
        )

    @property
    def _current(self) -> str:
        return f"version {self.state.current.version}"

    def _records(self) -> str:
        return f"{counted(self.records, 'record')} with the identifier {self.name}"

    def _scope(self) -> tuple[str, ...]:
        name = self.path.resolve().name
        return (
            f'It is about one model only, which its operator calls "{name}": numbers, calculated from many people\'s '
            "records, with which a computer makes predictions. When records are removed or added, a new version is "
            "made.",
            "It can be attached to an answer, but is not all that a law may ask for, and not legal advice. It does not "
            "say to whom data or versions were given; you may ask the operator.",
            f"It was made on {_day(_now())} by certified-unlearning {code_version()}.",
        )

    def _stays(self) -> tuple[str, ...]:
        current = self.state.current.version
        made = f"version {self.came_with} of the model"
        also = "" if self.came_with == current else f", and so was the current version, version {current}"
        holds = (f"{made[0].upper()}{made[1:]} was made with {self._records()}{also}.",) if self._is_in else ()
        return (
            *holds,
            *self._added(),
            f"The log holds no request to remove {'it' if self.records == 1 else 'them'}. This does not mean that you "
            "sent none.",
        )

    def _asked(self, request: Event) -> str:
        received = request.payload.get("received")
        when = (
            "The software does not know when the operator received the request."
            if received is None
            else f"As the operator recorded, the request was received on {_day(received)}."
        )
        return (
            f"On {_day(request.time)}, the operator recorded in a log that {self._records()} {self._was} to be "
            f"removed. {when}"
        )

    def _waits(self) -> tuple[str, ...]:
        held = " The operator has put it on hold, and can give the reason." if self.is_held else ""
        made = f"{self._current[0].upper()}{self._current[1:]} of the model, the current one, was made"
        still = (
            f"The {self._it} {self._is} still in this software's copy of the data. {made} with the {self._it}, and may "
            "still be in use."
            if self._is_in
            else f"{made} without the {self._it}."
        )
        when = "When the hold has ended and the operator" if self.is_held else "When the operator"
        return (
            f"The request has not been carried out yet.{held} {still}",
            f"{when} carries the request out, the {self._it} {self._is} overwritten in this software's copy of the "
            "data, and a new version of the model is made by this software's method of removal. What the result is, a "
            "new page then says. Other copies of the data and of earlier versions are the operator's matter.",
            "The operator's answer should say when this will be done, or why not, and where you can complain.",
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
                f"The files with the numbers of earlier versions, and the notes where the {self._it} stood, were "
                "deleted from the model's folder; traces on the storage device or in its snapshots are not covered."
            )
        return (
            f"On {_day(answering.time)}, version {answering.version} of the model was made, and the {self._it} "
            f"{self._was} overwritten in this software's own copy of the data. The software did nothing with other "
            f"copies, such as the original data and backups; ask the operator.{later}",
            self.certified.done(0 if batch is None else batch.steps, answering.reading),
            *in_plain_words(self._secret_state),
            files,
            f"The log keeps the identifier {self.name}, the number of records, and the dates, to document the removal "
            "and to refuse records with this identifier; records with another one are not recognised. This is personal "
            "data that stays as long as the model's folder, for it cannot be taken out alone. The operator's answer "
            "should say how long, and why.",
        )

    @property
    def _secret_state(self) -> list[str]:
        """What the certificate says of a secret state that was not made anew with the model."""
        if self.state.current.reading in ("scheduled", "unscheduled", "addition"):
            return []
        return [each for each in self.certified.not_promised if each in SECRET_STATES]

    def _conditions(self) -> tuple[str, ...]:
        failing = "If one of them is not met, or the software did not run as described, no result is given."
        if self._weaker is not None:
            failing = (
                "If the first condition is not met, nothing is stated about whether somebody can tell that the removed "
                "records were used, but a weaker statement, below for experts, holds. If another one is not met, or "
                "the software did not run as described, no result is given."
            )
        return (
            "No software can check them. The operator's answer should say which of them are true.",
            *in_plain_words(self._conditions_stated),
            failing,
        )

    @property
    def _assumptions(self) -> list[str]:
        return [each.statement for each in self.certified.unchecked]

    @property
    def _conditions_stated(self) -> list[str]:
        """The assumptions that are conditions; that nothing depends on what a model said comes first."""
        conditions = [each for each in self._assumptions if each not in LEFT_OUT]
        return sorted(conditions, key=lambda each: each not in REACTIONS)

    @property
    def _gaps(self) -> list[str]:
        """The assumptions that a reader takes for gaps."""
        return [each for each in self._assumptions if each in LEFT_OUT]

    @property
    def _weaker(self) -> str | None:
        """What holds where the first condition is not met, if that is about reasons and anything holds."""
        return self.certified.with_reactions() if REACTIONS.keys() & {*self._assumptions} else None

    def _shown(self) -> tuple[str, ...]:
        certified = self.certified
        compared_with = certified.scope(certified.stated(), "the current version").compared_with
        comparison = (
            f"{self._current[0].upper()}{self._current[1:]}, current on {_date(_now())}, is compared with another "
            f"model: {comparison_in_plain_words(compared_with)}."
        )
        share, meaning = certified.share(), certified.meaning()
        if share is None:
            return tuple(filter(None, (comparison, meaning)))
        often = so_many_are_right(share)
        return (
            comparison,
            f"Someone sees {certified.seen} and guesses whether {certified.bet}. {often[0].upper()}{often[1:]}.",
            f"{certified.guesser} Secret files are those from which later versions are made; this page, the log and "
            "the certificate count as lists of removals. So nothing is stated about readers of this page, the "
            "operator's staff, and holders of an earlier version.",
            "Beforehand, this person thinks both answers equally likely. Someone who already suspects one of them can "
            "be right more often.",
            _HALF if share.value == 0.5 else _NO_PROBABILITY,
        )

    def _not_covered(self, answering: Version) -> tuple[str, ...]:
        with_it = [str(each) for each in range(self.came_with, answering.version)]
        among = f"version {with_it[0]}"
        if len(with_it) > 1:
            among = f"versions {with_it[0]} {'and' if len(with_it) == 2 else 'to'} {with_it[-1]}"
        earlier = (
            f"{EARLIER} The {self._it} of this page {self._was} in {among}. {self.certified.with_earlier_versions()}"
        )
        always = (
            "The model may still say of a person what it learned from other people's records.",
            "How many records were removed is not hidden.",
        )
        said = {EARLIER, *in_plain_words([*self._conditions_stated, *SECRET_STATES])}
        others = in_plain_words(self.certified.not_promised)
        return (earlier, *always, *(each for each in others if each not in said))

    def _checks(self) -> tuple[str, ...]:
        return (
            f"An expert whom the operator gives the file {self._certificate}, the certificate, can calculate the "
            "result again. That does not show that the removal was carried out as described: only somebody with access "
            "to the operator's computers can examine that.",
            *self._last_entry(),
        )

    def _terms(self) -> tuple[str, ...]:
        """Return the numbers, for people who know their names."""
        conditions, gaps = len(self._conditions_stated), len(self._gaps)
        weaker = "" if self._weaker is None else f"If the first condition is not met: {self._weaker}"
        return (
            f"The certificate states: {without_law(self.certified.details())}.",
            f"Of {counted(conditions + gaps, 'assumption')} not checked, {conditions} {_are(conditions)} among the "
            f"conditions above, and {gaps} {_are(gaps)} left open{':' if gaps else ''} "
            f"{' '.join(in_plain_words(self._gaps))}".strip(),
            *filter(None, (weaker,)),
            *(
                f"The share of {each.percent} % is {each.formula}, rounded up, with {each.terms}."
                for each in self.certified.all_shares()
            ),
            f"It compares with {without_law(self.certified.comparator)}.",
            f"`{self.verify_certificate_command}` calculates the certificate's numbers again. The SHA-256 of this file "
            f"is {self.state.current.certificate_sha256}.",
        )

    def _last_entry(self) -> tuple[str, str]:
        return (
            "Keep this page: somebody who compares it with the log can notice later changes of entries that were "
            "there. It says nothing about changes before.",
            f"When this page was made, the head of the log (its entries, and the hash of the last) was {self.head}.",
        )

    @property
    def _it(self) -> str:
        return noun_of(self.records, "record")

    @property
    def _was(self) -> str:
        return "was" if self.records == 1 else "were"

    @property
    def _is(self) -> str:
        return "is" if self.records == 1 else "are"

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


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _date(time: str) -> str:
    """Return the day of a time of the ledger for people, in UTC."""
    moment = datetime.fromisoformat(time)
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"


def _day(time: str) -> str:
    """Return a time or a day of the ledger for people."""
    return f"{_date(time)} at {datetime.fromisoformat(time).astimezone(UTC):%H:%M} UTC" if "T" in time else _date(time)
