"""The model in a directory: the part that never changes, and each version's weights, secret and certificate."""

import hmac
import json
import math
from typing import TYPE_CHECKING, Any, Literal, Union

import numpy as np
import safetensors.numpy
from pydantic import BaseModel, ConfigDict, Field

from certified_unlearning.accounting.core.losses import scores_per_record
from certified_unlearning.certificate import Certificate
from certified_unlearning.data.tables.declaration import CLASSES_FROM_RECORDS, DECLARED, Table, Text
from certified_unlearning.errors import DataError, LedgerError
from certified_unlearning.files import atomic_path, read_model
from certified_unlearning.ledger.directory import ModelDirectory, file_sha256, read_key
from certified_unlearning.ledger.mechanisms import MECHANISMS
from certified_unlearning.ledger.method import LedgerPlan, Method, Outcome, Secret
from certified_unlearning.ledger.state import State, Version
from certified_unlearning.ledger.weights import read_weights
from certified_unlearning.vocabulary import ClassesFrom

__all__ = [
    "Learner",
    "StoredModel",
    "method_of",
    "read_secret",
    "read_stored",
    "read_weights",
    "stated_by",
    "with_intercept",
    "write_version",
]

REPEATED = ("epsilon", "delta", "extra_delta", "epsilon_all_published")
"""Numbers of a certificate that the ledger records, too."""
if TYPE_CHECKING:
    Learner = LedgerPlan
else:
    Learner = Union[tuple(plan for each in MECHANISMS.values() for plan in each.method().plans)]  # noqa: UP007


class StoredModel(BaseModel):
    """The content of `model.json`, which is fixed when the directory is made.

    Attributes:
        format: Format of the directory.
        dataset: The name of the data in certificates.
        table: The declaration by which a table became rows, labels and identifiers. The declaration contains the names
            of columns and classes.
        intercept: Whether the model has an intercept: rows ``x`` became ``(x, 1) / sqrt(2)``.
        learner: The plan of the mechanism.
        device: The device on which noisy steps are computed: auto, cpu or cuda.
        classes_from: The origin of the table's list of classes; None if an earlier `init` did not record it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1]
    dataset: str
    table: Table
    intercept: bool
    learner: Learner
    device: Literal["auto", "cpu", "cuda"]
    classes_from: ClassesFrom | None = Field(default=None, exclude_if=lambda origin: origin is None)

    @property
    def features(self) -> str:
        """The name of the features in certificates."""
        return CLASSES_FROM_RECORDS if self.classes_from == "records" else DECLARED

    @property
    def hashed(self) -> tuple[Text, ...]:
        """The settings with which columns of text were converted to numbers, in the order of the columns in a row."""
        return tuple(self.table.text[column] for column in self.table.features or () if column in self.table.text)


def with_intercept(rows: Any) -> Any:
    """Return rows ``(x, 1) / sqrt(2)``, float32, sparse or not. Their norm is at most 1 if the norm of ``x`` is."""
    if not isinstance(rows, np.ndarray):
        from certified_unlearning.engine.objectives import sparse  # Not at the top: dense rows do without SciPy.

        return sparse.with_constant(rows, factor=math.sqrt(0.5), constant=math.sqrt(0.5)).astype(np.float32)
    one = np.ones((len(rows), 1), np.float32)
    return np.hstack([rows, one]) * np.float32(math.sqrt(0.5))


def read_stored(directory: ModelDirectory, state: State) -> StoredModel:
    """Read `model.json`.

    Raises:
        DataError: The file cannot be read.
        LedgerError: The file differs from what the log records about it.
    """
    if file_sha256(directory.model) != state.start.model_sha256:
        raise LedgerError(f"{directory.model} was tampered with: it is not what `unlearn init` recorded")
    return read_model(directory.model, StoredModel, "a model")


def write_version(
    directory: ModelDirectory, model: StoredModel, version: int, outcome: Outcome, certified: Certificate
) -> dict[str, Any]:
    """Write a version's weights, its secret if it has one, and its certificate. Return the entries for the ledger.

    Args:
        directory: The model directory.
        model: The part of the model that never changes.
        version: The version's number.
        outcome: The version's weights and secret.
        certified: The version's certificate.
    """
    by_score = outcome.weights.reshape(scores_per_record(model.learner.classes), -1)
    with atomic_path(directory.weights(version)) as temporary:
        safetensors.numpy.save_file({"weights": by_score}, temporary, {"version": str(version)})
    certified.write(directory.certificate(version))
    recorded: dict[str, Any] = {
        "version": version,
        "weights_sha256": file_sha256(directory.weights(version)),
        "certificate_sha256": file_sha256(directory.certificate(version)),
        **stated_by(certified),
    }
    if outcome.secret is not None:
        header = {"secret": json.dumps(outcome.secret.header)}
        # safetensors writes an array's memory without regard to the order of its axes.
        arrays = {name: np.ascontiguousarray(array) for name, array in outcome.secret.arrays.items()}
        content = safetensors.numpy.save(arrays, header)
        with atomic_path(directory.secret(version)) as temporary:
            # Only the owner may read the secret, even if the directory is opened for others to read the weights.
            temporary.touch(mode=0o600)
            temporary.write_bytes(content)
        recorded |= {"secret_digest": _digest_of_secret(directory, version, content)}
    if outcome.reading is not None:
        recorded |= {"reading": outcome.reading}
    return recorded


def stated_by(certified: Certificate) -> dict[str, Any]:
    """Return the numbers of a certificate that the ledger records, too."""
    numbers = certified.stated()
    repeated = {name: getattr(numbers, name) for name in REPEATED}
    return {"kind": certified.kind} | {name: None if each is None else float(each) for name, each in repeated.items()}


def read_secret(directory: ModelDirectory, version: Version) -> Secret | None:
    """Read a version's secret; return None if it has none.

    Raises:
        DataError: The file cannot be read.
        LedgerError: The file differs from what the log records about it.
    """
    if version.secret_digest is None:
        return None
    path = directory.secret(version.version)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    if not hmac.compare_digest(_digest_of_secret(directory, version.version, content), version.secret_digest):
        raise LedgerError(f"{path} was tampered with: it is not the secret state that the ledger recorded")
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])["__metadata__"]["secret"]
    return Secret(safetensors.numpy.load(content), json.loads(header))


def _digest_of_secret(directory: ModelDirectory, version: int, content: bytes) -> str:
    """Return a digest that reveals nothing once its key is destroyed.

    A digest without a key could be used to test guesses of the secret.
    """
    return hmac.digest(read_key(directory.digest_key(version)), content, "sha256").hex()


def method_of(directory: ModelDirectory, model: StoredModel) -> Method[Any]:
    """Return the method by which a directory's model learns and unlearns."""
    method = MECHANISMS[model.learner.mechanism].method()
    return method(directory, model.learner, model.dataset, model.features, model.hashed)
