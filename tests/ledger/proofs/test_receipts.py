"""Receipts prove what was recorded, without the directory and without a name; every change of one is found."""

import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from certified_unlearning.errors import DataError, LedgerError, ParameterError, UnlearningError
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory, file_sha256
from certified_unlearning.ledger.proofs.receipt import Receipt, check, make_receipt, read_receipt
from certified_unlearning.ledger.terms.deadlines import Terms
from certified_unlearning.ledger.verification import verify
from tests.ledger.conftest import Original, Unlearn
from tests.ledger.tables import make_model
from tests.ledger.test_tampering import make_chain_again, name_of, sql


@pytest.fixture(scope="module")
def removed(original: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with two applied requests and one that waits."""
    path = tmp_path_factory.mktemp("receipts") / "model"
    shutil.copytree(original.path, path)
    requests.request(path, ["p3", "p4"], terms=Terms.of("2026-11-01", "30", None))
    apply(path)
    requests.request(path, ["p5"])
    return path


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """The files of a private and a public key."""
    key = Ed25519PrivateKey.generate()
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private, public


def written(receipt: Receipt, path: Path) -> Receipt:
    """The receipt as somebody reads it who was sent the file."""
    receipt.write(path)
    return read_receipt(path)


def test_a_receipt_shows_the_request_its_answer_and_the_certificate(removed: Path, tmp_path: Path) -> None:
    found = written(make_receipt(removed, "p3"), tmp_path / "receipt.json")
    check(found, head=requests.status(removed).head)
    assert [*found.events] == ["requested", "planned", "applied"]
    answer = found.events["applied"].leaf.shown
    assert answer["version"] == 2
    assert answer["certificate_sha256"] == file_sha256(ModelDirectory(removed).certificate(2))
    assert found.events["requested"].leaf.shown == {"records": 2, "received": "2026-11-01", "due": "2026-12-01"}


def test_a_receipt_of_a_request_that_waits_shows_no_answer(removed: Path, tmp_path: Path) -> None:
    found = written(make_receipt(removed, "p5"), tmp_path / "receipt.json")
    check(found)
    assert [*found.events] == ["requested"]


def test_a_receipt_names_nobody_and_no_file(removed: Path, tmp_path: Path) -> None:
    make_receipt(removed, "p3", since=requests.status(removed).head).write(tmp_path / "receipt.json")
    text = (tmp_path / "receipt.json").read_text()
    assert not re.search(r"\bp[345]\b", text)
    assert "people.csv" not in text
    assert "places" not in text
    assert "digest" not in text.replace("secret_digest", "digest")


def test_pseudonyms_of_two_directories_have_nothing_in_common(
    removed: Path, original: Original, tmp_path: Path
) -> None:
    make_model(tmp_path / "another", original.data)
    requests.request(tmp_path / "another", ["p3"])
    assert make_receipt(tmp_path / "another", "p3").pseudonym != make_receipt(removed, "p3").pseudonym


def test_another_key_of_identifiers_is_refused(model: Path) -> None:
    requests.request(model, ["p3"])
    ModelDirectory(model).identifier_key.write_bytes(bytes(32))
    for command in (lambda: requests.request(model, ["p4"]), lambda: requests.status(model), lambda: verify(model)):
        with pytest.raises(LedgerError, match=r"identifier-key was replaced or is another|the owner of a row"):
            command()
    assert len(of_kind(model, "requested")) == 1


def test_nothing_is_added_to_a_log_that_was_tampered_with(model: Path) -> None:
    requests.request(model, ["p3"])
    sql(model, "UPDATE events SET time = '2020-01-01T00:00:00+00:00' WHERE sequence = 1")
    with pytest.raises(LedgerError, match="was tampered with: event 1 is not what was recorded"):
        requests.request(model, ["p4"])
    with pytest.raises(LedgerError, match="was tampered with"):
        requests.status(model)


def of_kind(model: Path, kind: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(ModelDirectory(model).ledger)
    found = connection.execute("SELECT * FROM events WHERE kind = ?", (kind,)).fetchall()
    connection.close()
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("person", ["p3", "p5"])
def test_every_byte_of_a_receipt_is_checked_or_without_meaning(
    removed: Path, tmp_path: Path, person: str, keys: tuple[Path, Path]
) -> None:
    head, path = requests.status(removed).head, tmp_path / "receipt.json"
    good = written(make_receipt(removed, person, since=head, signing_key=keys[0]), path)
    content = path.read_bytes()
    accepted = 0
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        try:
            found = read_receipt(path)
            check(found, head=head, public_key=keys[1])
        except UnlearningError:
            continue
        # Blanks may become other blanks; a receipt that says something else is never accepted.
        assert found == good
        accepted += 1
    assert accepted < len(content) / 2


def changed(receipt: Receipt, kind: str, **shown: object) -> Receipt:
    """The receipt with another event of a kind."""
    event = receipt.events[kind]
    leaf = replace(event.leaf, shown={**event.leaf.shown, **shown})
    return replace(receipt, events={**receipt.events, kind: replace(event, leaf=leaf)})


@pytest.mark.parametrize(
    ("forge", "sentence"),
    [
        (lambda good, _: changed(good, "applied", certificate_sha256="0" * 64), "'applied' is not in the log of"),
        (lambda good, _: changed(good, "requested", records=1), "'requested' is not in the log of"),
        (lambda good, _: replace(good, pseudonym="0" * 32), "the request of a person other than the one it names"),
        (lambda good, _: replace(good, pseudonym=None), "shows events, but names no person"),
        (lambda good, _: replace(good, pseudonym=None, events={}), "the receipt shows nothing"),
        (lambda good, _: replace(good, events={}), "must show some of the events held, requested, planned, applied"),
        (
            lambda good, _: replace(good, events={"applied": good.events["applied"]}),
            "an answer, but not the request and the plan",
        ),
        (
            lambda good, other: replace(other, events={**other.events, "planned": good.events["planned"]}),
            "a plan that does not contain the request",
        ),
    ],
)
def test_what_does_not_belong_together_is_refused(
    removed: Path, forge: Callable[[Receipt, Receipt], Receipt], sentence: str
) -> None:
    forged = forge(make_receipt(removed, "p3"), make_receipt(removed, "p5"))
    with pytest.raises(LedgerError, match=sentence):
        check(forged)


def test_a_version_that_answers_another_plan_is_refused(removed: Path, model: Path) -> None:
    requests.request(model, ["p3"])
    apply(model)
    requests.request(model, ["p4"])
    apply(model)
    first, second = make_receipt(model, "p3"), make_receipt(model, "p4")
    check(first)
    with pytest.raises(LedgerError, match="shows a version that does not follow from the plan"):
        check(replace(first, events={**first.events, "applied": second.events["applied"]}))


def test_a_later_log_proves_that_it_begins_with_the_earlier_one(model: Path, tmp_path: Path) -> None:
    earlier = requests.request(model, ["p3"]).head
    apply(model)
    found = written(make_receipt(model, None, since=earlier), tmp_path / "receipt.json")
    check(found, head=earlier)
    check(found, head=requests.status(model).head)
    with pytest.raises(LedgerError, match="does not connect it with 9:"):
        check(found, head="9:" + "0" * 64)


def test_a_log_that_was_made_again_cannot_prove_that_it_begins_with_the_earlier_one(model: Path) -> None:
    earlier = requests.request(model, ["p3"]).head
    apply(model)
    sql(model, f"UPDATE events SET subject = '{name_of(model, 'p5')}' WHERE subject = '{name_of(model, 'p3')}'")
    make_chain_again(model)
    with pytest.raises(LedgerError, match=f"its first 2 events are not those of the head {earlier}"):
        make_receipt(model, None, since=earlier)


def test_a_directory_that_was_restored_is_behind(model: Path, tmp_path: Path) -> None:
    backup = Path(shutil.copytree(model, tmp_path / "backup"))
    head = requests.request(model, ["p3"]).head
    with pytest.raises(LedgerError, match=r"is behind: the head .* covers 2 events, but the log has 1"):
        verify(backup, head)


def test_a_hidden_request_is_found_by_the_head_that_its_recording_printed(model: Path) -> None:
    head = requests.request(model, ["p3"]).head
    sql(model, "DELETE FROM events WHERE sequence = 2")
    requests.request(model, ["p4"])
    verify(model)
    with pytest.raises(LedgerError, match="its first 2 events are not those of the head"):
        verify(model, head)


def test_a_signed_head_is_checked_with_the_operators_key(
    removed: Path, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    private, public = keys
    found = written(make_receipt(removed, "p3", signing_key=private), tmp_path / "receipt.json")
    check(found, public_key=public)
    another = tmp_path / "another.pem"
    another.write_bytes(
        Ed25519PrivateKey.generate().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    with pytest.raises(LedgerError, match=f"signed with a key other than that of {another}"):
        check(found, public_key=another)
    assert found.signed is not None
    with pytest.raises(LedgerError, match="the receipt's signature is not a signature of its head"):
        check(replace(found, signed=replace(found.signed, value=bytes(64))))
    with pytest.raises(LedgerError, match="the receipt is not signed"):
        check(replace(found, signed=None), public_key=public)


@pytest.mark.parametrize("which", ["missing", "text", "password", "other"])
def test_a_key_that_cannot_sign_is_one_sentence(removed: Path, tmp_path: Path, which: str) -> None:
    file = tmp_path / "key.pem"
    sentence = {
        "missing": "cannot read .*key.pem: No such file",
        "text": "key.pem does not hold an unencrypted private key in PEM",
        "password": "key.pem does not hold an unencrypted private key in PEM",
        "other": "key.pem holds a key that is not an Ed25519 key",
    }[which]
    if which == "text":
        file.write_text("no key")
    if which == "password":
        from cryptography.hazmat.primitives.serialization import BestAvailableEncryption

        key = Ed25519PrivateKey.generate()
        file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")))
    if which == "other":
        file.write_bytes(X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(DataError, match=sentence):
        make_receipt(removed, "p3", signing_key=file)


def test_a_receipt_needs_a_request_or_an_earlier_head(removed: Path) -> None:
    with pytest.raises(ParameterError, match="give --id, --since or both"):
        make_receipt(removed, None)
    with pytest.raises(ParameterError, match="no removal of 'p9' was requested"):
        make_receipt(removed, "p9")
    with pytest.raises(ParameterError, match="'6ef1' is not a head of a log"):
        make_receipt(removed, None, since="6ef1")


@pytest.mark.parametrize(
    "content",
    ["[]", "{}", '{"format": "certified_unlearning receipt 1"}', "null", '{"format": 1}'],
)
def test_what_is_no_receipt_is_one_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "receipt.json").write_text(content)
    with pytest.raises(DataError, match=r"receipt\.json is not a receipt: "):
        read_receipt(tmp_path / "receipt.json")


def test_the_commands_write_and_check_a_receipt(
    removed: Path, tmp_path: Path, unlearn: Unlearn, keys: tuple[Path, Path]
) -> None:
    file = tmp_path / "receipt.json"
    head = requests.status(removed).head
    printed = unlearn("receipt", removed, "--id", "p3", "--signing-key", keys[0], "-o", file).stdout
    assert "removal requested 20" in printed
    assert ", received 2026-11-01, due 2026-12-01\n" in printed
    assert "by version 2 of the model, whose certificate has" in printed
    assert "and states epsilon 1" in printed
    printed = unlearn("verify", file, "--head", head, "--public-key", keys[1]).stdout
    assert f"{file}: head: {head}\n" in printed
    found = json.loads(unlearn("verify", file, "--json").stdout)
    assert (found["verified"], found["head"]) == (True, head)
    assert json.loads(unlearn("receipt", removed, "--id", "p3").stdout)["head"] == head
    file.write_text(file.read_text().replace('"version": 2', '"version": 3'))
    result = unlearn("verify", file)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"error: {file}: the receipt's event 'planned' is not in the log of the receipt's head" in result.stderr
    found = json.loads(unlearn("verify", file, "--json").stdout)
    assert found["verified"] is False


def test_a_receipt_is_not_written_into_the_model_directory(removed: Path, unlearn: Unlearn) -> None:
    with pytest.raises(ParameterError, match="lies in the model directory"):
        unlearn("receipt", removed, "--id", "p3", "-o", removed / "receipt.json")
    assert not (removed / "receipt.json").exists()


def test_a_public_key_is_for_receipts(removed: Path, unlearn: Unlearn, keys: tuple[Path, Path]) -> None:
    with pytest.raises(ParameterError, match="--public-key is for receipts"):
        unlearn("verify", removed, "--public-key", keys[1])
