"""A directory of the last release becomes one with pseudonyms, whole or not at all, and its heads and receipts hold."""

import json
import shutil
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from certified_unlearning.errors import LedgerError, ParameterError, StorageError, UnlearningError
from certified_unlearning.ledger import load_model, requests
from certified_unlearning.ledger.adding.addition import add
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.identifiers.migration import migrate
from certified_unlearning.ledger.identifiers.names import Identifiers, Pseudonyms
from certified_unlearning.ledger.log.replay import replay
from certified_unlearning.ledger.log.setting import set_log
from certified_unlearning.ledger.personal.report import report_on
from certified_unlearning.ledger.proofs.head import head_of
from certified_unlearning.ledger.proofs.receipt import check, make_receipt, read_receipt
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.terms.deadlines import Terms
from certified_unlearning.ledger.terms.release import release
from certified_unlearning.ledger.verification import verify
from tests.ledger.conftest import Forks, Unlearn
from tests.ledger.identifiers.people import RELEASED, address, files_with, last_release, write_addresses
from tests.ledger.identifiers.test_pseudonyms import interrupted
from tests.ledger.tables import make_refit
from tests.ledger.test_tampering import chain_head, make_chain_again, sql

KILLED = -signal.SIGKILL
NEEDLE = b"unlikely-name"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of the last release: one batch applied, a request that waits, another on hold."""
    root = tmp_path_factory.mktemp("old")
    write_addresses(root / "people.csv")
    write_addresses(root / "new.csv", new=True)
    with last_release():
        make_refit(root / "model", root / "people.csv")
    model = root / "model"
    requests.request(model, [address("p3"), address("p4")])
    apply(model)
    requests.request(model, [address("p5")], terms=Terms.of(None, None, "a court asked"))
    requests.request(model, [address("p6")])
    return model


@pytest.fixture
def old(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "old"))


def is_old(model: Path) -> bool:
    with Ledger.opened(ModelDirectory(model).ledger, read_only=True) as ledger:
        return not ledger.names.hides_people


def works(model: Path) -> None:
    """Everything that takes an identifier finds the person."""
    verify(model)
    assert report_on(model, address("p3")).stage == "removed"
    with pytest.raises(ParameterError, match="was requested before"):
        requests.request(model, [address("p3")])
    with pytest.raises(ParameterError, match=r"did you mean 'p7@unlikely-name\.example'"):
        requests.request(model, [address("P7")])
    release(model, [address("p5")])
    requests.request(model, [address("p7")])
    apply(model)
    verify(model)
    check(make_receipt(model, address("p5")), head=requests.status(model).head)


def test_a_directory_of_the_last_release_works_as_it_is(old: Path) -> None:
    assert is_old(old)
    works(old)
    assert is_old(old)
    assert files_with(old, NEEDLE) == {"ledger.sqlite"}


def test_status_says_that_identifiers_stand_there_in_clear(old: Path, unlearn: Unlearn) -> None:
    said = "note: the ledger has plain identifiers: `unlearn migrate"
    assert said in unlearn("status", old, "--no-quality").stdout
    assert json.loads(unlearn("status", old, "--no-quality", "--json").stdout)["in_clear"] is True
    migrate(old)
    assert said not in unlearn("status", old, "--no-quality").stdout
    assert json.loads(unlearn("status", old, "--no-quality", "--json").stdout)["in_clear"] is False


def test_new_people_of_an_old_directory_who_look_like_others_are_named(
    old: Path, made: Path, tmp_path: Path, unlearn: Unlearn
) -> None:
    rows = pd.read_csv(made.parent / "new.csv").head(1)
    rows.assign(person=address("P9")).to_csv(tmp_path / "new.csv", index=False)
    said = unlearn("add", old, "--data", tmp_path / "new.csv", "--no-quality").stderr
    assert (
        "2 identifiers differ only in case, such as 'P9@unlikely-name.example' and 'p9@unlikely-name.example'" in said
    )
    for one, other in (("p9", "P9"), ("P9", "p9")):
        with pytest.raises(
            ParameterError, match=f"'{address(one)}' may be '{address(other)}', which differs only in ca"
        ):
            requests.request(old, [address(one)])
    rows.assign(person=address("P3")).to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(
        ParameterError, match=r"may be 'p3@.*', which differs only in case; the latter was to be removed"
    ):
        add(old, tmp_path / "new.csv")


def test_a_migrated_directory_has_no_identifier_in_any_byte_and_works(old: Path) -> None:
    status, head = requests.status(old), requests.status(old).head
    migrated = migrate(old)
    assert (migrated.has_hidden, migrated.head) == (True, head)
    assert files_with(old, NEEDLE) == set()
    now = requests.status(old)
    assert (now.state, now.head, now.open_requests) == (status.state, head, status.open_requests)
    verify(old, head)
    works(old)
    assert files_with(old, NEEDLE) == set()


def test_people_who_were_not_in_the_data_get_pseudonyms_too(old: Path) -> None:
    told = requests.request(old, [address("p900"), address("p7")], skip_unknown=True).skipped
    assert files_with(old, NEEDLE)
    migrate(old)
    assert files_with(old, NEEDLE) == set()
    assert requests.request(old, [address("p900")], skip_unknown=True).skipped == told
    apply(old)
    verify(old)


def test_heads_receipts_and_hashes_of_before_hold(old: Path, tmp_path: Path) -> None:
    make_receipt(old, address("p3")).write(tmp_path / "before.json")
    head, chained = requests.status(old).head, chain_head(old)
    migrate(old)
    check(read_receipt(tmp_path / "before.json"), head=requests.status(old).head)
    assert chain_head(old) != chained
    verify(old, head)
    verify(old, chained)
    assert make_receipt(old, address("p3")).as_json() == json.loads((tmp_path / "before.json").read_text())
    apply(old)
    verify(old, head)
    verify(old, chained)
    check(make_receipt(old, None, since=head))


def test_a_hash_of_before_is_not_believed_where_events_are_missing_or_changed(old: Path) -> None:
    chained = chain_head(old)
    migrate(old)
    with Ledger.opened(ModelDirectory(old).ledger) as ledger:
        (*_, sealed) = (each.sealed for each in ledger.earlier())
    with pytest.raises(LedgerError, match=r"no event in it has the head f+, so"):
        verify(old, "f" * 64)
    sql(old, f"UPDATE earlier_hashes SET sealed = '{'f' * 64}' WHERE sequence = 7")
    with pytest.raises(LedgerError, match="event 7 is not what it was before the migration"):
        verify(old, "f" * 64)
    sql_again(old, f"UPDATE earlier_hashes SET sealed = '{sealed}' WHERE sequence = 7")
    verify(old, chained)
    sql_again(old, "DELETE FROM events WHERE sequence = 7")
    with pytest.raises(LedgerError, match="event 7 is not what it was before the migration"):
        verify(old, chained)


def test_no_hash_that_was_made_of_an_identifier_is_left(old: Path, tmp_path: Path) -> None:
    """Everything else that went into such a hash stands in the ledger, so everybody could test a guess."""
    with Ledger.opened(ModelDirectory(old).ledger) as ledger:
        # The first event names nobody, so its hash stays.
        hashes = [text.encode() for text in ledger.hashes()[1:]]
    raw = [bytes.fromhex(text.decode()) for text in hashes]
    set_log(old, tmp_path / "log.jsonl")
    assert files_with(old, *hashes)
    migrate(old)
    assert files_with(tmp_path, *hashes, *raw) == set()


def test_the_search_finds_hashes_that_are_not_sealed(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pseudonyms, "sealed", lambda self, earlier_hash: earlier_hash)
    monkeypatch.setattr(Identifiers, "sealed", lambda self, earlier_hash: earlier_hash)
    chained = chain_head(old)
    migrate(old)
    assert files_with(old, chained.encode()) == {"ledger.sqlite"}


def sql_again(model: Path, *statements: str) -> None:
    """Edit a ledger whose triggers are gone."""
    with sqlite3.connect(ModelDirectory(model).ledger) as connection:
        for statement in statements:
            connection.execute(statement)


def test_what_leaves_hid_before_is_known_without_the_key_and_checked_with_it(old: Path, tmp_path: Path) -> None:
    head, chained = requests.status(old).head, chain_head(old)
    migrate(old, tmp_path / "key")
    key = (tmp_path / "key").read_bytes()
    (tmp_path / "key").unlink()
    assert requests.status(old).head == verify(old, head).head == head
    with pytest.raises(
        UnlearningError, match="may be from before the migration, which cannot be checked without the key"
    ):
        verify(old, chained)
    sql(old, "UPDATE events SET payload = replace(payload, 'court', 'count') WHERE kind = 'held'")
    make_chain_again(old)
    verify(old, head)  # The key alone tells, and `verify` says that it did not check this.
    (tmp_path / "key").write_bytes(key)
    with pytest.raises(LedgerError, match=r"its first 7 events are not those of the head|before the migration"):
        verify(old, head)


def test_without_the_key_it_is_said_that_what_leaves_hid_before_was_deleted(old: Path, tmp_path: Path) -> None:
    migrate(old, tmp_path / "key")
    (tmp_path / "key").unlink()
    sql(old, "DELETE FROM earlier_hashes WHERE sequence = 4")
    with pytest.raises(LedgerError, match="was tampered with: it lacks the hidden part of event 4"):
        requests.status(old)


def test_a_directory_and_its_backup_migrate_alike(old: Path, tmp_path: Path) -> None:
    backup = Path(shutil.copytree(old, tmp_path / "backup"))
    for path in (old, backup):
        migrate(path)
    dumps = []
    for path in (old, backup):
        with sqlite3.connect(ModelDirectory(path).ledger) as connection:
            dumps.append([*connection.iterdump()])
    assert dumps[0] == dumps[1]


def test_migrating_again_changes_nothing_and_is_said(old: Path, unlearn: Unlearn) -> None:
    said = unlearn("migrate", old)
    assert "people have pseudonyms; heads and receipts are unchanged" in said.stdout
    before = ModelDirectory(old).ledger.read_bytes()
    said = unlearn("migrate", old)
    assert (said.exit_code, "already have pseudonyms; nothing to migrate" in said.stdout) == (0, True)
    assert ModelDirectory(old).ledger.read_bytes() == before


def test_a_directory_from_before_heads_migrates_too(old: Path) -> None:
    """Its first event says nothing of the key, and it has no table of spellings."""
    forget_the_key_check(old)
    head = requests.status(old).head
    assert migrate(old).head == head
    verify(old, head)
    works(old)
    ModelDirectory(old).identifier_key.write_bytes(bytes(32))
    with pytest.raises(LedgerError, match="was replaced"):
        verify(old)


def forget_the_key_check(model: Path) -> None:
    with sqlite3.connect(ModelDirectory(model).ledger) as connection:
        (payload,) = connection.execute("SELECT payload FROM events WHERE sequence = 1").fetchone()
        found = json.loads(payload)
        del found["key_check"]
        text = json.dumps(found, sort_keys=True, separators=(",", ":"))
        connection.execute("DROP TRIGGER events_are_not_edited")
        connection.execute("UPDATE events SET payload = ? WHERE sequence = 1", (text,))
        connection.execute("DROP TABLE spellings")
        connection.execute(
            "CREATE TRIGGER events_are_not_edited BEFORE UPDATE ON events "
            "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        )
    connection = sqlite3.connect(ModelDirectory(model).ledger)
    connection.execute("DROP TRIGGER events_are_not_edited")
    connection.commit()
    connection.close()
    make_chain_again(model)


def test_what_the_last_release_wrote_itself_migrates_to_the_head_that_it_printed(tmp_path: Path) -> None:
    """`released.sql` and the lines above it are the last release's own output."""
    model = tmp_path / "model"
    model.mkdir()
    directory = ModelDirectory(model)
    text = RELEASED.read_text(encoding="utf-8")
    said = dict(line.removeprefix("-- ").split(": ", 1) for line in text.splitlines() if line.startswith("-- "))
    with sqlite3.connect(directory.ledger) as connection:
        connection.executescript(text)
        connection.execute("PRAGMA journal_mode = WAL")
    directory.lock.touch()
    directory.identifier_key.write_bytes(bytes.fromhex(said["key"]))
    with Ledger.opened(directory.ledger) as ledger:
        assert head_of(directory, ledger) == said["head"]
    assert migrate(model).head == said["head"]
    assert files_with(model, b"customer-") == set()
    receipt = read_receipt_of(said["receipt"], tmp_path)
    check(receipt, head=said["head"])
    assert make_receipt(model, "customer-3") == receipt


def read_receipt_of(text: str, tmp_path: Path) -> object:
    (tmp_path / "receipt.json").write_text(text)
    return read_receipt(tmp_path / "receipt.json")


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda model: sql(model, "UPDATE events SET time = 'today' WHERE sequence = 2"), "event 2 is not what was"),
        (
            lambda model: sql(model, "UPDATE records SET identifier = 'x' WHERE row = 0"),
            "the owner of a row is not what was recorded",
        ),
        (lambda model: ModelDirectory(model).identifier_key.write_bytes(bytes(32)), "identifier-key was replaced"),
        (lambda model: ModelDirectory(model).identifier_key.unlink(), "without it the records cannot be checked"),
    ],
)
def test_what_was_tampered_with_is_not_migrated(
    old: Path, spoil: Callable[[Path], object], sentence: str, tmp_path: Path
) -> None:
    spoil(old)
    before = ModelDirectory(old).ledger.read_bytes()
    with pytest.raises(UnlearningError, match=sentence):
        migrate(old, tmp_path / "key")
    assert ModelDirectory(old).ledger.read_bytes() == before
    assert not (tmp_path / "key").exists()


def test_a_migration_that_would_change_what_is_said_is_undone(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: another pseudonym in the ledger than in proofs."""
    monkeypatch.setattr(
        "certified_unlearning.ledger.identifiers.names.Pseudonyms.stored", lambda self, identifier: f"x{identifier}"
    )
    with pytest.raises(LedgerError, match="would be different under pseudonyms; nothing was changed"):
        migrate(old)
    monkeypatch.undo()
    assert is_old(old)
    works(old)


def test_an_apply_that_was_interrupted_goes_on_after_the_migration(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("certified_unlearning.ledger.application.write_version", fail)
    with pytest.raises(KeyboardInterrupt):
        apply(old)
    monkeypatch.undo()
    migrate(old)
    assert [version.version for version in apply(old).versions] == [3]
    verify(old)


def test_records_are_added_to_a_migrated_directory(old: Path, made: Path) -> None:
    migrate(old)
    add(old, made.parent / "new.csv")
    verify(old)
    assert requests.request(old, [address("p301")]).records == 2
    assert files_with(old, NEEDLE) == set()


def test_a_ledger_that_another_program_keeps_open_is_finished_by_the_next_migration(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("certified_unlearning.ledger.database.schema.BUSY_SECONDS", 0.1)
    reader = sqlite3.connect(ModelDirectory(old).ledger, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM events").fetchone()
    with pytest.raises(StorageError, match="another program keeps the ledger open, so that identifiers may be left"):
        migrate(old)
    assert files_with(old, NEEDLE) == {"ledger.sqlite"}
    reader.close()
    assert not migrate(old).has_hidden
    assert files_with(old, NEEDLE) == set()
    works(old)


def test_a_request_that_has_the_ledger_open_meanwhile_writes_a_pseudonym(old: Path) -> None:
    with Ledger.opened(ModelDirectory(old).ledger) as ledger:
        assert ledger.request_of(address("p8")) is None
        migrate(old)
        with ledger.transaction():
            ledger.append_requests("requested", {address("p8"): {"records": 1}})
        assert ledger.request_of(address("p8")) is not None
    assert files_with(old, NEEDLE) == set()
    verify(old)


@pytest.mark.parametrize(
    ("accident", "ends_with", "every"),
    [
        ("kill_at", KILLED, 6),
        ("fail_at", 1, 9),
        pytest.param("kill_at", KILLED, 1, marks=pytest.mark.exhaustive),
        pytest.param("fail_at", 1, 1, marks=pytest.mark.exhaustive),
    ],
)
def test_a_migration_that_is_killed_or_finds_the_disk_full_at_any_of_its_changes_is_finished_by_the_next(
    old: Path, tmp_path: Path, fork: Forks, accident: str, ends_with: int, every: int
) -> None:
    accidents, halves = 0, set()
    head = requests.status(old).head
    while True:
        copy, key = Path(shutil.copytree(old, tmp_path / f"copy-{accidents}")), tmp_path / f"key-{accidents}"
        status = fork("migrate", copy, key_file=str(key), **{accident: accidents * every + 1})
        halves.add(is_old(copy))
        assert requests.status(copy).head == head
        verify(copy, head)
        if status == 0:
            break
        assert status == ends_with
        accidents += 1
        assert fork("migrate", copy, key_file=str(key)) == 0
        assert verify(copy, head).strangers == ()
        assert files_with(copy, NEEDLE) == set()
        assert not (copy / "identifier-key").exists()
        shutil.rmtree(copy)
    assert accidents > 40 // every
    assert halves == {True, False}


def test_the_log_in_a_second_place_is_written_anew_and_its_old_bytes_are_overwritten(old: Path, tmp_path: Path) -> None:
    place = tmp_path / "log.jsonl"
    set_log(old, place)
    assert NEEDLE in place.read_bytes()
    (tmp_path / "link").hardlink_to(place)
    migrate(old)
    assert NEEDLE not in place.read_bytes()
    assert set((tmp_path / "link").read_bytes()) == {0}
    works(old)
    assert not files_with(tmp_path, NEEDLE)


def test_a_log_in_a_second_place_that_is_missing_is_not_forgotten(old: Path, tmp_path: Path) -> None:
    """Identifiers stand in it in clear, as on a disk that is not mounted."""
    set_log(old, tmp_path / "log.jsonl")
    (tmp_path / "log.jsonl").rename(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match=r"cannot read the log .*: put the log of .* back"):
        migrate(old)
    assert is_old(old)
    (tmp_path / "elsewhere").rename(tmp_path / "log.jsonl")
    migrate(old)
    assert not files_with(tmp_path, NEEDLE)


def test_places_where_the_log_was_kept_before_are_named(old: Path, tmp_path: Path, unlearn: Unlearn) -> None:
    set_log(old, tmp_path / "first.jsonl")
    set_log(old, tmp_path / "second.jsonl")
    assert (
        f"{tmp_path / 'first.jsonl'}, where the log was kept earlier, still has plain identifiers"
        in unlearn("migrate", old).stdout
    )
    assert files_with(tmp_path, NEEDLE) == {"first.jsonl"}
    assert "first.jsonl" not in unlearn("migrate", old).stdout


def test_a_migration_that_is_killed_before_the_log_is_written_anew_is_finished_by_the_next(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "log.jsonl"
    set_log(old, place)
    monkeypatch.setattr("certified_unlearning.ledger.identifiers.migration.write_log", interrupted)
    with pytest.raises(KeyboardInterrupt):
        migrate(old)
    monkeypatch.undo()
    assert NEEDLE in place.read_bytes()
    with pytest.raises(
        UnlearningError,
        match=r"only one of the log and the directory was migrated \(in that case, run `unlearn migrate`\).*nothing "
        "was recorded",
    ):
        requests.request(old, [address("p8")])
    assert not migrate(old).has_hidden
    assert NEEDLE not in place.read_bytes()
    works(old)


def test_a_backup_of_before_is_migrated_and_brought_to_the_present_by_the_log_of_after(
    old: Path, tmp_path: Path
) -> None:
    place = tmp_path / "log.jsonl"
    set_log(old, place)
    backup = Path(shutil.copytree(old, tmp_path / "backup"))
    requests.request(old, [address("p8")])
    apply(old)
    migrate(old)
    head = requests.request(old, [address("p9")]).head
    shutil.rmtree(old)
    backup.rename(old)
    with pytest.raises(UnlearningError, match="If only one of them was migrated, run `unlearn migrate` on the other"):
        replay(old, place)
    # Its model knows people who were removed since.
    for command in (load_model, lambda model: report_on(model, address("p8")), verify, apply):
        with pytest.raises(
            UnlearningError,
            match=r"only one of the log and the directory was migrated \(in that case, run `unlearn migrate`\)",
        ):
            command(old)
    assert "until then, no guarantee is shown here" in str(requests.status(old).meaning)
    migrate(old)
    replay(old, place)
    verify(old, head)
    for person in ("p8", "p9"):
        assert report_on(old, address(person)).stage == "removed"
    check(make_receipt(old, address("p8"), since=head))
    assert not files_with(tmp_path, NEEDLE)


def test_a_directory_that_is_behind_its_log_is_brought_to_the_present_before_it_migrates(
    old: Path, tmp_path: Path
) -> None:
    place = tmp_path / "log.jsonl"
    set_log(old, place)
    backup = Path(shutil.copytree(old, tmp_path / "backup"))
    requests.request(old, [address("p8")])
    shutil.rmtree(old)
    backup.rename(old)
    with pytest.raises(UnlearningError, match=r"is behind its log .* by 1 event"):
        migrate(old)
    assert is_old(old)
    replay(old, place)
    migrate(old)
    works(old)


def test_a_directory_that_lost_versions_and_was_brought_to_the_present_migrates(old: Path, tmp_path: Path) -> None:
    backup = Path(shutil.copytree(old, tmp_path / "backup"))
    requests.request(old, [address("p8")])
    apply(old)
    old.rename(tmp_path / "lost")
    backup.rename(old)
    assert replay(old, tmp_path / "lost").back_to is not None
    head = requests.status(old).head
    restored = requests.status(old).state.restored
    assert migrate(old).head == head
    # Exact unlearning draws from the restore's name: an `apply` that goes on after the migration draws the same.
    assert requests.status(old).state.restored == restored
    works(old)


@pytest.mark.parametrize("most_bytes", [0, 1_000, 20_000, 60_000])
def test_a_migration_without_room_leaves_the_old_directory(old: Path, fork: Forks, most_bytes: int) -> None:
    assert fork("migrate", old, most_bytes=most_bytes) == 1
    assert is_old(old)
    works(old)


def test_the_key_moves_out_and_its_old_place_is_overwritten(old: Path, tmp_path: Path, unlearn: Unlearn) -> None:
    key = ModelDirectory(old).identifier_key.read_bytes()
    (tmp_path / "link").hardlink_to(ModelDirectory(old).identifier_key)
    said = unlearn("migrate", old, "--key-file", tmp_path / "key").stdout
    assert f"the key of pseudonyms is in {tmp_path / 'key'}: keep a copy in a safe place" in said
    assert (tmp_path / "key").read_bytes() == key
    assert (tmp_path / "link").read_bytes() == bytes(32)
    said = unlearn("migrate", old, "--key-file", tmp_path / "other").stdout
    assert f"note: {tmp_path / 'key'} still contains the key: delete it there" in said


def test_a_key_that_is_another_ones_is_no_place_for_it(old: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(bytes(32))
    with pytest.raises(LedgerError, match="key was replaced or is another model's: it is not the key"):
        migrate(old, tmp_path / "key")
    assert (tmp_path / "key").read_bytes() == bytes(32)
    works(old)
