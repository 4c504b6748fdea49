"""A kind of certificates is one class and one line of a table: commands and the ledger's words know it from there."""

import ast
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from typer.testing import CliRunner

from certified_unlearning import certificate
from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.certificate import KINDS, CertificateError
from certified_unlearning.certificate.base import Stated, same
from certified_unlearning.certificate.kinds import OF_LEDGERS
from certified_unlearning.certificate.ledger import LedgerCertificate, Scope
from certified_unlearning.cli import app
from certified_unlearning.commands.ledger import status, words
from certified_unlearning.ledger.state import Batch, Version

SOURCE = Path(certificate.__file__).parents[1]


class Toy(LedgerCertificate):
    """Every removal doubles what is told."""

    kind: Literal["toy"] = "toy"
    mechanism: Literal["doubling"] = "doubling"
    guarantee: Literal["heuristic"] = "heuristic"
    comparator: str
    requests: int
    epsilon: float
    assumptions: tuple[Assumption, ...]
    features: str = "given"
    code_version: str

    takes_noisy_steps = True
    publishes_weights = False

    def stated(self) -> Stated:
        return Stated(self.epsilon, 0.25, 0.0, None, adjacency="replace")

    def details(self) -> str:
        return f"told {self.epsilon:g} times as much ({self.guarantee} by {self.mechanism}; {self.not_checked})"

    @classmethod
    def scope(cls, stated: Stated, release: str) -> Scope:
        return Scope("silence", adaptive=True, sentence=f"{release} tells {stated.epsilon:g} times as much as silence")

    @classmethod
    def removed_by(cls, steps: int, reading: str | None) -> str:
        return f"doubling {steps} times"

    def done(self, steps: int, reading: str | None) -> str:
        return f"The model was doubled {steps} times."

    def with_known_number(self) -> str:
        return "The number counts as known."

    def limits(self) -> dict[str, tuple[bool, str]]:
        return {"requests": (self.requests >= 1, "at least 1")}

    def recomputed(self) -> dict[str, Any]:
        return {"epsilon": 2.0**self.requests}

    def words(self) -> dict[str, Any]:
        return {"comparator": "silence", "assumptions": (Assumption("nobody listens", "assumed", "who knows"),)}


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Toy:
    for kinds in (KINDS, OF_LEDGERS):
        monkeypatch.setitem(kinds, "toy", Toy)  # type: ignore[arg-type]
    return Toy.made(requests=3)


def test_it_is_made_written_read_and_verified(toy: Toy, tmp_path: Path) -> None:
    assert (toy.epsilon, toy.comparator) == (8.0, "silence")
    certificate.write(toy, tmp_path / "toy.json")
    assert certificate.read_any(tmp_path / "toy.json") == toy
    certificate.verify(toy)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"requests": 0}, "the certificate states requests = 0, but it must be at least 1"),
        ({"requests": 4}, r"the certificate states epsilon = 8\.0, but its constants give 16\.0"),
        ({"comparator": "noise"}, "the certificate states the wrong comparator: 'noise' instead of 'silence'"),
        ({"requests": 5000}, "the certificate's constants are impossible: "),
        ({"requests": 10**19}, "the certificate's constants are impossible: requests has 20 digits"),
    ],
)
def test_what_is_wrong_is_said_as_of_any_kind(toy: Toy, change: dict[str, object], sentence: str) -> None:
    with pytest.raises(CertificateError, match=sentence):
        certificate.verify(toy.model_copy(update=change))


def test_the_command_verifies_it(toy: Toy, tmp_path: Path) -> None:
    path = tmp_path / "toy.json"
    certificate.write(toy, path)
    done = CliRunner().invoke(app, ["verify", str(path)])
    assert done.output == f"{path}: told 8 times as much (heuristic by doubling; 1 assumption not checked)\n"
    found = json.loads(CliRunner().invoke(app, ["verify", "--json", str(path)]).output)
    assert (found["epsilon"], found["delta"], found["adjacency"]) == (8.0, 0.25, "replace")
    assert (found["accountant"], found["assumed"]) == (None, ["nobody listens"])


def version(**changes: Any) -> Version:
    batch = Batch(version=2, after=0, up_to=1, requests=1, records=1, steps=5, training_digest="")
    known = {"batch": batch, "epsilon": 8.0, "delta": 0.25, "extra_delta": 0.0, "epsilon_all_published": None}
    return Version(2, "now", weights_sha256="", certificate_sha256="", **(known | changes))


def test_a_ledgers_words_know_it(toy: Toy) -> None:
    found = version(kind="toy")
    assert words.guarantee_in_words(found) == "version 2 tells 8 times as much as silence"
    assert words.version_in_words(found) == "version 2 (now): removed 1 record of 1 person by doubling 5 times"
    assert status._version_as_json(found)["steps"] == 5
    guarantee = words.guarantee_as_json(found)
    assert guarantee is not None
    assert (guarantee["compared_with"], guarantee["adaptive_requests"]) == ("silence", True)
    assert words.guarantee_in_words(replace(found, batch=None)).startswith("nothing was removed yet")


@pytest.mark.parametrize(
    ("recorded", "kind"),
    [
        ({}, "steps"),
        ({"reading": "none", "secret_digest": "0"}, "residual"),
        ({"batch": None, "secret_digest": "0"}, "residual"),
        ({"epsilon": 0.0, "delta": 0.0, "secret_digest": "0"}, "exact"),
        ({"epsilon": None, "delta": None, "extra_delta": None, "secret_digest": "0"}, "ensemble"),
    ],
)
def test_ledgers_that_record_no_kind_are_read_by_their_numbers(recorded: dict[str, Any], kind: str) -> None:
    before, now = version(**recorded), version(**recorded, kind=kind)
    assert before.certificate is now.certificate is KINDS[kind]
    assert words.guarantee_in_words(before) == words.guarantee_in_words(now)


@pytest.mark.parametrize("kind", ["unheard", "prediction"])
def test_a_ledger_with_certificates_of_no_kind_or_of_one_for_estimators_only_is_refused(kind: str) -> None:
    with pytest.raises(ValueError, match=f"no certificates of kind '{kind}'"):
        version(kind=kind)


@pytest.mark.parametrize("method", ["scope", "removed_by", "done", "with_known_number"])
def test_a_kind_of_ledgers_without_an_answer_to_their_questions_cannot_be_made(toy: Toy, method: str) -> None:
    mute = type("Mute", (Toy,), {method: vars(LedgerCertificate)[method], "__module__": __name__})
    with pytest.raises(TypeError, match=f"abstract.*{method}"):
        mute(**toy.model_dump())


def test_files_call_kinds_as_the_table_does() -> None:
    fields = {name: kind.model_fields.get("kind") for name, kind in KINDS.items()}
    assert {name: field.default for name, field in fields.items() if field} == {
        name: name for name in KINDS if name != "steps"
    }
    assert KINDS["steps"].kind == "steps"


def test_nobody_asks_which_certificate_it_is() -> None:
    kinds = {kind.__name__ for kind in KINDS.values()}
    asked = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            of_types = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
            if of_types or isinstance(node, ast.MatchClass):
                named = {getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(node)}
                asked += [f"{path.relative_to(SOURCE)}:{node.lineno}: {name}" for name in named & kinds]
    assert asked == []


@pytest.mark.parametrize(
    ("stated", "computed", "equal"),
    [
        (1.0, 1.0 + 1e-12, True),
        (1.0, 1.001, False),
        (None, None, True),
        (None, 0.0, False),
        (3, 3, True),
        (10**12, 10**12 + 1, False),
        ((1.0, (2.0, 3)), (1.0, (2.0 + 1e-12, 3)), True),
        ((1.0,), (1.0, 2.0), False),
    ],
)
def test_numbers_are_the_same_up_to_rounding(stated: object, computed: object, equal: bool) -> None:
    assert same(stated, computed) is equal
