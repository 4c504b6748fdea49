"""Models that learn by steps of descent and unlearn by further steps; their certificates and files."""

import sys
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from certified_unlearning import certificate
from certified_unlearning.accounting.core.scale import QUICK_CONDITION
from certified_unlearning.certificate import StepsCertificate
from certified_unlearning.engine import randomness
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.devices import pick_device
from certified_unlearning.engine.progress import Progress
from certified_unlearning.errors import AssumptionError
from certified_unlearning.estimators.advice import warn_if_slow
from certified_unlearning.estimators.classifier import NoisyClassifier
from certified_unlearning.estimators.descent import report
from certified_unlearning.estimators.linear import LinearModel
from certified_unlearning.estimators.objective import Laws
from certified_unlearning.estimators.records import Positions, RecordStore
from certified_unlearning.estimators.scaling import unit
from certified_unlearning.mechanisms.learners.history import History, Removal
from certified_unlearning.text import counted
from certified_unlearning.vocabulary import Delta, NoiseSource


@dataclass(repr=False, eq=False)
class DescentModel(LinearModel):
    """A linear model that learns by steps of descent, and keeps its training records because unlearning reads them.

    Args:
        epsilon: Target epsilon after every `unlearn`.
        delta: Failure probability of the guarantee: a number strictly between 0 and 1; ``"auto"``, which is
            ``min(1e-6, 1 / (10 n))``; or ``"1/n"``, as in the papers.
        sigma: Noise scale: the noise of a step has standard deviation ``sqrt(2 step_size) sigma``. None: the smallest
            scale at which ``steps`` steps unlearn ``records`` records.
        steps: Number of steps to unlearn ``records`` records at once. It cannot be combined with ``sigma``. If neither
            ``steps`` nor ``sigma`` is given, unlearning takes the number of steps in which the influence of what was
            learned falls by a factor ``e``.
        records: Number of records that ``steps`` steps must be able to unlearn at once. A later request may name any
            number of records; it then takes more or fewer steps.
        accountant: Accountant: ``shifted`` (exact on quadratics), ``lsi`` (the paper's) or ``lsi-tight``.
        adjacency: Data from which the comparator, the retrained model, learns. With ``zero-out``, a removed record's
            loss is 0. The objective is then scikit-learn's with the same ``C`` or ``alpha`` on the remaining records.
            With ``replace``, another record replaces the removed record. With ``remove``, the loss is the mean over the
            remaining records.
        device: Device for computations: ``auto``, ``cpu`` or ``cuda``.
        dtype: ``float32`` or ``float64``. ``float32`` is only a preference: if the rounding of ``float32`` would use up
            more than a tenth of epsilon, ``float64`` is used.
    """

    epsilon: float = 1.0
    delta: Delta = "auto"
    _: KW_ONLY
    sigma: float | None = None
    steps: int | None = None
    records: int = 1
    accountant: str = "shifted"
    adjacency: str = "zero-out"
    device: str = "cpu"
    dtype: str = "float32"

    @classmethod
    @abstractmethod
    def _read_learner(cls, stated: Mapping[str, Any]) -> Any:
        """Return the learner that is described in a file's header."""

    @abstractmethod
    def _learn(self, rows: torch.Tensor, labels: torch.Tensor) -> None:
        """Learn with ``_learner`` and set ``_weights``."""

    @abstractmethod
    def _unlearn(self, rows: torch.Tensor, labels: torch.Tensor, records: int) -> None:
        """Unlearn ``records`` records by steps on the remaining rows."""

    @abstractmethod
    def _drawn_labels(self, generator: np.random.Generator, records: int) -> NDArray[Any]:
        """Draw labels of replacement records, independently of the data."""

    @abstractmethod
    def _warn_if_slow(self, plan: Any, X: NDArray[Any]) -> None:
        """Warn the caller of `fit` if learning will take long."""

    def _asked(self) -> dict[str, Any]:
        """Return the parameters that are passed to the learners' planners."""
        names = ("epsilon", "delta", "sigma", "steps", "records", "accountant", "adjacency", "dtype")
        return {name: getattr(self, name) for name in names}

    def _warn_of(self, plan: Any, X: NDArray[Any]) -> None:
        super()._warn_of(plan, X)
        if pick_device(self.device).type == "cpu":
            self._warn_if_slow(plan, X)

    def _learn_from(self, plan: Any, X: NDArray[Any], labels: NDArray[Any]) -> None:
        self._begin(plan)
        rows = self._rows(X)
        self._learn(*self._tensors(rows, labels))
        self._store.keep(np.arange(len(rows)), rows, labels)

    def _begin(self, plan: Any) -> None:
        """Reset the model, with a new plan."""
        self._learner = plan
        self._history: History = plan.history()
        self._noise_source: NoiseSource = "system entropy" if self.random_state is None else "seed"

    @property
    def removals_(self) -> list[Removal]:
        """Number of records and number of steps of each request so far."""
        return list(self._history)

    def _remove(self, named: NDArray[Any]) -> bool:
        with self._all_or_nothing():
            self._remove_by_steps(self._store.removable(named))
        return not self._class_sizes_of(self._store.labels).all()

    def _remove_by_steps(self, gone: Positions) -> None:
        """Continue the descent on copies of the rows, without the removed records."""
        store = self._store_without(gone)
        self._unlearn(*self._tensors(store.rows, store.labels), records=len(gone))
        self._store = store
        if self.random_state is not None:
            self._noise_source = "seed"  # ``random_state`` may have been set after `fit`.

    def _store_without(self, gone: Positions) -> RecordStore:
        """Return copies of the records without the removed records.

        With adjacency `replace`, other records replace the removed records.
        """
        if self._learner.adjacency == "replace":
            return self._store.with_others(gone, *self._replacements(len(gone)))
        return self._store.compacted(gone)

    def _laws(self, gone: NDArray[np.int64], trials: int) -> Laws:
        if len(self._history):
            raise AssumptionError(
                f"the distributions of {type(self).__name__} can be drawn only for its first removal, but it has "
                f"already made {counted(len(self._history), 'removal')}"
            )
        learner, noise = self._learner, str(self._noise_key())
        places = learner.places_of(self._store.known_places[gone])
        removal = learner.plan_removal(self._history, len(gone), places)
        # With adjacency `replace`, both distributions use the same replacements, because the guarantee holds for any
        # replacements.
        after = self._store_without(gone)
        whole, left = (self._as_tensors(each.rows, each.labels) for each in (self._store, after))
        keys = [[address(noise, name, trial) for trial in range(trials)] for name in ("learning", "removal", "again")]
        laws = learner.laws(whole, left, removal, *keys)
        return Laws(*(each.cpu().numpy().astype(np.float64) for each in laws))

    @property
    def certificate_(self) -> StepsCertificate:
        """Certificate of the current model; `certificate.write` writes it to a file for ``unlearn verify``."""
        self._require_fitted()
        digest = self._store.digest
        run = self._learner.run(self._history, dataset="own", features="given", data_digest=digest)
        return certificate.of(
            run,
            key=self._learner.run_key(self._history, digest),
            noise_source=self._noise_source,
            all_published=self._learner.all_published_is_known,
            stream=self._learner.stream(self._history),
        )

    def _guaranteed_in_words(self, stated: StepsCertificate) -> list[str]:
        return report.in_words(stated, self._learner, self._history)

    def _saved(self, training_data: bool) -> tuple[dict[str, Any], dict[str, NDArray[Any] | None]]:
        header = {
            "learner": self._learner.model_dump(mode="json"),
            "removals": self.removals_,
            "data_digest": self._store.digest,
            "noise_source": self._noise_source,
        }
        return header, {"_weights": self._weights, **(self._kept() if training_data else {})}

    def _kept(self) -> dict[str, NDArray[Any] | None]:
        """Return the arrays that a loaded model needs to unlearn."""
        store = self._store
        return {"remaining_": store.remaining, "_training_rows": store.rows, "_training_labels": store.labels}

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(header, arrays)
        self._learner = self._read_learner(header["learner"])
        self._history = self._learner.history([Removal.read(*removal) for removal in header["removals"]])
        self._store.known_digest = header["data_digest"]
        self._noise_source = header["noise_source"]
        self._weights = arrays["_weights"]
        if "_training_rows" in arrays:
            self._restore_kept(arrays)

    def _restore_kept(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Set the arrays that `_kept` returned."""
        kept = (arrays[name] for name in ("_training_rows", "_training_labels"))
        self._store.keep_left(arrays["remaining_"], self._learner.n, *kept)

    @property
    def _dtype(self) -> str:
        return self._learner.dtype  # type: ignore[no-any-return]

    def _replacements(self, records: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Draw records independently of the data: features from N(0, I), scaled to norm 1, and labels."""
        generator = randomness.generator(str(self._noise_key()), "replacements", self._store.left)
        features = unit(generator.standard_normal((records, self.n_features_in_)))
        labels = self._drawn_labels(generator, records)
        # These are features after scaling, because ranges would clip unscaled features to one corner.
        rows = self._rows(features) if self._scaling() is None else self._with_intercept(features)
        return rows, labels

    def _as_tensors(self, rows: NDArray[Any], labels: NDArray[Any]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the store's rows and labels in the form that the learner needs."""
        return self._tensors(rows, labels)

    def _tensors(self, rows: NDArray[Any], labels: NDArray[Any]) -> tuple[torch.Tensor, torch.Tensor]:
        device = pick_device(self.device)
        tensor = torch.as_tensor(rows, device=device)
        dtype = tensor.dtype if self._learner.classes <= 2 else torch.int64
        return tensor, torch.as_tensor(labels, device=device, dtype=dtype)


class LangevinModel(DescentModel):
    """A linear model that learns and unlearns by noisy steps, as in Langevin unlearning."""

    def _noise_of_weights(self) -> tuple[float, bool]:
        return self._learner.sigma, True

    def _learn(self, rows: torch.Tensor, labels: torch.Tensor) -> None:
        progress = shown_progress("fit", self._learner.learning_steps)
        self._weights = self._learner.learn(rows, labels, [self._noise_key()], progress=progress).cpu().numpy()

    def _laws(self, gone: NDArray[np.int64], trials: int) -> Laws:
        if self._learner.accountant != "shifted":
            raise AssumptionError(
                f"the comparator of {type(self).__name__} can be drawn only with accountant='shifted', got "
                f"{self._learner.accountant!r}: other accountants compare with learning that never ends"
            )
        return super()._laws(gone, trials)

    def _unlearn(self, rows: torch.Tensor, labels: torch.Tensor, records: int) -> None:
        history = self._history.after(self._learner.plan_removal(self._history, records))
        self._weights, self._history = self._after_steps(rows, labels, history), history

    def _after_steps(self, rows: torch.Tensor, labels: torch.Tensor, history: History) -> NDArray[Any]:
        """Return the weights after the last removal of a history."""
        weights: torch.Tensor = self._learner.unlearn(
            torch.tensor(self._weights, device=rows.device),
            rows,
            labels,
            history,
            [self._noise_key()],
            progress=shown_progress("unlearn", history[-1].steps),
        )
        return weights.cpu().numpy()


@dataclass(repr=False, eq=False)
class DescentClassifier(DescentModel, NoisyClassifier):
    """A linear classifier that learns and unlearns by steps of descent."""

    def _warn_if_slow(self, plan: Any, X: NDArray[Any]) -> None:
        n = len(X)
        quick = QUICK_CONDITION / (n * self._class_weights().largest)
        warn_if_slow(
            plan,
            X,
            given=f"C = {self.C:.3g} (C n = {self.C * n:,.0f})",
            quicker=f"C n of 30 to 100, such as C = {quick:.2g}," if quick < self.C else None,
            instead="CertifiedLogisticRegression needs no small C",
        )

    def _labels_of(self, numbers: NDArray[Any]) -> NDArray[np.int64]:
        return super()._labels_of(numbers).astype(np.int64, copy=False)

    def _drawn_labels(self, generator: np.random.Generator, records: int) -> NDArray[np.int64]:
        return self._labels_of(generator.integers(len(self.classes_), size=records))


def shown_progress(name: str, steps: int) -> Progress | None:
    """Return a progress display for long runs, or None.

    It is shown only on a terminal, because parameter searches fit hundreds of models.
    """
    return Progress(name, steps) if sys.stderr.isatty() else None
