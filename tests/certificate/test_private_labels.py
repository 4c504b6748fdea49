"""Certificates of private labels: recomputed from the law that labels are drawn by; wrong ones are found."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from certified_unlearning import CertifiedMLPClassifier, certificate
from certified_unlearning.accounting.private.stable_labels import composed_labels
from certified_unlearning.certificate import CertificateError, PrivateLabelsCertificate
from certified_unlearning.cli import app
from certified_unlearning.errors import ParameterError
from certified_unlearning.estimators.network.releases import PrivateLabels


def stated(**changes: object) -> PrivateLabelsCertificate:
    given = {
        "rule": "stable",
        "relation": "replace-one",
        "changes": "additions and removals",
        "largest": 60,
        "classes": 2,
        "queries": 20,
        "epsilon_label": 0.5,
        "delta_label": 1e-6,
    }
    return PrivateLabelsCertificate.made(**(given | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"classes": 7},
        {"rule": "laplace", "delta_label": 1e-5},
        {"rule": "cauchy", "delta_label": 0.0},
        {"relation": "add-remove", "changes": "additions or removals"},
    ],
)
def test_what_is_stated_is_recomputed(changes: dict[str, object]) -> None:
    said = stated(**changes)
    certificate.verify(said)
    assert said.delta_of_law <= said.delta_label
    assert (said.epsilon, said.delta) == composed_labels(said.epsilon_label, said.delta_label, labels=20)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("queries", 21, "wrong epsilon: "),
        ("epsilon", 9.0, "wrong epsilon: "),
        ("delta", 0.0, "wrong delta: "),
        ("delta_label", 1e-7, "wrong delta_of_law: "),
        ("delta_of_law", 0.0, "wrong delta_of_law: "),
        ("epsilon_label", 0.4, "wrong .*: "),
        ("rule", "cauchy", "impossible constants: delta must be 0 for Cauchy noise"),
        ("rule", "laplace", "wrong delta_of_law: "),
        ("relation", "add-remove", "wrong comparator: "),
        ("changes", "removals", "states changes = 'removals', whose radii are not valid"),
        ("comparator", "retraining", "wrong comparator: "),
        ("not_promised", (), "wrong not_promised: "),
        ("assumptions", (), "wrong assumptions: "),
        ("features", "hog", "must be one of 'declared', 'declared, classes from the records', 'given'"),
    ],
)
def test_a_wrong_certificate_is_found(name: str, value: object, sentence: str) -> None:
    with pytest.raises(CertificateError, match=sentence):
        certificate.verify(stated().model_copy(update={name: value}))


def test_boxes_of_additions_or_removals_say_nothing_of_replacement() -> None:
    """To replace a record is to change two; every other number and word is what the certificate must state."""
    said = stated(relation="replace-one", changes="additions or removals")
    with pytest.raises(CertificateError, match="whose radii are not valid under replace-one"):
        certificate.verify(said)


def test_noise_on_two_labels_is_for_two_classes() -> None:
    said = stated(rule="cauchy", delta_label=0.0).model_copy(update={"classes": 3})
    with pytest.raises(CertificateError, match="for 3 classes, but it must be 'stable'"):
        certificate.verify(said)


def test_a_law_that_misses_its_delta_is_no_certificate() -> None:
    with pytest.raises(ParameterError, match="delta"):
        stated(delta_label=0.0)


def test_a_release_states_all_labels_that_it_may_publish(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = draw.standard_normal((200, 2)) + 2 * y[:, None]
    model = CertifiedMLPClassifier((), budgets=range(1, 6), changes="additions and removals", epochs=2, random_state=0)
    private = PrivateLabels(model.fit(X, y), rule="cauchy", epsilon=1.0, queries=7)
    before = private.certificate()
    private.predict(X[:3])
    assert private.certificate() == before
    assert (before.largest, before.queries, before.changes) == (5, 7, "additions and removals")
    assert before.epsilon == pytest.approx(7.0)
    path = tmp_path / "labels.json"
    certificate.write(before, path)
    assert certificate.read_any(path) == before
    assert "under replace-one for 7 labels together, each by the rule cauchy" in shown(path)
    as_json = json.loads(shown(path, "--json"))
    assert (as_json["verified"], as_json["adjacency"]) == (True, "replace-one")
    assert as_json["epsilon"] == before.epsilon


def shown(path: Path, *options: str) -> str:
    result = CliRunner().invoke(app, ["verify", str(path), *options])
    assert result.exit_code == 0
    return result.stdout
