"""Certificates of the versions of a ledger, with the methods that only a ledger and its reports call."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from certified_unlearning.certificate.base import Certificate, Stated
from certified_unlearning.vocabulary import Reading


class Scope(NamedTuple):
    """The observers for which a statement about a release holds.

    Attributes:
        compared_with: The comparator of the release.
        adaptive: Whether the statement holds even if requests depend on earlier releases.
        sentence: A readable sentence that names the observers and the releases that they see.
    """

    compared_with: str
    adaptive: bool
    sentence: str


class LedgerCertificate(Certificate):
    """A certificate that versions of a ledger can have.

    The ledger records the numbers of each version's certificate. So the ledger can describe a version with the class
    methods alone, without reading the certificate.
    """

    takes_noisy_steps: ClassVar[bool] = False
    """Whether removals take noisy steps, so that the number of steps is meaningful."""
    publishes_weights: ClassVar[bool] = True
    """Whether models with such certificates are published."""

    @classmethod
    @abstractmethod
    def scope(cls, stated: Stated, release: str) -> Scope:
        """Return the scope of a statement with these numbers.

        Args:
            stated: The numbers.
            release: The release that the statement covers, such as "version 3".
        """

    @classmethod
    @abstractmethod
    def removed_by(cls, steps: int, reading: Reading | None) -> str:
        """Return the way in which records were removed from a version, as a short phrase.

        Args:
            steps: Number of noisy steps that were taken.
            reading: How records were read for the version.
        """

    @abstractmethod
    def done(self, steps: int, reading: Reading | None) -> str:
        """Return, in plain sentences, how the model was changed; for the arguments, see `removed_by`."""

    @abstractmethod
    def with_known_number(self) -> str:
        """Return plain sentences about the role that the number of removed records plays in the comparison."""

    def keeps_removed(self, readings: Iterable[Reading | None]) -> bool:
        """Return whether secret files may still depend on removed records.

        Args:
            readings: Values of ``reading`` (see `removed_by`): one for the version that removed the records, and one
                for each later version.
        """
        return False
