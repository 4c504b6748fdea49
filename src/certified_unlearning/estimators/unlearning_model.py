"""A model that learns by noisy steps: its records and which are left, its certificate, its files."""

import secrets
import sys
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from certified_unlearning import certificate
from certified_unlearning.certificate import StepsCertificate
from certified_unlearning.engine import randomness
from certified_unlearning.engine.devices import pick_device
from certified_unlearning.engine.progress import Progress
from certified_unlearning.estimators import report, storage
from certified_unlearning.estimators.linear import LinearModel
from certified_unlearning.estimators.requests import distinct, require_removable
from certified_unlearning.estimators.scaling import unit
from certified_unlearning.mechanisms.learners.history import Removal
from certified_unlearning.vocabulary import NoiseSource


class UnlearningModel(LinearModel):
    """A linear model that learns by noisy steps and keeps its training records, so that it can unlearn some.

    Attributes:
        removals_: What was unlearned: records and steps of each request.
        remaining_: Positions in the fitted ``X`` of the records that are left.
    """

    _NEEDED_TO_UNLEARN: ClassVar[tuple[str, ...]] = ("remaining_", "_training_rows", "_training_labels")

    @classmethod
    @abstractmethod
    def _read_learner(cls, stated: Mapping[str, Any]) -> Any:
        """Return the learner that a file's header states."""

    @abstractmethod
    def _learn(self, rows: torch.Tensor, labels: torch.Tensor) -> None:
        """Learn by ``_learner``: set ``_weights``."""

    @abstractmethod
    def _unlearn(self, rows: torch.Tensor, labels: torch.Tensor, records: int) -> None:
        """Go on without ``records`` records to the rows that are left."""

    @abstractmethod
    def _drawn_labels(self, generator: np.random.Generator, records: int) -> NDArray[Any]:
        """Draw labels of records that stand for others, independently of the data."""

    @abstractmethod
    def _quality_in_words(self, X: Any, y: Any) -> list[str]:
        """Return what a report says of the predictions on some records; nothing if there are none."""

    def _begin(self, learner: Any) -> None:
        """Start anew with what was planned."""
        self._learner = learner
        self.removals_: list[Removal] = []
        self._noise_source: NoiseSource = "system entropy" if self.random_state is None else "seed"

    def _learn_from(self, X: NDArray[Any], labels: NDArray[Any]) -> None:
        """Learn from records, and keep them as rows."""
        rows = self._rows(X)
        self._warn_if_a_column_drowns(X)
        self._learn(*self._tensors(rows, labels))
        self.remaining_ = np.arange(len(rows))
        self._keep(rows, labels)

    @property
    def _fitted_records(self) -> int:
        return self._learner.n  # type: ignore[no-any-return]

    def _remove(self, indices: Any) -> bool:
        with self._all_or_nothing():
            return self._copy_without(indices)

    def _copy_without(self, indices: Any) -> bool:
        places = self._places(indices)
        rows, labels, removed = self._training_rows, self._training_labels, self.remaining_[places]
        if self._learner.adjacency == "replace":
            rows, labels = rows.copy(), labels.copy()
            rows[removed], labels[removed] = self._replacements(len(places))
        else:
            rows, labels = np.delete(rows, places, axis=0), np.delete(labels, places)
        self._unlearn(*self._tensors(rows, labels), records=len(places))
        self.remaining_ = np.delete(self.remaining_, places)
        self._keep(rows, labels)
        self._frame_index = self._index_without(removed)
        if self.random_state is not None:
            self._noise_source = "seed"  # It may have been set after `fit`.
        return self._has_an_empty_class()

    @property
    def certificate_(self) -> StepsCertificate:
        """Certificate of the model as it is now; `certificate.write` makes a file for ``unlearn verify``."""
        self._require_fitted()
        run = self._learner.run(self.removals_, dataset="own", features="given", data_digest=self._data_digest)
        return certificate.of(
            run,
            key=self._learner.run_key(self.removals_, self._data_digest),
            noise_source=self._noise_source,
            all_published=self._learner.all_published_is_known,
            schedule=self._learner.schedule(self.removals_),
        )

    def privacy_report(self, X: Any = None, y: Any = None) -> str:
        """Return in words what is guaranteed, compared with what, and what was not checked.

        Args:
            X: Records to measure the predictions on, whose numbers no guarantee covers. None: nothing is measured.
            y: Their true classes or targets.
        """
        said = report.in_words(self.certificate_, self._learner, self.removals_)
        return "\n".join([said, *self._scaling_in_words(), *self._quality_in_words(X, y)])

    def save(self, path: str | Path, *, training_data: bool = True) -> None:
        """Write the estimator as one safetensors file, its parameters as JSON in the header. No pickle.

        Files of earlier states still hold what was removed since: delete them.

        Args:
            path: The file.
            training_data: Whether everything goes along that the loaded estimator needs to unlearn: the training
                records that are left, which they are, their labels in a data frame's index, a secret state, the seed.
                Without, it can predict and show its certificate: the file to hand out.

        Raises:
            ParameterError: ``random_state`` is a generator, which JSON cannot hold.
            StorageError: The file cannot be written.
        """
        self._require_fitted()
        header = {
            **self._described(),
            "parameters": self._parameters(secrets_too=training_data),
            "learner": self._learner.model_dump(mode="json"),
            "removals": self.removals_,
            "data_digest": self._data_digest,
            "noise_source": self._noise_source,
        }
        arrays = {"_weights": self._weights}
        if training_data:
            index, labels = self._described_index()
            header |= index
            arrays |= labels | {name: getattr(self, name) for name in self._NEEDED_TO_UNLEARN}
        storage.write(path, header, arrays)

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        self._learner = self._read_learner(header["learner"])
        self.removals_ = [Removal.read(*removal) for removal in header["removals"]]
        self._known_digest: str | None = header["data_digest"]
        self._noise_source = header["noise_source"]
        self._weights = arrays["_weights"]
        for name in self._NEEDED_TO_UNLEARN:
            setattr(self, name, arrays.get(name))

    def _keep(self, rows: NDArray[Any], labels: NDArray[np.int64]) -> None:
        self._training_rows, self._training_labels = rows, labels
        self._known_digest = None

    @property
    def _dtype(self) -> str:
        return self._learner.dtype  # type: ignore[no-any-return]

    @property
    def _data_digest(self) -> str:
        """A name of the records that are left, drawn at random.

        A digest would let anyone who has the other records guess a removed one and check the guess; a digest by a key
        that nobody has tells as little as this, and reads every record.
        """
        if self._known_digest is None:
            self._known_digest = secrets.token_hex(32)
        return self._known_digest

    def _replacements(self, records: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Draw records independently of the data: features from N(0, I) scaled to norm 1, and labels."""
        generator = randomness.generator(str(self._noise_key()), "replacements", len(self.remaining_))
        features = unit(generator.standard_normal((records, self.n_features_in_)))
        labels = self._drawn_labels(generator, records)
        # As the model sees features: ranges would clip these to one corner.
        rows = self._rows(features) if self._scaling() is None else self._with_intercept(features)
        return rows, labels

    def _tensors(self, rows: NDArray[Any], labels: NDArray[Any]) -> tuple[torch.Tensor, torch.Tensor]:
        device = pick_device(self.device)
        tensor = torch.as_tensor(rows, device=device)
        dtype = tensor.dtype if self._learner.classes <= 2 else torch.int64
        return tensor, torch.as_tensor(labels, device=device, dtype=dtype)

    def _places(self, indices: Any) -> NDArray[np.int64]:
        """Return where in ``remaining_`` the records are that were at these positions of the fitted ``X``."""
        wanted = distinct(indices, self._learner.n)
        places = np.searchsorted(self.remaining_, wanted)
        gone = np.append(self.remaining_, -1)[places] != wanted
        require_removable(wanted, gone, left=len(self.remaining_))
        return places

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learner")


class LangevinModel(UnlearningModel):
    """A linear model that learns and unlearns by Langevin unlearning's noisy steps."""

    def _learn(self, rows: torch.Tensor, labels: torch.Tensor) -> None:
        progress = shown_progress("fit", self._learner.learning_steps)
        self._weights = self._learner.learn(rows, labels, [self._noise_key()], progress=progress).cpu().numpy()

    def _unlearn(self, rows: torch.Tensor, labels: torch.Tensor, records: int) -> None:
        removal = self._learner.plan_removal(self.removals_, records)
        history = [*self.removals_, removal]
        self._weights, self.removals_ = self._after_steps(rows, labels, history), history

    def _after_steps(self, rows: torch.Tensor, labels: torch.Tensor, history: list[Removal]) -> NDArray[Any]:
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


def shown_progress(name: str, steps: int) -> Progress | None:
    """Return what prints how far a long run is: on a terminal only, for searches fit hundreds of models."""
    return Progress(name, steps) if sys.stderr.isatty() else None
