"""After `apply` nothing in the directory tells a removed record's features: not in any file, free page or log."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from certified_unlearning.errors import UnlearningError
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.store import Ledger
from tests.ledger.conftest import Original
from tests.ledger.tables import FEATURES

REMOVED = ["p3", "p4", "p150"]


def traces(original: Original, people: list[str]) -> Iterator[bytes]:
    """Yield every way in which a feature of these people could lie in a file: raw and as a row, binary and as text."""
    raw = original.table.loc[original.table["person"].isin(people), list(FEATURES)].to_numpy()
    rows = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    for values in (raw, rows, rows * math.sqrt(0.5)):
        for value in values.ravel():
            yield from (np.float32(value).tobytes(), np.float64(value).tobytes(), f"{abs(value):.6f}".encode())


def found(model: Path, needles: Iterator[bytes]) -> set[str]:
    """Return the names of the files that contain one of the needles."""
    contents = {path.name: path.read_bytes() for path in model.rglob("*") if path.is_file()}
    return {name for needle in needles for name, content in contents.items() if needle in content}


def test_before_apply_the_training_copy_alone_has_the_features(original: Original, model: Path) -> None:
    requests.request(model, REMOVED)
    assert found(model, traces(original, REMOVED)) == {"features.float32"}


def test_after_apply_no_file_has_a_feature_of_a_removed_record(original: Original, model: Path) -> None:
    requests.request(model, REMOVED)
    # An open connection keeps SQLite from tidying up its side files.
    with Ledger.opened(ModelDirectory(model).ledger, read_only=True):
        apply(model)
        assert (model / "ledger.sqlite-wal").exists()
        assert found(model, traces(original, REMOVED)) == set()
    assert found(model, traces(original, ["p5"])) == {"features.float32"}


def test_without_zeroing_the_search_finds_the_features_and_apply_publishes_nothing(
    original: Original, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests.request(model, REMOVED)
    monkeypatch.setattr("certified_unlearning.ledger.training.dense.DenseCopy._zero", lambda *args: None)
    with pytest.raises(UnlearningError, match="does not contain what was written to it; nothing was published"):
        apply(model)
    assert found(model, traces(original, REMOVED)) == {"features.float32"}
    assert len(requests.status(model).state.versions) == 1


def test_old_weights_and_the_old_key_are_gone(model: Path) -> None:
    directory = ModelDirectory(model)
    weights = directory.weights(1).read_bytes()
    secrets = [weights[-16:], directory.digest_key(1).read_bytes()]
    assert found(model, iter(secrets)) == {"weights-1.safetensors", "digest-key-1"}
    requests.request(model, REMOVED)
    apply(model)
    assert found(model, iter(secrets)) == set()
    assert not directory.weights(1).exists()
    assert not directory.digest_key(1).exists()
    assert directory.weights(2).read_bytes()[-16:] != weights[-16:]


def test_old_weights_are_overwritten_before_they_are_unlinked(model: Path, tmp_path: Path) -> None:
    directory = ModelDirectory(model)
    for path in (directory.weights(1), directory.digest_key(1)):
        (tmp_path / path.name).hardlink_to(path)
    requests.request(model, REMOVED)
    apply(model)
    for path in (directory.weights(1), directory.digest_key(1)):
        assert set((tmp_path / path.name).read_bytes()) == {0}


def test_who_had_which_row_is_forgotten(model: Path) -> None:
    requests.request(model, REMOVED)
    apply(model)
    with Ledger.opened(ModelDirectory(model).ledger) as ledger:
        removed = [ledger.names.stored(each) for each in REMOVED]
        assert not {name for name, _, _ in ledger.owners.records()} & set(removed)
        assert all(ledger.owners.count_records_of(each) == 0 for each in REMOVED)
    content = (model / "ledger.sqlite").read_bytes()
    assert b"p150" not in content
    # The request, its place in the index, and the digest of the spelling, which refuses somebody who comes back.
    assert content.count(removed[-1].encode()) == 3


def test_digests_of_the_same_data_differ_from_directory_to_directory(original: Original, tmp_path: Path) -> None:
    from tests.ledger.tables import make_model

    # Unkeyed, a digest of the data before a removal would let everybody check a guess of what was removed.
    starts = [make_model(tmp_path / name, original.data).state.start for name in ("one", "other")]
    for name in ("training_digest", "source_digest"):
        digests = {getattr(start, name) for start in starts}
        assert len(digests) == 2


def test_leftovers_of_a_crash_are_deleted_by_the_next_apply_even_with_nothing_pending(model: Path) -> None:
    side_files = {"ledger.sqlite-wal", "ledger.sqlite-shm"}
    whole = {path.name for path in model.iterdir()} - side_files
    for name in (".123.weights-2.safetensors", "weights-2.safetensors", ".99.digest-key-2", "certificate-2.json"):
        (model / name).write_bytes(b"secret")
    assert len(apply(model).deleted) == 4
    assert {path.name for path in model.iterdir()} - side_files == whole
