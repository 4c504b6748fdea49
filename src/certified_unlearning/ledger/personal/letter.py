"""The sentences of one person's answer: what was asked and done, what the result is, and what the operator can do.

Each sentence follows from the log and from the current certificate. A sentence that holds under conditions only says
so, or stands below them.
"""

import shlex
from collections.abc import Sequence
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
    "The percentage is neither the probability that somebody finds a record, nor the part of the data that remains. "
    "Closer to 50 % is better; 100 % would be certainty."
)
_HALF = (
    "The half is neither the probability that somebody finds a record, nor the part of the data that remains. Half is "
    "the best possible value. If all guesses were right, that would be certainty."
)
_NOT_COVERED = "What the result does not cover"


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
        kept: What the log keeps of the person: the identifier, or a pseudonym of it.
        is_lost: Whether a restore from a backup has lost the records, and the current version never had them.
        made_with: The versions that were made with the records.
        lost_answers: The versions that had been made without the records, and that a restore lost.
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
    kept: str
    is_lost: bool
    made_with: tuple[int, ...]
    lost_answers: tuple[Version, ...]

    def sections(self) -> tuple[Section, ...]:
        """Return the page."""
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
            asked,
            Section("What was done", self._done(self.answering)),
            Section("Under which conditions the result below holds", self._conditions()),
            Section("What the result is", self._shown()),
            Section(_NOT_COVERED, self._not_covered(self.answering)),
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
            f"The request is entry {self.request.sequence:,} of the log. No entry can be "
            f"taken out alone: {self.kept} is kept as long as the folder is."
        )
        if self.is_lost:
            others = "Remove the records from the original file and all other copies, and do not add them again."
            return (folder, others, kept, verifies)
        if self.is_held:
            why = f"The request is on hold ({self.request.payload.get('reason')}): `{self.release_command}` ends that."
            return (folder, why, kept, verifies)
        if self.answering is None:
            return (folder, f"`{self.apply_command}` carries the request out.", kept, verifies)
        unfinished = (f"`{self.apply_command}` deletes what is left of earlier versions.",) if self.unfinished else ()
        others = "Remove the records from the original file and all other copies, and stop the use of earlier versions."
        return (folder, *unfinished, others, kept, verifies)

    def _in_short(self, answering: Version) -> tuple[str, ...]:
        return (
            f"On {_date(answering.time)}, {self._records()} {self._was} removed from this software's copy of the data, "
            f"and version {answering.version} of the model was made.",
            *self._left(answering),
            self._result_in_short(),
            "The operator's answer should say which conditions it knows to be met, what happened to other copies of "
            "the data and to earlier versions of the model, and where you can complain.",
        )

    def _left(self, answering: Version) -> tuple[str, ...]:
        """Return what of the removal is not finished."""
        files = "Not finished: files of earlier versions may still be in the model's folder."
        secret = (
            f"Not finished: secret files in the model's folder may still contain information from the {self._it}; see "
            '"What was done".'
        )
        return (*((files,) if self.unfinished else ()), *((secret,) if self._is_kept(answering) else ()))

    def _is_kept(self, answering: Version) -> bool:
        """Whether secret files may depend on the records."""
        since = [version for version in self.state.versions if version.version >= answering.version]
        return self.certified.keeps_removed(version.reading for version in since)

    def _result_in_short(self) -> str:
        share, meaning = self.certified.share(), self.certified.meaning()
        provided = "If the conditions below are met and the software ran as described"
        if self._gaps:
            provided += f', and apart from the points left open under "{_NOT_COVERED}"'
        if share is None:
            if meaning is None:
                return "No limit is given for what the model may still show of the removed records."
            return f"{provided}, {meaning[0].lower()}{meaning[1:]}"
        with_earlier = self.certified.share_with_earlier_versions()
        holders = "people who have an earlier version, the operator's staff, or readers of this page"
        if with_earlier is not None:
            often = "all" if with_earlier.value > 0.999 else f"at most {with_earlier.of_1000} of 1,000"
            holders = "the operator's staff or readers of this page"
        return (
            "Suppose someone sees only the current version, has no suspicion beforehand, and guesses whether the "
            f"removed records (of all people so far) were ever used. {provided}, {so_many_of_1000_are_right(share)}. "
            + ("" if with_earlier is None else f"With all versions, {often} are, under the same conditions. ")
            + f"Nothing is said about {holders}."
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
            "The operator uses this software, and is normally the one that you asked. A record is one entry of data. "
            f"{self.name} is the operator's identifier for you; this page does not cover data under other identifiers.",
            "It can be attached to an answer, but is not all that a law may ask for, and not legal advice. It does not "
            "say to whom data or versions were given; you may ask the operator.",
            f"It was made on {_day(_now())} by certified-unlearning {code_version()}.",
        )

    def _stays(self) -> tuple[str, ...]:
        current = self.state.current.version
        holds: tuple[str, ...] = ()
        if self._is_in:
            versions = _versions(self.made_with)
            made = f"{versions[0].upper()}{versions[1:]} of the model"
            among = ", the current one, was" if self.made_with == (current,) else ", the current one among them, were"
            holds = (
                f"{made}{among} made with {self._records()}. The {self._it} {self._is} still in this software's copy "
                "of the data.",
            )
        return (
            *holds,
            *self._added(),
            f"The log holds no request to remove {'it' if self.records == 1 else 'them'}. This does not mean that you "
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
            held = f"The request has been on hold since {since}; the operator's answer should give the reason. "
        made = f"{self._current[0].upper()}{self._current[1:]} of the model, the current one, was made"
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
            "data, and a new version of the model is made by this software's method of removal. A new page then says "
            "what the result is. The software does not remove traces on the storage device or in its snapshots; only "
            "the operator can say what happens to other copies of the data and to earlier versions of the model.",
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
                "This work was interrupted: files of earlier versions, and entries saying at which place in the data "
                f"the {self._it} stood, may still be in the model's folder. The operator still has to delete them."
            )
        else:
            files = (
                "The files with the numbers of earlier versions, and the entries saying at which place in the data "
                f"the {self._it} stood, were deleted from the model's folder."
            )
        return (
            f"On {_day(answering.time)}, version {answering.version} of the model was made, and the {self._it} "
            f"{self._was} overwritten in this software's own copy of the data. The software did nothing with other "
            f"copies, such as the original data and backups.{later}",
            *self._lost_answers("The removal was carried out again."),
            self.certified.done(0 if batch is None else batch.steps, answering.reading),
            *(in_plain_words(self._secret_state) if self._is_kept(answering) else ()),
            f"{files} This does not cover traces of the {self._it} or of these files on the storage device or in its "
            "snapshots.",
            f"The log keeps {self.kept} {self.name}, the number of records, and the dates, to document the removal, "
            "and so that a record with this identifier is not added again; the same data under another identifier "
            "would not be recognised. This is personal data that stays as long as the model's folder: for technical "
            "reasons, it cannot be taken out alone. The operator's answer should say how long that is, whether it is "
            "permitted, and on what basis.",
        )

    def _lost_answers(self, now: str) -> tuple[str, ...]:
        """Return that the removal had been carried out before the folder was restored from a backup, if it had."""
        if not self.lost_answers or self.state.restored is None:
            return ()
        first = self.lost_answers[0]
        return (
            f"The removal had been carried out on {_date(first.time)}, with version {first.version} of the model. By "
            f"{_date(self.state.restored.time)} the model's folder had been restored from an earlier backup, which "
            f"brought the {self._it} back. {now}",
        )

    def _became(self) -> tuple[str, ...]:
        """Return that a restore lost the records, and which versions know them nevertheless."""
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
            "The operator's answer should say what happened to other copies of the data and to other versions of the "
            "model, and where you can complain.",
        )

    @property
    def _secret_state(self) -> list[str]:
        """What the certificate says of a secret state that only learning anew makes anew."""
        return [each for each in self.certified.not_promised if each in SECRET_STATES]

    def _conditions(self) -> tuple[str, ...]:
        weaker: tuple[str, ...] = ()
        if self._weaker is not None:
            weaker = (
                "If only the first condition is not met, experts find a different and weaker statement at the end of "
                "this page.",
            )
        unknown = (
            "Often nobody can know whether the first is met, because nobody has to give a reason. "
            if self._depends_on_reasons
            else ""
        )
        return (
            "The result holds only if everything in this section is true, and the software ran as described. No "
            "software can check that; the operator's answer should say what it knows, and how. "
            f"{unknown}The conditions limit the result, not your right to ask.",
            *in_plain_words(self._conditions_stated),
            *weaker,
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
        return self.certified.with_reactions() if self._depends_on_reasons else None

    @property
    def _depends_on_reasons(self) -> bool:
        """Whether the first condition is about why people asked."""
        return not REACTIONS.keys().isdisjoint(self._assumptions)

    def _shown(self) -> tuple[str, ...]:
        certified = self.certified
        compared_with = certified.scope(certified.stated(), "the current version").compared_with
        comparison = (
            f"{self._current[0].upper()}{self._current[1:]}, current on {_date(_now())}, is compared with another "
            f"model: {comparison_in_plain_words(compared_with)}. For later versions, ask for a new page."
        )
        share, meaning = certified.share(), certified.meaning()
        if share is None:
            return tuple(filter(None, (f"{comparison} {certified.with_known_number()}", meaning)))
        often = so_many_are_right(share)
        with_earlier = () if certified.share_with_earlier_versions() is None else (certified.with_earlier_versions(),)
        return (
            f"{comparison} {certified.with_known_number()}",
            f"Someone sees {certified.seen} and guesses whether {certified.bet}. {often[0].upper()}{often[1:]}.",
            f"{certified.guesser} This page, the log and the certificate count as lists of removals.",
            "Beforehand, this person thinks both answers equally likely. Someone who already suspects one of them can "
            "be right more often.",
            _HALF if share.value == 0.5 else _NO_PROBABILITY,
            *with_earlier,
        )

    def _not_covered(self, answering: Version) -> tuple[str, ...]:
        among = _versions(self.made_with)
        earlier = f"{EARLIER} The {self._it} of this page {self._was} in {among}."
        if self.certified.share_with_earlier_versions() is None:
            earlier += f" {self.certified.with_earlier_versions()}"
        always = ("The model may still make predictions about you, based on other people's records.",)
        said = {EARLIER, *in_plain_words([*self._conditions_stated, *SECRET_STATES])}
        others = in_plain_words(self.certified.not_promised)
        return (earlier, *always, *in_plain_words(self._gaps), *(each for each in others if each not in said))

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
        under = f', under "{_NOT_COVERED}"' if gaps else ""
        weaker = "" if self._weaker is None else f"If the first condition is not met: {self._weaker}"
        return (
            f"The certificate states: {without_law(self.certified.details())}.",
            f"Of {counted(conditions + gaps, 'assumption')} not checked, {conditions} {_are(conditions)} among the "
            f"conditions above, and {gaps} {_are(gaps)} left open{under}.",
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
            "there. The comparison says nothing about changes made before this page.",
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


def _versions(numbers: Sequence[int]) -> str:
    """Return versions for people: version 2, versions 1 and 2, versions 1 to 3, versions 1, 2 and 5."""
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
    """Return the day of a time of the ledger for people, in UTC."""
    moment = datetime.fromisoformat(time)
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"


def _day(time: str) -> str:
    """Return a time or a day of the ledger for people."""
    return f"{_date(time)} at {datetime.fromisoformat(time).astimezone(UTC):%H:%M} UTC" if "T" in time else _date(time)
