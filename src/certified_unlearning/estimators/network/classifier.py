"""A small network that says which of its predictions no removal changes, and forgets for free while that lasts."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from certified_unlearning.accounting.core.checks import require_count, require_counts
from certified_unlearning.certificate.prediction import PredictionCertificate
from certified_unlearning.engine.abstract_training.descent import Descent
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood
from certified_unlearning.engine.devices import pick_device
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.estimators import storage
from certified_unlearning.estimators.linear import LinearModel, without_sample_weight
from certified_unlearning.estimators.requests import distinct, require_removable
from certified_unlearning.estimators.scaling import Array, dense
from certified_unlearning.mechanisms.certified_sgd.learned import LINES, Learned
from certified_unlearning.mechanisms.certified_sgd.sgd import CertifiedSgd, dense_network
from certified_unlearning.text import counted
from certified_unlearning.vocabulary import Clipping


class CertifiedMLPClassifier(ClassifierMixin, LinearModel):  # type: ignore[misc]
    """A network with ReLU whose predictions are certified: retraining without some records would not change them.

    Training carries, for each budget ``k``, a box of all parameters that the same training could have reached without
    any ``k`` records of each batch. A label that is constant over the box needs no unlearning. So `unlearn` is free
    while the budget lasts: it forgets the records, and from then on `predict` answers from the old parameters only what
    is certified. The first input that is not has the network trained anew on the records that are left, in the same
    batches; a request beyond the budget does so at once. Either way **every label that `predict` returns is the one
    that the retrained network gives**. The parameters themselves were learned with the removed records until then: they
    must stay secret, and `save` without training data trains anew first.

    What is certified is the label of an input, not its probability, and a share of the inputs, not all: few, large
    batches, few epochs and small networks certify most. Whether an input is certified depends on the records, so that
    answering certified ones only is not differentially private.

    Nothing is scaled by the records: give features of about the size 1, or public numbers to scale by. An estimator
    must not be used by several threads at once: `predict` may train.

    Args:
        hidden_layer_sizes: Units of each hidden layer; none for (multinomial) logistic regression.
        budgets: ``k`` of each box, whole numbers in rising order: how many records of a batch may leave for free.
        changes: ``removals``, or ``additions and removals``, whose boxes cover that others came as well; it needs
            clipping, and certifies less.
        epochs: Passes over the batches.
        batch_size: Records of a batch; ``auto``: all. Records that fill no batch are not learned from.
        step_size: ``alpha``; update ``n``, counted from 0, has ``alpha / (1 + decay n)``.
        decay: ``eta``.
        clipping: Of each record's gradient: ``clamp`` entry by entry, ``l2`` to a norm, ``none``.
        bound: To which; None without clipping.
        weight_decay: Decoupled: parameters shrink by ``alpha_n weight_decay`` in every update.
        momentum: Of the velocity.
        normalize: Whether every row is divided by its own norm.
        feature_ranges: Public bounds of the features, as in `LangevinLogisticRegression`.
        data_norm: A public norm, as in `LangevinLogisticRegression`.
        random_state: Of the start and of the batches; None: from the operating system. Two networks that were fitted
            with the same number share both, and no noise hides anything: the difference of their parameters shows the
            record in which their data differ.
        device: ``auto``, ``cpu`` or ``cuda``.

    Attributes:
        classes_: The classes, sorted.
        n_features_in_: Number of features.
        feature_names_in_: Their names, if ``X`` was a data frame.
        trainings_: How often the network was trained since `fit`, which is the first time.
    """

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (16,),
        *,
        budgets: Sequence[int] = (1, 2, 4),
        changes: Literal["removals", "additions and removals"] = "removals",
        epochs: int = 10,
        batch_size: int | Literal["auto"] = "auto",
        step_size: float = 1.0,
        decay: float = 0.0,
        clipping: Clipping = "clamp",
        bound: float | None = 0.1,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        normalize: bool = False,
        feature_ranges: ArrayLike | None = None,
        data_norm: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str = "cpu",
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.budgets = budgets
        self.changes = changes
        self.epochs = epochs
        self.batch_size = batch_size
        self.step_size = step_size
        self.decay = decay
        self.clipping = clipping
        self.bound = bound
        self.weight_decay = weight_decay
        self.momentum = momentum
        self.normalize = normalize
        self.feature_ranges = feature_ranges
        self.data_norm = data_norm
        self.random_state = random_state
        self.device = device

    @without_sample_weight
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from records, with a box for each budget.

        Args:
            X: Features, shape ``(n, features)``; an array, a data frame, or a sparse matrix, whose rows become dense.
            y: Classes, shape ``(n,)``, of any type.

        Returns:
            The fitted estimator. `unlearn` names records by their position in this ``X``, or by its index.

        Raises:
            DataError: There is only one class.
            ParameterError: A parameter makes no sense.
            AssumptionError: A budget is not below the size of a batch.
            IntervalError: Bounds overflow: clip, or take fewer epochs, smaller steps or smaller budgets.
        """
        with self._all_or_nothing():
            self._note_index(X, y)
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype=(np.float64, np.float32))
            check_classification_targets(y)
            self._scaling()
            self.classes_, labels = np.unique(y, return_inverse=True)
            if len(self.classes_) < 2:
                raise DataError(
                    f"y holds one class only ({self.classes_.item(0)!r}); a classifier needs samples of two"
                )
            device = pick_device(self.device)
            X = dense(X)
            self._train_rows: Any = self._inputs(X, device)
            self._train_labels = torch.as_tensor(labels, device=device)
            self._present = torch.ones(len(labels), dtype=torch.bool, device=device)
            self._settings = self._settings_for(len(labels))
            self._warn_if_a_column_drowns(X)
            generator = torch.Generator().manual_seed(self._noise_key() % 2**63)
            self._places = self._settings.places(len(labels), generator).to(device)
            self._start = tuple(each.to(device) for each in self._settings.start(generator))
            self._forgotten = {"records": 0, "requests": 0, "free": 0}
            self.trainings_ = 0
            self._train()
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of each record, shape ``(records,)``: that of the network trained on the records left.

        After removals that were free, a record whose label they could have changed has the network trained anew first.
        """
        rows = self._asked(X)
        if self._pending and not bool(self._certified(rows, 0).all()):
            self._settle()
        return self.classes_[self._learned.classes(rows).cpu().numpy()]  # type: ignore[no-any-return]

    def decision_function(self, X: Any) -> Array:
        """Return logits: shape ``(records,)`` for two classes, else ``(records, classes)``.

        No certificate covers numbers: after removals that were free the network is trained anew first.
        """
        rows = self._asked(X)
        self._settle()
        scores: Array = self._learned.logits(rows).cpu().numpy()
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> Array:
        """Return each class' probability, shape ``(records, classes)``; as to removals, see `decision_function`."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            positive = expit(scores)
            return np.column_stack([1 - positive, positive])
        return softmax(scores, axis=1)  # type: ignore[no-any-return]

    def certify(self, X: Any, k: int = 1) -> NDArray[np.bool_]:
        """Return for each record whether ``k`` more removals from every batch leave its label as `predict` says it.

        Args:
            X: Features, shape ``(records, features)``.
            k: At least 0. Removals since the last training count besides.

        Raises:
            ParameterError: No budget covers so many.
        """
        require_count(least=0, k=k)
        rows = self._asked(X)
        return self._certified(rows, int(k)).cpu().numpy()

    def certified_radius(self, X: Any) -> NDArray[np.int64]:
        """Return for each record how many more removals from every batch surely leave its label, by the budgets.

        It is 0 where nothing is certified; the true number may be larger.
        """
        radii = self._learned_radii(self._asked(X)) - self._spent()
        return np.maximum(radii, 0)

    @property
    def budget_left_(self) -> int:
        """How many more records may leave for free, whatever batch they are in; some batches may have more left."""
        self._require_records()
        return self._learned.budgets[-1] - self._spent()

    @property
    def remaining_(self) -> NDArray[np.int64]:
        """Positions of the records that are left, in order."""
        self._require_records()
        return np.flatnonzero(self._present.cpu().numpy())

    def certificate(self, X: Any, y: Any = None) -> PredictionCertificate:
        """Return a certificate of the predictions of some records, for the owner of the data.

        `certificate.write` makes a file of it, and one of evidence beside it that is as secret as the records;
        ``unlearn verify`` recomputes every prediction from the evidence.

        Args:
            X: Features, shape ``(records, features)``.
            y: Their true classes, if they are known: then bounds of accuracy are stated.
        """
        rows = self._asked(X)
        settings, learned = self._current()
        if not learned.budgets[-1]:
            raise AssumptionError("a batch has one record left, so that no removal can be certified: fit anew")
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
            settings,
            learned,
            rows,
            n=int(self._present.sum()),
            batches=len(self._places),
            classes=[str(each) for each in self.classes_],
            labels=labels,
        )

    def check(self) -> None:
        """Train again on the records, and compare parameters and boxes with those that are there.

        After removals that were free there is nothing to compare with: the records are gone.

        Raises:
            DataError: They differ, or removals came since the last training.
        """
        self._require_records()
        if self._pending:
            raise DataError("records were removed since the last training, so that it cannot be repeated")
        found = self._learn(self._present, self._learned.budgets).tensors
        for name, kept in self._learned.tensors.items():
            # A file of before there were lines has none, and certifies without.
            if name not in found or not torch.allclose(found[name], kept, rtol=1e-9, atol=1e-12):
                what = "lines of the last update" if name.startswith(LINES) else "parameters or boxes"
                raise DataError(f"training again on the records gives other {what} than those kept")

    def privacy_report(self, X: Any = None) -> str:
        """Return in words what was removed, what is guaranteed, and what is not.

        Args:
            X: Records whose predictions to count certified ones among; None for none.
        """
        self._require_fitted()
        done, learned = self._forgotten, self._learned
        lines = [
            f"Removed: {counted(done['records'], 'record')} in {counted(done['requests'], 'request')}, "
            f"{done['free']} of them for free; trained {counted(self.trainings_, 'time')}."
        ]
        if self._train_rows is None:
            if X is not None:
                self._asked(X)
            lines.append("Nothing is certified here: boxes and records were left out when it was saved.")
        else:
            lines += self._certified_in_words(learned, X)
        return "\n".join(
            [
                *lines,
                "Not promised: privacy of the answers (whether an input is certified depends on the records), "
                "probabilities, parameters, or anything where features were scaled by the records.",
                *self._scaling_in_words(),
            ]
        )

    def _certified_in_words(self, learned: Learned, X: Any) -> list[str]:
        """Return what a report says of certified labels, and of how many of some records have one."""
        spent = self._spent()
        lines = [
            f"Certified labels are those of a network trained without them, and without any k more of each batch; "
            f"{learned.budgets[-1] - spent} of {learned.budgets[-1]} "
            f"{'is' if learned.budgets[-1] - spent == 1 else 'are'} "
            "left.",
            "Labels that are not certified come from a network that is trained anew when it is first asked for one.",
        ]
        if self._pending:
            lines.append(
                f"The parameters were learned with {counted(self._pending, 'record')} that "
                f"{'was' if self._pending == 1 else 'were'} removed since: they must stay secret."
            )
        if X is None:
            return lines
        rows = self._asked(X)
        shares = learned.certified(rows).double().mean(dim=1).tolist()
        among = f", those since the last training included (up to {spent} of a batch)" if spent else ""
        return lines + [
            f"Certified for {counted(budget, 'removal')} from each batch{among}: {share:.1%} of {len(rows)}."
            for budget, share in zip(learned.budgets, shares, strict=True)
            if budget > spent
        ]

    def save(self, path: str | Path, *, training_data: bool = True) -> None:
        """Write the estimator as one safetensors file, its parameters as JSON in the header. No pickle.

        Args:
            path: The file.
            training_data: Whether records and boxes go along; such a file is as secret as they are. Without, it can
                predict: after removals that were free the network is trained anew first.

        Raises:
            ParameterError: ``random_state`` is a generator, which JSON cannot hold, or what was fitted is no longer
                what the parameters say.
            StorageError: The file cannot be written.
        """
        self._require_fitted()
        if self._settings_for(len(self._present)) != self._settings:
            raise ParameterError(
                "parameters of training were changed after fit, and the file would state them, not those that the "
                "boxes were trained with; set them back, or fit again"
            )
        if not training_data:
            self._settle()
        known = training_data and self._train_rows is not None
        header = {
            **self._described(),
            "parameters": self._parameters(secrets_too=training_data),
            "classes": [self.classes_.dtype.str, self.classes_.tolist()],
            "budgets": self._learned.budgets,
            "smallest_batch": self._learned.smallest_batch,
            "n": len(self._present),
            "forgotten": self._forgotten,
            "trainings": self.trainings_,
            "pending": self._pending,
        }
        arrays: dict[str, NDArray[Any] | None] = {
            name: _array(each)
            for name, each in self._learned.tensors.items()
            if known or name.startswith("parameters/")
        }
        if known:
            arrays |= {f"start/{place}": _array(values) for place, values in enumerate(self._start)}
            index, frame = self._described_index()
            header |= index
            arrays |= frame | {
                "rows": _array(self._train_rows),
                "labels": _array(self._train_labels),
                "present": _array(self._present),
                "learned_from": _array(self._learned_from),
                "places": _array(self._places),
            }
        storage.write(path, header, arrays)

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        device = pick_device(self.device)
        tensors = {name: torch.as_tensor(each, device=device) for name, each in arrays.items() if name != "frame_index"}
        kind, names = header["classes"]
        self.classes_ = np.array(names, dtype=object if kind == "|O" else np.dtype(kind))
        self.trainings_, self._forgotten, self._pending = header["trainings"], header["forgotten"], header["pending"]
        self._settings = self._settings_for(header["n"])
        network, bounding = self._settings.network, self._settings.bounding
        places, known = range(len(network.shapes)), "rows" in arrays
        of_budgets = {"budgets": tuple(header["budgets"]), "smallest_batch": header["smallest_batch"]}
        if known:
            self._learned = Learned.of(tensors, network, bounding, **of_budgets)
        else:
            parameters = network.checked([tensors[f"parameters/{place}"] for place in places])
            box = tuple(Interval.point(each) for each in parameters)
            self._learned = Learned(network, bounding, parameters, box, **of_budgets)
        self._present = tensors.get("present", torch.ones(header["n"], dtype=torch.bool, device=device))
        self._train_rows = tensors.get("rows")
        if known:
            self._start = tuple(tensors[f"start/{place}"] for place in places)
            self._train_labels, self._places = tensors["labels"], tensors["places"]
            self._learned_from = tensors["learned_from"]

    def _settings_for(self, n: int) -> CertifiedSgd:
        """Return how to train on ``n`` records.

        Raises:
            ParameterError: A parameter makes no sense.
        """
        hidden, budgets = _whole(self.hidden_layer_sizes), _whole(self.budgets)
        for place, units in enumerate(hidden):
            require_count(least=1, **{f"hidden_layer_sizes[{place}]": units})
        require_counts("budgets", budgets, least=1)
        if budgets != sorted({*budgets}):
            raise ParameterError(f"budgets must be in rising order, each once, got {self.budgets!r}")
        if self.changes not in ("removals", "additions and removals"):
            raise ParameterError(f"changes must be removals, or additions and removals, got {self.changes!r}")
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

    def _learn(self, present: torch.Tensor, budgets: Sequence[int]) -> Learned:
        return self._settings.learn(self._train_rows, self._train_labels, self._places, self._start, present, budgets)

    def _train(self) -> None:
        """Train on the records that are there; again with those budgets that are below the smallest batch by now.

        Where none is, because a batch has one record left, the only budget is 0: nothing is certified, and every
        request has the network trained anew.
        """
        budgets = _whole(self.budgets)
        if self.trainings_ and self._settings.neighbourhood.changes == "removals":
            smallest = int(self._present[self._places].sum(dim=1).min())
            budgets = [each for each in budgets if each < smallest] or [0]
        self._learned = self._learn(self._present, budgets)
        self._learned_from = self._present
        self._pending = 0
        self.trainings_ += 1

    def _current(self) -> tuple[CertifiedSgd, Learned]:
        """Return how the network was trained, and what it learned from the records that are left."""
        self._require_records()
        self._settle()
        return self._settings, self._learned

    def _settle(self) -> None:
        """Train anew if records were removed since the last training."""
        if self._pending:
            with self._all_or_nothing():
                self._train()

    def _remove(self, indices: Any) -> bool:
        wanted = distinct(indices, len(self._present))
        present = self._present.cpu().numpy()
        require_removable(wanted, ~present[wanted], left=int(present.sum()))
        positions = torch.as_tensor(wanted, device=self._present.device)
        lost = {*self._train_labels[positions].tolist()}
        with self._all_or_nothing():
            left, rows, labels = self._present.clone(), self._train_rows.clone(), self._train_labels.clone()
            left[positions] = False
            if not bool(left[self._places].any(dim=1).all()):
                raise AssumptionError(
                    "indices name the last records of a batch, and a mean of none does not exist: fit anew on the "
                    "records that are left"
                )
            # What is erased here is never read again: its place stays empty.
            rows[positions], labels[positions] = 0, 0
            self._present, self._train_rows, self._train_labels = left, rows, labels
            self._frame_index = self._index_without(wanted)
            self._pending += len(wanted)
            free = self._spent() <= self._learned.budgets[-1]
            if not free:
                self._train()
            self._forgotten = {
                "records": self._forgotten["records"] + len(wanted),
                "requests": self._forgotten["requests"] + 1,
                "free": self._forgotten["free"] + free,
            }
        return any(not bool((self._train_labels[left] == each).any()) for each in lost)

    def _spent(self) -> int:
        """Return how many records the batch that lost most has lost since the last training."""
        if not self._pending:
            return 0
        gone = self._learned_from & ~self._present
        return int(gone[self._places].sum(dim=1).max())

    def _certified(self, rows: torch.Tensor, k: int) -> torch.Tensor:
        """Return which labels hold for what is spent and ``k`` more; all, for none."""
        needed = self._spent() + k
        if not needed:
            return torch.ones(len(rows), dtype=torch.bool, device=rows.device)
        self._require_records()
        if needed > self._learned.budgets[-1]:
            raise ParameterError(
                f"k must be at most {self._learned.budgets[-1] - self._spent()}, what is left of the largest budget "
                f"{self._learned.budgets[-1]}, got {k}"
            )
        return self._learned.certified_at(rows, needed)

    def _learned_radii(self, rows: torch.Tensor) -> NDArray[np.int64]:
        self._require_records()
        return self._learned.radii(rows).cpu().numpy()

    def _asked(self, X: Any) -> torch.Tensor:
        """Return records to predict as the network takes them."""
        self._require_fitted()
        return self._inputs(self._checked(X), self._learned.parameters[0].device)

    def _inputs(self, features: NDArray[Any], device: torch.device) -> torch.Tensor:
        # A copy in any case: what the caller does to X later must not reach the training records.
        return torch.tensor(self._seen(features.astype(np.float64)), device=device)

    def _noise_key(self) -> int:
        return secrets.randbits(63) if self.random_state is None else super()._noise_key()

    def _require_records(self) -> None:
        self._require_fitted()
        if self._train_rows is None:
            raise DataError("this estimator was saved without its training data: it can predict, and nothing else")

    @property
    def _fitted_records(self) -> int:
        return len(self._present)

    @property
    def _training_rows(self) -> Any:
        return self._train_rows

    @property
    def _dtype(self) -> str:
        return "float64"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learned")


def _whole(values: Any) -> list[int]:
    """Return a number, or several, as a list; what is neither, as its only member, for a check to refuse."""
    if isinstance(values, Iterable):
        return [*values]
    return [int(values)] if isinstance(values, Integral) and not isinstance(values, bool) else [values]


def _array(tensor: torch.Tensor) -> NDArray[Any]:
    return tensor.cpu().numpy()
