"""The answer to people without records in the data. It is recorded once for each person, and only if it is certain."""

import re
from collections.abc import Mapping, Sequence

from certified_unlearning.data.tables.declaration import text_of
from certified_unlearning.data.tables.spellings import is_absent
from certified_unlearning.errors import ParameterError
from certified_unlearning.ledger.identifiers.given import subject_of
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.terms.deadlines import Terms

_SEPARATORS = re.compile(r"[\s,;:|=\"'()\[\]{}<>]+")
"""Characters that may separate two identifiers, or surround one."""


def answer_absent(ledger: Ledger, unknown: Sequence[str], terms: Terms, *, one_spelling: bool) -> Mapping[str, str]:
    """Log, once for each person in ``unknown``, that the data have no records of this person.

    Call this function in a transaction.

    Args:
        ledger: The ledger.
        unknown: Identifiers of people without records, for whom no removal was requested.
        terms: The terms of the requests, which include the day on which the people in ``unknown`` asked.
        one_spelling: Whether identifiers in ``unknown`` that are similar to identifiers in the data belong to other
            people.

    Returns:
        The time when the answer was recorded, in UTC, for each identifier.

    Raises:
        ParameterError: An identifier names nobody, contains the identifier of a person who is or was in the data, or
            may be another spelling of such a person's identifier. In the last two cases, the answer could be wrong.
    """
    nobody = [each for each in unknown if is_absent(each) or not _may_name(each)]
    if nobody:
        raise ParameterError(
            f"{subject_of(nobody)} not in the training data, and usually names nobody; leave out the row; nothing was "
            "recorded"
        )
    if unknown and not one_spelling:
        _require_strangers(ledger, unknown)
    stored = {each: ledger.names.stored(each) for each in unknown}
    answered = ledger.answered_absent()
    new = [each for each, name in stored.items() if name not in answered]
    if new:
        ledger.append_requests("absent", {each: Terms(terms.received).as_payload() for each in new})
        answered = ledger.answered_absent()
    return {each: answered[name].time for each, name in stored.items()}


def _may_name(identifier: str) -> bool:
    """Return whether a text may be an identifier.

    Punctuation alone is not an identifier, and the last line of a database's output is not an identifier, either.
    """
    return re.search(r"[^\W_]", identifier) is not None and not re.fullmatch(r"\(\d+ rows?\)", identifier)


def _require_strangers(ledger: Ledger, unknown: Sequence[str]) -> None:
    """Raise `ParameterError` if an identifier resembles or contains that of a person who is or was in the data."""
    for identifier, others in ledger.owners.alike(unknown).items():
        raise ParameterError(
            f"identifier {identifier!r} is not in the training data, but may be "
            f"{ledger.names.with_difference(identifier, others[0])}: correct it, or give --one-spelling if they are "
            "different people; nothing was recorded"
        )
    for identifier in unknown:
        for part in _SEPARATORS.split(identifier):
            person = str(text_of(part)) if part and part != identifier else ""
            if person and (ledger.owners.count_records_of(person) or ledger.request_of(person) is not None):
                raise ParameterError(
                    f"identifier {identifier!r} is not in the training data, but {person!r} is or was: write one "
                    "identifier per line and nothing else, or give --one-spelling if this is one identifier; nothing "
                    "was recorded"
                )
