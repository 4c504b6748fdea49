"""Certificates of ensembles: every answer equals the answer of an ensemble that never saw the removed records.

The rule that decides whether an answer is given also certifies the answer. The certificate states nothing about the
parameters: the parameters of a shard depend on removed records until the shard is trained again. Anybody can compute
the times at which a shard was trained again. They depend only on the places of the removed records, not on what the
records contain.
"""

import functools
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self

from pydantic import Field

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.certificate.base import Stated, the_left
from certified_unlearning.certificate.ledger import LedgerCertificate, Scope
from certified_unlearning.certificate.lost import NO_BACKUP_SEEN
from certified_unlearning.certificate.preprocessing import GIVEN, possible_features, preprocessing
from certified_unlearning.mechanisms.certified_sgd.shards import Places, Sharding, replayed
from certified_unlearning.text import counted
from certified_unlearning.vocabulary import Reading

COMPARATOR = (
    "the label from the ensemble that is trained on the current records from the same starts; each record is in the "
    "slice that was drawn for the record's number; the number of updates, the constants and the floating-point type "
    "are the same"
)
ANEW = "the answers of the ensemble trained from the same starts on the same slices of the remaining records"
"""A short description of the comparator of an answer."""
NOT_PROMISED = (
    "the guarantee does not cover parameters: until a shard is trained again, its parameters and boxes depend on the "
    "records that were removed from it, so both must stay secret",
    "the guarantee does not cover inputs without an answer, and the answers are not differentially private: whether an "
    "input has an answer depends on the records, including removed records, and reveals something about them",
    "the guarantee does not cover probabilities, numbers of votes or numbers of shards that abstain, but only labels",
    "the guarantee does not hide which shard is trained again, and when: this does not depend on the contents of "
    "records, but it shows which shards contained removed records, and so does the duration of a request",
    "the guarantee does not hold if slices are drawn anew after a removal, or if somebody kept what was published "
    "before a removal",
    "the guarantee does not protect the remaining records: learning is not private",
)


class EnsembleCertificate(LedgerCertificate):
    """A statement about the answers of an ensemble, with the constants that are needed to train it again.

    Attributes:
        kind: ``ensemble``.
        mechanism: ``certified-ensemble``.
        guarantee: ``exact``: answers are equal to the comparator's, not merely close.
        comparator: The comparator of an answer.
        not_promised: What the certificate does not promise.
        n_learned: Number of records at the start.
        deleted: Number of records that have been deleted since the start.
        requests: Number of requests that deleted records.
        lost_releases: Number of versions that gave answers and were lost when the directory was restored from a backup
            without them; left out of the file if 0.
        n: Current number of records.
        features_in: Number of inputs of a network.
        hidden: Number of units of each hidden layer.
        classes: Number of classes, at least 2.
        loss: Loss of a record.
        shards: Number of shards, ``S``.
        slices: Number of slices of each shard, ``R``.
        budgets: The budget ``k`` of each box, in rising order.
        epochs: Number of updates in each stage.
        step_size: Step size ``alpha``.
        clipping: How each record's gradient is clipped.
        bound: Bound that gradients are clipped to.
        rounding: ``outward``; bounds with naive rounding would prove nothing.
        dtype: Floating-point type of training and of the bounds.
        removed: The slices that lost records, request by request. A slice is given by its number,
            ``shard x slices + slice``, and by the number of records that it lost.
        pending: Number of records that left each shard since it was last trained; at most the largest budget.
        trained_again: Number of times a shard was trained again.
        assumptions: The assumptions of the guarantee.
        dataset: Name of the data set.
        features: How the features were made; ``given`` if they come from the user of an estimator.
        code_version: Version of the code that ran.
    """

    publishes_weights = False
    kind: Literal["ensemble"] = "ensemble"
    mechanism: Literal["certified-ensemble"] = "certified-ensemble"
    guarantee: Literal["exact"] = "exact"
    comparator: str
    not_promised: tuple[str, ...]
    n_learned: int = Field(ge=1)
    deleted: int = Field(ge=0)
    requests: int = Field(ge=0)
    lost_releases: int = Field(default=0, ge=0, exclude_if=lambda releases: releases == 0)
    n: int = Field(ge=1)
    features_in: int = Field(ge=1)
    hidden: tuple[int, ...]
    classes: int = Field(ge=2)
    loss: Literal["cross-entropy", "binary-cross-entropy"]
    shards: int = Field(ge=1)
    slices: int = Field(ge=1)
    budgets: tuple[int, ...] = Field(min_length=1)
    epochs: int = Field(ge=1)
    step_size: float = Field(gt=0, allow_inf_nan=False)
    clipping: Literal["clamp"] = "clamp"
    bound: float = Field(gt=0, allow_inf_nan=False)
    rounding: Literal["outward"] = "outward"
    dtype: Literal["float64"] = "float64"
    removed: tuple[tuple[tuple[int, int], ...], ...]
    pending: tuple[int, ...]
    trained_again: int = Field(ge=0)
    assumptions: tuple[Assumption, ...]
    dataset: str = "own"
    features: str = GIVEN
    code_version: str

    @classmethod
    def of(cls, *, removed: Sequence[Places], **constants: Any) -> Self:
        """Return the certificate of an ensemble after some requests.

        Args:
            removed: The places of the removed records, for each request.
            constants: All fixed fields by name, including ``n_learned``.
        """
        return cls.made(**constants, removed=tuple(map(tuple, removed)))

    def stated(self) -> Stated:
        """Return a statement without numbers: answers equal the comparator's answers, so there is nothing to bound."""
        return Stated(None, None, None, None, adjacency="removals")

    def meaning(self) -> str | None:
        """Return the guarantee for answers, as a plain sentence."""
        return (
            "Every answer that the current model gives is the one that it would give if it had been "
            "trained without the removed records."
            if self.deleted
            else None
        )

    def details(self) -> str:
        """Return the whole statement, in technical terms."""
        pending = sum(self.pending)
        return (
            f"answers are those of {counted(self.shards, 'shard')} trained on {the_left(self.n)}; the "
            f"parameters must stay secret, and still depend on {pending} of {counted(self.deleted, 'removed record')} "
            f"({self.guarantee} by {self.mechanism}; {self.not_checked})"
        )

    @classmethod
    def scope(cls, stated: Stated, release: str) -> Scope:
        """Return the scope: the statement covers every answer, whatever was asked before, and nothing else."""
        return Scope(
            compared_with=ANEW,
            # The sentence also holds for adaptive requests: every answer is equal, whatever was asked.
            adaptive=True,
            sentence=f"certified: every answer of {release} is one of {ANEW}; if this is not certain, `unlearn "
            "predict` gives no answer, and whether an input has an answer reveals something about the records. The "
            "parameters depend on removed records until their shards are trained again, so the directory must stay "
            "secret, and none of it is published",
        )

    @classmethod
    def removed_by(cls, steps: int, reading: Reading | None) -> str:
        """Return how records were removed from a version."""
        return "bounding the answers of shards without these records, and retraining the shards whose budget was spent"

    def done(self, steps: int, reading: Reading | None) -> str:
        """Return how many removed records the parameters still depend on."""
        left = sum(self.pending)
        if not left:
            return "All parts of the model that depended on removed records were trained again without them."
        return (
            f"The model's inner numbers still depend on {counted(left, 'removed record')}, counted over all people; "
            "the records of this request may be among them. Until the parts that depend on removed records are trained "
            "again, the model gives an answer only if the removed records cannot have changed it."
        )

    def with_known_number(self) -> str:
        """Return a sentence that says that the comparator has the slices that were drawn at the start."""
        return (
            "The number of removed records is assumed to be known: the model used for comparison has the same parts, "
            "which were made for the number of records at the start."
        )

    @property
    def lost(self) -> int:
        """Number of versions that gave answers and were lost."""
        return self.lost_releases

    def keeps_removed(self, readings: Iterable[Reading | None]) -> bool:
        """Return whether parameters still depend on removed records."""
        return sum(self.pending) > 0

    def check(self) -> None:
        """Replay the requests, and compare the resulting state with the statement; see `Certificate.check`."""
        self.require_words({**self.possible(), **self.words()})
        self.require(self.limits())

    def limits(self) -> dict[str, tuple[bool, str]]:
        """Return, for each field, whether its value is possible, and the possible values in words."""
        return {
            "hidden": (all(units >= 1 for units in self.hidden), "numbers above 0"),
            "features": possible_features(self.features),
        }

    def recomputed(self) -> dict[str, Any]:
        """Return the state of the ensemble after its requests.

        A certificate cannot show that parameters and boxes follow from the records. The command `unlearn verify`, run
        on the model directory, checks this by training the shards again.
        """
        standing = replayed(Sharding(self.n_learned, self.shards, self.slices, self.budgets), self.removed)
        n = sum(standing.left)
        return {
            "n": n,
            "deleted": self.n_learned - n,
            "pending": tuple(map(standing.spent, range(self.shards))),
            "trained_again": standing.trainings,
            "requests": len(self.removed),
        }

    def words(self) -> dict[str, Any]:
        """Return the fields whose text follows from the constants."""
        return {
            "loss": "binary-cross-entropy" if self.classes == 2 else "cross-entropy",
            "comparator": COMPARATOR,
            "not_promised": NOT_PROMISED,
            "assumptions": (
                *_assumptions(self.dataset, self.features),
                *((NO_BACKUP_SEEN,) if self.lost_releases else ()),
            ),
        }


@functools.cache
def _assumptions(dataset: str, features: str) -> tuple[Assumption, ...]:
    """Return the assumptions of certified answers."""
    return (
        Assumption(
            statement="an answer is given only if no assignment of the unknown votes could change it",
            status="checked",
            by="the possible votes of a shard after it is trained again are bounded, with bounds that are rounded "
            "outward",
        ),
        Assumption(
            statement="a shard that has lost more records than its largest box covers is trained again before it votes",
            status="checked",
            by="the list of shards that are trained again is recomputed from the places of the removed records; the "
            "training of such a shard continues from the checkpoint before the first slice that lost a record",
        ),
        Assumption(
            statement="boxes and checkpoints follow from the records and the constants named here",
            status="assumed",
            by="a certificate shows neither boxes nor checkpoints: somebody with the records can train again and "
            "compare",
        ),
        Assumption(
            statement="constants, starts, slices and the time of stopping were chosen without looking at the records",
            status="assumed",
            by="starts and slices were drawn using only the number of records at the start, and not their contents; "
            "no software can check whether other constants, starts, slices or times of stopping were tried before",
        ),
        preprocessing(dataset, features),
        Assumption(
            statement="parameters, boxes and checkpoints are secret, and no older copy of them is kept",
            status="assumed",
            by="they were learned with the removed records; no software can check what backups contain",
        ),
        Assumption(
            statement="single operations are rounded to nearest, and exponentials are correct to 4 units in the last "
            "place",
            status="assumed",
            by="if this is true, the bounds hold for training in float64, in any order of summation",
        ),
    )
