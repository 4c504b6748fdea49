"""The key of pseudonyms lies elsewhere, or is lost: what still works, what does not, and what is said."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.errors import DataError, LedgerError, ParameterError, UnlearningError
from certified_unlearning.ledger import load_model, requests
from certified_unlearning.ledger.adding.addition import add
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.copies.exports import export
from certified_unlearning.ledger.identifiers.keys import ENVIRONMENT, MissingKeyError
from certified_unlearning.ledger.identifiers.migration import migrate
from certified_unlearning.ledger.initialisation import initialise, unfinished
from certified_unlearning.ledger.personal.report import report_on
from certified_unlearning.ledger.proofs.receipt import check, make_receipt
from certified_unlearning.ledger.terms.deadlines import Terms
from certified_unlearning.ledger.terms.release import release
from certified_unlearning.ledger.verification import verify
from tests.ledger.conftest import Original, Unlearn
from tests.ledger.identifiers.test_pseudonyms import exchange
from tests.ledger.tables import make_refit, write_new
from tests.ledger.test_tampering import sql


def declared(original: Original) -> Table:
    return Table(path=str(original.data), label="ill", identifier="person")


@pytest.fixture
def apart(model: Path, tmp_path: Path) -> Path:
    """A model whose key lies in another directory; two requests wait, one is on hold."""
    requests.request(model, ["p3", "p4"])
    requests.request(model, ["p5"], terms=Terms.of(None, None, "a court asked"))
    (tmp_path / "safe").mkdir()
    migrate(model, tmp_path / "safe" / "key")
    return model


def key_of(tmp_path: Path) -> Path:
    return tmp_path / "safe" / "key"


def test_init_puts_the_key_where_it_is_told_and_nowhere_else(original: Original, tmp_path: Path) -> None:
    key = tmp_path / "key"
    made = initialise(tmp_path / "model", declared(original), epsilon=1.0, C=0.1, key_file=key)
    assert key.stat().st_mode & 0o777 == 0o600
    assert not any(key.read_bytes() in path.read_bytes() for path in (tmp_path / "model").rglob("*") if path.is_file())
    requests.request(tmp_path / "model", ["p3"])
    apply(tmp_path / "model")
    verified = verify(tmp_path / "model", made.head)
    assert (verified.unchecked, verified.strangers) == (None, ())


def test_the_command_says_where_the_key_lies(original: Original, tmp_path: Path, unlearn: Unlearn) -> None:
    flags = ("--label", "ill", "--id", "person", "--epsilon", "1", "--no-quality", "--key-file", tmp_path / "key")
    said = unlearn("init", tmp_path / "model", "--data", original.data, *flags)
    assert f"the key of pseudonyms is in {tmp_path / 'key'}: keep a copy" in said.stdout


def test_a_key_that_is_there_is_never_overwritten(original: Original, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"another model's")
    with pytest.raises(ParameterError, match="key', which exists already: each model has a key of its own"):
        initialise(tmp_path / "model", declared(original), epsilon=1.0, key_file=key)
    assert key.read_bytes() == b"another model's"
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("model/key", "--key-file must lie outside the model directory"),
        (".", "--key-file must name a file, but '.*' is a directory"),
        ("nowhere/key", "--key-file is '.*nowhere/key', but there is no directory .*nowhere$"),
    ],
)
def test_a_key_is_not_written_there(original: Original, tmp_path: Path, place: str, sentence: str) -> None:
    with pytest.raises(UnlearningError, match=sentence):
        initialise(tmp_path / "model", declared(original), epsilon=1.0, key_file=tmp_path / place)
    assert list(tmp_path.iterdir()) == []


def test_an_init_that_fails_leaves_no_key_and_no_directory(original: Original, tmp_path: Path) -> None:
    def refuse(_: object) -> None:
        raise DataError("not this")

    with pytest.raises(DataError, match="not this"):
        initialise(tmp_path / "model", declared(original), epsilon=1.0, key_file=tmp_path / "key", planned=refuse)
    assert list(tmp_path.iterdir()) == []


def test_the_key_stays_where_the_directory_was_made_and_something_failed_later(
    original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory is there already: without its key nobody could be looked up."""

    def fail(place: Path) -> None:
        if place == tmp_path and (tmp_path / "model").exists():
            raise OSError(5, "Input/output error")

    monkeypatch.setattr("certified_unlearning.ledger.initialisation.synchronise", fail)
    with pytest.raises(UnlearningError, match=r"cannot make .*model: Input/output error"):
        initialise(tmp_path / "model", declared(original), epsilon=1.0, key_file=tmp_path / "key")
    monkeypatch.undo()
    assert not unfinished(tmp_path / "model").exists()
    assert requests.request(tmp_path / "model", ["p3"]).records == 2


def test_a_variable_names_the_key_where_it_lies_elsewhere(
    apart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = tmp_path / "moved"
    key_of(tmp_path).rename(moved)
    with pytest.raises(MissingKeyError, match=f"cannot read {key_of(tmp_path)}: No such file or directory; if the"):
        requests.request(apart, ["p6"])
    monkeypatch.setenv(ENVIRONMENT, str(moved))
    assert requests.request(apart, ["p6"]).people == 1
    monkeypatch.delenv(ENVIRONMENT)
    # For good, without the variable.
    assert migrate(apart, moved).old_key_file is None
    assert requests.request(apart, ["p7"]).people == 1


def test_it_is_said_that_the_variable_names_a_file_that_is_missing_or_another_models_key(
    apart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    monkeypatch.setenv(ENVIRONMENT, str(other))
    with pytest.raises(MissingKeyError, match=rf"cannot read {other} \(named by {ENVIRONMENT}\): No such file"):
        requests.request(apart, ["p6"])
    other.write_bytes(bytes(32))
    with pytest.raises(LedgerError, match=rf"{other} \(named by {ENVIRONMENT}\) was replaced or is another model's"):
        requests.request(apart, ["p6"])


def test_the_variable_means_nothing_for_a_directory_that_keeps_its_key(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT, "/nowhere")
    assert requests.request(model, ["p6"]).people == 1


def test_init_refuses_another_file_than_the_variable_names(
    original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT, "/another/key")
    with pytest.raises(ParameterError, match=f"but the variable {ENVIRONMENT} names '/another/key': unset it"):
        initialise(tmp_path / "model", declared(original), epsilon=1.0, key_file=tmp_path / "key")


def test_another_models_key_is_refused_by_everything_that_looks_at_it(apart: Path, tmp_path: Path) -> None:
    key_of(tmp_path).write_bytes(bytes(32))
    for command in (requests.status, verify, apply, lambda path: requests.request(path, ["p6"])):
        with pytest.raises(
            LedgerError,
            match=r"safe/key was replaced or is another model's: it is not the key that `unlearn init` made",
        ):
            command(apart)


NEEDS_THE_KEY: dict[str, Callable[[Path], object]] = {
    "request": lambda model: requests.request(model, ["p6"]),
    "release": lambda model: release(model, ["p5"]),
    "show": lambda model: report_on(model, "p3"),
    "receipt": lambda model: make_receipt(model, "p3"),
}


@pytest.mark.parametrize("command", NEEDS_THE_KEY)
def test_without_the_key_nobody_is_looked_up_and_one_sentence_says_what_still_works(
    apart: Path, tmp_path: Path, command: str
) -> None:
    before = requests.status(apart)
    key_of(tmp_path).unlink()
    with pytest.raises(MissingKeyError) as caught:
        NEEDS_THE_KEY[command](apart)
    said = str(caught.value)
    assert "\n" not in said
    assert f"cannot read {key_of(tmp_path)}: No such file or directory; if the key is elsewhere, name its file" in said
    assert "without the key nobody can be looked up, so `request`" in said
    assert "`status`, `apply`, `predict`, `evaluate`, `export` and, with fewer checks, `verify` still work" in said
    assert requests.status(apart) == before


def test_without_the_key_what_was_asked_is_carried_out_and_checked_with_the_key_later(
    apart: Path, original: Original, tmp_path: Path
) -> None:
    head = requests.status(apart).head
    kept = key_of(tmp_path).rename(tmp_path / "kept")
    applied = apply(apart)
    assert [version.version for version in applied.versions] == [2]
    assert str(applied.unchecked).startswith(f"the owners of rows were not checked: cannot read {key_of(tmp_path)}")
    assert len(load_model(apart).predict(load_model(apart).rows(original.data))) == 450
    exported = export(apart, to=tmp_path / "copy")
    verified = verify(apart, head)
    assert str(verified.unchecked).startswith("the owners of rows, and the hidden parts of events from before a")
    growth = make_receipt(apart, None, since=head)
    check(growth, head=exported.head)
    kept.rename(key_of(tmp_path))
    again = verify(apart, exported.head)
    assert (again.unchecked, again.head) == (None, verified.head)
    check(make_receipt(apart, "p3"), head=exported.head)


def test_without_the_key_records_cannot_be_added_and_nothing_is_left(original: Original, tmp_path: Path) -> None:
    make_refit(tmp_path / "model", original.data, key_file=tmp_path / "key")
    write_new(tmp_path / "new.csv")
    (tmp_path / "key").unlink()
    with pytest.raises(MissingKeyError, match="nobody can be looked up"):
        add(tmp_path / "model", tmp_path / "new.csv")
    verify(tmp_path / "model")


def test_without_the_key_an_exchange_of_rows_is_not_found_and_with_it_it_is(apart: Path, tmp_path: Path) -> None:
    """Why `verify` says what it has not checked."""
    key = key_of(tmp_path).read_bytes()
    (apart / "identifier-key").write_bytes(key)
    exchange(apart)
    (apart / "identifier-key").unlink()
    key_of(tmp_path).unlink()
    assert verify(apart).unchecked is not None
    key_of(tmp_path).write_bytes(key)
    with pytest.raises(LedgerError, match="the owner of a row is not what was recorded"):
        verify(apart)


def test_the_commands_say_what_was_not_checked(
    apart: Path, original: Original, tmp_path: Path, unlearn: Unlearn
) -> None:
    key_of(tmp_path).unlink()
    said = unlearn("verify", apart).stdout
    assert "the training copy is as recorded" in said
    assert (
        "note: the owners of rows, and the hidden parts of events from before a migration, were not checked: " in said
    )
    assert '"unchecked": "the owners of rows' in unlearn("verify", apart, "--json").stdout
    assert "note: the owners of rows were not checked" in unlearn("apply", apart, "--no-quality").stdout
    said = unlearn("evaluate", apart, original.data)
    assert said.exit_code == 0
    assert f"warning: nobody has checked whether people of the model are in {original.data}: cannot read" in said.stderr


def test_a_key_that_was_taken_out_of_the_directory_by_hand_is_found_again(model: Path, tmp_path: Path) -> None:
    (model / "identifier-key").rename(tmp_path / "kept")
    with pytest.raises(MissingKeyError, match="name its file with `unlearn migrate --key-file`"):
        requests.request(model, ["p3"])
    with pytest.raises(MissingKeyError, match="name its file with `unlearn migrate --key-file`"):
        migrate(model, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    migrate(model, tmp_path / "kept")
    assert requests.request(model, ["p3"]).records == 2


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{}", r"key-file\.json lacks key_file"),
        ('{"key_file": null}', r"key-file\.json is damaged: key_file must be an absolute path, got None"),
        ('{"key_file": "a/key"}', r"key-file\.json is damaged: key_file must be an absolute path, got 'a/key'"),
    ],
)
def test_a_pointer_that_is_damaged_is_one_sentence(apart: Path, content: str, sentence: str) -> None:
    (apart / "key-file.json").write_text(content)
    with pytest.raises(DataError, match=sentence):
        requests.request(apart, ["p6"])


def test_a_key_in_the_directory_that_says_it_lies_elsewhere_is_named(apart: Path, tmp_path: Path) -> None:
    shutil.copy(key_of(tmp_path), apart / "identifier-key")
    assert [path.name for path in verify(apart).strangers] == ["identifier-key"]
    # Moved again, it goes.
    migrate(apart, key_of(tmp_path))
    assert not (apart / "identifier-key").exists()
    assert verify(apart).strangers == ()


def test_a_hold_without_its_reason_is_found_without_the_key_by_a_head(apart: Path, tmp_path: Path) -> None:
    """What leaves hide has a salt in the log, so no key is needed to check it."""
    head = requests.status(apart).head
    key_of(tmp_path).unlink()
    sql(apart, "UPDATE events SET payload = replace(payload, 'court', 'count') WHERE kind = 'held'")
    with pytest.raises(LedgerError, match="event 4 is not what was recorded"):
        verify(apart, head)
