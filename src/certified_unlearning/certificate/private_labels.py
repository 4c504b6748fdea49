"""Certificates of labels that a certified network publishes with differential privacy, for all labels together.

Anybody can recompute the distribution of the labels and its guarantee in exact fractions. Both follow from the rule,
epsilon, delta and the largest radius. The certificate does not state the number of records, because neighbouring data
sets may differ in it.
"""

import functools
from typing import Any, Literal

from pydantic import Field

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.accounting.private.stable_labels import LabelRule, composed_labels, delta_of, label_law
from certified_unlearning.certificate.base import Certificate, CertificateError, Stated, bet_on_one
from certified_unlearning.certificate.preprocessing import GIVEN, possible_features, preprocessing
from certified_unlearning.text import counted, rounded_up
from certified_unlearning.vocabulary import Changes, Relation

COMPARATOR: dict[Relation, str] = {
    "replace-one": "the labels published after the same training, but with one record of one batch replaced by any "
    "other; the start, the places, the list of classes, the number of updates and the constants are the same",
    "add-remove": "the labels published after the same training, but with one record added to one batch or removed "
    "from it; the start, the places, the list of classes, the number of updates and the constants are the same",
}


class PrivateLabelsCertificate(Certificate):
    """A statement of differential privacy for a number of labels.

    Attributes:
        kind: ``private-labels``.
        mechanism: ``certified-sgd``.
        guarantee: ``upper bound``.
        comparator: The comparator.
        not_promised: What the certificate does not promise.
        rule: Name of the rule that makes labels private.
        relation: Neighbouring relation of data sets.
        changes: The changes of the data set that each box covers.
        largest: Largest ``k`` with a box; boxes were trained for every ``k`` from 1 to this value.
        classes: Number of classes, at least 2.
        queries: Number of labels that may be published.
        epsilon_label: Epsilon of one label.
        delta_label: Delta of one label.
        delta_of_law: The smallest delta of one label's distribution at ``epsilon_label``, for the exact sampling
            probabilities.
        epsilon: Epsilon of all queries together.
        delta: Delta of all queries together.
        assumptions: The assumptions of the guarantee.
        dataset: Name of the data set.
        features: How the features were made; ``given`` if they come from the user of an estimator.
        code_version: Version of the code that ran.
    """

    seen = "all published labels"
    known = "what all other records say"
    unknown = "the random numbers and secret files that they were made with"

    kind: Literal["private-labels"] = "private-labels"
    mechanism: Literal["certified-sgd"] = "certified-sgd"
    guarantee: Literal["upper bound"] = "upper bound"
    comparator: str
    not_promised: tuple[str, ...]
    rule: LabelRule
    relation: Relation
    changes: Changes
    largest: int = Field(ge=1)
    classes: int = Field(ge=2)
    queries: int = Field(ge=1)
    epsilon_label: float = Field(gt=0, allow_inf_nan=False)
    delta_label: float = Field(ge=0, lt=1)
    delta_of_law: float = Field(ge=0, lt=1)
    epsilon: float = Field(gt=0, allow_inf_nan=False)
    delta: float = Field(ge=0, le=1)
    assumptions: tuple[Assumption, ...]
    dataset: str = "own"
    features: str = GIVEN
    code_version: str

    @property
    def bet(self) -> str:
        """The statement whose truth the guesser tries to guess."""
        return bet_on_one(self.relation)

    def stated(self) -> Stated:
        """Return the certificate's numbers, which cover all labels together."""
        return Stated(self.epsilon, self.delta, 0.0, self.epsilon, adjacency=self.relation)

    def details(self) -> str:
        """Return the whole statement, in technical terms."""
        return (
            f"epsilon = {rounded_up(self.epsilon)} at delta = {rounded_up(self.delta)} under {self.relation} for "
            f"{counted(self.queries, 'label')} together, each by the rule {self.rule} ({self.guarantee} by "
            f"{self.mechanism}; {self.not_checked})"
        )

    def limits(self) -> dict[str, tuple[bool, str]]:
        """Return, for each field, whether its value is possible given the other fields, and the possible values.

        Raises:
            CertificateError: The boxes do not cover the stated relation, or the rule does not cover the number of
                classes.
        """
        from certified_unlearning.mechanisms.certified_sgd.releases import SERVES

        if self.relation not in SERVES.get(self.changes, ()):
            raise CertificateError(
                f"the certificate states changes = {self.changes!r}, whose radii are not valid under {self.relation}"
            )
        if self.rule != "stable" and self.classes > 2:
            raise CertificateError(
                f"the certificate states rule = {self.rule!r} for {self.classes} classes, but it must be 'stable'"
            )
        return {"features": possible_features(self.features)}

    def recomputed(self) -> dict[str, float]:
        """Recompute the smallest delta of the distribution, and the guarantee of all labels together.

        A certificate cannot show that the radii follow from the records, because radii are secret.

        Raises:
            ParameterError: The distribution does not satisfy the guarantee.
        """
        law = label_law(self.rule, epsilon=self.epsilon_label, delta=self.delta_label, largest=self.largest)
        epsilon, delta = composed_labels(self.epsilon_label, self.delta_label, labels=self.queries)
        return {"delta_of_law": delta_of(law, self.epsilon_label), "epsilon": epsilon, "delta": delta}

    def words(self) -> dict[str, Any]:
        """Return the fields whose text follows from the constants."""
        from certified_unlearning.mechanisms.certified_sgd.releases import NOT_PROMISED

        return {
            "comparator": COMPARATOR[self.relation],
            "not_promised": NOT_PROMISED,
            "assumptions": _assumptions(self.relation, self.dataset, self.features),
        }

    def check(self) -> None:
        """Compare all digits of the statement with what follows from the constants; see `Certificate.check`."""
        self.require(self.limits())
        self.require_words({**self.possible(), **self.words()})


@functools.cache
def _assumptions(relation: Relation, dataset: str, features: str) -> tuple[Assumption, ...]:
    """Return the assumptions of private labels."""
    from certified_unlearning.mechanisms.certified_sgd.releases import assumptions_of

    return (
        *assumptions_of(relation),
        Assumption(
            statement="the inputs and their number were chosen without looking at the records",
            status="assumed",
            by="no software can check this",
        ),
        preprocessing(dataset, features),
    )
