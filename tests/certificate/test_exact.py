"""Certificates of exact unlearning: written, read, recomputed, and found when wrong."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from certified_unlearning import certificate
from certified_unlearning.certificate import CertificateError, ExactCertificate
from certified_unlearning.cli import app
from certified_unlearning.errors import DataError

NOISY = {
    "mechanism": "noisy-sgd",
    "loss": "logistic",
    "n_learned": 60_000,
    "deleted": 300,
    "inserted": 300,
    "requests": 600,
    "d": 785,
    "classes": 2,
    "strong_convexity": 1e-4,
    "steps": 200,
    "batch_size": 50,
    "step_size": 2.0,
    "sigma": 0.05,
}


def stated(**changes: object) -> ExactCertificate:
    return ExactCertificate.of(noise_source="system entropy", **{**NOISY, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"deleted": 0, "inserted": 0, "requests": 0},
        {"requests": 1},
        {"mechanism": "accelerated-noisy-sgd", "radius": 10.0},
        {"mechanism": "quantized-sgd", "sigma": None, "quantum": 0.3},
        {"mechanism": "subsample-gd", "sigma": None},
        {"classes": 10, "loss": "softmax", "d": 7850},
    ],
)
def test_a_certificate_is_recomputed_from_its_constants(changes: dict[str, object]) -> None:
    certificate.verify(stated(**changes))


def test_what_is_stated() -> None:
    said = stated()
    assert (said.epsilon, said.delta, said.n) == (0, 0, 60_000)
    assert said.recompute_probability == pytest.approx(0.153577, abs=5e-7)  # 1 - (1 - 50/60000)^200
    assert "same probability distribution" in said.comparator
    assert any("oblivious" in each.statement and each.status == "assumed" for each in said.assumptions)
    assert any("secret" in each.statement and each.status == "assumed" for each in said.assumptions)
    assert any("protect the remaining records" in each for each in said.not_promised)


def test_a_seed_is_no_secret() -> None:
    def knows(said: ExactCertificate) -> str:
        return next(each.status for each in said.assumptions if each.statement == "nobody knows the random numbers")

    assert knows(stated()) == "checked"
    assert knows(ExactCertificate.of(noise_source="seed", **NOISY)) == "assumed"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("n", 59_999, "n_learned - deleted"),
        ("batch_size", 60_000, "below n"),
        ("steps", 199, "recompute_probability"),
        ("recompute_probability", 0.15, "its constants give 0.1535"),
        ("requests", 601, "requests"),
        ("requests", 0, "requests"),
        ("sigma", None, "sigma"),
        ("quantum", 0.1, "quantum"),
        ("loss", "softmax", "loss"),
        ("d", 785, "multiple"),
        ("comparator", "nothing", "wrong comparator"),
        ("not_promised", (), "wrong not_promised"),
        ("assumptions", (), "wrong assumptions"),
        ("features", "made up", "features"),
    ],
)
def test_a_wrong_certificate_is_found(name: str, value: object, said: str) -> None:
    right = stated(classes=10, loss="softmax", d=7850) if name == "d" else stated()
    with pytest.raises(CertificateError, match=said):
        certificate.verify(right.model_copy(update={name: value}))


@pytest.mark.parametrize(
    ("name", "value"), [("epsilon", 0.1), ("epsilon", False), ("delta", 1e-6), ("guarantee", "upper bound")]
)
def test_nothing_but_exactness_can_be_stated(name: str, value: object, tmp_path: Path) -> None:
    with pytest.raises(ValidationError):
        ExactCertificate.model_validate(stated().model_dump() | {name: value})
    path = tmp_path / "certificate.json"
    certificate.write(stated(), path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    with pytest.raises(DataError, match=name):
        certificate.read_any(path)


def test_the_command_reads_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    certificate.write(stated(), path)
    assert certificate.read_any(path) == stated()
    done = CliRunner().invoke(app, ["verify", str(path)])
    assert done.exit_code == 0
    assert "equal in distribution to a run on the 60000 records that are left (exact by noisy-sgd" in done.output
    found = json.loads(CliRunner().invoke(app, ["verify", "--json", str(path)]).output)
    assert (found["verified"], found["epsilon"], found["delta"], found["guarantee"]) == (True, 0, 0, "exact")
    path.write_text(path.read_text().replace('"steps": 200', '"steps": 2'))
    assert CliRunner().invoke(app, ["verify", str(path)]).exit_code == 1
