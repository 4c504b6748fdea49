"""In a model directory people stand under pseudonyms: in no byte of any file is an identifier."""

import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.errors import ParameterError, UnlearningError
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.adding.addition import add
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.copies.exports import export
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.identifiers.names import UNNAMED, Names, Pseudonyms, pseudonym
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.personal.report import report_on
from certified_unlearning.ledger.proofs.receipt import make_receipt
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.terms.deadlines import Terms
from certified_unlearning.ledger.terms.release import release
from certified_unlearning.ledger.verification import verify
from tests.ledger.conftest import Unlearn
from tests.ledger.identifiers.people import address, files_with, write_addresses
from tests.ledger.tables import make_refit
from tests.ledger.test_right_person import FLAGS, ROWS, refused, table
from tests.ledger.test_tampering import make_chain_again, sql

NEEDLE = b"unlikely-name"


def history(root: Path) -> Iterator[Path]:
    """Use a model in every way, and yield its directory after each."""
    model = root / "model"
    write_addresses(root / "people.csv")
    write_addresses(root / "new.csv", new=True)
    make_refit(model, root / "people.csv")
    # An open connection keeps SQLite from tidying up its side files.
    with Ledger.opened(ModelDirectory(model).ledger, read_only=True):
        yield model
        requests.request(model, [address("p3"), address("p4")])
        requests.request(model, [address("p5")], terms=Terms.of(None, "30", "a court asked"))
        yield model
        apply(model)
        release(model, [address("p5")])
        yield model
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("certified_unlearning.ledger.application.write_version", interrupted)
            with pytest.raises(KeyboardInterrupt):
                apply(model)
        yield model
        add(model, root / "new.csv")
        requests.request(model, [address("p301")])
        apply(model)
        export(model, to=root / "copy")
        verify(model)
        yield model


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_no_file_of_a_directory_has_an_identifier_in_any_byte_whatever_was_done(tmp_path: Path) -> None:
    for count, model in enumerate(history(tmp_path), 1):
        assert files_with(model, NEEDLE) == set(), count
    assert files_with(tmp_path / "copy", NEEDLE) == set()
    assert files_with(tmp_path, NEEDLE) == {"people.csv", "new.csv"}


def test_the_search_finds_identifiers_that_were_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pseudonyms, "stored", lambda self, identifier: identifier)
    assert {"ledger.sqlite", "ledger.sqlite-wal"} & files_with(next(history(tmp_path)), NEEDLE)


def test_the_spelling_is_hidden_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pseudonyms, "folded", lambda self, spelling: spelling)
    assert {"ledger.sqlite", "ledger.sqlite-wal"} & files_with(next(history(tmp_path)), NEEDLE)


def test_a_pseudonym_is_that_of_proofs_and_tells_nothing_without_the_key(model: Path) -> None:
    requests.request(model, ["p3"])
    receipt = make_receipt(model, "p3")
    key = ModelDirectory(model).identifier_key.read_bytes()
    with Ledger.opened(ModelDirectory(model).ledger) as ledger:
        assert ledger.owners.people_requested() == {pseudonym(key, "p3")} == {receipt.pseudonym}
    assert pseudonym(bytes(32), "p3") != receipt.pseudonym


def exchange(model: Path) -> None:
    """Give two people each other's rows: totals stay what they were."""
    key = ModelDirectory(model).identifier_key.read_bytes()
    one, other = pseudonym(key, "p7"), pseudonym(key, "p9")
    sql(
        model,
        f"UPDATE records SET identifier = 'x' WHERE identifier = '{one}'",
        f"UPDATE records SET identifier = '{one}' WHERE identifier = '{other}'",
        f"UPDATE records SET identifier = '{other}' WHERE identifier = 'x'",
    )


def another_subject(model: Path) -> None:
    key = ModelDirectory(model).identifier_key.read_bytes()
    sql(model, f"UPDATE events SET subject = '{pseudonym(key, 'p9')}' WHERE sequence = 2")
    make_chain_again(model)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (exchange, "the owner of a row is not what was recorded"),
        (another_subject, "its first 2 events are not those of the head"),
        (lambda model: sql(model, "PRAGMA user_version = 0"), "the owner of a row|not those of the head|was replaced"),
        (lambda model: sql(model, "PRAGMA user_version = 3"), "has the format 3 of a later release"),
        (lambda model: sql(model, "DELETE FROM identifier_key"), "it does not say which key of identifiers it uses"),
        (
            lambda model: sql(model, "UPDATE identifier_key SET key_check = 'a'"),
            "was replaced or is another model's: it is not the key that",
        ),
        (
            lambda model: ModelDirectory(model).identifier_key.write_bytes(bytes(32)),
            "identifier-key was replaced or is",
        ),
        (lambda model: sql(model, "UPDATE events SET payload = '[]'"), "event 1 is not what was recorded"),
    ],
)
def test_what_is_done_to_pseudonyms_is_found(model: Path, spoil: Callable[[Path], object], sentence: str) -> None:
    head = requests.request(model, ["p3"]).head
    verify(model, head)
    spoil(model)
    with pytest.raises(UnlearningError, match=sentence):
        verify(model, head)


def test_another_persons_row_under_a_pseudonym_is_not_removed(model: Path) -> None:
    """Somebody who edits the table of rows cannot make `apply` remove others."""
    requests.request(model, ["p7"])
    exchange(model)
    with pytest.raises(UnlearningError, match="the owner of a row is not what was recorded"):
        apply(model)


def test_a_salt_that_is_none_is_one_sentence(model: Path) -> None:
    sql(model, """UPDATE events SET payload = '{"salt": 5}'""")
    make_chain_again(model)
    with pytest.raises(UnlearningError, match="event 1 of the ledger was tampered with: 5 is not a valid salt"):
        requests.status(model)


def with_people(tmp_path: Path, unlearn: Unlearn, *people: str) -> Path:
    """Make a model with these people among sixty others."""
    data = table(tmp_path / "t.csv", [f"c{row}" for row in ROWS] + [f"{each},40,no,x" for each in people])
    assert unlearn("init", tmp_path / "model", "--data", data, *FLAGS).exit_code == 0
    return tmp_path / "model"


def test_another_spelling_is_named_where_it_is_a_likely_one(tmp_path: Path, unlearn: Unlearn) -> None:
    model = with_people(tmp_path, unlearn, "acme", "ACME")
    said = refused(unlearn, "request", model, "--id", "acme")
    assert said.startswith("'acme' may be 'ACME', which differs only in case (1 record): name both if they are one")
    said = refused(unlearn, "request", model, "--id", "Acme ")
    assert re.search(r"identifier 'Acme' is not in the training data \(did you mean '(acme|ACME)'\?\)", said)


def test_another_spelling_that_is_not_known_is_said_without_its_name(tmp_path: Path, unlearn: Unlearn) -> None:
    model = with_people(tmp_path, unlearn, "aCmE  Berlin")
    said = refused(unlearn, "request", model, "--id", "acme berlin")
    assert f"'acme berlin' is not in the training data (did you mean {UNNAMED}?)" in said
    assert "aCmE" not in said
    said = refused(unlearn, "show", model, "--id", "acme berlin")
    assert f"(did you mean {UNNAMED}?)" in said
    requests.request(model, ["aCmE  Berlin"])
    apply(model)
    # The digest of the spelling stays with the pseudonym, so that nobody comes back under another one.
    said = refused(unlearn, "show", model, "--id", "acme berlin")
    assert f"its removal was never requested (did you mean {UNNAMED}?)" in said
    with sqlite3.connect(model / "ledger.sqlite") as connection:
        (kept,) = connection.execute("SELECT count(*) FROM spellings").fetchone()
    assert kept == 61


def test_a_report_on_somebody_with_a_likeness_says_that_there_is_one(tmp_path: Path, unlearn: Unlearn) -> None:
    model = with_people(tmp_path, unlearn, "acme berlin", "aCmE  Berlin")
    requests.request(model, ["acme berlin"], one_spelling=True)
    apply(model)
    assert report_on(model, "acme berlin").like == UNNAMED


@pytest.mark.parametrize(("new", "named"), [("P3", "'p3', which differs only in case"), ("p 3", "'p3', which differs")])
def test_somebody_who_was_removed_does_not_come_back_under_another_spelling(
    tmp_path: Path, original: object, new: str, named: str
) -> None:
    make_refit(tmp_path / "model", original.data)  # type: ignore[attr-defined]
    requests.request(tmp_path / "model", ["p3"])
    apply(tmp_path / "model")
    write_addresses(tmp_path / "new.csv", new=True).assign(person=new).to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(
        ParameterError, match=f"identifier '{new}' may be {named}.*; the latter was to be removed .*version 2"
    ):
        add(tmp_path / "model", tmp_path / "new.csv")
    add(tmp_path / "model", tmp_path / "new.csv", one_spelling=True)
    verify(tmp_path / "model")


def test_new_people_who_look_like_others_are_said_with_and_without_names(
    tmp_path: Path, original: object, unlearn: Unlearn
) -> None:
    frame = pd.read_csv(original.data)  # type: ignore[attr-defined]
    frame.loc[frame["person"] == "p8", "person"] = "o Ne"
    frame.to_csv(tmp_path / "people.csv", index=False)
    make_refit(tmp_path / "model", tmp_path / "people.csv")
    rows = frame.head(2).assign(person=["P6", "On e"])
    rows.to_csv(tmp_path / "new.csv", index=False)
    said = unlearn("add", tmp_path / "model", "--data", tmp_path / "new.csv", "--no-quality").stderr
    assert "2 identifiers differ only in case, such as 'P6' and 'p6': they count as different people" in said
    assert "1 new identifier may be in the model in another spelling, such as 'On e'" in said
    with pytest.raises(ParameterError, match="'P6' may be 'p6', which differs only in case"):
        requests.request(tmp_path / "model", ["P6"])


def test_an_identifier_that_is_no_text_is_one_sentence(model: Path) -> None:
    with pytest.raises(ParameterError, match=r"'\\udcff' is not UTF-8 text"):
        requests.request(model, ["\udcff"])


def test_names_of_a_hundred_thousand_people_take_a_second_or_less() -> None:
    """Of the process's own time, and of a third of them: a pseudonym, a tag and a digest of the spelling each."""
    names: Names = Pseudonyms(lambda: bytes(range(32)))
    began = time.process_time()
    for row in range(33_000):
        name = names.stored(f"customer-{row}")
        names.tag(name, row)
        names.folded(f"customer-{row}")
    assert time.process_time() - began < 1


def test_status_and_receipt_of_ten_thousand_requests_do_no_work_for_every_pair(tmp_path: Path) -> None:
    """They take a fraction of a second; what looks at every pair of requests takes minutes."""
    people = 10_500
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"a": draw.uniform(-1, 1, people), "left": ["no", "yes"] * (people // 2)})
    frame["customer"] = [f"c{number}" for number in range(people)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    declared = Table(path=str(tmp_path / "t.csv"), label="left", identifier="customer", classes=("no", "yes"))
    initialise(tmp_path / "model", declared, epsilon=1.0, C=0.001)
    with Ledger.opened(ModelDirectory(tmp_path / "model").ledger) as ledger, ledger.transaction():
        ledger.append_requests("requested", {f"c{number}": {"records": 1} for number in range(10_000)})
    for command in (
        lambda: requests.status(tmp_path / "model"),
        lambda: make_receipt(tmp_path / "model", "c9999"),
        lambda: report_on(tmp_path / "model", "c10001"),
    ):
        began = time.process_time()
        command()
        assert time.process_time() - began < 10


def test_a_copy_of_a_directory_is_used_as_the_directory_itself(model: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(model, tmp_path / "copy"))
    assert requests.request(copy, ["p3"]).records == 2
    assert requests.status(model).state.waiting == 0
