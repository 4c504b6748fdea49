"""A small network that certifies some of its predictions: removals cannot change them."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray

from certified_unlearning.accounting.core.checks import require_count, require_counts
from certified_unlearning.certificate.prediction import PredictionCertificate
from certified_unlearning.engine.abstract_training.descent import Descent
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood
from certified_unlearning.engine.abstract_training.poisoning import Poisoning
from certified_unlearning.engine.devices import device_of_loaded, pick_device
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.estimators.classifier import Classifier
from certified_unlearning.estimators.estimator import without_sample_weight
from certified_unlearning.estimators.network.report import in_words
from certified_unlearning.estimators.network.trained import TrainedNetwork
from certified_unlearning.estimators.refit.public import (
    PublicRows,
    checked_features,
    checked_length,
    class_numbers,
    require_both,
    require_private,
)
from certified_unlearning.estimators.scaling import Array
from certified_unlearning.mechanisms.certified_sgd.sgd import CertifiedSgd, dense_network
from certified_unlearning.vocabulary import Clipping


@dataclass(repr=False, eq=False)
class CertifiedMLPClassifier(Classifier):
    """A ReLU network that certifies some of its predictions: retraining without some records would not change them.

    For each budget ``k``, training computes a box that contains all parameters that the same training could have
    reached if any ``k`` records of each batch had been missing. A label that is constant over the box needs no
    unlearning. So a removal within the largest budget is *free*: `unlearn` erases the records without training, and
    `predict` then uses the old parameters only for certified labels. The first input without a certified label makes
    the network train anew on the remaining records, in the same batches. A request beyond the budget makes the network
    train anew at once. In all cases, **every label that `predict` returns is the label that the retrained network
    gives**. Until the next training, the parameters still depend on the removed records. So they must stay secret, and
    `save` without training data trains anew first.

    Only the label of an input is certified, not its probability, and only for some inputs. More inputs are certified if
    the batches are few and large, the epochs are few, and the network is small. Whether an input is certified depends
    on the records, so answering only certified inputs is not differentially private.

    The network computes no scaling from the records, so features should be of about size 1, or be scaled by public
    numbers (``feature_ranges`` or ``data_norm``). An estimator must not be used by several threads at once, because
    `predict` may train.

    Args:
        hidden_layer_sizes: Number of units of each hidden layer; empty for (multinomial) logistic regression.
        budgets: The ``k`` of each box, whole numbers in rising order. If ``k`` is the largest budget, up to ``k``
            records of each batch can be removed for free.
        changes: ``removals``; or ``additions and removals``. The boxes of the latter also cover added records, but need
            clipping and certify fewer labels.
        epochs: Number of passes over the batches.
        batch_size: Number of records in a batch; ``auto``: all records. Left-over records that do not fill a batch are
            not used for learning.
        step_size: ``alpha``; update ``n``, counted from 0, has step size ``alpha / (1 + decay n)``.
        decay: Decay ``eta`` of the step size.
        clipping: How each record's gradient is clipped: ``clamp`` bounds each entry, ``l2`` bounds the norm, ``none``
            does not clip.
        bound: Bound to clip to; None without clipping.
        weight_decay: Decoupled weight decay: parameters shrink by ``alpha_n weight_decay`` in every update.
        momentum: Momentum of the velocity.
        normalize: Whether every row is divided by its own norm.
        random_state: Seed of the initial parameters and of the batches; None: a seed from the operating system. Two
            networks that were fitted with the same number have the same initial parameters and batches. Since no noise
            is added, the difference of their parameters shows the record in which their data differ.
        device: Where to compute: ``auto``, ``cpu`` or ``cuda``.

    Attributes:
        trainings_: Number of trainings since `fit`, which counts as the first.

    See Also:
        `certified_unlearning.estimators.network.releases.PrivateLabels`: Publishes labels with differential privacy.

    Examples:
        >>> from certified_unlearning import CertifiedMLPClassifier
        >>> X, y = [[0.0, 1.0], [1.0, 0.2]] * 50, ["no", "yes"] * 50
        >>> model = CertifiedMLPClassifier(budgets=(1, 2), epochs=2, random_state=0).fit(X, y)
        >>> model.unlearn([2]).budget_left_
        1
        >>> model.predict([[0.0, 1.0]]).tolist()
        ['no']
    """

    hidden_layer_sizes: Sequence[int] = (16,)
    _: KW_ONLY
    budgets: Sequence[int] = (1, 2, 4)
    changes: Literal["removals", "additions and removals"] = "removals"
    epochs: int = 10
    batch_size: int | Literal["auto"] = "auto"
    step_size: float = 1.0
    decay: float = 0.0
    clipping: Clipping = "clamp"
    bound: float | None = 0.1
    weight_decay: float = 0.0
    momentum: float = 0.0
    device: str = "cpu"

    @without_sample_weight
    def fit(self, X: Any, y: Any, *, public_X: Any = None, public_y: Any = None) -> Self:
        """Learn from records and, optionally, public rows.

        There is no ``sample_weight``: a weight would change how much a record can move the network.

        The network learns from public rows as it does from records, and public rows stay in the batches into which they
        were drawn. No request can name a public row. Boxes cover only data sets that contain all public rows, so more
        predictions are certified. Public rows are scaled like records. They change neither the scaling nor the list of
        classes.

        Args:
            X: Features of records, shape ``(records, features)``; an array, a data frame, or a sparse matrix, whose
                rows become dense.
            y: Classes of the records, of any type.
            public_X: Rows that nobody will ask to remove, shape ``(public rows, features)``, in the same form as ``X``.
                A private record among them has no guarantee.
            public_y: Classes of the public rows. Each must also be the class of a record.

        Returns:
            The fitted estimator. `unlearn` names records by their position in this ``X``, or by their labels in the
            index of ``X``.

        Raises:
            DataError: There are too few classes or records; or public rows have other columns than the records, or a
                class that no record has; or only one of ``X`` and ``public_X`` is sparse.
            ParameterError: A parameter is invalid, or ``public_X`` was given without ``public_y``.
            AssumptionError: A batch or a budget does not fit the number of records.
            IntervalError: Bounds overflow: use clipping, fewer epochs, smaller steps or smaller budgets.
        """
        with self._all_or_nothing():
            require_both(public_X, public_y)
            self._given_public = None if public_X is None else (public_X, public_y)
            super().fit(X, y)
            del self._given_public
        return self

    def _validated(self, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        features, labels = super()._validated(X, y)
        if self._given_public is None:
            return features, labels
        public_X, public_y = self._given_public
        own = self._in_form(checked_features(public_X, X, features=self.n_features_in_))
        public = PublicRows(own, class_numbers(checked_length(public_y, own.shape[0]), self.classes_))
        return public.after(features, labels)

    def _planned(self, n: int) -> CertifiedSgd:
        """Return the settings of training on ``n`` records, including public records.

        Raises:
            ParameterError: A parameter is invalid.
        """
        hidden, budgets = _whole(self.hidden_layer_sizes), _whole(self.budgets)
        for place, units in enumerate(hidden):
            require_count(least=1, **{f"hidden_layer_sizes[{place}]": units})
        require_counts("budgets", budgets, least=1)
        if budgets != sorted({*budgets}):
            raise ParameterError(f"budgets must be in rising order, without duplicates, got {self.budgets!r}")
        if self.changes not in ("removals", "additions and removals"):
            raise ParameterError(f"changes must be 'removals' or 'additions and removals', got {self.changes!r}")
        classes = len(self.classes_)
        descent = Descent(
            loss="binary-cross-entropy" if classes == 2 else "cross-entropy",
            step_size=self.step_size,
            decay=self.decay,
            clipping=self.clipping,
            bound=self.bound,
            weight_decay=self.weight_decay,
            momentum=self.momentum,
        )
        return CertifiedSgd(
            dense_network(self.n_features_in_, hidden, classes),
            descent,
            n if self.batch_size == "auto" else self.batch_size,
            self.epochs,
            Neighbourhood(self.changes),
        )

    def _learn_from(self, plan: CertifiedSgd, X: NDArray[Any], labels: NDArray[Any]) -> None:
        device = pick_device(self.device)
        public_records = 0 if self._given_public is None else len(self._given_public[1])
        private = np.arange(len(X) - public_records)
        self._store.keep(private, self._inputs(X, device), torch.as_tensor(labels, device=device))
        generator = torch.Generator().manual_seed(self._noise_key() % 2**63)
        self._network = TrainedNetwork.first(
            plan, self._store, _whole(self.budgets), public_records=public_records, generator=generator
        )
        self._forgotten = {"records": 0, "requests": 0, "free": 0}

    @property
    def trainings_(self) -> int:
        """Number of trainings since `fit`, which counts as the first."""
        self._require_fitted()
        return self._network.trainings

    def predict(self, X: Any) -> NDArray[Any]:
        """Return, for each record, the label from the network that is trained on the remaining records.

        If removals since the last training could have changed one of these labels, the network is retrained first. The
        result has shape ``(records,)``.
        """
        rows = self._asked(X)
        if self._network.pending and not bool(self._certified(rows, 0).all()):
            self._settle()
        return self.classes_[self._network.learned.classes(rows).cpu().numpy()]  # type: ignore[no-any-return]

    def decision_function(self, X: Any) -> Array:
        """Return logits, shape ``(records,)`` for two classes and ``(records, classes)`` for more.

        No certificate covers scores. So if records were removed since the last training, the network is retrained
        before scores are computed.
        """
        rows = self._asked(X)
        self._settle()
        scores: Array = self._network.learned.logits(rows).cpu().numpy()
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def certify(self, X: Any, k: int = 1) -> NDArray[np.bool_]:
        """Return, for each record, whether its label is certified to survive ``k`` more removals from every batch.

        Args:
            X: Features, shape ``(records, features)``.
            k: Number of further removals, at least 0. Removals since the last training are added to this number.

        Raises:
            ParameterError: No budget covers this many removals.
        """
        require_count(least=0, k=k)
        rows = self._asked(X)
        return self._certified(rows, int(k)).cpu().numpy()

    def certified_radius(self, X: Any) -> NDArray[np.int64]:
        """Return, for each record, how many further removals from every batch certainly leave its label unchanged.

        The number is 0 if the label is not certified. It is a lower bound: the label may survive more removals.
        """
        rows = self._asked(X)
        self._require_records()
        radii: NDArray[np.int64] = self._network.learned.radii(rows).cpu().numpy()
        return np.maximum(radii - self._network.spent(self._store), 0)

    def certify_poisoned(
        self, X: Any, *, moved: int = 0, by: float = 0.0, relabelled: int = 0, to: Any = None, together: bool = False
    ) -> NDArray[np.bool_]:
        """Return, for each record, whether its label is certified to stay the same if training records are poisoned.

        The network is trained again on the remaining records, with a box that covers the poisoning. This box covers
        neither removals nor additions of records, and the boxes of the budgets cover no poisoning.

        Args:
            X: Features, which are not poisoned, shape ``(records, features)``.
            moved: Number of records with moved inputs in every batch, public rows included.
            by: Largest change of each input number as the network sees it: after scaling by ``feature_ranges``,
                ``data_norm`` or ``normalize``.
            relabelled: Number of records with changed classes in every batch.
            to: The only class to which classes may be changed; None: any class.
            together: Whether the same records are moved and relabelled. If False, they may be different records.

        Raises:
            ParameterError: ``to`` is not a class.
            DataError: The estimator was saved without its training data.
            IntervalError: Bounds overflow.
        """
        rows = self._asked(X)
        network, store = self._current(), self._store
        classes = self.classes_.tolist()
        if to is not None and to not in classes:
            raise ParameterError(f"`to` must be one of the classes {classes}, got {to!r}")
        poisoning = Poisoning(moved, by, relabelled, together, None if to is None else classes.index(to))
        found = network.settings.learn_poisoned(
            store.rows, store.labels, network.places, network.start, network.present(store), poisoning
        )
        return found.certified(rows)[0].cpu().numpy()

    @property
    def budget_left_(self) -> int:
        """Number of further records that can be removed for free from any batch; some batches may allow more."""
        self._require_records()
        return self._network.budget_left(self._store)

    def certificate(self, X: Any, y: Any = None) -> PredictionCertificate:
        """Return a certificate of the predictions of some records, for the owner of the data.

        `certificate.write` writes the certificate to a file, and its evidence to another file, which is as secret as
        the records. ``unlearn verify`` recomputes every prediction from the evidence.

        Args:
            X: Features, shape ``(records, features)``.
            y: The true classes, if known. Then the certificate also states bounds on accuracy.
        """
        rows = self._asked(X)
        network = self._current()
        if not network.learned.budgets[-1]:
            raise AssumptionError("a batch has only one record left, so no removal can be certified: fit anew")
        labels = None
        if y is not None:
            known = np.asarray(y)
            if known.shape != (len(rows),):
                raise DataError(f"y must hold one class for each of the {len(rows)} records of X, got {known.shape}")
            unknown = np.setdiff1d(known, self.classes_).tolist()
            if unknown:
                raise DataError(f"y holds {unknown[0]!r}, which is none of the classes: {self.classes_.tolist()}")
            labels = torch.as_tensor(np.searchsorted(self.classes_, known), device=rows.device)
        return PredictionCertificate.of(
            network.settings,
            network.learned,
            rows,
            n=self._store.left,
            public_records=network.public_records,
            batches=len(network.places),
            classes=[str(each) for each in self.classes_],
            labels=labels,
        )

    def check(self) -> None:
        """Train again on the records, and compare parameters and boxes with the stored ones.

        After free removals, the check is impossible, because the training cannot be repeated without the removed
        records.

        Raises:
            DataError: The parameters or boxes differ, or records were removed since the last training.
        """
        self._require_records()
        self._network.check(self._store)

    def privacy_report(self, X: Any = None) -> str:
        """Return a report as text: the removals so far, what is guaranteed, and what is not.

        Args:
            X: Records whose certified predictions are counted; None: nothing is counted.
        """
        self._require_fitted()
        rows = None if X is None else self._asked(X)
        spent = None if self._store.places is None else self._network.spent(self._store)
        return "\n".join([*in_words(self._network, self._forgotten, spent, rows), *self._scaling_in_words()])

    def _saved(self, training_data: bool) -> tuple[dict[str, Any], dict[str, NDArray[Any] | None]]:
        if self._planned(self._network.n) != self._network.settings:
            raise ParameterError(
                "training parameters were changed after fit, so the file would state other parameters than those with "
                "which the boxes were trained; set the old values again, or call fit again"
            )
        if not training_data:
            self._settle()
        header, arrays = self._network.saved(training_data)
        if training_data:
            store = self._store
            arrays |= {
                "rows": store.rows.cpu().numpy(),
                "labels": store.labels.cpu().numpy(),
                "present": ~store.removed,
            }
        return header | {"forgotten": self._forgotten}, arrays

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(header, arrays)
        device = device_of_loaded(self.device)
        tensors = {name: torch.as_tensor(each, device=device) for name, each in arrays.items() if name != "frame_index"}
        self._forgotten = header["forgotten"]
        self._network = TrainedNetwork.restored(self._planned(header["n"]), header, tensors)
        if "rows" in arrays:
            private = np.arange(self._network.n - self._network.public_records)
            self._store.keep(np.where(arrays["present"], private, -1), tensors["rows"], tensors["labels"])

    def _current(self) -> TrainedNetwork:
        """Return the network, trained on the remaining records."""
        self._require_records()
        self._settle()
        return self._network

    def _settle(self) -> None:
        """Retrain the network if records were removed since the last training."""
        if self._network.pending:
            with self._all_or_nothing():
                self._network = self._network.trained_again(self._store, _whole(self.budgets))

    def _remove(self, named: NDArray[Any]) -> bool:
        network, public_records = self._network, self._network.public_records
        require_private(named, records=network.n - public_records, public_rows=public_records)
        gone = self._store.removable(named)
        lost = {*self._store.labels[gone].tolist()}
        with self._all_or_nothing():
            # The zeros that replace the removed rows are never read, because these rows have no place any more.
            self._store = store = self._store.with_others(gone, 0, 0)
            network = network.after_removal(store, len(gone))
            free = network.budget_left(store) >= 0
            self._network = network if free else network.trained_again(store, _whole(self.budgets))
            self._forgotten = {
                "records": self._forgotten["records"] + len(gone),
                "requests": self._forgotten["requests"] + 1,
                "free": self._forgotten["free"] + free,
            }
        return not lost <= {*store.labels[network.present(store).to(store.labels.device)].tolist()}

    def _certified(self, rows: torch.Tensor, k: int) -> torch.Tensor:
        """Return whether each label is certified for the removals so far and ``k`` more; True without removals."""
        network = self._network
        needed = network.spent(self._store) + k
        if not needed:
            return torch.ones(len(rows), dtype=torch.bool, device=rows.device)
        self._require_records()
        if needed > network.learned.budgets[-1]:
            raise ParameterError(
                f"k must be at most {network.budget_left(self._store)}, got {k}: removals since the last training "
                f"count towards the largest budget, {network.learned.budgets[-1]}"
            )
        return network.learned.certified_at(rows, needed)

    def _asked(self, X: Any) -> torch.Tensor:
        """Return the inputs of the network for records to predict."""
        self._require_fitted()
        return self._inputs(self._checked(X), self._network.learned.parameters[0].device)

    def _inputs(self, features: NDArray[Any], device: torch.device) -> torch.Tensor:
        # Always a copy: later changes to the caller's X must not reach the training records.
        return torch.tensor(self._seen(features.astype(np.float64)), device=device)

    def _noise_key(self) -> int:
        return secrets.randbits(63) if self.random_state is None else super()._noise_key()


def _whole(values: Any) -> list[int]:
    """Return the members of an iterable as a list; any other value becomes the only member, and is refused later."""
    if isinstance(values, Iterable):
        return [*values]
    return [int(values)] if isinstance(values, Integral) and not isinstance(values, bool) else [values]
