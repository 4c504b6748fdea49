"""Certificates of predictions: written, read, recomputed from their evidence, and found when wrong."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from typer.testing import CliRunner

from certified_unlearning import certificate
from certified_unlearning.certificate import CertificateError, PredictionCertificate, prediction
from certified_unlearning.certificate.prediction import EvidenceFile
from certified_unlearning.cli import app
from certified_unlearning.engine.abstract_training.descent import Descent
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.network import Network
from certified_unlearning.engine.intervals.propagation import Bounding
from certified_unlearning.engine.intervals.rounding import NAIVE
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.mechanisms.certified_sgd.sgd import CertifiedSgd

SETTINGS = CertifiedSgd(Network.dense(2, 6, 1), Descent(loss="binary-cross-entropy", step_size=0.5), 50, 2)


def trained(settings: CertifiedSgd = SETTINGS) -> tuple[Any, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(100) % 2
    rows = torch.randn(100, 2, generator=generator).double() * 0.4 + (2 * labels - 1)[:, None]
    places, start = settings.places(100, generator), settings.start(generator)
    learned = settings.learn(rows, labels, places, start, torch.ones(100).bool(), (1, 3, 8))
    return learned, rows[:40], labels[:40]


@pytest.fixture(scope="module")
def stated() -> PredictionCertificate:
    learned, rows, labels = trained()
    return PredictionCertificate.of(SETTINGS, learned, rows, n=100, batches=2, classes=("no", "yes"), labels=labels)


def test_what_is_stated_is_recomputed(stated: PredictionCertificate) -> None:
    certificate.verify(stated)
    assert stated.updates == 4
    assert set(stated.radii) <= {0, 1, 3, 8}
    assert stated.shares[0] > 0.9
    assert [*stated.shares] == sorted(stated.shares, reverse=True)
    assert all(low <= high for low, high in stated.accuracy or ())
    assert any("not differentially private" in each for each in stated.not_promised)
    assert "with any k or fewer records of each batch removed" in stated.comparator


def test_the_command_recomputes_predictions_from_the_evidence(stated: PredictionCertificate, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    certificate.write(stated, path)
    assert {each.name for each in tmp_path.iterdir()} == {"certificate.json", "evidence.safetensors"}
    assert certificate.read_any(path) == stated
    done = CliRunner().invoke(app, ["verify", str(path)])
    assert done.exit_code == 0
    assert "of 40 predictions certified:" in done.output
    found = json.loads(CliRunner().invoke(app, ["verify", "--json", str(path)]).output)
    assert (found["verified"], found["epsilon"], found["guarantee"]) == (True, None, "exact")
    wrong = json.loads(path.read_text())
    wrong["radii"][3] = 8 if wrong["radii"][3] != 8 else 3
    path.write_text(json.dumps(wrong))
    assert CliRunner().invoke(app, ["verify", str(path)]).exit_code == 1
    certificate.write(stated, path)
    (tmp_path / "evidence.safetensors").unlink()
    with pytest.raises(CertificateError, match="without its evidence"):
        certificate.verify(certificate.read_any(path))
    with pytest.raises(DataError, match="without its evidence"):
        certificate.write(certificate.read_any(path), path)
    (tmp_path / "evidence.safetensors").write_bytes(b"nothing")
    with pytest.raises(CertificateError, match="is not the evidence"):
        certificate.verify(certificate.read_any(path))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("predictions", (0,) * 40, "wrong predictions, according to its evidence: 0 instead of 1"),
        ("radii", (9,) * 40, "wrong radii"),
        ("radii", (1,), "radii"),
        ("shares", (1.0, 1.0, 1.0), "wrong shares"),
        ("accuracy", None, "wrong accuracy"),
        ("updates", 5, "updates"),
        ("smallest_batch", 51, "smallest_batch"),
        ("smallest_batch", 8, "would empty a batch of 8"),
        ("budgets", (1, 3, 3), "budgets"),
        ("widths", (2, 6, 2), "impossible constants"),
        ("widths", (2, 5, 1), "does not match"),
        ("clipping", "clamp", "impossible constants"),
        ("changes", "additions and removals", "wrong comparator"),
        ("classes", ("no", "yes", "maybe"), "classes"),
        ("comparator", "anything", "wrong comparator"),
        ("not_promised", (), "wrong not_promised"),
        ("assumptions", (), "wrong assumptions"),
        ("dtype", "float32", "not of type float32"),
        ("features", "made up", "features"),
    ],
)
def test_a_wrong_certificate_is_found(stated: PredictionCertificate, name: str, value: object, said: str) -> None:
    with pytest.raises(CertificateError, match=said):
        certificate.verify(stated.model_copy(update={name: value}))


def tensors_of(stated: PredictionCertificate) -> dict[str, torch.Tensor]:
    return safetensors.torch.load(stated._evidence)


def changed(stated: PredictionCertificate, **tensors: torch.Tensor) -> PredictionCertificate:
    """The certificate with other evidence, whose digest it names."""
    wrong = safetensors.torch.save({name: each.contiguous() for name, each in (tensors_of(stated) | tensors).items()})
    named = EvidenceFile(file="other.safetensors", sha256=hashlib.sha256(wrong).hexdigest())
    found = stated.model_copy(update={"evidence": named})
    found._evidence = wrong
    return found


def test_evidence_that_is_no_box_is_found(stated: PredictionCertificate) -> None:
    right = tensors_of(stated)
    lower, upper = right["lower/0"], right["upper/0"]
    for tensors, said in (
        ({"lower/0": torch.full_like(lower, torch.nan)}, "bounds of parameters must be finite"),
        ({"lower/0": upper, "upper/0": lower}, "no lower bound may exceed its upper bound"),
        ({"parameters/0": right["parameters/0"] + 9}, "outside their box"),
        ({"lower/0": lower.flip(0), "upper/0": upper.flip(0)}, "not nested|outside their box"),
        ({"rows": right["rows"][:5]}, "inputs in the evidence are not those"),
    ):
        with pytest.raises(CertificateError, match=said):
            certificate.verify(changed(stated, **tensors))
    found = changed(stated)
    found._evidence += b" "
    with pytest.raises(CertificateError, match="is not the evidence"):
        certificate.verify(found)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("budgets", (10, 30, 40)),
        ("classes", ("yes", "no")),
        ("step_size", 0.01),
        ("weight_decay", 0.1),
        ("n", 10**6),
        ("smallest_batch", 49),
        ("products", "rump"),
        ("differences", "joint"),
        ("dataset", "mnist"),
        ("code_version", "another"),
    ],
)
def test_constants_are_those_of_the_evidence(stated: PredictionCertificate, name: str, value: Any) -> None:
    """All that follows from a changed constant was changed along."""
    wrong = stated.model_copy(update={name: value})
    if name == "differences":
        words = prediction._assumptions(stated.dataset, stated.features, value)
        assert words != stated.assumptions
        wrong = wrong.model_copy(update={"assumptions": words})
    if name == "budgets":
        larger = dict(zip((0, *stated.budgets), (0, *value), strict=True))
        wrong = wrong.model_copy(update={"radii": tuple(larger[each] for each in stated.radii)})
    with pytest.raises(CertificateError, match="constants, budgets or names that differ"):
        certificate.verify(wrong)


def test_a_certificate_of_removals_is_none_of_additions() -> None:
    settings = CertifiedSgd(
        SETTINGS.network, Descent(loss="binary-cross-entropy", clipping="clamp", bound=0.1), 50, 2
    )  # fmt: skip
    learned, rows, _ = trained(settings)
    said = PredictionCertificate.of(settings, learned, rows, n=100, batches=2, classes=("no", "yes"))
    certificate.verify(said)
    words = f"{said.comparator}, and any k or fewer others added to it"
    with pytest.raises(CertificateError, match="constants, budgets or names that differ"):
        certificate.verify(said.model_copy(update={"changes": "additions and removals", "comparator": words}))


@pytest.mark.parametrize("wrong", [torch.tensor([0, 1]), torch.full((40,), 7), torch.zeros(40, 1).long()])
def test_labels_of_evidence_are_classes_of_inputs(stated: PredictionCertificate, wrong: torch.Tensor) -> None:
    with pytest.raises(CertificateError, match="labels"):
        certificate.verify(changed(stated, labels=wrong))


def test_a_file_of_before_differences_were_relaxed_says_nothing_of_them_and_verifies() -> None:
    """Its inputs were certified by differences of the last weights alone."""
    network = Network.dense(2, 6, 6, 1)
    shares = []
    for differences in ("joint", "relaxed", "updated"):
        bounding = Bounding(differences=differences)
        settings = CertifiedSgd(network, SETTINGS.descent, 50, 2, Neighbourhood(), bounding)
        learned, rows, _ = trained(settings)
        said = PredictionCertificate.of(settings, learned, rows, n=100, batches=2, classes=("no", "yes"))
        assert said.model_dump().get("differences", "joint") == said.differences == differences
        assert ("last/before_lower" in tensors_of(said)) == (differences == "updated")
        assert ("the lines of the last update follow" in said.assumptions[0].statement) == (differences == "updated")
        certificate.verify(said)
        shares.append(said.shares)
    assert shares[0] < shares[1] <= shares[2]


def test_evidence_without_lines_of_the_last_update_says_so_and_wrong_lines_are_found() -> None:
    settings = CertifiedSgd(SETTINGS.network, replace(SETTINGS.descent, momentum=0.5), 50, 2)
    learned, rows, _ = trained(settings)
    said = PredictionCertificate.of(settings, learned, rows, n=100, batches=2, classes=("no", "yes"))
    assert said.differences == "relaxed"
    certificate.verify(said)
    for network, loss in ((SETTINGS.network, "binary-cross-entropy"), (Network.dense(2, 6, 2), "cross-entropy")):
        settings = CertifiedSgd(network, Descent(loss=loss, step_size=0.5), 50, 2)
        learned, rows, _ = trained(settings)
        said = PredictionCertificate.of(settings, learned, rows, n=100, batches=2, classes=("no", "yes"))
        assert said.differences == "updated"
        certificate.verify(said)
        right = tensors_of(said)
        slopes, shifts = right["last/below_slopes"], right["last/below_shifts"]
        for tensors, why in (
            ({"last/below_slopes": slopes[:1]}, "wrong shape"),
            ({"last/below_slopes": slopes.float()}, "wrong shape or type"),
            ({"last/below_shifts": torch.full_like(shifts, torch.inf)}, "not finite"),
            ({"last/below_shifts": shifts + 100}, "not between the linear bounds on the last update"),
            (
                {"last/above_shifts": right["last/above_shifts"] - 100},
                "not between the linear bounds on the last update",
            ),
            ({"last/before_lower": right["last/before_upper"] + 1}, "is above their upper bound"),
        ):
            with pytest.raises(CertificateError, match=why):
                certificate.verify(changed(said, **tensors))
        without = {name: each for name, each in right.items() if not name.startswith("last/")}
        packed = safetensors.torch.save(without)
        named = EvidenceFile(file="other.safetensors", sha256=hashlib.sha256(packed).hexdigest())
        found = said.model_copy(update={"evidence": named})
        found._evidence = packed
        with pytest.raises(CertificateError, match="does not match"):
            certificate.verify(found)


def test_what_proves_nothing_has_no_certificate() -> None:
    naive = CertifiedSgd(SETTINGS.network, SETTINGS.descent, 50, 2, Neighbourhood(), Bounding(rounding=NAIVE))
    learned, rows, _ = trained(naive)
    with pytest.raises(ParameterError, match="naive rounding proves nothing"):
        PredictionCertificate.of(naive, learned, rows, n=100, batches=2, classes=("a", "b"))
    with pytest.raises(ParameterError, match="at least one input"):
        PredictionCertificate.of(SETTINGS, trained()[0], rows[:0], n=100, batches=2, classes=("a", "b"))


def test_decay_inside_the_velocity_is_not_stated_as_another() -> None:
    descent = replace(SETTINGS.descent, step_size=0.1, momentum=0.5, weight_decay=0.1, couples_decay=True)
    coupled = replace(SETTINGS, descent=descent)
    learned, rows, _ = trained(coupled)
    with pytest.raises(ParameterError, match="state decoupled weight decay, but couples_decay adds it to the velocity"):
        PredictionCertificate.of(coupled, learned, rows, n=100, batches=2, classes=("a", "b"))


def test_boxes_of_more_than_two_classes() -> None:
    settings = CertifiedSgd(
        Network.dense(2, 5, 3),
        Descent(step_size=0.2, clipping="clamp", bound=0.1),
        30,
        1,
        Neighbourhood("additions and removals"),
    )
    generator = torch.Generator().manual_seed(1)
    rows, labels = torch.randn(60, 2, generator=generator).double(), torch.arange(60) % 3
    learned = settings.learn(
        rows, labels, settings.places(60, generator), settings.start(generator), torch.ones(60).bool(), (1, 2)
    )
    said = PredictionCertificate.of(settings, learned, rows, n=60, batches=2, classes=("a", "b", "c"), labels=labels)
    certificate.verify(said)
    assert isinstance(learned.box[0], Interval)
