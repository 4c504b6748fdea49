"""A small network that certifies which predictions removals cannot change; removals within a budget are free."""

import math
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
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.estimators.classifier import Classifier
from certified_unlearning.estimators.estimator import without_sample_weight
from certified_unlearning.estimators.refit.public import (
    PublicRows,
    checked_features,
    checked_length,
    class_numbers,
    require_both,
    require_private,
)
from certified_unlearning.estimators.scaling import Array
from certified_unlearning.mechanisms.certified_sgd.learned import LINES, Learned
from certified_unlearning.mechanisms.certified_sgd.sgd import CertifiedSgd, dense_network
from certified_unlearning.text import counted
from certified_unlearning.vocabulary import Clipping


@dataclass(repr=False, eq=False)
class CertifiedMLPClassifier(Classifier):
    """A ReLU network that certifies which predictions retraining without some records would not change.

    For each budget ``k``, training computes a box that contains all parameters that the same training could have
    reached without any ``k`` records of each batch. A label that is constant over the box needs no unlearning. So
    `unlearn` is free while the budget lasts: it erases the records, and from then on `predict` uses the old parameters
    only for certified labels. The first input without a certified label makes the network train anew on the remaining
    records, in the same batches; a request beyond the budget does so at once. Either way **every label that `predict`
    returns is the one that the retrained network gives**. Until the next training, the parameters still depend on the
    removed records: they must stay secret, and `save` without training data trains anew first.

    Only the label of an input is certified, not its probability, and only for some inputs. The most inputs are
    certified with few large batches, few epochs and a small network. Whether an input is certified depends on the
    records, so answering only certified inputs is not differentially private.

    Scaling does not depend on the records: give features of about size 1, or public numbers to scale by. An estimator
    must not be used by several threads at once, because `predict` may train.

    Args:
        hidden_layer_sizes: Number of units of each hidden layer; empty for (multinomial) logistic regression.
        budgets: The ``k`` of each box, whole numbers in rising order: how many records of each batch can be removed for
            free.
        changes: ``removals``; or ``additions and removals``, whose boxes also cover added records, need clipping, and
            certify less.
        epochs: Number of passes over the batches.
        batch_size: Number of records in a batch; ``auto``: all. Records that do not fill a batch are not learned from.
        step_size: ``alpha``; update ``n``, counted from 0, has step size ``alpha / (1 + decay n)``.
        decay: Decay ``eta`` of the step size.
        clipping: How each record's gradient is clipped: ``clamp`` bounds each entry, ``l2`` bounds the norm, ``none``
            does not clip.
        bound: Bound to clip to; None without clipping.
        weight_decay: Decoupled weight decay: parameters shrink by ``alpha_n weight_decay`` in every update.
        momentum: Momentum of the velocity.
        normalize: Whether every row is divided by its own norm.
        random_state: Seed of the initial parameters and of the batches; None: from the operating system. Two networks
            that were fitted with the same number share both, and no noise hides anything: the difference of their
            parameters shows the record in which their data differ.
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

        The network learns from public rows as it does from records, and they stay in every batch that they were drawn
        into. No request can name one, and boxes cover only data sets that contain all of them, so more predictions are
        certified. They are scaled by the parameters as records are, and change neither the scaling nor the list of
        classes.

        Args:
            X: Features of records, shape ``(records, features)``; an array, a data frame, or a sparse matrix, whose
                rows become dense.
            y: Their classes, of any type.
            public_X: Rows that nobody will ask to remove, shape ``(public rows, features)``, in the same form as ``X``.
                A private record among them has no guarantee.
            public_y: Their classes, each of which must occur among the records.

        Returns:
            The fitted estimator. `unlearn` names records by their position in this ``X``, or by its index.

        Raises:
            DataError: There are too few classes or records; or public rows have other columns or another class than
                records, or only one of the two is sparse.
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
        self._public_records = 0
        if self._given_public is None:
            return features, labels
        public_X, public_y = self._given_public
        own = self._in_form(checked_features(public_X, X, features=self.n_features_in_))
        public = PublicRows(own, class_numbers(checked_length(public_y, own.shape[0]), self.classes_))
        self._public_records = public.count
        return public.after(features, labels)

    def _planned(self, n: int) -> CertifiedSgd:
        """Return the settings of training on ``n`` records, public ones included.

        Raises:
            ParameterError: A parameter is invalid.
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

    def _learn_from(self, plan: CertifiedSgd, X: NDArray[Any], labels: NDArray[Any]) -> None:
        device = pick_device(self.device)
        private = np.arange(len(X) - self._public_records)
        self._store.keep(private, self._inputs(X, device), torch.as_tensor(labels, device=device))
        self._settings, self._n = plan, len(X)
        generator = torch.Generator().manual_seed(self._noise_key() % 2**63)
        self._places = plan.places(len(X), generator).to(device)
        self._start = tuple(each.to(device) for each in plan.start(generator))
        self._forgotten = {"records": 0, "requests": 0, "free": 0}
        self.trainings_ = 0
        self._train()

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label that the network trained on the remaining records gives each record, shape ``(records,)``.

        After free removals, the network is trained anew first if they could have changed one of these labels.
        """
        rows = self._asked(X)
        if self._pending and not bool(self._certified(rows, 0).all()):
            self._settle()
        return self.classes_[self._learned.classes(rows).cpu().numpy()]  # type: ignore[no-any-return]

    def decision_function(self, X: Any) -> Array:
        """Return logits: shape ``(records,)`` for two classes, else ``(records, classes)``.

        No certificate covers scores, so after free removals the network is trained anew first.
        """
        rows = self._asked(X)
        self._settle()
        scores: Array = self._learned.logits(rows).cpu().numpy()
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def certify(self, X: Any, k: int = 1) -> NDArray[np.bool_]:
        """Return, for each record, whether its label is certified to survive ``k`` more removals from every batch.

        Args:
            X: Features, shape ``(records, features)``.
            k: Number of further removals, at least 0. Removals since the last training count in addition.

        Raises:
            ParameterError: No budget covers this many removals.
        """
        require_count(least=0, k=k)
        rows = self._asked(X)
        return self._certified(rows, int(k)).cpu().numpy()

    def certified_radius(self, X: Any) -> NDArray[np.int64]:
        """Return, for each record, the number of further removals from every batch that its label is certified for.

        The number is 0 if nothing is certified. It is a lower bound: the label may survive more removals.
        """
        radii = self._learned_radii(self._asked(X)) - self._spent()
        return np.maximum(radii, 0)

    def certify_poisoned(
        self, X: Any, *, moved: int = 0, by: float = 0.0, relabelled: int = 0, to: Any = None, together: bool = False
    ) -> NDArray[np.bool_]:
        """Return, for each record, whether its label is certified to stay the same however some records are poisoned.

        The network is trained again, with a box that covers the poisoning, on the records that are left. Removals and
        additions of records are not covered at the same time: the budgets cover those, without poisoning.

        Args:
            X: Features, shape ``(records, features)``; they are not poisoned.
            moved: Number of records of every batch whose inputs are moved, public rows included.
            by: Largest change of each input number as the network sees it: after scaling by ``feature_ranges``,
                ``data_norm`` or ``normalize``.
            relabelled: Number of records of every batch whose classes are changed.
            to: The only class that they are changed to; None for any.
            together: Whether these are the same records; otherwise others may be relabelled than moved.

        Raises:
            ParameterError: ``to`` is not a class.
            DataError: The estimator was saved without its training data.
            IntervalError: Bounds overflow.
        """
        rows = self._asked(X)
        settings, _ = self._current()
        classes = self.classes_.tolist()
        if to is not None and to not in classes:
            raise ParameterError(f"to must be one of the classes {classes}, got {to!r}")
        number = None if to is None else classes.index(to)
        poisoning = Poisoning(moved, by, relabelled, together, number)
        store = self._store
        found = settings.learn_poisoned(store.rows, store.labels, self._places, self._start, self._present, poisoning)
        return found.certified(rows)[0].cpu().numpy()

    @property
    def budget_left_(self) -> int:
        """Number of further records that can be removed for free from any batch; some batches may allow more."""
        self._require_records()
        return self._learned.budgets[-1] - self._spent()

    def certificate(self, X: Any, y: Any = None) -> PredictionCertificate:
        """Return a certificate of the predictions of some records, for the owner of the data.

        `certificate.write` writes it to a file, together with a file of evidence that is as secret as the records;
        ``unlearn verify`` recomputes every prediction from the evidence.

        Args:
            X: Features, shape ``(records, features)``.
            y: Their true classes, if known; bounds of accuracy are then stated.
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
            n=self._store.left,
            public_records=self._public_records,
            batches=len(self._places),
            classes=[str(each) for each in self.classes_],
            labels=labels,
        )

    def check(self) -> None:
        """Train again on the records, and compare parameters and boxes with the stored ones.

        After free removals there is nothing to compare with: the records are gone.

        Raises:
            DataError: They differ, or records were removed since the last training.
        """
        self._require_records()
        if self._pending:
            raise DataError("records were removed since the last training, so that it cannot be repeated")
        found = self._learn(self._learned.budgets).tensors
        for name, kept in self._learned.tensors.items():
            # Files written before lines existed have none, and certify without them.
            if name not in found or not torch.allclose(found[name], kept, rtol=1e-9, atol=1e-12):
                what = "lines of the last update" if name.startswith(LINES) else "parameters or boxes"
                raise DataError(f"training again on the records gives other {what} than those kept")

    def privacy_report(self, X: Any = None) -> str:
        """Return in words what was removed, what is guaranteed, and what is not.

        Args:
            X: Records whose certified predictions are counted; None: nothing is counted.
        """
        self._require_fitted()
        done, learned = self._forgotten, self._learned
        lines = [
            f"Removed: {counted(done['records'], 'record')} in {counted(done['requests'], 'request')}, "
            f"{done['free']} of them for free; trained {counted(self.trainings_, 'time')}."
        ]
        if self._store.places is None:
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
        """Return the report's lines on certified labels, and on how many of some records have one."""
        spent = self._spent()
        lines = []
        if self._public_records:
            lines.append(
                f"Learned from {counted(self._public_records, 'public row')} besides, which cannot be removed."
            )
        lines += [
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

    def _saved(self, training_data: bool) -> tuple[dict[str, Any], dict[str, NDArray[Any] | None]]:
        if self._planned(self._n) != self._settings:
            raise ParameterError(
                "parameters of training were changed after fit, and the file would state them, not those that the "
                "boxes were trained with; set them back, or fit again"
            )
        if not training_data:
            self._settle()
        header = {
            "budgets": self._learned.budgets,
            "smallest_batch": self._learned.smallest_batch,
            "n": self._n,
            "public_records": self._public_records,
            "forgotten": self._forgotten,
            "trainings": self.trainings_,
            "pending": self._pending,
        }
        arrays: dict[str, NDArray[Any] | None] = {
            name: _array(each)
            for name, each in self._learned.tensors.items()
            if training_data or name.startswith("parameters/")
        }
        if training_data:
            arrays |= {f"start/{place}": _array(values) for place, values in enumerate(self._start)}
            arrays |= {
                "rows": _array(self._store.rows),
                "labels": _array(self._store.labels),
                "present": ~self._store.removed,
                "learned_from": _array(self._learned_from),
                "places": _array(self._places),
            }
        return header, arrays

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(header, arrays)
        device = device_of_loaded(self.device)
        tensors = {name: torch.as_tensor(each, device=device) for name, each in arrays.items() if name != "frame_index"}
        self.trainings_, self._forgotten, self._pending = header["trainings"], header["forgotten"], header["pending"]
        # Files that were written before there were public rows lack this number.
        self._n, self._public_records = header["n"], header.get("public_records", 0)
        self._settings = self._planned(self._n)
        network, bounding = self._settings.network, self._settings.bounding
        places = range(len(network.shapes))
        of_budgets = {"budgets": tuple(header["budgets"]), "smallest_batch": header["smallest_batch"]}
        if "rows" not in arrays:
            parameters = network.checked([tensors[f"parameters/{place}"] for place in places])
            box = tuple(Interval.point(each) for each in parameters)
            self._learned = Learned(network, bounding, parameters, box, **of_budgets)
            return
        self._learned = Learned.of(tensors, network, bounding, **of_budgets)
        private = self._n - self._public_records
        self._store.keep(np.where(arrays["present"], np.arange(private), -1), tensors["rows"], tensors["labels"])
        self._start = tuple(tensors[f"start/{place}"] for place in places)
        self._places, self._learned_from = tensors["places"], tensors["learned_from"]

    @property
    def _present(self) -> torch.Tensor:
        """Which of the fitted records remain; public ones come after all others, and always remain."""
        left = torch.ones(self._n, dtype=torch.bool)
        left[: self._n - self._public_records] = torch.as_tensor(~self._store.removed)
        return left.to(self._places.device)

    @property
    def _public(self) -> torch.Tensor | None:
        """Which of the fitted records are public; None for none."""
        if not self._public_records:
            return None
        return torch.arange(self._n, device=self._places.device) >= self._n - self._public_records

    def _learn(self, budgets: Sequence[int]) -> Learned:
        store = self._store
        return self._settings.learn(
            store.rows, store.labels, self._places, self._start, self._present, budgets, self._public
        )

    def _train(self) -> None:
        """Train on the present records; when training again, with the budgets that are still below the smallest batch.

        If no budget is, because a batch has one record left, the only budget is 0: nothing is certified, and every
        request makes the network train anew.
        """
        budgets = _whole(self.budgets)
        if self.trainings_ and self._settings.neighbourhood.changes == "removals":
            smallest = self._smallest_that_may_be_emptied()
            budgets = [each for each in budgets if each < smallest] or [0]
        self._learned = self._learn(budgets)
        self._learned_from = self._present
        self._pending = 0
        self.trainings_ += 1

    def _smallest_that_may_be_emptied(self) -> float:
        """Return how many records the smallest batch without a public row has left; infinite where all have one."""
        left, public = self._present[self._places].sum(dim=1), self._public
        if public is not None:
            left = left[~public[self._places].any(dim=1)]
        return int(left.min()) if len(left) else math.inf

    def _current(self) -> tuple[CertifiedSgd, Learned]:
        """Return how the network was trained, and what it learned from the remaining records."""
        self._require_records()
        self._settle()
        return self._settings, self._learned

    def _learned_records(self) -> tuple[NDArray[np.int64], torch.Tensor]:
        """Return positions and rows of the records that are left and lie in a batch, public ones excepted."""
        places = self._places.flatten().sort().values
        private = places[(places < self._n - self._public_records) & self._present[places]]
        return private.cpu().numpy(), self._store.rows[private]

    def _settle(self) -> None:
        """Train anew if records were removed since the last training."""
        if self._pending:
            with self._all_or_nothing():
                self._train()

    def _remove(self, named: NDArray[Any]) -> bool:
        require_private(named, records=self._n - self._public_records, public_rows=self._public_records)
        gone = self._store.removable(named)
        lost = {*self._store.labels[gone].tolist()}
        with self._all_or_nothing():
            # What is erased here is never read again, because its place stays empty.
            self._store = self._store.with_others(gone, 0, 0)
            if not bool(self._present[self._places].any(dim=1).all()):
                raise AssumptionError(
                    "indices name the last records of a batch, and a mean of none does not exist: fit anew on the "
                    "records that are left"
                )
            self._pending += len(gone)
            free = self._spent() <= self._learned.budgets[-1]
            if not free:
                self._train()
            self._forgotten = {
                "records": self._forgotten["records"] + len(gone),
                "requests": self._forgotten["requests"] + 1,
                "free": self._forgotten["free"] + free,
            }
        return not lost <= {*self._store.labels[self._present.to(self._store.labels.device)].tolist()}

    def _spent(self) -> int:
        """Return the largest number of records that a batch has lost since the last training."""
        if not self._pending:
            return 0
        gone = self._learned_from & ~self._present
        return int(gone[self._places].sum(dim=1).max())

    def _certified(self, rows: torch.Tensor, k: int) -> torch.Tensor:
        """Return which labels hold for the removals so far and ``k`` more; all labels if there are none of either."""
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
        # Always a copy: later changes to the caller's X must not reach the training records.
        return torch.tensor(self._seen(features.astype(np.float64)), device=device)

    def _noise_key(self) -> int:
        return secrets.randbits(63) if self.random_state is None else super()._noise_key()


def _whole(values: Any) -> list[int]:
    """Return a number, or several, as a list; anything else as its only member, for a check to refuse."""
    if isinstance(values, Iterable):
        return [*values]
    return [int(values)] if isinstance(values, Integral) and not isinstance(values, bool) else [values]


def _array(tensor: torch.Tensor) -> NDArray[Any]:
    return tensor.cpu().numpy()
