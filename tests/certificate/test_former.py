"""Certificates of earlier releases verify though some of their sentences have other words now."""

import ast
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import certified_unlearning
from certified_unlearning import certificate
from certified_unlearning.certificate import Certificate, CertificateError, PredictionCertificate
from certified_unlearning.certificate.former import IN_WORDS
from certified_unlearning.certificate.former_words import FORMER
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood
from certified_unlearning.vocabulary import Changes
from tests.certificate import (
    test_exact,
    test_exact_clusters,
    test_impossible_values,
    test_prediction,
    test_private_labels,
    test_private_mechanisms,
    test_residual,
)
from tests.certificate.test_certificate import SUMMARY
from tests.support.planning import make, settings_of, sweep_of

SOURCE = Path(certified_unlearning.__file__).parent
ROOMS = ("accounting", "certificate", "mechanisms", "data")
EARLIER = sorted((Path(__file__).parent / "earlier").rglob("*.json"))
PRIVATE = test_private_mechanisms.SAID
COMPARED = "; the guarantee covers the model published last"
"""A part of each comparator of noisy steps."""


def strings() -> list[str]:
    """Return the strings of all modules that certificates take their words from, one for each literal."""
    paths = [path for room in ROOMS for path in (SOURCE / room).rglob("*.py") if path.name != "former_words.py"]
    trees = [ast.parse(path.read_text("utf-8")) for path in paths]
    literals = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [node.value for node in literals if isinstance(node.value, str)]


def in_former_words(stated: Any) -> Any:
    """Return a certificate's content as the release before this one would have written it."""
    if isinstance(stated, str):
        for former, present in sorted(FORMER, key=lambda pair: -len(pair[1])):
            stated = stated.replace(present, former)
        return stated
    if isinstance(stated, dict):
        return {key: in_former_words(value) for key, value in stated.items()}
    return [in_former_words(each) for each in stated] if isinstance(stated, list) else stated


def earlier(certified: Certificate) -> dict[str, Any]:
    """Return the content of a certificate's file with former words."""
    content: dict[str, Any] = json.loads(certified.model_dump_json())
    return content | {key: in_former_words(content[key]) for key in IN_WORDS if key in content}


def of_steps(name: str = "fig3a", accountant: str = "lsi") -> Certificate:
    plan = make(name, settings_of("smoke"), sweep_of("smoke", name), SUMMARY)
    run = next(each for each in plan.runs if each.accountant == accountant)
    return certificate.of(run, key=plan.key(run), noise_source="seed")


def of_predictions(changes: Changes = "removals") -> PredictionCertificate:
    settings = test_prediction.SETTINGS
    descent = replace(settings.descent, clipping="clamp", bound=0.1)
    settings = replace(settings, descent=descent, neighbourhood=Neighbourhood(changes))
    learned, rows, _ = test_prediction.trained(settings)
    return PredictionCertificate.of(settings, learned, rows, n=98, public_records=2, batches=2, classes=("no", "yes"))


CERTIFICATES: dict[str, Callable[[], Certificate]] = {
    "steps": of_steps,
    "descent to delete": lambda: of_steps("fig3b", "descent-to-delete shifted"),
    "exact": lambda: test_exact.stated(lost_releases=1),
    "clusters": lambda: test_exact_clusters.stated(start="given"),
    "ensemble": test_impossible_values.of_answers,
    "labels": test_private_labels.stated,
    "residual": test_residual.stated,
    **{f"private {name}": partial(PRIVATE.__getitem__, name) for name in PRIVATE},
}


def test_the_words_of_this_release_are_those_that_certificates_have_and_former_ones_are_gone() -> None:
    found = strings()
    for former, present in FORMER:
        assert any(present in each for each in found), present
        assert not any(former in each for each in found), former


def test_no_sentence_is_replaced_twice_or_differently() -> None:
    formers = [former for former, _ in FORMER]
    assert len(formers) == len({*formers})
    assert not [(former, present) for former in formers for _, present in FORMER if former in present]


@pytest.mark.parametrize("path", EARLIER, ids=lambda path: path.stem)
def test_a_stored_certificate_with_former_words_verifies_and_shows_those_of_today(path: Path) -> None:
    text = path.read_text("utf-8")
    assert any(former in text for former, _ in FORMER)
    found = certificate.read_any(path)
    certificate.verify(found)
    shown = found.model_dump_json()
    assert not [former for former, _ in FORMER if former in shown]


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_certificate_of_each_kind_with_former_words_is_the_one_of_today(name: str, tmp_path: Path) -> None:
    now = CERTIFICATES[name]()
    content = earlier(now)
    assert content["assumptions"] != json.loads(now.model_dump_json())["assumptions"]
    (tmp_path / "earlier.json").write_text(json.dumps(content), "utf-8")
    found = certificate.read_any(tmp_path / "earlier.json")
    certificate.verify(found)
    assert found == now


@pytest.mark.parametrize("changes", ["removals", "additions and removals", "substitutions", "additions or removals"])
def test_evidence_with_former_words_is_that_of_a_certificate_of_today(changes: Changes, tmp_path: Path) -> None:
    now = of_predictions(changes)
    tensors = safetensors.torch.load(now._evidence)
    constants = earlier(now)
    for derived in ("evidence", "predictions", "radii", "shares", "accuracy"):
        constants.pop(derived)
    tensors["constants"] = torch.tensor([*json.dumps(constants).encode()], dtype=torch.uint8)
    packed = safetensors.torch.save(tensors)
    (tmp_path / now.evidence.file).write_bytes(packed)
    content = earlier(now) | {"evidence": {"file": now.evidence.file, "sha256": hashlib.sha256(packed).hexdigest()}}
    (tmp_path / "earlier.json").write_text(json.dumps(content), "utf-8")
    found = certificate.read_any(tmp_path / "earlier.json")
    certificate.verify(found)
    assert found.comparator == now.comparator != content["comparator"]


@pytest.mark.parametrize("constants", [b"no JSON", b"[" * 100_000, b"{}"])
def test_evidence_whose_constants_cannot_be_read_is_refused(constants: bytes, tmp_path: Path) -> None:
    now = of_predictions()
    tensors = safetensors.torch.load(now._evidence) | {"constants": torch.tensor([*constants], dtype=torch.uint8)}
    now._evidence = safetensors.torch.save(tensors)
    evidence = now.evidence.model_copy(update={"sha256": hashlib.sha256(now._evidence).hexdigest()})
    with pytest.raises(CertificateError, match="constants, budgets or names that differ"):
        certificate.verify(now.model_copy(update={"evidence": evidence}))


@pytest.fixture
def seeded(tmp_path: Path) -> Path:
    """A certificate of noisy steps whose noise a seed repeats, as an earlier release would have written it."""
    (tmp_path / "earlier.json").write_text(json.dumps(earlier(of_steps())), "utf-8")
    return tmp_path / "earlier.json"


@pytest.mark.parametrize("key", ["code_version", "dataset", "run_key"])
def test_only_sentences_are_put_into_other_words(seeded: Path, key: str) -> None:
    content = json.loads(seeded.read_text("utf-8"))
    content[key] = FORMER[0][0]
    seeded.write_text(json.dumps(content), "utf-8")
    assert getattr(certificate.read_any(seeded), key) == FORMER[0][0]


@pytest.mark.parametrize(
    ("words", "others", "named"),
    [
        (
            "two models made with one seed cancel",
            "two models made with one seed do not cancel",
            "states the wrong assumptions",
        ),
        ("nobody concludes anything", "somebody concludes anything", "states the wrong assumptions"),
        ("; the model published last", "; all models", "states the wrong comparator"),
        ("; the model published last", f"{COMPARED}, and all others", "states the wrong comparator"),
    ],
)
def test_words_that_no_release_wrote_are_refused(seeded: Path, words: str, others: str, named: str) -> None:
    text = seeded.read_text("utf-8")
    assert words in text
    seeded.write_text(text.replace(words, others), "utf-8")
    with pytest.raises(CertificateError, match=named):
        certificate.verify(certificate.read_any(seeded))
