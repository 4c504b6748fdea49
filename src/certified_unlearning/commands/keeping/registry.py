"""`unlearn track MODEL_DIR`: the current version of a ledger's model becomes a version in MLflow's registry."""

import math
import os
from pathlib import Path

from certified_unlearning.commands.ledger.words import guarantee_as_json, guarantee_in_words
from certified_unlearning.commands.output import after, interruptible
from certified_unlearning.errors import ParameterError
from certified_unlearning.ledger.copies.exports import Registered
from certified_unlearning.ledger.copies.registry import Publication, publication
from certified_unlearning.ledger.directory import shell_command
from certified_unlearning.reproduction.tracking.models import ALIAS, Entry, RegisteredModel


def track_model(model_dir: Path, name: str | None, delete_old: bool) -> None:
    """Bring the registered model in line with the ledger: record, send, move the alias, mark or delete old versions.

    Args:
        model_dir: Path of the model directory.
        name: The registered model's name; None means the directory's name.
        delete_old: Whether all other registered versions are deleted, together with their files.

    Raises:
        ParameterError: The weights are secret, MLflow does not accept the name, or MLFLOW_TRACKING_URI is not set.
        DataError: The model directory cannot be read, or is behind its log.
        LedgerError: A file differs from what the log records about it.
        TrackingError: MLflow does not answer, or its model of this name belongs to another ledger.
        StorageError: The ledger cannot be written, or another command is using it.
    """
    uri = os.environ.get("MLFLOW_TRACKING_URI")
    if not uri:
        # MLflow's default is a file in the working directory. It would serve nobody, and nobody would notice.
        raise ParameterError(
            "MLFLOW_TRACKING_URI is not set: it must be the address of an MLflow server or database, such as "
            "http://tracking.example:5000 or sqlite:///mlflow.db"
        )
    with (
        interruptible(lambda: f"`{shell_command('track', model_dir)}` finishes the work"),
        publication(model_dir) as published,
    ):
        registered = RegisteredModel(
            model_dir.resolve().name if name is None else name, published.owner, uri, published.scratch
        )
        version, place = published.version.version, Registered(registered.address, registered.name)
        registered.require_own(version, published.version.weights_sha256, published.lost)
        # As in `export`, the copy is recorded before it is sent: no copy may exist that the ledger does not know.
        head = published.record(place)
        put = registered.put(_entry(published, model_dir.resolve().name, head))
        marked = registered.mark(published.is_outdated)
        done = [
            f"version {version} is version {put.number} of the registered model {place.model} in MLflow "
            f"({place.address}), and the alias `{ALIAS}` points to it"
            + ("" if put.changed else "; no change was needed")
        ]
        if delete_old:
            deleted = registered.delete_others(version, published.version.weights_sha256, published.files)
            head = published.withdraw_others(place)
            if deleted:
                done.append(
                    f"deleted with {'its' if len(deleted) == 1 else 'their'} files: {_listed(deleted)}; "
                    "`mlflow gc` removes the rest of their runs from MLflow"
                )
        elif marked:
            done.append(f"marked as outdated: {_listed(marked)}; --delete-old deletes older versions")
        with after(f"{done[0]} (head: {head})"):
            print("\n".join(done))
            print(f"head: {head}")


def _listed(versions: list[int]) -> str:
    """Return version numbers as words for a message."""
    shown = ", ".join(map(str, versions[:10]))
    more = "" if len(versions) <= 10 else f" and {len(versions) - 10:,} more"
    return f"version {shown}{more}" if len(versions) == 1 else f"versions {shown}{more}"


def _entry(published: Publication, model: str, head: str) -> Entry:
    """Return the entry that MLflow shows for a version. It has the certificate's numbers, not the model's quality."""
    version, certified = published.version, published.certificate
    guaranteed = guarantee_as_json(version) or {}
    numbers = {
        "epsilon": guaranteed.get("epsilon"),
        "delta": guaranteed.get("delta"),
        "epsilon_all_versions": guaranteed.get("epsilon_all_versions"),
        "right_guesses": certified.right_guesses() if guaranteed else None,
    }
    known = {key: float(value) for key, value in numbers.items() if value is not None}
    said = [f"Version {version.version} of the model {model}.", certified.meaning() if guaranteed else None]
    return Entry(
        version=version.version,
        weights_sha256=version.weights_sha256,
        files=published.files,
        tags={key: repr(value) for key, value in known.items()} | {"kind": certified.kind, "head": head},
        metrics={key: value for key, value in known.items() if math.isfinite(value)},
        description=" ".join(filter(None, [*said, f"Guarantee: {guarantee_in_words(version)}."])),
    )
