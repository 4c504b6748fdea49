"""Differentially private labels of a certified network.

The publication depends on radii, so this module checks the conditions under which radii are valid. Certification of a
label is not privacy. It is possible that a neighbour's label is not certified, and answering only certified inputs
would publish which inputs are certified. Here, every input gets a random answer, whose distribution depends on the
input's radius (`accounting.private.stable_labels`).
"""

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from torch import Tensor

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.accounting.core.checks import require_count
from certified_unlearning.accounting.private.releases import sigma_for
from certified_unlearning.accounting.private.stable_labels import (
    LabelRule,
    composed_labels,
    label_law,
    mean_share_sensitivity,
)
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.mechanisms.certified_sgd.learned import Learned
from certified_unlearning.mechanisms.certified_sgd.sgd import CertifiedSgd
from certified_unlearning.vocabulary import Changes, Relation

SERVES: dict[Changes, tuple[Relation, ...]] = {
    "additions and removals": ("replace-one", "add-remove"),
    "additions or removals": ("add-remove",),
}
"""The relations that are valid for each kind of changes.

For these relations, boxes of k changes contain a neighbour's boxes of k - 1 changes. The replacement of a record is two
changes.
"""

NOT_PROMISED = (
    "the guarantee does not cover parameters, boxes, radii, probabilities, or which labels are certified: these must "
    "stay secret",
    "the guarantee does not cover anything else that was published: epsilon and delta add up, and every label adds to "
    "them",
    "the guarantee covers neither inputs that were chosen with the help of the records, nor the duration of an answer",
    "the guarantee does not hold if training was refused: whether bounds overflowed or a class was missing may depend "
    "on the records",
)


class LabelRelease:
    """A publication of labels of a certified network, each with (epsilon, delta)-differential privacy.

    Neighbouring data sets differ in one record of one batch. Places, start and number of updates are the same.

    Attributes:
        rule: Name of the rule that makes labels private: ``cauchy``, ``laplace`` or ``stable``.
        relation: Neighbouring relation of data sets.
        epsilon: Epsilon of one label.
        delta: Delta of one label.
        queries: Number of labels that may be published.
        answered: Number of published labels.
        assumptions: The assumptions of the guarantee.
        not_promised: What the release does not promise.
    """

    not_promised = NOT_PROMISED

    def __init__(
        self,
        settings: CertifiedSgd,
        learned: Learned,
        *,
        rule: LabelRule,
        epsilon: float,
        delta: float = 0.0,
        relation: Relation = "replace-one",
        queries: int = 1,
    ) -> None:
        """Check that the radii of the network can be used for publishing.

        Args:
            settings: The settings with which the network was trained.
            learned: The trained network, with a box for each of ``k = 1, 2, ..., K``.
            rule: Name of the rule that makes labels private; ``cauchy`` and ``laplace`` need two classes.
            epsilon: Epsilon of one label.
            delta: Delta of one label; 0 for ``cauchy``.
            relation: Neighbouring relation of data sets.
            queries: Number of labels that may be published; it must be chosen beforehand.

        Raises:
            AssumptionError: The radii are not valid for this relation.
            ParameterError: A number is out of its range, or the rule does not cover the number of classes.
        """
        require_count(least=1, queries=queries)
        _require_radii(settings, learned, relation)
        if rule != "stable" and learned.network.affine[-1].outputs > 2:
            raise ParameterError(f"rule must be 'stable' for more than two classes, got {rule!r}")
        # With lines that depend on the box, neighbours' radii may differ by more than one.
        self._learned = replace(learned, bounding=replace(learned.bounding, differences="joint"))
        self._law = label_law(rule, epsilon=epsilon, delta=delta, largest=learned.budgets[-1])
        self.rule, self.relation = rule, relation
        self.epsilon, self.delta = epsilon, delta
        self.queries, self.answered = queries, 0
        self.assumptions = assumptions_of(relation)

    @property
    def spent(self) -> tuple[float, float]:
        """Epsilon and delta of all labels that were published so far."""
        return composed_labels(self.epsilon, self.delta, labels=self.answered)

    def labels(self, rows: Tensor) -> list[int | None]:
        """Publish the label of each record; None if the test of stability withholds it. Each record counts as a query.

        Every call draws new random numbers from the operating system, so no call can be repeated.

        Args:
            rows: Records in the form that the network expects, shape ``(records, ...)``. The choice of ``rows`` must
                not depend on the records that the network learned from.

        Raises:
            ParameterError: There are more records than queries left.
        """
        left = self.queries - self.answered
        if len(rows) > left:
            raise ParameterError(
                f"the number of rows must be at most {left}, because {left} of {self.queries} queries are left, got "
                f"{len(rows)}"
            )
        self.answered += len(rows)
        radii = _radii(self._learned, rows)
        return [
            self._drawn(label, radius)
            for label, radius in zip(self._learned.classes(rows).tolist(), radii, strict=True)
        ]

    def _drawn(self, label: int, radius: int) -> int | None:
        if _happens(self._law.kept[min(radius, len(self._law.kept) - 1)]):
            return label
        return None if self.rule == "stable" else 1 - label


@dataclass(frozen=True)
class ShareRelease:
    """The mean certified share of some inputs, published once with Gaussian noise.

    Attributes:
        share: The noisy share, from 0 to 1. Without noise, it is the mean over ``k = 1, ..., K`` of the share of inputs
            that are certified for ``k`` changes of every batch.
        sigma: Standard deviation of the noise.
        sensitivity: Largest change of the noiseless share that one record can cause.
        largest: The largest number of changes, ``K``.
        inputs: Number of inputs.
        own: Whether the inputs are the records themselves.
        relation: Neighbouring relation of data sets.
        epsilon: Epsilon of this share alone.
        delta: Delta of this share alone.
        assumptions: The assumptions of the guarantee.
        not_promised: What the release does not promise.
    """

    share: float
    sigma: float
    sensitivity: float
    largest: int
    inputs: int
    own: bool
    relation: Relation
    epsilon: float
    delta: float
    assumptions: tuple[Assumption, ...]
    not_promised: tuple[str, ...] = NOT_PROMISED


def share_release(
    settings: CertifiedSgd,
    learned: Learned,
    rows: Tensor,
    *,
    own: bool,
    epsilon: float,
    delta: float,
    relation: Relation = "replace-one",
) -> ShareRelease:
    """Publish the mean certified share of inputs, with (epsilon, delta)-privacy for one record of one batch.

    Every call draws new noise and costs epsilon and delta again. The noise comes from the operating system's random
    numbers.

    Args:
        settings: The settings with which the network was trained.
        learned: The trained network, with a box for each of ``k = 1, 2, ..., K``.
        rows: The inputs in the form that the network expects, shape ``(inputs, ...)``.
        own: Whether the inputs are the records that the network learned from. Then ``relation`` must be
            ``replace-one``, because the number of records is published. Otherwise, the inputs must not depend on the
            records.
        epsilon: Epsilon of the share, above 0.
        delta: Delta of the share, strictly between 0 and 1.
        relation: Neighbouring relation of data sets.

    Raises:
        AssumptionError: The radii are not valid for this relation, or the number of inputs would differ between
            neighbours.
        DataError: There is no input.
    """
    _require_radii(settings, learned, relation)
    if own and relation != "replace-one":
        raise AssumptionError(
            f"relation must be 'replace-one' if the inputs are the network's own records, got {relation!r}: with "
            f"{relation!r}, neighbouring data sets have different numbers of records"
        )
    if not len(rows):
        raise DataError("rows must hold at least one input, got none")
    largest = learned.budgets[-1]
    sensitivity = mean_share_sensitivity(largest, inputs=len(rows), own=own)
    sigma = sigma_for(sensitivity, epsilon=epsilon, delta=delta)
    radii = _radii(replace(learned, bounding=replace(learned.bounding, differences="joint")), rows)
    noisy = sum(radii) / (len(rows) * largest) + secrets.SystemRandom().gauss(0, sigma)
    # Digits far below the noise could reveal in which order floats were added.
    digits = max(0, 2 - math.floor(math.log10(sigma)))
    drawn = Assumption(
        statement="noise has the exact Gaussian distribution on the real numbers",
        status="assumed",
        by="it is drawn in float64 from the operating system's random numbers, and the sum is rounded to a hundredth "
        "of the noise's standard deviation",
    )
    share = min(1.0, max(0.0, round(noisy, digits)))
    assumptions = (*assumptions_of(relation), drawn)
    return ShareRelease(share, sigma, sensitivity, largest, len(rows), own, relation, epsilon, delta, assumptions)


def assumptions_of(relation: Relation) -> tuple[Assumption, ...]:
    """Return the assumptions of private labels."""
    return (
        Assumption(
            statement="a box was trained for every k up to the largest, over additions and removals of records",
            status="checked",
            by="other boxes are refused",
        ),
        Assumption(
            statement="the distribution of every label is (epsilon, delta)-private for neighbouring radii",
            status="checked",
            by="this is computed in exact fractions from the same probabilities with which labels are drawn",
        ),
        Assumption(
            statement=f"neighbouring data sets ({relation}) differ in one record of one batch; places, start, "
            "constants and classes are public, and were chosen without looking at the records",
            status="assumed",
            by="places were drawn using only the number of records at the start, and not their contents; if batches "
            "are formed anew, other data sets are neighbours",
        ),
        Assumption(
            statement="certified radii of neighbouring data sets differ by at most one",
            status="assumed",
            by="this is proved for bounds in real numbers; bounds that are rounded outward could violate it for a "
            "label whose certification depends on some units in the last place",
        ),
    )


def _require_radii(settings: CertifiedSgd, learned: Learned, relation: Relation) -> None:
    """Check that certified radii differ by at most one between neighbours.

    Raises:
        AssumptionError: Radii may differ by more than one.
    """
    changes = settings.neighbourhood.changes
    if relation not in SERVES.get(changes, ()):
        known = " or ".join(repr(each) for each, relations in SERVES.items() if relation in relations)
        if not known:
            raise ParameterError(f"relation must be replace-one or add-remove, got {relation!r}")
        raise AssumptionError(
            f"private labels with the relation {relation!r} need boxes for the changes {known}, got {changes!r}: with "
            f"{changes!r}, radii do not cover some neighbours"
        )
    require_count(least=1, **{"budgets[0]": learned.budgets[0]})
    wanted = range(1, learned.budgets[-1] + 1)
    missing = sorted({*wanted} - {*learned.budgets})
    if missing:
        raise AssumptionError(
            f"budgets must contain every k up to the largest, {learned.budgets[-1]}, but k = {missing[0]} is missing: "
            "if budgets are left out, one record may change a radius by more than one"
        )
    if not (settings.bounding.rounding.is_outward and learned.bounding.rounding.is_outward):
        raise AssumptionError("naive rounding proves no radius: private labels need rounding outward")
    if settings.network != learned.network or settings.bounding != learned.bounding:
        raise ParameterError(
            "settings must be those that the network was trained with, got another network or other bounds"
        )


def _radii(learned: Learned, rows: Tensor) -> Sequence[int]:
    """Return, for each label, how many boxes in a row certify it, counted from the smallest box."""
    found: list[int] = learned.certified(rows).long().cumprod(dim=0).sum(dim=0).tolist()
    return found


def _happens(probability: Fraction) -> bool:
    """Return True with exactly this probability.

    The probability's denominator must be a power of two.
    """
    bits = probability.denominator.bit_length() - 1
    return secrets.randbits(bits) < probability.numerator
