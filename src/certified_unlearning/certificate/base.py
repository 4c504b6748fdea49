"""The parts that certificates of all kinds share: the statement, its scope, and the recomputation.

A new kind needs two things: a module with a subclass of `Certificate`, and a line in `kinds.KINDS`. Commands and
reports use only this interface and do not depend on the kind. A ledger also needs the methods of
`ledger.LedgerCertificate`.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, model_validator

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.accounting.core.curves import Schedule
from certified_unlearning.certificate.former import in_present_words
from certified_unlearning.certificate.guesses import Share, so_many_are_right
from certified_unlearning.certificate.lost import NO_REASON_TO_RESTORE
from certified_unlearning.errors import ParameterError, UnlearningError
from certified_unlearning.files import read_model, write_model
from certified_unlearning.text import capitalised, counted, rounded_up
from certified_unlearning.version import code_version
from certified_unlearning.vocabulary import Relation

TOLERANCE = 1e-9
"""Largest relative difference between numbers that count as equal.

Epsilons that are found by minimisation are no more accurate than this.
"""
LARGEST = 10**18
"""The largest possible value of any count. Planning also refuses larger numbers of steps."""


class CertificateError(UnlearningError):
    """A certificate's statement does not follow from its constants."""


class Stated(NamedTuple):
    """The numbers of a statement, and the relation under which they hold.

    Attributes:
        epsilon: Epsilon of the last release; None for certificates of answers, which state no epsilon.
        delta: Target delta.
        extra_delta: Addition to delta for the last release.
        epsilon_all_published: Epsilon of all releases together, at delta; None if the certificate gives no bound for
            them.
        adjacency: Neighbouring relation of data sets; None if the statement is an equality in distribution.
        accountant: Name of the accountant that computed epsilon; None if only one accountant exists.
        mu: The mu of Gaussian differential privacy for the last release; None if the statement gives no mu.
    """

    epsilon: float | None
    delta: float | None
    extra_delta: float | None
    epsilon_all_published: float | None
    adjacency: str | None = None
    accountant: str | None = None
    mu: float | None = None

    @property
    def share(self) -> Share | None:
        """Upper bound on how often a guess about the last release is right; None if no bound is known.

        The guess is whether the removed records were in the model. Both cases are equally likely.
        """
        if self.epsilon is None or self.whole_delta is None or self.extra_delta is None:
            return None
        if self.mu is not None:
            return Share.of_gaussian(self.mu, self.extra_delta)
        return Share.of_epsilon(self.epsilon, min(self.whole_delta, 1.0))

    @property
    def right_guesses(self) -> float | None:
        """The value of `share`, from 0.5 to 1; None if no bound is known."""
        return None if self.share is None else self.share.value

    @property
    def whole_delta(self) -> float | None:
        """The delta at which epsilon holds for the last release."""
        return None if self.delta is None or self.extra_delta is None else self.delta + self.extra_delta

    def in_words(self, release: str) -> str:
        """Return two guarantees in words: for an observer of one release, and for an observer of all releases."""
        last = f"epsilon = {or_nothing(self.epsilon)} at delta = {or_nothing(self.whole_delta)} for a reader of "
        if self.epsilon_all_published is None:
            return f"{last}{release} alone; no guarantee if a reader kept earlier ones"
        every = f"epsilon = {or_nothing(self.epsilon_all_published)} at delta = {or_nothing(self.delta)}"
        return f"{last}{release} alone; {every} for a reader who kept all versions"


class Certificate(BaseModel):
    """A statement with its constants and assumptions; the base of all kinds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seen: ClassVar[str] = "the current model"
    """What the guesser sees."""
    known: ClassVar[str] = "what all the records say, the removed ones included"
    """What the guesser may know."""
    unknown: ClassVar[str] = "the random numbers, secret files, earlier versions and list of removals of the model"
    """What the guesser doesn't know."""
    provided: ClassVar[str] = ""
    """Words for a condition, with which `meaning` begins the sentence on the share of right guesses.

    The text is empty unless the guarantee is an equality.
    """

    if TYPE_CHECKING:  # Fields of a base would come first in files; each kind declares its own, in order.

        @property
        def kind(self) -> str:
            """The certificate's name in `kinds.KINDS`."""

        @property
        def not_promised(self) -> tuple[str, ...]:
            """What the certificate does not promise."""

        mechanism: str
        guarantee: str
        comparator: str
        features: str | None
        assumptions: tuple[Assumption, ...]
        code_version: str

    @model_validator(mode="before")
    @classmethod
    def _in_present_words(cls, content: Any) -> Any:
        """Return a file's content, with sentences of earlier releases replaced by those of this release."""
        return in_present_words(content)

    @classmethod
    def made(cls, numbers: Mapping[str, Any] | None = None, *, context: Any = None, **constants: Any) -> Self:
        """Return the certificate with the given constants and all numbers and words that follow from them.

        Args:
            numbers: The result of `recomputed`, if it is already known.
            context: Context for the validators of the fields.
            constants: All other fields by name, except the fields that `words` returns.
        """
        known = cls.model_construct(**constants).recomputed() if numbers is None else numbers
        words = cls.model_construct(**{**constants, **known}).words()
        return cls.model_validate({**constants, **known, **words, "code_version": code_version()}, context=context)

    @abstractmethod
    def stated(self) -> Stated:
        """Return the certificate's numbers."""

    @abstractmethod
    def details(self) -> str:
        """Return the whole statement, in technical terms."""

    def summary(self) -> str:
        """Return the whole statement in plain words: its meaning first, then its numbers."""
        meaning, details = self.meaning(), self.details()
        if self.lost:
            counts = "not counted" if self.stated().epsilon_all_published is None else "counted"
            details += f"; {counted(self.lost, 'published release')} lost by restores from backups, and {counts}"
        return details if meaning is None else f"{meaning} {details}"

    def share(self) -> Share | None:
        """Return the largest share of right guesses on whether removed records were in the model; None if unknown."""
        proved = self.guarantee in ("upper bound", "exact") and self.has_removed
        return self.stated().share if proved else None

    def all_shares(self) -> tuple[Share, ...]:
        """Return all shares of right guesses that are mentioned in the certificate's sentences."""
        share = self.share()
        return () if share is None else (share,)

    def right_guesses(self) -> float | None:
        """Return the value of `share`; None if unknown."""
        share = self.share()
        return None if share is None else share.value

    @property
    def bet(self) -> str:
        """The statement whose truth the guesser tries to guess."""
        return "the removed records were ever used to make it or an earlier version"

    @property
    def guesser(self) -> str:
        """A sentence that names what the guesser may know, and what the guesser does not know."""
        return f"This person may know {self.known}, but not {self.unknown}."

    def meaning(self) -> str | None:
        """Return the meaning of the guarantee in plain sentences; None if it bounds no guesses."""
        share = self.share()
        if share is None:
            return None
        often = f"{self.provided}{so_many_are_right(share)}"
        # A sentence that names any condition must name all of them.
        restored = f" {NO_REASON_TO_RESTORE}" if self.lost and self.provided else ""
        bet = f"Someone sees {self.seen} and guesses whether {self.bet}."
        return f"{bet} {capitalised(often)}.{restored} {self.guesser}"

    def with_reactions(self) -> str | None:
        """Return the guarantee for requests that depended on a model's output, as sentences; None if it is missing."""
        return None

    def with_earlier_versions(self) -> str:
        """Return the guarantee for an observer of all versions, as a plain sentence."""
        return "No limit is given for what earlier versions show of the removed records."

    def share_with_earlier_versions(self) -> Share | None:
        """Return the largest share of right guesses by an observer of all versions; None if no bound is known."""
        return None

    @property
    def schedule(self) -> Schedule | None:
        """The noisy steps that the certificate covers, if any."""
        return None

    @property
    def has_removed(self) -> bool:
        """Whether records were removed from the certified model, or could be removed without changing the model."""
        return not self.is_empty

    @property
    def is_empty(self) -> bool:
        """Whether the certificate guarantees nothing yet, because no record was removed yet."""
        return False

    @property
    def lost(self) -> int:
        """Number of known releases that were published and then lost; see `certificate.lost`."""
        return 0

    def of_one_release(self) -> Self:
        """Return a copy that states only the guarantee for the last release, and none for all releases together."""
        return self

    @property
    def unchecked(self) -> tuple[Assumption, ...]:
        """The assumptions that the software does not check."""
        return tuple(each for each in self.assumptions if each.status == "assumed")

    @property
    def not_checked(self) -> str:
        """A phrase that states the number of assumptions that the software does not check."""
        return f"{counted(len(self.unchecked), 'assumption')} not checked"

    @abstractmethod
    def limits(self) -> Mapping[str, tuple[bool, str]]:
        """Return, for each field, whether its value is possible, and a description of the possible values."""

    @abstractmethod
    def recomputed(self) -> Mapping[str, Any]:
        """Return the numbers that follow from the constants, keyed by the names of their fields.

        Raises:
            CertificateError: The constants are impossible.
            ParameterError: A formula is not valid for the constants.
        """

    def words(self) -> Mapping[str, Any]:
        """Return the fields whose text follows from the constants."""
        return {}

    def possible(self) -> Mapping[str, Any]:
        """Return the recomputed numbers.

        Raise `CertificateError` if no mechanism has such constants.
        """
        try:
            return self.recomputed()
        except ParameterError as error:
            raise CertificateError(f"{self.title} states impossible constants: {error}") from error

    def check(self) -> None:
        """Compare the certificate's statement with the numbers and words that follow from its constants.

        Raises:
            CertificateError: A number or a text differs.
        """
        self.require(self.limits())
        self.require_numbers(self.recomputed())
        self.require_words(self.words())

    @property
    def title(self) -> str:
        """The certificate's name in messages."""
        return "the certificate"

    def require(self, limits: Mapping[str, tuple[bool, str]], must: str = "but it must be") -> None:
        """Raise `CertificateError` for the first field whose value is impossible according to `limits`."""
        for name, (holds, right) in limits.items():
            if not holds:
                raise CertificateError(f"{self.title} states {name} = {getattr(self, name)!r}, {must} {right}")

    def require_numbers(self, due: Mapping[str, Any]) -> None:
        """Raise `CertificateError` for the first number that differs from the recomputed number."""
        for name, computed in due.items():
            self.require_number(name, getattr(self, name), computed)

    def require_number(self, name: str, stated: Any, computed: Any, tolerance: float = TOLERANCE) -> None:
        """Raise `CertificateError` if a number differs from the computed number."""
        if not same(stated, computed, tolerance):
            raise CertificateError(f"{self.title} states {name} = {stated!r}, but its constants give {computed!r}")

    def require_words(self, due: Mapping[str, Any], source: str = "constants") -> None:
        """Raise `CertificateError` for the first text that differs from the expected text."""
        for name, right in due.items():
            said = getattr(self, name)
            if said != right:
                raise CertificateError(
                    f"{self.title} states the wrong {name}: {said!r} instead of {right!r}, which follows from its "
                    f"{source}"
                )

    def is_like(self, other: "Certificate") -> bool:
        """Return whether another certificate states the same guarantee.

        The code version may differ.
        """
        return self == other.model_copy(update={"code_version": self.code_version})

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a certificate of this kind.

        Raises:
            DataError: The file is missing or is not a certificate of this kind.
        """
        return read_model(path, cls, "a certificate")

    def write(self, path: str | Path) -> None:
        """Write the certificate as JSON, atomically.

        If the certificate has evidence, write the evidence into the same folder as the certificate.
        """
        write_model(path, self)


def verify(certificate: Certificate) -> None:
    """Recompute a certificate's statement, both numbers and words.

    Raises:
        CertificateError: The certificate's statement does not follow from its constants.
        AssumptionError: An assumption of the statement does not hold for the constants.
    """
    _require_sizes(certificate.model_dump())
    try:
        certificate.check()
    except (OverflowError, ZeroDivisionError) as error:
        raise CertificateError(f"the certificate's constants are impossible: {error}") from error


def _require_sizes(stated: Any, name: str = "") -> None:
    """Raise `CertificateError` if a whole number is too large for a float.

    JSON itself sets no limit.
    """
    if isinstance(stated, dict):
        for key, value in stated.items():
            _require_sizes(value, key)
    elif isinstance(stated, list | tuple):
        for value in stated:
            _require_sizes(value, name)
    elif isinstance(stated, int) and abs(stated) > LARGEST:
        raise CertificateError(
            f"the certificate's constants are impossible: {name} has {len(str(abs(stated)))} digits, but must be "
            f"at most {LARGEST:.0e}"
        )


def bet_on_one(relation: Relation) -> str:
    """Return the bet on a single record.

    Under ``replace-one``, the bet includes the case that another record has taken the place of this record.
    """
    other = ", or another in its place," if relation == "replace-one" else ""
    return f"one particular record{other} was in the training data"


def the_left(n: int) -> str:
    """Return a phrase for the remaining records."""
    return "the one record that is left" if n == 1 else f"the {n} records that are left"


def or_nothing(value: float | None) -> str:
    """Return a number as text, rounded up; "nothing" for None, which means that no bound is guaranteed."""
    return "nothing" if value is None else rounded_up(value)


def same(stated: object, computed: object, tolerance: float = TOLERANCE) -> bool:
    """Return whether two numbers, or two tuples of numbers, are equal up to rounding; None equals only None."""
    if isinstance(stated, tuple) and isinstance(computed, tuple):
        pairs = zip(stated, computed, strict=False)
        return len(stated) == len(computed) and all(same(*pair, tolerance) for pair in pairs)
    if isinstance(stated, float) and isinstance(computed, float):
        return math.isclose(stated, computed, rel_tol=tolerance)
    return stated == computed
