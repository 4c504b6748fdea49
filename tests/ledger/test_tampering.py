"""Every tampering with a model directory is found, in one sentence, and nothing is applied on top of it."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from certified_unlearning.errors import UnlearningError
from certified_unlearning.files import content_key
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.identifiers.names import pseudonym
from certified_unlearning.ledger.log.file import GENESIS
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.training.forms import copy_of
from certified_unlearning.ledger.verification import verify


@pytest.fixture
def used(model: Path) -> Path:
    """A model directory with one batch applied and two requests pending."""
    requests.request(model, ["p3", "p4"])
    apply(model)
    requests.request(model, ["p5"])
    requests.request(model, ["p6"])
    return model


def sql(model: Path, *statements: str) -> None:
    """Edit the ledger as somebody could who drops its triggers first."""
    connection = sqlite3.connect(ModelDirectory(model).ledger)
    connection.executescript("DROP TRIGGER events_are_not_edited; DROP TRIGGER events_are_not_deleted;")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def name_of(model: Path, identifier: str) -> str:
    """The name under which a person stands in the ledger."""
    return pseudonym(ModelDirectory(model).identifier_key.read_bytes(), identifier)


def make_chain_again(model: Path) -> None:
    """Recompute all hashes."""
    connection = sqlite3.connect(ModelDirectory(model).ledger)
    previous = GENESIS
    for row in connection.execute("SELECT * FROM events ORDER BY sequence").fetchall():
        entry = (*row[:5], previous)
        previous = content_key(entry)
        connection.execute(
            "UPDATE events SET previous_hash = ?, hash = ? WHERE sequence = ?", (entry[5], previous, row[0])
        )
    connection.commit()
    connection.close()


def chain_head(model: Path) -> str:
    """The hash of the last event, which earlier versions printed."""
    connection = sqlite3.connect(ModelDirectory(model).ledger)
    (found,) = connection.execute("SELECT hash FROM events ORDER BY sequence DESC LIMIT 1").fetchone()
    connection.close()
    return str(found)


def flip(path: Path, offset: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


def edit_certificate(model: Path) -> None:
    path = ModelDirectory(model).certificate(2)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"epsilon": 0.1}))


def restate_learner(model: Path) -> None:
    path = ModelDirectory(model).model
    path.write_text(path.read_text().replace('"epsilon": 1.0', '"epsilon": 2.0'))


EDIT = "UPDATE events SET {} WHERE sequence = 3"
TAMPERINGS: dict[str, tuple[Callable[[Path], object], str]] = {
    "another subject": (lambda model: sql(model, EDIT.format("subject = 'p9'")), "event 3 is not what was recorded"),
    "another time": (lambda model: sql(model, EDIT.format("time = 'today'")), "event 3 is not what was recorded"),
    "another payload": (lambda model: sql(model, EDIT.format("payload = '{\"a\":1}'")), "event 3 is not what"),
    "no payload": (lambda model: sql(model, EDIT.format("payload = ''")), "event 3 is not what was recorded"),
    "event deleted": (lambda model: sql(model, "DELETE FROM events WHERE sequence = 2"), "event 2 is missing"),
    "first event deleted": (lambda model: sql(model, "DELETE FROM events WHERE sequence = 1"), "event 1 is missing"),
    "all events deleted": (lambda model: sql(model, "DELETE FROM events"), "it holds no events"),
    "rows exchanged": (
        lambda model: sql(
            model,
            f"UPDATE records SET identifier = '{name_of(model, 'p7')}' WHERE identifier = '{name_of(model, 'p5')}'",
        ),
        "the owner of a row is not what was recorded",
    ),
    "rows kept back": (
        lambda model: sql(model, f"DELETE FROM records WHERE identifier = '{name_of(model, 'p5')}'"),
        "the owner of a row is not what was recorded",
    ),
    "ledger damaged": (
        lambda model: ModelDirectory(model).ledger.write_bytes(b"nothing" * 1000),
        "is damaged: file",
    ),
    "feature edited": (lambda model: flip(ModelDirectory(model).features), "training copy is not what the ledger rec"),
    "label edited": (lambda model: flip(ModelDirectory(model).labels), "training copy is not what the ledger recorded"),
    "rows added": (lambda model: ModelDirectory(model).features.open("ab").write(bytes(16)), "training copy is not"),
    "learner restated": (restate_learner, "model.json was tampered with: it is not what `unlearn init` recorded"),
    "weights edited": (lambda model: flip(ModelDirectory(model).weights(2)), "it is not the model that the ledger rec"),
    "weights deleted": (lambda model: ModelDirectory(model).weights(2).unlink(), "cannot read .*: No such file"),
    "key deleted": (
        lambda model: ModelDirectory(model).digest_key(2).unlink(),
        "without it the records cannot be checked",
    ),
}
SEEN_BY_VERIFY_ONLY: dict[str, tuple[Callable[[Path], object], str]] = {
    "certificate edited": (edit_certificate, "certificate-2.json was tampered with: it is not the certificate that"),
    "old certificate edited": (lambda model: flip(ModelDirectory(model).certificate(1)), "certificate-1.json was tam"),
    "old weights put back": (
        lambda model: shutil.copy(ModelDirectory(model).weights(2), ModelDirectory(model).weights(1)),
        "an `apply` was interrupted: .*weights-1.safetensors",
    ),
}


@pytest.mark.parametrize("name", TAMPERINGS | SEEN_BY_VERIFY_ONLY)
def test_verify_finds_it(used: Path, name: str) -> None:
    verify(used)
    spoil, sentence = (TAMPERINGS | SEEN_BY_VERIFY_ONLY)[name]
    spoil(used)
    with pytest.raises(UnlearningError, match=sentence) as caught:
        verify(used)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", TAMPERINGS)
def test_apply_refuses_and_changes_nothing(used: Path, name: str) -> None:
    spoil, sentence = TAMPERINGS[name]
    spoil(used)
    ledger = ModelDirectory(used).ledger.read_bytes()
    files = {path.name for path in used.iterdir()} - {"ledger.sqlite-shm", "ledger.sqlite-wal"}
    with pytest.raises(UnlearningError, match=sentence):
        apply(used)
    assert files == {path.name for path in used.iterdir()} - {"ledger.sqlite-shm", "ledger.sqlite-wal"}
    assert ModelDirectory(used).ledger.read_bytes() == ledger


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda file: file.unlink(), "cannot read {}: No such file or directory"),
        (flip, "{} was tampered with: it is not the certificate that the ledger recorded"),
    ],
)
def test_apply_says_that_a_certificate_is_lost_and_holds_up_no_removal(
    used: Path, spoil: Callable[[Path], object], said: str
) -> None:
    file = ModelDirectory(used).certificate(1)
    spoil(file)
    applied = apply(used)
    assert applied.certificate == said.format(file)
    assert [version.version for version in applied.versions] == [3]


def test_events_dropped_from_the_end_are_found_with_a_head(used: Path) -> None:
    head, chained = requests.status(used).head, chain_head(used)
    verify(used, head)
    verify(used, chained)
    sql(used, "DELETE FROM events WHERE sequence = (SELECT max(sequence) FROM events)")
    verify(used)
    with pytest.raises(UnlearningError, match=r"is behind: the head .* covers 7 events, but the log has 6"):
        verify(used, head)
    with pytest.raises(UnlearningError, match="events were dropped from its end, or all events were replaced"):
        verify(used, chained)


def test_a_chain_that_was_made_again_is_found_with_a_head(used: Path) -> None:
    head, chained = requests.status(used).head, chain_head(used)
    sql(used, "UPDATE events SET time = '2020-01-01T00:00:00+00:00'")
    make_chain_again(used)
    verify(used)
    with pytest.raises(UnlearningError, match="its first 7 events are not those of the head"):
        verify(used, head)
    with pytest.raises(UnlearningError, match="events were dropped from its end, or all events were replaced"):
        verify(used, chained)


def test_a_replaced_event_with_a_hash_of_its_own_does_not_fit_the_event_after_it(used: Path) -> None:
    """The event's own hash is right; only the next event says that another one stood there."""
    connection = sqlite3.connect(ModelDirectory(used).ledger)
    (row,) = connection.execute("SELECT * FROM events WHERE sequence = 3").fetchall()
    entry = (row[0], "today", *row[2:6])
    assert entry != row[:6]
    connection.close()
    sql(used, f"UPDATE events SET time = 'today', hash = '{content_key(entry)}' WHERE sequence = 3")
    with pytest.raises(UnlearningError, match="event 4 is not what was recorded"):
        verify(used)


def test_weights_of_another_model_are_found(used: Path, model: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(model, tmp_path / "other"))
    apply(other)
    shutil.copy(ModelDirectory(other).weights(3), ModelDirectory(used).weights(2))
    with pytest.raises(UnlearningError, match="it is not the model that the ledger recorded"):
        verify(used)


@pytest.mark.parametrize("statement", ["UPDATE events SET time = 'today'", "DELETE FROM events"])
def test_the_ledger_is_append_only(used: Path, statement: str) -> None:
    connection = sqlite3.connect(ModelDirectory(used).ledger)
    with pytest.raises(sqlite3.IntegrityError, match="the ledger is append-only"):
        connection.execute(statement)
    connection.close()


def test_a_person_cannot_be_requested_twice_even_by_sql(used: Path) -> None:
    with (
        pytest.raises(UnlearningError, match="UNIQUE constraint failed"),
        Ledger.opened(ModelDirectory(used).ledger) as ledger,
        ledger.transaction(),
    ):
        ledger.append_requests("requested", {"p3": {"records": 2}})


def test_verify_says_that_an_interrupted_apply_is_to_be_finished(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("certified_unlearning.ledger.application.write_version", fail)
    with pytest.raises(KeyboardInterrupt):
        apply(used)
    with pytest.raises(UnlearningError, match=r"interrupted: `unlearn apply .*version 3, which is planned"):
        verify(used)
    monkeypatch.undo()
    apply(used)
    verify(used)


def test_an_edit_of_the_training_copy_beside_the_planned_rows_is_found_by_the_next_apply(
    used: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("certified_unlearning.ledger.application.write_version", fail)
    with pytest.raises(KeyboardInterrupt):
        apply(used)
    monkeypatch.undo()
    flip(ModelDirectory(used).features)
    with pytest.raises(UnlearningError, match="training copy is not what the ledger recorded"):
        apply(used)
    assert len(requests.status(used).state.versions) == 2


def test_a_changed_source_file_is_said_and_the_copy_counts(
    original: object, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert requests.status(model).source is None
    assert verify(model).source is None
    data = original.data  # type: ignore[attr-defined]
    before = data.read_bytes()
    try:
        data.write_bytes(before + b"0,0,0,no,p1\n")
        said = f"{data} has changed since `unlearn init`; the model uses the copy made then, in {model}"
        assert requests.status(model).source == verify(model).source == said
        requests.request(model, ["p3"])
        assert apply(model).source == said
        assert verify(model).source is None  # The key that could tell is gone.
    finally:
        data.write_bytes(before)
    fresh = Path(shutil.copytree(original.path, tmp_path / "fresh"))  # type: ignore[attr-defined]
    assert requests.status(fresh).source is None  # Written again, with the same bytes.
    data.rename(data.with_suffix(".gone"))
    try:
        assert "cannot be read any more" in str(requests.status(fresh).source)
    finally:
        data.with_suffix(".gone").rename(data)


def restate(model: Path, event: str, /, **changes: object) -> None:
    """Change the payload of the last such event, and make the whole chain again."""
    connection = sqlite3.connect(ModelDirectory(model).ledger)
    query = "SELECT sequence, payload FROM events WHERE kind = ? ORDER BY sequence DESC"
    sequence, payload = connection.execute(query, (event,)).fetchone()
    connection.close()
    text = json.dumps(json.loads(payload) | changes, sort_keys=True, separators=(",", ":"))
    sql(model, f"UPDATE events SET payload = '{text}' WHERE sequence = {sequence}")
    make_chain_again(model)


@pytest.mark.parametrize(("name", "value"), [("epsilon", 0.001), ("epsilon_all_published", 0.001), ("kind", "exact")])
def test_a_ledger_made_again_with_other_words_than_its_certificates_is_found(
    used: Path, name: str, value: object
) -> None:
    restate(used, "applied", **{name: value})
    with pytest.raises(UnlearningError, match=f"states a different {name} from certificate-2.json"):
        verify(used)


def test_a_ledger_made_again_with_another_number_of_requests_is_found(used: Path) -> None:
    restate(used, "planned", requests=1)
    with pytest.raises(UnlearningError, match="version 2 does not answer the requests that its event names"):
        verify(used)


def test_a_removed_persons_row_put_back_in_the_place_of_anothers_is_found(model: Path, tmp_path: Path) -> None:
    """Its tag is genuine: it is from a copy of the ledger from before the removal."""
    shutil.copytree(model, tmp_path / "before")
    before = sqlite3.connect(ModelDirectory(tmp_path / "before").ledger)
    query = "SELECT identifier, row, tag FROM records WHERE identifier = ? LIMIT 1"
    (old,) = before.execute(query, (name_of(model, "p4"),)).fetchall()
    before.close()
    requests.request(model, ["p4"])
    apply(model)
    connection = sqlite3.connect(ModelDirectory(model).ledger)
    connection.execute(
        "DELETE FROM records WHERE row IN (SELECT max(row) FROM records WHERE identifier = ?)", (name_of(model, "p6"),)
    )
    connection.execute("INSERT INTO records VALUES (?, ?, ?)", old)
    connection.commit()
    connection.close()
    for act in (verify, apply):
        requests_before = sorted(path.name for path in model.iterdir())
        if act is apply:
            requests.request(model, ["p7"])
        with pytest.raises(UnlearningError, match="the owner of a row is not what was recorded"):
            act(model)
        assert [name for name in requests_before if name.startswith("weights")] == ["weights-2.safetensors"]


def test_a_row_that_is_nobodys_but_still_there_is_found(model: Path) -> None:
    """Two people's rows are exchanged for one of each: the totals stay what they were."""
    requests.request(model, ["p4"])
    apply(model)
    directory = ModelDirectory(model)
    with Ledger.opened(directory.ledger) as ledger:
        rows = sorted(record.row for record in ledger.owners.records())
        copy = copy_of(directory, read_features(model), 2)
        assert copy.first_row_left(rows, 450) is None
        assert copy.first_row_left(rows[1:], 450) == rows[0]


def read_features(model: Path) -> int:
    return int(json.loads(ModelDirectory(model).model.read_text())["learner"]["features"])
