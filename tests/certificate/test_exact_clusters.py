"""Certificates of exact unlearning of k-means: written, read, recomputed, and found when wrong."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from certified_unlearning import certificate
from certified_unlearning.certificate import CertificateError, ExactClustersCertificate
from certified_unlearning.cli import app

USUAL = {
    "n_learned": 60_000,
    "deleted": 30,
    "inserted": 10,
    "requests": 12,
    "d": 490,
    "clusters": 10,
    "start": "mean",
    "steps": 10,
    "sigma": 25.0,
}


def stated(**changes: object) -> ExactClustersCertificate:
    return ExactClustersCertificate.of(noise_source="system entropy", **{**USUAL, **changes})


@pytest.mark.parametrize(
    "changes",
    [{}, {"deleted": 0, "inserted": 0, "requests": 0}, {"start": "given"}, {"sigma": 0.0}, {"steps": 1}],
)
def test_a_certificate_is_recomputed_from_its_constants(changes: dict[str, object]) -> None:
    certificate.verify(stated(**changes))


def test_what_is_stated() -> None:
    said = stated()
    assert (said.epsilon, said.delta, said.n) == (0, 0, 59_980)
    # tv = erf(sqrt(2) / 25 / sqrt(8)) = 0.0225646; 1 - (1 - tv)^10, and the sum over k = 1..9 of 1 - (1 - tv)^k.
    assert said.recompute_probability == pytest.approx(0.204059, abs=5e-7)
    assert said.steps_again == pytest.approx(0.956655, abs=5e-7)
    assert "same probability distribution" in said.comparator
    assert {each.statement: each.status for each in said.assumptions}["rows have norm at most 1"] == "checked"
    assert sum("oblivious" in each.statement and each.status == "assumed" for each in said.assumptions) == 1
    assert sum("secret" in each.statement and each.status == "assumed" for each in said.assumptions) == 1
    assert any("protect the remaining records" in each for each in said.not_promised)
    assert str(stated(steps=1).steps_again) == "0.0"
    assert (stated(sigma=0.0).recompute_probability, stated(sigma=0.0).steps_again) == (1, 9)


def test_a_seed_is_no_secret_and_given_places_are_not_checked() -> None:
    def status(said: ExactClustersCertificate, start: str) -> str:
        return next(each.status for each in said.assumptions if each.statement.startswith(start))

    assert status(stated(), "nobody knows") == status(stated(), "no constant") == "checked"
    assert status(ExactClustersCertificate.of(noise_source="seed", **USUAL), "nobody knows") == "assumed"
    assert status(stated(start="given"), "no constant") == "assumed"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("n", 59_979, "n_learned - deleted"),
        ("steps", 9, "recompute_probability"),
        ("sigma", 50.0, "recompute_probability"),
        ("recompute_probability", 0.2, "its constants give 0.204"),
        ("steps_again", 0.5, "its constants give 0.956"),
        ("requests", 41, "requests"),
        ("requests", 0, "requests"),
        ("d", 491, "a multiple of the 10 centres"),
        ("clusters", 70_000, "n_learned = 60000, but it must be at least one record for each of the 70000 clusters"),
        ("steps", 10**8, "at most 10,000,000"),
        ("start", "given", "wrong assumptions"),
        ("noise_source", "seed", "wrong assumptions"),
        ("comparator", "retraining", "wrong comparator"),
        ("not_promised", (), "wrong not_promised"),
        ("features", "means", "features"),
    ],
)
def test_what_does_not_follow_from_the_constants_is_found(name: str, value: object, said: str) -> None:
    with pytest.raises(CertificateError, match=said):
        certificate.verify(stated().model_copy(update={name: value}))


def test_a_file_is_read_and_verified_by_the_command(tmp_path: Path) -> None:
    path = tmp_path / "clusters.json"
    certificate.write(stated(), path)
    assert certificate.read_any(path) == stated()
    done = CliRunner().invoke(app, ["verify", str(path)])
    assert done.exit_code == 0
    assert "equal in distribution to a run on the 59980 records that are left (exact by k-means" in done.output
    path.write_text(path.read_text(encoding="utf-8").replace('"sigma": 25.0', '"sigma": 26.0'), encoding="utf-8")
    failed = CliRunner().invoke(app, ["verify", str(path)])
    assert failed.exit_code == 1
