"""Certificates of single predictions: labels that retraining would not change.

A label stays the same if any ``k`` or fewer records of each batch are removed, added or replaced. The field ``changes``
names the changes that a certificate covers.

A certificate names its evidence, a file in the same folder that contains the parameters, a box for each budget, and the
inputs. Anybody with this file can recompute every label, every radius and every share (`certificate.evidence`). The
file is as secret as the training data, because its parameters were learned from the records.
"""

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.certificate.base import Certificate, CertificateError, Stated, same
from certified_unlearning.certificate.preprocessing import GIVEN, possible_features, preprocessing
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.files import atomic_path
from certified_unlearning.text import counted
from certified_unlearning.vocabulary import Changes, Clipping, Differences, IntervalProduct, NetworkLoss

if TYPE_CHECKING:  # Only making and recomputing certificates needs PyTorch.
    from torch import Tensor

    from certified_unlearning.mechanisms.certified_sgd.learned import Learned
    from certified_unlearning.mechanisms.certified_sgd.sgd import CertifiedSgd

NOT_PROMISED = (
    "the guarantee does not cover predictions that are not certified: their labels may change",
    "the guarantee does not cover probabilities, parameters or explanations, but only the labels of the inputs named "
    "here",
    "the answers are not differentially private: whether a prediction is certified depends on the records, and reveals "
    "something about them; so a service that answers only certified inputs reveals something about which records exist",
    "the guarantee does not hold if parameters or boxes were published: both were learned with the records",
    "the guarantee does not hold if batches are formed anew after a removal, if inputs were scaled or selected with "
    "the help of the records, or if the records determined when training stopped",
)


class EvidenceFile(BaseModel):
    """The file from which a certificate is recomputed.

    Attributes:
        file: Name of the file, which is in the certificate's folder.
        sha256: SHA-256 digest of the file. The file contains the parameters, boxes, inputs, any labels, and all
            constants and sentences of the certificate. So any change of k, of the neighbours or of the class names is
            detected.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str = Field(pattern=r"^[^/\\]+$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class PredictionCertificate(Certificate):
    """A statement that certain labels are not changed by any removal. It contains the constants of training.

    Attributes:
        kind: ``prediction``.
        mechanism: ``certified-sgd``.
        guarantee: ``exact``: certified labels are equal to the comparator's, not merely close.
        comparator: The comparator.
        not_promised: What the certificate does not promise.
        n: Number of records that may be removed.
        public_records: Number of additional public rows, which are in every data set.
        widths: Numbers of inputs, hidden units and logits of the network, which has dense layers with ReLU between
            them.
        loss: Loss of a record.
        epochs: Number of passes over the batches.
        batches: Number of batches in an epoch.
        smallest_batch: Number of records in the smallest batch.
        updates: Number of updates, ``epochs x batches``.
        step_size: Step size ``alpha``.
        decay: Decay ``eta``: update ``n`` has step size ``alpha / (1 + eta n)``.
        clipping: How each record's gradient is clipped.
        bound: Bound that gradients are clipped to; None without clipping.
        weight_decay: Decoupled weight decay.
        momentum: Momentum ``mu``.
        nesterov: Whether steps use Nesterov's momentum.
        changes: The changes of the data set that each box covers.
        normaliser: ``present``: a batch's mean is over the records that it contains.
        budgets: The budget ``k`` of each box: the number of changes in every batch.
        products: How products of intervals were bounded.
        differences: How differences of logits were bounded; ``joint`` in files without this field.
        rounding: ``outward``; bounds with naive rounding would prove nothing.
        dtype: Floating-point type of training and of the bounds.
        classes: Names of the classes, in the order of labels.
        predictions: The predicted label of each input.
        radii: The largest budget that certifies each label; 0 if none does.
        shares: Share of the inputs whose labels are certified, for each budget.
        accuracy: Bounds on the share of right labels, for each budget. The bounds hold for the models of all
            neighbours. None if the true labels are not known.
        evidence: The file from which the certificate is recomputed.
        assumptions: The assumptions of the guarantee.
        dataset: Name of the data set.
        features: How the features were made; ``given`` if they come from the user of an estimator.
        code_version: Version of the code that ran.
    """

    kind: Literal["prediction"] = "prediction"
    mechanism: Literal["certified-sgd"] = "certified-sgd"
    guarantee: Literal["exact"] = "exact"
    comparator: str
    not_promised: tuple[str, ...]
    n: int = Field(ge=1)
    public_records: int = Field(default=0, ge=0, exclude_if=lambda count: count == 0)
    widths: tuple[int, ...] = Field(min_length=2)
    loss: NetworkLoss
    epochs: int = Field(ge=1)
    batches: int = Field(ge=1)
    smallest_batch: int = Field(ge=1)
    updates: int = Field(ge=1)
    step_size: float = Field(gt=0, allow_inf_nan=False)
    decay: float = Field(ge=0, allow_inf_nan=False)
    clipping: Clipping
    bound: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    weight_decay: float = Field(ge=0, allow_inf_nan=False)
    momentum: float = Field(ge=0, allow_inf_nan=False)
    nesterov: bool
    changes: Changes
    normaliser: Literal["present"] = "present"
    budgets: tuple[int, ...] = Field(min_length=1)
    products: IntervalProduct
    differences: Differences = Field(default="joint", exclude_if=lambda differences: differences == "joint")
    rounding: Literal["outward"] = "outward"
    dtype: Literal["float32", "float64"]
    classes: tuple[str, ...] = Field(min_length=2)
    predictions: tuple[int, ...]
    radii: tuple[int, ...]
    shares: tuple[float, ...]
    accuracy: tuple[tuple[float, float], ...] | None = None
    evidence: EvidenceFile
    assumptions: tuple[Assumption, ...]
    dataset: str = "own"
    features: str = GIVEN
    code_version: str

    _evidence: bytes = PrivateAttr(default=b"")

    @classmethod
    def of(
        cls,
        settings: "CertifiedSgd",
        learned: "Learned",
        rows: "Tensor",
        *,
        n: int,
        batches: int,
        classes: Sequence[str],
        labels: "Tensor | None" = None,
        public_records: int = 0,
        file: str = "evidence.safetensors",
        dataset: str = "own",
        features: str = GIVEN,
    ) -> Self:
        """Return the certificate of a model's predictions.

        Args:
            settings: The settings of training.
            learned: The learned model with its boxes.
            rows: Inputs in the form that the network expects, shape ``(inputs, features)``.
            n: Number of records that may be removed.
            batches: Number of batches in an epoch.
            classes: Names of the classes, in the order of labels.
            labels: True labels of the inputs, if they are known.
            public_records: Number of additional public rows.
            file: Name of the evidence file, which `write` creates in the certificate's folder.
            dataset: Name of the data set.
            features: How the features were made.

        Raises:
            ParameterError: Rounding is naive, weight decay is part of the velocity, there is no input, or a layer of
                the network is not dense.
        """
        from certified_unlearning.certificate import evidence

        if not settings.bounding.rounding.is_outward:
            raise ParameterError("naive rounding proves nothing: certificates need rounding outward")
        if settings.descent.couples_decay:
            raise ParameterError("certificates state decoupled weight decay, but couples_decay adds it to the velocity")
        if not len(rows):
            raise ParameterError("rows must contain at least one input, got none")
        made = cls.made(
            numbers=evidence.statements(learned, rows, labels),
            n=n,
            public_records=public_records,
            widths=evidence.widths(settings.network),
            **{name: getattr(settings.descent, name) for name in evidence.OF_DESCENT},
            epochs=settings.epochs,
            batches=batches,
            smallest_batch=learned.smallest_batch,
            updates=settings.epochs * batches,
            changes=settings.neighbourhood.changes,
            budgets=learned.budgets,
            products=settings.bounding.products,
            differences=learned.differences,
            dtype=str(rows.dtype).removeprefix("torch."),
            classes=tuple(classes),
            evidence=EvidenceFile(file=file, sha256="0" * 64),
            dataset=dataset,
            features=features,
        )
        packed = evidence.packed(learned, rows, labels, made._constants)
        made = made.model_copy(update={"evidence": EvidenceFile(file=file, sha256=hashlib.sha256(packed).hexdigest())})
        made._evidence = packed
        return made

    def stated(self) -> Stated:
        """Return a statement without numbers: labels of single inputs have no joint epsilon."""
        return Stated(None, None, None, None, adjacency=self.changes)

    def details(self) -> str:
        """Return the whole statement, in technical terms."""
        shares = ", ".join(f"{share:.1%} at k = {k}" for k, share in zip(self.budgets, self.shares, strict=True))
        return (
            f"of {counted(len(self.predictions), 'prediction')} certified: {shares} ({self.changes} in each batch; "
            f"{self.guarantee} by {self.mechanism}; {self.not_checked})"
        )

    def limits(self) -> dict[str, tuple[bool, str]]:
        """Return, for each field, whether its value is possible given the other fields, and the possible values."""
        outputs, inputs = self.widths[-1], len(self.predictions)
        return {
            "updates": (self.updates == self.epochs * self.batches, "epochs x batches"),
            "smallest_batch": (
                self.smallest_batch * self.batches <= self.n + self.public_records,
                f"at most all records / batches = {(self.n + self.public_records) / self.batches:g}",
            ),
            "budgets": (
                [*self.budgets] == sorted({*self.budgets}) and self.budgets[0] >= 1,
                "whole numbers above 0 in rising order",
            ),
            "classes": (len(self.classes) == max(2, outputs), f"{max(2, outputs)} names"),
            "radii": (len(self.radii) == inputs >= 1, "one for each prediction"),
            "loss": (self.loss != "squared", "a loss of classes"),
            "features": possible_features(self.features),
        }

    def words(self) -> dict[str, Any]:
        """Return the fields whose text follows from the constants."""
        return {
            "comparator": _comparator(self.changes),
            "not_promised": NOT_PROMISED,
            "assumptions": _assumptions(self.dataset, self.features, self.differences, bool(self.public_records)),
        }

    def recomputed(self) -> dict[str, Any]:
        """Return every label, radius and share, and the bounds on accuracy, that follow from the evidence.

        A certificate cannot show that the boxes follow from the records. `CertifiedMLPClassifier.check` verifies this
        by training again on the records.

        Raises:
            CertificateError: The evidence is missing or does not match, boxes are invalid, or constants are impossible.
        """
        from certified_unlearning.certificate import evidence
        from certified_unlearning.engine.intervals.propagation import Bounding

        network = evidence.network_of(self.model_dump())
        if not self._evidence:
            raise CertificateError(
                f"the certificate cannot be recomputed without its evidence: {self.evidence.file} must be in the same "
                "folder"
            )
        if hashlib.sha256(self._evidence).hexdigest() != self.evidence.sha256:
            raise CertificateError(f"{self.evidence.file} is not the evidence that the certificate names")
        found = evidence.unpacked(
            self._evidence,
            network,
            bounding=Bounding(products=self.products, outer=self.products, differences=self.differences),
            budgets=self.budgets,
            smallest_batch=self.smallest_batch,
            dtype=self.dtype,
            inputs=len(self.predictions),
            constants=self._constants,
        )
        return evidence.statements(*found)

    def check(self) -> None:
        """Compare the statement with what follows from the constants and the evidence; see `Certificate.check`."""
        self.require(self.limits())
        self.require_words(self.words())
        for name, computed in self.recomputed().items():
            said = getattr(self, name)
            if not same(said, computed):
                raise CertificateError(
                    f"the certificate states the wrong {name}, according to its evidence: {_first(said, computed)}"
                )

    def write(self, path: str | Path) -> None:
        """Write the certificate and its evidence into one folder.

        Each file is written completely or not at all.
        """
        if not self._evidence:
            raise DataError("this certificate was read without its evidence, so it cannot be written")
        with atomic_path(Path(path).with_name(self.evidence.file)) as temporary:
            temporary.write_bytes(self._evidence)
        super().write(path)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a certificate.

        If the evidence is in the same folder, read it, too.

        Raises:
            DataError: The file is missing or is not a certificate, or its evidence cannot be read.
        """
        found = super().read(path)
        try:
            found._evidence = Path(path).with_name(found.evidence.file).read_bytes()
        except FileNotFoundError:
            return found  # `check` reports the missing evidence.
        except (OSError, ValueError) as error:  # The name may be anything, such as "." or a directory.
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise DataError(f"cannot read the evidence {found.evidence.file!r} beside {path}: {reason}") from error
        return found

    @property
    def _constants(self) -> bytes:
        """All fields that do not follow from the evidence, as JSON.

        The evidence also contains the JSON of these fields.
        """
        return self.model_dump_json(exclude={"evidence", "predictions", "radii", "shares", "accuracy"}).encode()


def _first(said: object, computed: object) -> str:
    """Return a description of the first difference between two statements."""
    if isinstance(said, tuple) and isinstance(computed, tuple) and len(said) == len(computed):
        for place, (one, two) in enumerate(zip(said, computed, strict=True)):
            if not same(one, two):
                return f"{one!r} instead of {two!r} in place {place}"
    return f"{said!r} instead of {computed!r}"


def _comparator(changes: Changes) -> str:
    what = {
        "removals": "with any k or fewer records of each batch removed",
        "additions and removals": "with any k or fewer records of each batch removed, and any k or fewer others added "
        "to it",
        "substitutions": "with any k or fewer records of each batch replaced by any others",
        "additions or removals": "with any k or fewer records of each batch removed or added",
    }[changes]
    return (
        "the label after the same training (with the same start, batches, list of classes, number of updates, "
        f"constants and floating-point type) on the records {what}"
    )


@functools.cache
def _assumptions(dataset: str, features: str, differences: Differences, public: bool = False) -> tuple[Assumption, ...]:
    """Return the assumptions of certified predictions."""
    lines = differences == "updated"
    shown = "boxes and lines" if lines else "boxes"
    stays = Assumption(
        statement="public rows are in every data set of the comparison: nobody asks to remove a public row, and no "
        "public row contains what somebody may ask to remove",
        status="assumed",
        by="the software refuses requests that name a public row, but it cannot check whose data the row contains",
    )
    return (
        Assumption(
            statement=f"the {'boxes and the lines of the last update' if lines else 'boxes'} follow from the records "
            "and the constants named here",
            status="assumed",
            by=f"a certificate shows the {shown}, not the records: somebody with both can train again and compare",
        ),
        Assumption(
            statement=f"every certified label is constant over its box{', within the limits of its lines' * lines}",
            status="checked",
            by="the software recomputes this from the evidence, with bounds that are rounded outward",
        ),
        Assumption(
            statement="batches consist of fixed places: the place of a removed record stays empty, no record moves up, "
            "and the number of updates does not change",
            status="assumed",
            by="the software retrains in this way; a retraining that forms batches anew may give another label",
        ),
        Assumption(
            statement="constants, start, batches and the time of stopping were chosen without looking at the records",
            status="assumed",
            by="start and batches were drawn using only the number of records at the start, and not their contents; "
            "no software can check whether other constants, starts, batches or times of stopping were tried before",
        ),
        preprocessing(dataset, features),
        *((stays,) if public else ()),
        Assumption(
            statement="single operations are rounded to nearest, exponentials are correct to 4 units in the last "
            "place, and no added record is so large that training on it overflows",
            status="assumed",
            by="if this is true, the bounds hold for training in exact arithmetic, and also for training in "
            "floating-point numbers of the same type, whatever the order of summation",
        ),
    )
