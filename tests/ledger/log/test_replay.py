"""A directory that was restored from a backup of any moment comes to the present: nobody who asked is in it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from certified_unlearning.errors import DataError, LedgerError, ParameterError, StorageError, UnlearningError
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.adding.addition import add
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.copies.exports import export
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.log import replay as replaying
from certified_unlearning.ledger.log.file import read_log, write_log
from certified_unlearning.ledger.log.replay import replay
from certified_unlearning.ledger.log.setting import set_log
from certified_unlearning.ledger.personal.report import report_on
from certified_unlearning.ledger.proofs.receipt import check, make_receipt
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.terms.deadlines import Terms
from certified_unlearning.ledger.terms.release import release
from certified_unlearning.ledger.verification import verify
from tests.ledger.conftest import Original, Unlearn
from tests.ledger.log.conftest import backed_up, events_of, people_left, restore
from tests.ledger.tables import PEOPLE, make_refit, write_new

HELD = Terms(hold="case 12")


@pytest.fixture(scope="module")
def refit(original: Original, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model by Newton removal, to which records can be added."""
    path = tmp_path_factory.mktemp("refit") / "model"
    make_refit(path, original.data)
    return path


@pytest.fixture
def model(refit: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(refit, tmp_path / "model"))


def history(model: Path, new: Path) -> list[tuple[str, Callable[[], object]]]:
    """What happens to the model, with names for messages."""
    return [
        ("a request", lambda: requests.request(model, ["p3", "p4"])),
        ("its answer", lambda: apply(model)),
        ("a copy elsewhere", lambda: export(model, name="served")),
        ("a hold", lambda: requests.request(model, ["p5"], terms=HELD)),
        ("new people", lambda: add(model, new)),
        ("requests of an old and a new person", lambda: requests.request(model, ["p7", f"p{PEOPLE}"])),
        ("their answer", lambda: apply(model)),
        ("a release", lambda: release(model, ["p5"])),
        ("its answer", lambda: apply(model)),
        ("a request that waits", lambda: requests.request(model, ["p8"])),
    ]


def test_a_backup_of_every_moment_comes_to_the_present(model: Path, log: Path, tmp_path: Path) -> None:
    write_new(tmp_path / "new.csv", people=4)
    backups, heads = [backed_up(model, "backup-0")], [requests.status(model).head]
    for _, happens in history(model, tmp_path / "new.csv"):
        happens()
        backups.append(backed_up(model, f"backup-{len(backups)}"))
        heads.append(requests.status(model).head)
    receipts = [make_receipt(model, person) for person in ("p3", "p5", "p7")]
    asked = {"p3", "p4", "p5", "p7", "p8", f"p{PEOPLE}"}
    everybody = {f"p{person}" for person in range(PEOPLE)}
    lost_log = log.read_bytes()
    lost_versions = requests.status(model).state.current.version
    for moment, backup in enumerate(backups):
        log.write_bytes(lost_log)
        restore(model, backup)
        before = requests.status(model).state
        done = replay(model, log)
        found = requests.status(model)
        has_new = before.people_added > 0
        added = {f"p{person}" for person in range(PEOPLE, PEOPLE + 4)} if has_new else set()
        assert people_left(model) == (everybody | added) - asked, moment
        assert found.state.pending == 0
        assert found.state.current.version == lost_versions + 1, moment
        assert [version.version for version in found.state.lost] == [
            *range(before.current.version + 1, lost_versions + 1)
        ]
        assert [addition.people for addition in done.additions] == ([] if has_new else [4])
        # It begins with all the others.
        verify(model, heads[-1])
        for receipt in receipts:
            check(receipt)
            check(make_receipt(model, None, since=str(receipt.head)))
        for person in ("p3", "p4", "p5", "p7", "p8"):
            fresh = make_receipt(model, person)
            check(fresh)
            assert "applied" in fresh.events, (moment, person)
        served = requests.status(model).copies
        assert [copy.name for copy in served] == ["served"]
        assert served[0].is_outdated(found.state)
        assert read_log(log).rows[-1][6] == _last_hash(model)
        # Nothing is left to do, and nothing is done twice.
        head = requests.status(model).head
        again = replay(model, log)
        assert (again.events, again.back_to, again.lost, again.applied.versions) == (0, None, (), ())
        assert requests.status(model).head == head


def _last_hash(model: Path) -> str:
    with Ledger.opened(ModelDirectory(model).ledger, read_only=True) as ledger:
        return ledger.last().hash


def test_the_ledger_of_the_lost_directory_does_as_well_as_its_log(model: Path, tmp_path: Path) -> None:
    backup = backed_up(model, "backup")
    requests.request(model, ["p3"])
    apply(model)
    lost = backed_up(model, "lost")
    restore(model, backup)
    done = replay(model, lost)
    assert (done.events, done.back_to, done.lost) == (3, 1, (2,))
    assert "p3" not in people_left(model)
    verify(model)
    assert verify(model).state.current.version == 3
    assert replay(model, ModelDirectory(lost).ledger).events == 0


def test_requests_and_holds_alone_need_no_step_back(model: Path, log: Path) -> None:
    backup = backed_up(model, "backup")
    requests.request(model, ["p3"])
    requests.request(model, ["p5"], terms=HELD)
    export(model, name="served")
    restore(model, backup)
    done = replay(model, log)
    assert (done.events, done.back_to, done.lost) == (3, None, ())
    assert "restored" not in events_of(model)
    assert [each.terms.hold for each in requests.status(model).open_requests] == ["case 12"]
    assert {"p3", "p5"} & people_left(model) == {"p5"}
    assert verify(model).state.current.scope.adaptive


def test_a_backup_that_was_made_while_a_batch_was_planned_is_finished_first(
    model: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from certified_unlearning.ledger import application

    requests.request(model, ["p3"])
    with monkeypatch.context() as patch:
        patch.setattr(application, "write_version", _fails)
        with pytest.raises(StorageError):
            apply(model)
    backup = backed_up(model, "backup")
    apply(model)
    requests.request(model, ["p4"])
    apply(model)
    restore(model, backup)
    done = replay(model, log)
    assert done.lost == (2, 3)
    state = verify(model).state
    # The batch has the number of its key; what came later has a new one.
    assert [version.version for version in state.versions] == [1, 2, 4]
    assert not {"p3", "p4"} & people_left(model)
    assert "applied" in make_receipt(model, "p3").events


def test_a_backup_that_was_made_while_new_people_were_added_has_their_records(
    model: Path, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from certified_unlearning.ledger import application

    write_new(tmp_path / "new.csv", people=4)
    with monkeypatch.context() as patch:
        patch.setattr(application, "write_version", _fails)
        with pytest.raises(StorageError):
            add(model, tmp_path / "new.csv")
    backup = backed_up(model, "backup")
    add(model, tmp_path / "new.csv")
    requests.request(model, [f"p{PEOPLE}"])
    apply(model)
    restore(model, backup)
    done = replay(model, log)
    assert (done.lost, done.additions) == ((2, 3), ())
    assert [version.version for version in verify(model).state.versions] == [1, 2, 4]
    added = {f"p{PEOPLE + number}" for number in range(4)}
    assert added & people_left(model) == added - {f"p{PEOPLE}"}


def test_a_backup_of_before_there_was_a_log_comes_to_the_present_too(model: Path, tmp_path: Path) -> None:
    backup, log = backed_up(model, "backup"), tmp_path / "log"
    set_log(model, log)
    requests.request(model, ["p3"])
    apply(model)
    restore(model, backup)
    assert replay(model, log).lost == (2,)
    verify(model)
    assert [row[2] for row in read_log(log).rows] == events_of(model)


def _fails(*_: object) -> None:
    raise StorageError("cannot write")


def test_a_second_restore_counts_what_both_have_lost(model: Path, log: Path) -> None:
    first = backed_up(model, "first")
    requests.request(model, ["p3"])
    apply(model)
    second = backed_up(model, "second")
    requests.request(model, ["p4"])
    apply(model)
    restore(model, first)
    assert replay(model, log).lost == (2, 3)
    assert [each.version for each in verify(model).state.versions] == [1, 4]
    restore(model, second)
    done = replay(model, log)
    # Version 2 is there again, version 3 is as lost as before, version 4 is lost now.
    assert done.lost == (3, 4)
    state = verify(model).state
    assert [each.version for each in state.versions] == [1, 2, 5]
    assert [each.version for each in state.lost] == [3, 4]
    assert not {"p3", "p4"} & people_left(model)


def test_a_backup_of_after_a_restore_needs_no_other(model: Path, log: Path) -> None:
    backup = backed_up(model, "backup")
    requests.request(model, ["p3"])
    apply(model)
    restore(model, backup)
    replay(model, log)
    later = backed_up(model, "later")
    requests.request(model, ["p4"])
    restore(model, later)
    assert (replay(model, log).lost, events_of(model).count("restored")) == ((), 1)
    verify(model)


def test_people_whose_added_records_are_gone_have_nothing_to_be_removed(model: Path, log: Path, tmp_path: Path) -> None:
    new = f"p{PEOPLE}"
    table = write_new(tmp_path / "new.csv", people=4)
    backup = backed_up(model, "backup")
    add(model, tmp_path / "new.csv")
    requests.request(model, [new])
    requests.request(model, [f"p{PEOPLE + 1}"], terms=HELD)
    restore(model, backup)
    done = replay(model, log)
    assert [(each.people, each.records) for each in done.additions] == [(4, 6)]
    assert done.applied.versions == ()
    state = verify(model).state
    assert (state.pending, state.lost[0].version) == (0, 2)
    assert report_on(model, new).stage == "lost"
    with pytest.raises(ParameterError, match=rf"identifier '{new}' was to be removed .*a removal is permanent"):
        add(model, tmp_path / "new.csv")
    table[table["person"] != new].to_csv(tmp_path / "again.csv", index=False)
    add(model, tmp_path / "again.csv")
    verify(model)
    # The request on hold is about what was added again.
    release(model, [f"p{PEOPLE + 1}"])
    apply(model)
    assert {f"p{PEOPLE + number}" for number in range(4)} & people_left(model) == {f"p{PEOPLE + 2}", f"p{PEOPLE + 3}"}
    assert verify(model).state.current.version == 4


def test_a_model_of_texts_is_restored_too(tmp_path: Path) -> None:
    from tests.ledger.tables import make_text, write_tickets

    write_tickets(tmp_path / "tickets.csv", 20)
    model, log = tmp_path / "model", tmp_path / "log"
    make_text(model, tmp_path / "tickets.csv")
    set_log(model, log)
    write_tickets(tmp_path / "new.csv", 4, first=20)
    backup = backed_up(model, "backup")
    requests.request(model, ["p1"])
    apply(model)
    restore(model, backup)
    assert replay(model, log).lost == (2,)
    add(model, tmp_path / "new.csv")
    requests.request(model, ["p21"])
    apply(model)
    assert [each.version for each in verify(model).state.versions] == [1, 3, 4, 5]


def test_people_read_that_their_removal_was_undone_and_carried_out_again(model: Path, log: Path) -> None:
    backup = backed_up(model, "backup")
    requests.request(model, ["p3"])
    apply(model)
    restore(model, backup)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replaying, "apply", _not_yet)
        with pytest.raises(StorageError):
            replay(model, log)
    waiting = report_on(model, "p3")
    assert waiting.stage == "waiting"
    assert "with version 2 of the model. By " in waiting.as_text()
    assert "brought the records back. The removal has to be carried out again." in waiting.as_text()
    apply(model)
    done = report_on(model, "p3")
    assert (done.stage, done.version) == ("removed", 3)
    assert "brought the records back. The removal was carried out again." in done.as_text()
    assert "Version 1 of the model had been made with the records" in done.as_text()
    # The lost version knew everybody else.
    requests.request(model, ["p4"])
    apply(model)
    assert "Versions 1 to 3 of the model had been made with the record" in report_on(model, "p4").as_text()


def _not_yet(*_: object) -> None:
    raise StorageError("killed")


def test_what_is_no_log_of_the_directory_is_refused_and_nothing_is_done(
    model: Path, log: Path, tmp_path: Path, original: Original
) -> None:
    backup = backed_up(model, "backup")
    requests.request(model, ["p3"])
    set_log(model, None)
    late_head = requests.status(model).head
    rows = read_log(log).rows
    restore(model, backup)
    set_log(model, None)
    requests.request(model, ["p9"])
    before = events_of(model)
    write_log(tmp_path / "short", rows[:2])
    (tmp_path / "empty").touch()
    for source, sentence in (
        (log, "have 2 events in common and then differ, so something was recorded after the restore"),
        (original.path, "is the log of a model directory other than"),
        (tmp_path / "nowhere", "cannot read .*nowhere: No such file or directory; nothing was done"),
        (tmp_path / "empty", "empty holds no events; nothing was done"),
        (original.data, "is damaged: a line holds no events"),
    ):
        with pytest.raises(UnlearningError, match=sentence):
            replay(model, source)
        assert events_of(model) == before
    restore(model, backup)
    with pytest.raises(LedgerError, match=r"short is behind: the head 4:\w+ covers 4 events, but the log has 2"):
        replay(model, tmp_path / "short", head=late_head)
    assert len(events_of(model)) == 2


def test_a_backup_whose_parts_do_not_belong_together_is_refused(model: Path, log: Path) -> None:
    backup = backed_up(model, "backup")
    requests.request(model, ["p3"])
    apply(model)
    requests.request(model, ["p4"])
    apply(model)
    restore(model, backup)
    ModelDirectory(model).weights(1).write_bytes(b"others")
    before = events_of(model)
    with pytest.raises(LedgerError, match=r"belong neither to the last event nor to the backup's last event, 2 "):
        replay(model, log)
    assert events_of(model) == before


def test_a_backup_without_a_certificate_is_brought_to_the_present_nevertheless(model: Path, log: Path) -> None:
    requests.request(model, ["p3"])
    apply(model)
    backup = backed_up(model, "backup")
    requests.request(model, ["p4"])
    apply(model)
    restore(model, backup)
    ModelDirectory(model).certificate(2).unlink()
    assert replay(model, log).lost == (3,)
    assert not {"p3", "p4"} & people_left(model)
    with pytest.raises(DataError, match=r"cannot read .*certificate-2\.json"):
        verify(model)


def test_the_log_lies_elsewhere_from_a_restore_on(model: Path, log: Path, tmp_path: Path) -> None:
    backup = backed_up(model, "backup")
    requests.request(model, ["p3"])
    apply(model)
    log.rename(tmp_path / "mounted")
    restore(model, backup)
    with pytest.raises((StorageError, DataError), match="cannot read the log"):
        replay(model, tmp_path / "mounted")
    replay(model, tmp_path / "mounted", log=tmp_path / "mounted")
    standing = requests.status(model).log
    assert standing is not None
    assert (standing.path, standing.ahead, standing.behind, standing.trouble) == (tmp_path / "mounted", 0, 0, None)
    verify(model)


def test_a_log_that_replaces_the_known_one_may_not_lack_its_events(model: Path, log: Path, tmp_path: Path) -> None:
    """An old copy of the log, with the real one still there: a request would be lost without a word."""
    backup, before = backed_up(model, "backup"), log.read_bytes()
    requests.request(model, ["p3"])
    shutil.copy(log, tmp_path / "old")
    requests.request(model, ["p4"])
    restore(model, backup)
    events = events_of(model)
    with pytest.raises(
        DataError, match=r"old and the earlier log of .*model, .*log.jsonl, have different events \(the earlier log has"
    ):
        replay(model, tmp_path / "old", log=tmp_path / "old")
    assert events_of(model) == events
    # The same of a history that went on differently from the backup on.
    log.write_bytes(before)
    requests.request(model, ["p9"])
    restore(model, backup)
    with pytest.raises(DataError, match="another history of this directory"):
        replay(model, tmp_path / "old", log=tmp_path / "old")
    log.rename(tmp_path / "away")
    assert replay(model, tmp_path / "old", log=tmp_path / "old").events == 1


def test_the_commands_say_what_was_lost(model: Path, log: Path, tmp_path: Path, unlearn: Unlearn) -> None:
    write_new(tmp_path / "new.csv", people=4)
    backup = backed_up(model, "backup")
    export(model, name="served")
    requests.request(model, ["p3"])
    apply(model)
    export(model, name="served")
    add(model, tmp_path / "new.csv")
    restore(model, backup)
    printed = unlearn("replay", model, "--from", log).stdout
    assert f"7 events of {log} were appended as recorded\n" in printed
    assert "files that belong to these events are gone: the model continues from event 2\n" in printed
    assert "lost: versions 2, 3 of the model. Copies that others have cannot be recalled;" in printed
    assert f"gone: 6 records of 4 people that were added from {tmp_path / 'new.csv'}. Add these records" in printed
    assert "version 4 (20" in printed
    printed = unlearn("status", model, "--no-quality").stdout
    assert "lost: versions 2, 3, published before the directory was restored from a backup\n" in printed
    assert "copy 'served': version 2, which was lost when the directory was restored from a backup" in printed
    printed = unlearn("verify", model).stdout
    assert "version 4 of the model, 2 certificates" in printed
    assert "note: certificates of lost versions are not in the directory, and were not verified" in printed
    assert "nothing was missing\nno request is pending\n" in unlearn("replay", model, "--from", log).stdout
    write_log(tmp_path / "short", read_log(log).rows[:9])
    printed = unlearn("replay", model, "--from", tmp_path / "short").stdout
    assert f"short is older: it lacks 3 events that {model} has" in printed
