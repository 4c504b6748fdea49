"""Predictions with the current version of a directory's model."""

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse, vstack

from certified_unlearning.data.advice.thresholds import Criterion, Threshold
from certified_unlearning.data.quality import Quality, Tally, TargetQuality, target_quality_of
from certified_unlearning.data.tables.declaration import text_of
from certified_unlearning.data.tables.table import Records, count_features, feature_names, read_records
from certified_unlearning.data.tables.targets import TargetScale
from certified_unlearning.errors import DataError, LedgerError, ParameterError
from certified_unlearning.ledger.copies.reading import CopiedModel, is_copy, read_copy
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.log.setting import require_present
from certified_unlearning.ledger.model import (
    StoredModel,
    method_of,
    read_secret,
    read_stored,
    read_weights,
    with_intercept,
)
from certified_unlearning.ledger.state import Version, read_state
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.weights import log_probabilities, predicted, scores_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from certified_unlearning.mechanisms.certified_sgd.ensemble import CertifiedShards


@dataclass(frozen=True)
class AnswersQuality:
    """Quality of an ensemble's answers. Some records may have no answer.

    Attributes:
        records: The number of records.
        answered: The number of records with an answer.
        right: The number of right answers.
        most: The number of answered records in the class that is most frequent among answered records.
    """

    records: int
    answered: int
    right: int
    most: int

    comparable: ClassVar[None] = None
    """Always None, because the quality of secret parameters is not shown."""
    finds_all_classes: ClassVar[bool] = False
    """Always False, because an ensemble has no class weights that could trade accuracy for recall."""
    lines_by_class: ClassVar[tuple[str, ...]] = ()
    """Always empty: there are no numbers for single classes."""

    @property
    def numbers(self) -> dict[str, Any]:
        """The number of records, the number of answers, and the share of answers that are right."""
        return {"records": self.records, "answered": self.answered, "accuracy_of_answers": self._accuracy}

    @property
    def line(self) -> str:
        """The quality in words."""
        share = "" if self._accuracy is None else f", {self._accuracy:.3f} of them right"
        return f"answered: {self.answered:,}{share}; for the others, removals could have changed the label"

    @property
    def fact(self) -> str | None:
        """A warning for the user; None if there is none."""
        if self._accuracy is None or self.right > self.most:
            return None
        return (
            "the model is right no more often than always predicting the most frequent class "
            f"({self._accuracy:.3f} against {self.most / self.answered:.3f} of the answers)"
        )

    @property
    def _accuracy(self) -> float | None:
        return self.right / self.answered if self.answered else None


class LoadedModel:
    """A version of a model, in memory.

    Load the model again after the next `apply`, because a version in memory still has the removed records' influence.

    Attributes:
        version: The version of the model.
        table: The recorded rules by which a table becomes rows.
        classes: The names of the classes; empty if numbers are predicted.
        weights: Weights, shape ``(1, features)`` or ``(classes, features)``, with the intercept last if there is one.
    """

    def __init__(self, model: StoredModel | CopiedModel, version: int, weights: NDArray[Any]) -> None:
        self.version = version
        self.table = model.table
        self.classes = np.array(model.table.classes or ())
        self.weights = weights
        self._has_intercept = model.intercept

    @functools.cached_property
    def feature_names(self) -> list[str]:
        """The names of a row's features, in order: ``age``, ``colour=red``, or ``comment#17``."""
        return feature_names(self.table)

    def read(self, source: "str | Path | pa.Table | pd.DataFrame", *, labelled: bool = False) -> Iterator[Records]:
        """Read a table with the columns from which the model was made, a few thousand rows at a time.

        Columns may be in any order, and additional columns are ignored. The label (unless it is required) and the
        identifier may be absent.

        Args:
            source: A CSV or Parquet file, or a table in memory.
            labelled: Whether the label is required; otherwise it is not read.

        Raises:
            DataError: The file cannot be read, a column is missing, or a row has an undeclared value; the
                message names row and column.
        """
        return read_records(self.table, source, labelled=labelled)

    def rows(self, source: "str | Path | pa.Table | pd.DataFrame") -> Any:
        """Return all rows of a table at once, for the methods below; see `read`. Text gives a sparse matrix."""
        blocks = [records.features for records in read_records(self.table, source, identified=False)]
        return vstack(blocks, format="csr") if self.table.text else np.concatenate(blocks)

    def decision_function(self, rows: ArrayLike) -> NDArray[Any]:
        """Return scores, shape ``(n,)`` for two classes and ``(n, classes)`` otherwise.

        With two classes, a score of 0 or more stands for the second class.

        Args:
            rows: Rows, shape ``(n, len(feature_names))``, as `rows` returns them.

        Raises:
            ParameterError: The rows have the wrong number of features.
        """
        return scores_of(self._features(rows), self.weights)

    def _features(self, rows: Any) -> Any:
        features = rows.tocsr().astype(np.float32) if issparse(rows) else np.asarray(rows, np.float32)
        count = count_features(self.table)
        if features.ndim != 2 or features.shape[1] != count:
            raise ParameterError(f"rows must have shape (n, {count}), got {features.shape}")
        return with_intercept(features) if self._has_intercept else features

    def threshold(self, probability: float, positive: object = None) -> Threshold:
        """Return a decision threshold for `predict`.

        Args:
            probability: The least probability at which the class is predicted.
            positive: The class; by default the second one.

        Raises:
            ParameterError: The model has more than two classes, there is no such class, or the probability is not
                strictly between 0 and 1.
        """
        position = self._positive(positive)
        if not 0 < probability < 1:
            raise ParameterError(f"threshold must be strictly between 0 and 1, got {probability}")
        return Threshold(float(probability), position, str(self.classes[position]))

    def choose_threshold(self, criterion: str, blocks: Iterable[Records], positive: object = None) -> Threshold:
        """Choose a decision threshold on labelled records that are not training records of the model.

        A threshold that is chosen on training records would reveal something about them, even after their removal. A
        threshold also reveals how this version of the model behaves, so choose it anew after every `apply`.

        Args:
            criterion: ``balanced`` (the largest balanced accuracy), ``f1`` (the largest F1), ``recall=0.8`` (the
                highest threshold with at least that recall) or ``precision=0.5`` (the lowest with that precision).
            blocks: The records, as `read` yields them with ``labelled=True``.
            positive: The class to which recall, precision and F1 refer; by default the second one.

        Raises:
            ParameterError: There is no such criterion, the model has more than two classes, or there is no such
                class.
            DataError: All records are of one class, or no threshold has the requested precision.
        """
        position, chosen_by = self._positive(positive), Criterion.read(criterion)
        probabilities, members = [np.empty(0)], [np.empty(0, np.bool_)]
        for block in blocks:
            assert block.labels is not None
            probabilities.append(self.predict_proba(block.features)[:, position])
            members.append(block.labels == position)
        found = chosen_by.choose(np.concatenate(probabilities), np.concatenate(members))
        return Threshold(found, position, str(self.classes[position]))

    def _positive(self, name: object) -> int:
        """Return the number of the class to which a threshold refers."""
        known = ", ".join(map(repr, self.classes.tolist()))
        if len(self.classes) != 2:
            raise ParameterError(f"a threshold is for two classes, but the model has {len(self.classes)}: {known}")
        places = [1] if name is None else np.flatnonzero(self.classes == str(text_of(name))).tolist()  # type: ignore[arg-type]
        if not places:
            raise ParameterError(f"positive is {name!r}, which is none of the classes {known}")
        return int(places[0])

    def predict(self, rows: ArrayLike, threshold: Threshold | None = None) -> NDArray[Any]:
        """Return the name of each row's class, shape ``(n,)``.

        Args:
            rows: See `decision_function`.
            threshold: The least probability at which one of two classes is predicted; by default one half.
        """
        return np.asarray(self.classes[self._predicted(self.decision_function(rows), threshold)])

    def _predicted(self, scores: NDArray[Any], threshold: Threshold | None) -> NDArray[np.int64]:
        return predicted(scores) if threshold is None else threshold.predicted(np.exp(log_probabilities(scores)))

    def predict_log_proba(self, rows: ArrayLike) -> NDArray[np.float64]:
        """Return the logarithms of `predict_proba`."""
        return log_probabilities(self.decision_function(rows))

    def predict_proba(self, rows: ArrayLike) -> NDArray[np.float64]:
        """Return each class's probability under the model, shape ``(n, len(classes))``."""
        return np.exp(self.predict_log_proba(rows))

    def score(self, rows: ArrayLike, labels: ArrayLike) -> float:
        """Return the accuracy: the share of the rows whose class is predicted correctly.

        Args:
            rows: See `decision_function`.
            labels: The name of each row's class, shape ``(n,)``; 1 and 1.0 are read as ``"1"``, as in a table.

        Raises:
            DataError: There are no rows.
            ParameterError: A label is not one of the classes, or there are not as many labels as rows.
        """
        given = np.array([str(text_of(label)) for label in np.asarray(labels, object).ravel().tolist()], object)
        found = self.predict(rows)
        if len(given) != len(found):
            raise ParameterError(f"there must be a label for each of the {len(found)} rows, got {len(given)}")
        if not len(found):
            raise DataError("there are no rows to predict")
        unknown = next((label for label in given if label not in self.classes), None)
        if unknown is not None:
            known = ", ".join(map(repr, self.classes.tolist()))
            raise ParameterError(f"labels contain {unknown!r}, which is none of the classes {known}")
        return float((found == given).mean())

    def judged(
        self, blocks: Iterable[Records], threshold: Threshold | None = None
    ) -> "Quality | AnswersQuality | TargetQuality":
        """Return the quality of predictions on labelled records, with a threshold or without one."""
        tally = Tally(len(self.classes), self.classes.tolist())
        for block in blocks:
            assert block.labels is not None
            scores = self.decision_function(block.features)
            tally.add(np.exp(log_probabilities(scores)), block.labels, self._predicted(scores, threshold))
        return tally.quality()

    def answers(self, rows: ArrayLike, threshold: Threshold | None = None) -> dict[str, NDArray[Any]]:
        """Return columns of a table with one line for each row: the prediction and each class's probability."""
        probabilities = self.predict_proba(rows)
        by_class = {f"probability_{name}": probabilities[:, place] for place, name in enumerate(self.classes)}
        return {"prediction": self.predict(rows, threshold), **by_class}


class LoadedRegression(LoadedModel):
    """A version of a model that predicts numbers, in the unit of its label."""

    def __init__(self, model: StoredModel | CopiedModel, version: int, weights: NDArray[Any]) -> None:
        super().__init__(model, version, weights)
        self._scale = TargetScale.of(model.table.target_range, "target_range", intercept=model.intercept)

    def decision_function(self, rows: ArrayLike) -> NDArray[Any]:
        """Raise an error, because a model that predicts numbers has no class scores.

        Raises:
            ParameterError: In all cases.
        """
        raise ParameterError("this model predicts numbers and has no classes; use `predict`")

    def _positive(self, name: object) -> int:
        raise ParameterError("this model predicts numbers, but a threshold needs two classes")

    def predict(self, rows: ArrayLike, threshold: Threshold | None = None) -> NDArray[Any]:
        """Return the prediction of each row, shape ``(n,)``, in the unit of the label; the threshold is not used."""
        return self._scale.in_units(scores_of(self._features(rows), self.weights))

    def score(self, rows: ArrayLike, labels: ArrayLike) -> float:
        """Return R^2: the share of the targets' variance that is explained.

        Args:
            rows: Rows, as `rows` returns them.
            labels: The targets, shape ``(n,)``.

        Raises:
            DataError: There are no rows, or all targets are the same.
            ParameterError: A target is not a number, or there are not as many targets as rows.
        """
        try:
            targets = np.asarray(labels, np.float64).ravel()
        except (TypeError, ValueError) as error:
            raise ParameterError(f"labels must be numbers: {error}") from error
        found = target_quality_of(self.predict(rows), targets)
        if found.r2 is None:
            raise DataError("all targets are the same, so there is no R^2")
        return found.r2

    def answers(self, rows: ArrayLike, threshold: Threshold | None = None) -> dict[str, NDArray[Any]]:
        """Return a table's column with the prediction of each row."""
        return {"prediction": self.predict(rows)}

    def judged(self, blocks: Iterable[Records], threshold: Threshold | None = None) -> TargetQuality:
        """Return the quality of predictions on records with targets."""
        found = [(self.predict(block.features), block.labels) for block in blocks]
        predictions, targets = (np.concatenate(each) for each in zip(*found, strict=True))
        return target_quality_of(predictions, targets)


class LoadedEnsemble(LoadedModel):
    """A version of an ensemble whose answers are certified. An answer is a label, or none.

    The ensemble holds parameters that depend on removed records, so it must stay as secret as the directory.
    """

    def __init__(self, model: StoredModel, version: int, shards: "CertifiedShards") -> None:
        super().__init__(model, version, np.zeros((0, 0)))
        self._shards = shards

    def decision_function(self, rows: ArrayLike) -> NDArray[Any]:
        """Raise an error, because no certificate covers scores or probabilities.

        Raises:
            ParameterError: In all cases.
        """
        raise ParameterError("this model gives only labels: no certificate covers its scores or probabilities")

    def _positive(self, name: object) -> int:
        raise ParameterError("this model gives only labels, but a threshold needs probabilities")

    def predict(self, rows: ArrayLike, threshold: Threshold | None = None) -> NDArray[Any]:
        """Return the name of each row's class, shape ``(n,)``; None if removals could have changed the prediction."""
        return np.asarray(self.answers(rows)["prediction"])

    def answers(self, rows: ArrayLike, threshold: Threshold | None = None) -> dict[str, NDArray[Any]]:
        """Return columns of a table: each row's prediction or None, and the number of abstaining shards."""
        import torch  # Not at the top: linear models need no PyTorch.

        found = self._shards.votes(torch.from_numpy(self._features(rows).astype(np.float64)))
        labels = found.labels.numpy()
        named = np.array([*self.classes.tolist(), None], object)
        return {"prediction": named[labels], "abstaining": found.abstaining.numpy()}

    def judged(self, blocks: Iterable[Records], threshold: Threshold | None = None) -> "AnswersQuality":
        """Return how many labelled records have an answer, and how many of these answers are right."""
        records = right = 0
        by_class = np.zeros(len(self.classes), np.int64)
        for block in blocks:
            assert block.labels is not None
            found, known = self.predict(block.features), self.classes[block.labels]
            records, right = records + len(found), right + int((found == known).sum())
            by_class += np.bincount(block.labels[found != None], minlength=len(by_class))  # noqa: E711
        return AnswersQuality(records, int(by_class.sum()), right, int(by_class.max()))


def load_model(path: str | Path) -> LoadedModel:
    """Load the current version of a model, or a copy of a version that `unlearn export` or `unlearn track` made.

    A copy does not show whether records were removed since it was made; `unlearn status` of the model directory does.

    Args:
        path: The model directory, or the directory of a copy, such as one that was fetched from MLflow.

    Raises:
        DataError: There is no model, or a file cannot be read.
        LedgerError: A file differs from what the log records about it. Or the directory was restored from a backup, and
            the second copy of its log has a newer version.
    """
    directory = ModelDirectory(Path(path))
    if is_copy(directory.path):
        copied, weights = read_copy(directory.path)
        return _with_weights(copied, copied.version, weights)
    with Ledger.opened(directory.ledger, read_only=True) as ledger:
        require_present(ledger, version=True)
        state = read_state(ledger)
        model = read_stored(directory, state)
        while True:
            current = state.current
            try:
                return _loaded(directory, model, current)
            except (DataError, LedgerError):
                # Meanwhile, an `apply` may have replaced the files, and has then recorded the new ones.
                state = read_state(ledger)
                if state.current == current:
                    raise


def _loaded(directory: ModelDirectory, model: StoredModel, version: Version) -> LoadedModel:
    """Return a version, loaded into memory."""
    weights, method = read_weights(directory, version), method_of(directory, model)
    if weights.size:
        return _with_weights(model, version.version, weights)
    return LoadedEnsemble(model, version.version, method.shards(read_secret(directory, version)))


def _with_weights(model: StoredModel | CopiedModel, version: int, weights: NDArray[Any]) -> LoadedModel:
    kind = LoadedRegression if model.table.is_regression else LoadedModel
    return kind(model, version, weights)
