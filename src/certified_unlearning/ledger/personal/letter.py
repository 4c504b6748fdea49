"""The sentences of one person's page: what was asked and done, and what the model may still show.

Facts come first. Each sentence follows from the log and from the current certificate. If a result holds only under
conditions, the conditions are stated before the result. Formulas are in the section for experts. Outside that section,
no sentence is longer than 35 words.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from certified_unlearning.certificate.guesses import so_many_of_1000_are_right
from certified_unlearning.certificate.ledger import LedgerCertificate
from certified_unlearning.ledger.database.events import Event
from certified_unlearning.ledger.directory import ModelDirectory, shell_command
from certified_unlearning.ledger.personal.plain_words import (
    EARLIER,
    LEFT_OUT,
    REACTIONS,
    SECRET_STATES,
    in_plain_words,
)
from certified_unlearning.ledger.state import State, Version
from certified_unlearning.text import capitalised, counted, noun_of
from certified_unlearning.version import code_version

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_NO_PROBABILITY = (
    "The percentage is neither the probability that somebody finds a record, nor the part of the data that remains. "
    "Closer to 50 % is better; 100 % would be certainty."
)
_HALF = (
    "That half of the guesses are right does not mean that somebody finds a record with probability one half, or that "
    "half of the data remains. Half is the best possible value. If all guesses were right, that would be certainty."
)
_NOT_COVERED = "What the result does not cover"
_ANSWER_SHOULD_SAY = "The operator's answer should say"


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
        state: State of the ledger.
        certified: The current certificate.
        records: The number of records that the person has or had.
        came_with: The number of the version to which the records were added.
        request: The event of the request, or of its hold; None without a request.
        is_held: Whether the request is on hold.
        answering: The version that carried the request out; None if there is none yet.
        head: The head of the log.
        unfinished: Whether files of earlier versions may still exist.
        kept: The phrase for what the log keeps about the person: the identifier, or a pseudonym of the identifier.
        is_lost: Whether a restore from a backup lost the records, so that the current version never had them.
        made_with: The numbers of the versions that were made with the records.
        lost_answers: The versions that were made without the records, and that a restore lost.
    """

    path: Path
    name: str
    state: State
    certified: LedgerCertificate
    records: int
    came_with: int
    request: Event | None
    is_held: bool
    answering: Version | None
    head: str
    unfinished: bool
    kept: str
    is_lost: bool
    made_with: tuple[int, ...]
    lost_answers: tuple[Version, ...]

    def sections(self) -> tuple[Section, ...]:
        """Return the sections of the page."""
        scope = Section("About this page", self._scope())
        if self.request is None:
            return (scope, Section("No request is recorded", self._stays()))
        asked = Section("What was asked", (self._asked(self.request), *self._added()))
        if self.is_lost:
            return (
                scope,
                asked,
                Section("What became of the records", self._became()),
                Section("How it can be checked", self._last_entry()),
            )
        if self.answering is None:
            waits = Section("Not done yet", self._waits())
            return (scope, asked, waits, Section("How it can be checked", self._last_entry()))
        return (
            Section("In short", self._in_short(self.answering)),
            scope,
            Section("What was asked and done", (*asked.sentences, *self._done(self.answering))),
            Section("What stays", self._stored()),
            Section("What the current version may still show", (*self._conditions(), *self._shown())),
            Section(_NOT_COVERED, self._not_covered()),
            Section("How it can be checked, and numbers for experts", (*self._checks(), *self._terms())),
        )

    def operator(self) -> tuple[str, ...]:
        """Return sentences on what the operator can do and needs to know."""
        folder = f'The path of the model\'s folder is "{self.path}".'
        verifies = (
            f"`{self.verify_command}` calculates all numbers again, and shows whether an entry of the log was changed "
            "or dropped after this page was made."
        )
        if self.request is None:
            finish = () if self._is_in else (f"`{self.apply_command}` finishes the addition.",)
            return (folder, *finish, f"`{self.request_command}` requests the removal.")
        kept = (
            f"The request is entry {self.request.sequence:,} of the log. A single entry cannot be deleted, so "
            f"{self.kept}, the number of records and the dates are kept as long as the folder is. In your hands, these "
            "are personal data. Your letter to the person has to say how long you keep the folder, and on what legal "
            "basis."
        )
        if self.is_lost:
            others = "Remove the records from the original file and all other copies, and do not add them again."
            return (folder, others, kept, verifies)
        if self.is_held:
            why = f"The request is on hold ({self.request.payload.get('reason')}): `{self.release_command}` ends it."
            return (folder, why, kept, verifies)
        if self.answering is None:
            return (folder, f"`{self.apply_command}` carries the request out.", kept, verifies)
        unfinished = (f"`{self.apply_command}` deletes what is left of earlier versions.",) if self.unfinished else ()
        others = "Remove the records from the original file and all other copies, and stop the use of earlier versions."
        return (folder, *unfinished, others, kept, verifies)

    def _in_short(self, answering: Version) -> tuple[str, ...]:
        steps = 0 if answering.batch is None else answering.batch.steps
        versions = _versions(self.made_with)
        return (
            f"On {_date(answering.time)}, {self._records()} {self._was} removed from this software's copy of the data, "
            f"and version {answering.version} of the model was made.",
            self.certified.done(steps, answering.reading),
            f"{capitalised(versions)} of the model had been made with the {self._it}. Every copy of "
            f"{'this version' if len(self.made_with) == 1 else 'these versions'} may still show information from "
            f"{self._them}.",
            "The software did nothing with other copies of the data, such as the original file and backups.",
            *self._left(answering),
            f"{_ANSWER_SHOULD_SAY} what happened to other copies of the data and to earlier versions of the model, and "
            "where you can complain.",
        )

    def _left(self, answering: Version) -> tuple[str, ...]:
        """Return sentences on unfinished parts of the removal."""
        files = "Not finished: files of earlier versions may still be in the model's folder."
        secret = (
            f"Not finished: secret files in the model's folder may still contain information from the {self._it}; see "
            '"What was asked and done".'
        )
        return (*((files,) if self.unfinished else ()), *((secret,) if self._is_kept(answering) else ()))

    def _is_kept(self, answering: Version) -> bool:
        """Whether secret files may still depend on the records."""
        since = [version for version in self.state.versions if version.version >= answering.version]
        return self.certified.keeps_removed(version.reading for version in since)

    @property
    def _current(self) -> str:
        return f"version {self.state.current.version}"

    def _records(self) -> str:
        return f"{counted(self.records, 'record')} with the identifier {self.name}"

    def _scope(self) -> tuple[str, ...]:
        name = self.path.resolve().name
        return (
            f'This page is about one model, which its operator calls "{name}". A model is a set of numbers, calculated '
            "from many people's records, with which a computer makes predictions. When records are removed or added, "
            "a new version is made.",
            "The operator is the company, authority or person that uses this software, and normally the one that you "
            f"asked. A record is one entry of data. {self.name} is the operator's identifier for you. Data under other "
            "identifiers are not covered.",
            "The page can be attached to the operator's answer. A law may require more than this page says, and the "
            "page is not legal advice. It does not say to whom data or versions were given; you can ask the operator.",
            f"The page was made on {_day(_now())} by certified-unlearning {code_version()}.",
        )

    def _stays(self) -> tuple[str, ...]:
        current = self.state.current.version
        holds: tuple[str, ...] = ()
        if self._is_in:
            versions = _versions(self.made_with)
            made = f"{capitalised(versions)} of the model"
            among = ", the current one, was" if self.made_with == (current,) else ", the current one among them, were"
            holds = (
                f"{made}{among} made with {self._records()}. The {self._it} {self._is} still in this software's copy "
                "of the data.",
            )
        return (
            *holds,
            *self._added(),
            f"The log holds no request to remove {self._them}. This does not mean that you "
            "sent none. If you sent one, ask the operator; its answer should say where you can complain.",
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
        held = ""
        if self.is_held and self.request is not None:
            since = _date(self.request.time)
            held = f"The request has been on hold since {since}. {_ANSWER_SHOULD_SAY} why. "
        made = f"{capitalised(self._current)} of the model, the current one, was made"
        still = (
            f"The {self._it} {self._is} still in this software's copy of the data. {made} with the {self._it}, and may "
            "still be in use."
            if self._is_in
            else f"{made} without the {self._it}."
        )
        when = "When the hold has ended and the operator" if self.is_held else "When the operator"
        return (
            f"{held}{still}",
            *self._lost_answers("The removal has to be carried out again."),
            f"{when} carries the request out, the {self._it} {self._is} overwritten in this software's copy of the "
            "data, and a new version of the model is made. A new page then says what the result is.",
            f"{self._traces} Only the operator can say what happens to other copies of the data and to earlier "
            "versions of the model.",
            f"{_ANSWER_SHOULD_SAY} when this will be done, or why not, and where you can complain.",
        )

    def _done(self, answering: Version) -> tuple[str, ...]:
        current = self.state.current
        later = (
            ""
            if answering is current
            else f" The current version is version {current.version}, which was also made without the {self._it}."
        )
        places = f"entries that say where in the data the {self._it} {self._was}"
        if self.unfinished:
            files = (
                f"This work was interrupted. Files of earlier versions, and {places}, may still be in the model's "
                "folder. The operator still has to delete them."
            )
        else:
            files = (
                f"The files with the numbers of earlier versions, and {places}, were deleted from the model's folder."
            )
        return (
            f"On {_day(answering.time)}, the {self._it} {self._was} overwritten in this software's own copy of the "
            f"data.{later}",
            *self._lost_answers("The removal was carried out again."),
            *(in_plain_words(self._secret_state) if self._is_kept(answering) else ()),
            f"{files} {self._traces}",
        )

    def _stored(self) -> tuple[str, ...]:
        """Return sentences on what is kept of the person, why, and for how long."""
        return (
            f"The log keeps {self.kept} {self.name}, the number of records, and the dates. This documents the removal, "
            "and ensures that no record with this identifier is added again. The same data under another identifier "
            "would not be recognised.",
            "These entries are kept as long as the model's folder is, because a single entry cannot be deleted. "
            f"{_ANSWER_SHOULD_SAY} how long that is.",
        )

    @property
    def _traces(self) -> str:
        return "The software does not remove traces on the storage device or in its snapshots."

    def _lost_answers(self, now: str) -> tuple[str, ...]:
        """Return sentences on a removal that was carried out before the folder was restored from a backup."""
        if not self.lost_answers or self.state.restored is None:
            return ()
        first = self.lost_answers[0]
        return (
            f"The removal had been carried out on {_date(first.time)}, with version {first.version} of the model. By "
            f"{_date(self.state.restored.time)} the model's folder had been restored from an earlier backup, which "
            f"brought the {self._it} back. {now}",
        )

    def _became(self) -> tuple[str, ...]:
        """Return sentences on a restore that lost the records, and on the versions that were made with the records."""
        restored = "" if self.state.restored is None else f"By {_date(self.state.restored.time)} "
        versions: tuple[str, ...] = ()
        if self.made_with:
            gone = f"which {_are(len(self.made_with))} not in the folder any more"
            used = f"The {self._it} had been used for {_versions(self.made_with)} of the model, {gone}."
            versions = (f"{used} {EARLIER}",)
        return (
            f"{restored}the model's folder was restored from a backup made before the {self._it} {self._was} added. "
            f"The {self._it} {self._is} not in this software's copy of the data, and {self._current}, the current one, "
            f"was made without the {self._it}.",
            *versions,
            f"{_ANSWER_SHOULD_SAY} what happened to other copies of the data and to other versions of the model, and "
            "where you can complain.",
        )

    @property
    def _secret_state(self) -> list[str]:
        """The certificate's statements about a secret state that is replaced only when the model is learned anew."""
        return [each for each in self.certified.not_promised if each in SECRET_STATES]

    def _conditions(self) -> tuple[str, ...]:
        """Return sentences on the version that the result is about, and on the conditions under which it holds."""
        unknown: tuple[str, ...] = ()
        if self._depends_on_reasons:
            weaker = (
                ""
                if self._weaker is None
                else " If only that condition is not met, experts can find a different and weaker statement at the end "
                "of this page."
            )
            unknown = (
                "Often nobody can know whether the first condition is met, because nobody has to give a "
                f"reason.{weaker}",
            )
        open_points = f' The result leaves some points open. They are under "{_NOT_COVERED}".' if self._gaps else ""
        return (
            f"This is about {self._current}, current on {_date(_now())}. For later versions, ask for a new page.",
            "The result at the end of this section holds only if the software ran as described, and if the following "
            f"conditions are met.{open_points}",
            *in_plain_words(self._conditions_stated),
            f"No software can check these conditions. {_ANSWER_SHOULD_SAY} which of them the operator knows to be met, "
            "and how. These conditions limit the result, not your right to ask.",
            *unknown,
        )

    @property
    def _assumptions(self) -> list[str]:
        return [each.statement for each in self.certified.unchecked]

    @property
    def _conditions_stated(self) -> list[str]:
        """The assumptions that are conditions. Assumptions about the reasons for requests come first."""
        conditions = [each for each in self._assumptions if each not in LEFT_OUT]
        return sorted(conditions, key=lambda each: each not in REACTIONS)

    @property
    def _gaps(self) -> list[str]:
        """The assumptions that are shown to the reader as gaps in the result."""
        return [each for each in self._assumptions if each in LEFT_OUT]

    @property
    def _weaker(self) -> str | None:
        """The statement that holds without the first condition.

        None if the first condition is not about the reasons for requests, or if the certificate has no statement that
        holds without this condition.
        """
        return self.certified.with_reactions() if self._depends_on_reasons else None

    @property
    def _depends_on_reasons(self) -> bool:
        """Whether the first condition is about the reasons for requests."""
        return not REACTIONS.keys().isdisjoint(self._assumptions)

    def _shown(self) -> tuple[str, ...]:
        """Return sentences on the result: the largest share of right guesses, and what it means."""
        certified = self.certified
        share, meaning = certified.share(), certified.meaning()
        if share is None:
            return (meaning or "No limit is given for what the model may still show of the removed records.",)
        often = so_many_of_1000_are_right(share)
        with_earlier = () if certified.share_with_earlier_versions() is None else (certified.with_earlier_versions(),)
        holders = "" if with_earlier else "people who have an earlier version, "
        return (
            f"Someone sees {certified.seen} and guesses whether {certified.bet}. Beforehand, this person thinks both "
            f"answers equally likely. {capitalised(often)}.",
            f"{certified.guesser} Someone who already suspects one of the answers can be right more often.",
            f"The result is not about {holders}the operator's staff, or people who know of the removal, such as "
            "readers of this page, of the log or of the certificate.",
            _HALF if share.value == 0.5 else _NO_PROBABILITY,
            *with_earlier,
        )

    def _not_covered(self) -> tuple[str, ...]:
        limit = self.certified.share_with_earlier_versions()
        earlier = () if limit is not None else (self.certified.with_earlier_versions(),)
        always = ("The model may still make predictions about you, based on other people's records.",)
        said = {EARLIER, *in_plain_words([*self._conditions_stated, *SECRET_STATES])}
        others = in_plain_words(self.certified.not_promised)
        return (*earlier, *always, *in_plain_words(self._gaps), *(each for each in others if each not in said))

    def _checks(self) -> tuple[str, ...]:
        return (
            f"An expert to whom the operator gives the certificate (the file {self._certificate}) can calculate the "
            "result again. This calculation does not show whether the removal was carried out as described: only "
            "somebody with access to the operator's computers can examine that.",
            *self._last_entry(),
        )

    def _terms(self) -> tuple[str, ...]:
        """Return sentences with epsilon and other numbers, for experts."""
        conditions, gaps = len(self._conditions_stated), len(self._gaps)
        under = f', under "{_NOT_COVERED}"' if gaps else ""
        weaker = "" if self._weaker is None else f"If the first condition is not met: {self._weaker}"
        return (
            f"The certificate states: {self.certified.details()}.",
            f"In all, {counted(conditions + gaps, 'assumption')} {_are(conditions + gaps)} not checked: {conditions} "
            f"{_are(conditions)} among the conditions above, and {gaps} {_are(gaps)} left open{under}.",
            *filter(None, (weaker,)),
            *(
                f"The share of {each.percent} % is {each.formula}, rounded up, with {each.terms}."
                for each in self.certified.all_shares()
            ),
            f"The certificate compares the model with {self.certified.comparator}. "
            f"{self.certified.with_known_number()}",
            f"`{self.verify_certificate_command}` calculates the certificate's numbers again. The SHA-256 of the "
            f"certificate's file is {self.state.current.certificate_sha256}.",
        )

    def _last_entry(self) -> tuple[str, str]:
        return (
            "Keep this page: somebody who compares it with the log can see whether the entries that the log has now "
            "were changed later. Changes that were made before this page cannot be seen in this way.",
            "When this page was made, the head of the log (the number of its entries, and one hash of them all) was "
            f"{self.head}.",
        )

    @property
    def _it(self) -> str:
        return noun_of(self.records, "record")

    @property
    def _them(self) -> str:
        return "it" if self.records == 1 else "them"

    @property
    def _was(self) -> str:
        return "was" if self.records == 1 else "were"

    @property
    def _is(self) -> str:
        return "is" if self.records == 1 else "are"

    @property
    def _is_in(self) -> bool:
        """Whether the version to which the records were added is finished."""
        return self.state.time_of(self.came_with) is not None

    def _added(self) -> tuple[str, ...]:
        """Return a sentence on when the records were added; none if they were there from the start."""
        if self.came_with == 1 or self.is_lost:
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
        """All commands that the sentences may name."""
        return (
            self.request_command,
            self.release_command,
            self.apply_command,
            self.verify_command,
            self.verify_certificate_command,
        )

    @property
    def request_command(self) -> str:
        """The command that requests the removal."""
        return f"{shell_command('request', self.path)} --id {shlex.quote(self.name)}"

    @property
    def release_command(self) -> str:
        """The command that ends the hold on the request."""
        return f"{shell_command('release', self.path)} --id {shlex.quote(self.name)}"

    @property
    def apply_command(self) -> str:
        """The command that carries requests out."""
        return shell_command("apply", self.path)

    @property
    def verify_command(self) -> str:
        """The command that checks the folder, and that the log still begins with this page's head."""
        return f"{shell_command('verify', self.path)} --head {self.head}"

    @property
    def verify_certificate_command(self) -> str:
        """The command that checks only the certificate, without the model's folder."""
        return f"unlearn verify {self._certificate}"

    @property
    def _certificate(self) -> str:
        return ModelDirectory(self.path).certificate(self.state.current.version).name


def _versions(numbers: Sequence[int]) -> str:
    """Return version numbers in words: version 2, versions 1 and 2, versions 1 to 3, versions 1, 2 and 5."""
    first, last = numbers[0], numbers[-1]
    if first == last:
        return f"version {first}"
    if len(numbers) > 2 and [*numbers] == [*range(first, last + 1)]:
        return f"versions {first} to {last}"
    return f"versions {', '.join(map(str, numbers[:-1]))} and {last}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _date(time: str) -> str:
    """Return the date of a timestamp of the ledger, such as 26 November 2026. These timestamps are in UTC."""
    moment = datetime.fromisoformat(time)
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"


def _day(time: str) -> str:
    """Return a timestamp or date of the ledger as text, such as 26 November 2026 at 10:30 UTC."""
    return f"{_date(time)} at {datetime.fromisoformat(time).astimezone(UTC):%H:%M} UTC" if "T" in time else _date(time)
