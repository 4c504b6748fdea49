"""Labels of a certified network with differential privacy: from their radii, under the rules that make radii valid.

Certification of a label is not privacy: a neighbour's may not be certified, and answering only certified inputs
publishes which ones are. Here every input is answered at random, by a law that depends on its radius
(`accounting.private.stable_labels`).
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
"""Relations for which boxes of k changes hold those of a neighbour's k - 1: replacing a record changes two."""

NOT_PROMISED = (
    "nothing about parameters, boxes, radii, probabilities, or which labels are certified: they must stay secret",
    "nothing about what was published besides, and more for every label: epsilon and delta add up",
    "nothing about inputs that were chosen by the records, nor about the time that an answer takes",
    "nothing where training was refused: that bounds overflowed or a class was missing may depend on the records",
)


class LabelRelease:
    """Answers labels of a certified network, each with (epsilon, delta)-differential privacy, until none is left.

    Neighbours differ by one record in one batch, whose places, start and number of updates are the same.

    Attributes:
        rule: ``cauchy``, ``laplace`` or ``stable``.
        relation: Neighbouring relation of data sets.
        epsilon: Epsilon of one label.
        delta: Delta of one label.
        queries: Number of labels that may be published.
        answered: Number of published labels.
        assumptions: The assumptions of the guarantee.
        not_promised: What is not promised.
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
        """Check that the network's radii can be used for publishing.

        Args:
            settings: How the network was trained.
            learned: What they learned, with a box for each of ``k = 1, 2, ..., K``.
            rule: How labels are made private; ``cauchy`` and ``laplace`` for two classes.
            epsilon: Epsilon of one label.
            delta: Delta of one label; 0 for ``cauchy``.
            relation: Neighbouring relation of data sets.
            queries: Number of labels that may be published, chosen beforehand.

        Raises:
            AssumptionError: The radii are not valid for this relation.
        """
        require_count(least=1, queries=queries)
        _require_radii(settings, learned, relation)
        if rule != "stable" and learned.network.affine[-1].outputs > 2:
            raise ParameterError(f"rule must be stable for more than two classes, got {rule!r}")
        # With lines that depend on the box, neighbours' radii may differ by more than one.
        self._learned = replace(learned, bounding=replace(learned.bounding, differences="joint"))
        self._law = label_law(rule, epsilon=epsilon, delta=delta, largest=learned.budgets[-1])
        self.rule, self.relation = rule, relation
        self.epsilon, self.delta = epsilon, delta
        self.queries, self.answered = queries, 0
        self.assumptions = assumptions_of(relation)

    @property
    def spent(self) -> tuple[float, float]:
        """Epsilon and delta of all labels published so far."""
        return composed_labels(self.epsilon, self.delta, labels=self.answered)

    def labels(self, rows: Tensor) -> list[int | None]:
        """Publish the label of each record, None where the test of stability withholds it; each counts as a query.

        Every call draws anew from the operating system's random numbers, which cannot be repeated.

        Args:
            rows: As the network takes them, shape ``(records, ...)``; not chosen by the records it learned from.

        Raises:
            ParameterError: There are more records than queries left.
        """
        left = self.queries - self.answered
        if len(rows) > left:
            raise ParameterError(
                f"rows must be at most the {left} queries that are left of {self.queries}, got {len(rows)}"
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
        share: Noisy: the mean over ``k = 1, ..., K`` of the share of inputs that are certified for ``k`` changes of
            every batch; within 0 and 1.
        sigma: Standard deviation of the noise.
        sensitivity: How far one record moves the share without noise.
        largest: ``K``.
        inputs: How many there are.
        own: Whether they are the records themselves.
        relation: When data sets are neighbours.
        epsilon: Epsilon of this one number.
        delta: Delta of this one number.
        assumptions: What the guarantee rests on.
        not_promised: What it does not promise.
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
    """Publish the mean certified share of inputs, (epsilon, delta)-differentially private for one record of one batch.

    Every call draws anew and costs epsilon and delta again. Noise comes from the operating system's random numbers.

    Args:
        settings: How the network was trained.
        learned: What they learned, with a box for each of ``k = 1, 2, ..., K``.
        rows: The inputs, as the network takes them.
        own: Whether these are the records that it learned from; then ``relation`` must be ``replace-one``, as their
            number is published. Otherwise they must not depend on the records.
        epsilon: Above 0.
        delta: Strictly between 0 and 1.
        relation: When data sets are neighbours.

    Raises:
        AssumptionError: Radii are none of this relation, or the number of inputs would differ between neighbours.
        DataError: There is no input.
    """
    _require_radii(settings, learned, relation)
    if own and relation != "replace-one":
        raise AssumptionError(
            f"the share of the records' own predictions needs replace-one, got {relation}: a neighbour has another "
            "number of them"
        )
    if not len(rows):
        raise DataError("rows must hold at least one input, got none")
    largest = learned.budgets[-1]
    sensitivity = mean_share_sensitivity(largest, inputs=len(rows), own=own)
    sigma = sigma_for(sensitivity, epsilon=epsilon, delta=delta)
    radii = _radii(replace(learned, bounding=replace(learned.bounding, differences="joint")), rows)
    noisy = sum(radii) / (len(rows) * largest) + secrets.SystemRandom().gauss(0, sigma)
    # Digits that noise leaves nothing of could tell how floats were added.
    digits = max(0, 2 - math.floor(math.log10(sigma)))
    drawn = Assumption(
        statement="noise is Gaussian as real numbers are",
        status="assumed",
        by="it is drawn in float64 from the operating system's random numbers, and the sum rounded to a hundredth of "
        "its deviation",
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
            statement="the law of every label is (epsilon, delta)-private for neighbouring radii",
            status="checked",
            by="computed in exact fractions from the very probabilities that are drawn from",
        ),
        Assumption(
            statement=f"data sets are neighbours ({relation}) by one record in one batch; places, start, constants and "
            "classes are public, and not chosen by the records",
            status="assumed",
            by="the software draws places by number; batches that are cut anew have other neighbours",
        ),
        Assumption(
            statement="certified radii of neighbours differ by at most one",
            status="assumed",
            by="proved for bounds in real numbers; bounds that are rounded outward could break it where a label is "
            "certified or not by some units in the last place",
        ),
    )


def _require_radii(settings: CertifiedSgd, learned: Learned, relation: Relation) -> None:
    """Check that certified radii move by at most one between neighbours.

    Raises:
        AssumptionError: Radii may change by more.
    """
    changes = settings.neighbourhood.changes
    if relation not in SERVES.get(changes, ()):
        known = " or ".join(each for each, relations in SERVES.items() if relation in relations)
        if not known:
            raise ParameterError(f"relation must be replace-one or add-remove, got {relation!r}")
        raise AssumptionError(
            f"private labels under {relation} need boxes of changes = {known}, got {changes!r}, whose radii say "
            "nothing of some neighbours"
        )
    require_count(least=1, **{"budgets[0]": learned.budgets[0]})
    wanted = range(1, learned.budgets[-1] + 1)
    missing = sorted({*wanted} - {*learned.budgets})
    if missing:
        raise AssumptionError(
            f"budgets must hold every k up to the largest, {learned.budgets[-1]}, but k = {missing[0]} is missing: "
            "over a coarse grid one record may move a radius by more than one"
        )
    if not (settings.bounding.rounding.is_outward and learned.bounding.rounding.is_outward):
        raise AssumptionError("naive rounding proves no radius: private labels need rounding outward")
    if settings.network != learned.network or settings.bounding != learned.bounding:
        raise ParameterError(
            "settings must be those that the network was trained with, got another network or other bounds"
        )


def _radii(learned: Learned, rows: Tensor) -> Sequence[int]:
    """Return the number of boxes, from the smallest on, that certify each label."""
    found: list[int] = learned.certified(rows).long().cumprod(dim=0).sum(dim=0).tolist()
    return found


def _happens(probability: Fraction) -> bool:
    """Draw whether something happens that has exactly this probability; its denominator is a power of two."""
    bits = probability.denominator.bit_length() - 1
    return secrets.randbits(bits) < probability.numerator
