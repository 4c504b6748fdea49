"""Whatever value stands in a field of a certificate: `unlearn verify` accepts it or refuses it in one sentence."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from certified_unlearning import certificate
from certified_unlearning.certificate import (
    Certificate,
    EnsembleCertificate,
    FederatedCertificate,
    PrivateLabelsCertificate,
)
from certified_unlearning.cli import app
from certified_unlearning.errors import UnlearningError
from certified_unlearning.estimators import (
    CertifiedLogisticRegression,
    CertifiedMLPClassifier,
    CertifiedRidge,
    ExactKMeans,
    ExactLogisticRegression,
    LangevinLogisticRegression,
    LangevinRidge,
    PrivateLogisticRegression,
    PublishedStateDescentToDelete,
)

NUMBERS = (10**400, -(10**400), 1e308, 0, -1)
TEXTS = ("", ".", "/", "\0", "x" * 10_000)
EARLIER = sorted((Path(__file__).parent / "earlier").glob("*.json"))


def records() -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    X = generator.standard_normal((200, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(X[:, 0] > 0, 1, -1)


def of_a_removal(estimator: Any) -> Certificate:
    return estimator.fit(*records()).unlearn([17]).certificate_  # type: ignore[no-any-return]


def of_predictions() -> Certificate:
    X, y = records()
    return CertifiedMLPClassifier(hidden_layer_sizes=(4,), random_state=0).fit(X, y).certificate(X[:5], y[:5])


def of_answers() -> Certificate:
    return EnsembleCertificate.of(
        removed=[[(0, 1)]],
        n_learned=400,
        features_in=3,
        hidden=(4,),
        classes=2,
        loss="binary-cross-entropy",
        shards=4,
        slices=2,
        budgets=(1, 2, 4),
        epochs=3,
        step_size=0.5,
        bound=0.1,
    )


def of_clients() -> Certificate:
    return FederatedCertificate.of(
        noise_source="system entropy",
        loss="logistic",
        d=3,
        classes=2,
        strong_convexity=0.01,
        steps=10,
        local_steps=5,
        step_size=8.0,
        clip=3.0,
        sigma=20.0,
        n_learned=40,
        deleted=3,
        requests=2,
    )


def of_labels() -> Certificate:
    return PrivateLabelsCertificate.made(
        rule="stable",
        relation="replace-one",
        changes="additions and removals",
        largest=60,
        classes=2,
        queries=20,
        epsilon_label=0.5,
        delta_label=1e-6,
    )


KINDS: dict[str, Callable[[], Certificate]] = {
    "noisy steps": lambda: of_a_removal(LangevinLogisticRegression(C=0.1, random_state=0)),
    "noisy steps on mini-batches": lambda: of_a_removal(
        LangevinLogisticRegression(C=0.1, batch_size=30, random_state=0)
    ),
    "noisy steps of targets": lambda: of_a_removal(LangevinRidge(alpha=10, target_range=(-1, 1), random_state=0)),
    "descent": lambda: of_a_removal(PublishedStateDescentToDelete(C=0.1, accountant="as published", random_state=0)),
    "residual": lambda: of_a_removal(CertifiedLogisticRegression(C=0.1, random_state=0)),
    "residual of targets": lambda: of_a_removal(CertifiedRidge(target_range=(-1, 1), random_state=0)),
    "exact": lambda: of_a_removal(ExactLogisticRegression(random_state=0)),
    "clusters": lambda: of_a_removal(ExactKMeans(2, recompute_probability=0.9, random_state=0)),
    "private": lambda: of_a_removal(PrivateLogisticRegression(random_state=0)),
    "predictions": of_predictions,
    "answers": of_answers,
    "labels": of_labels,
    "clients": of_clients,
} | {path.stem: lambda path=path: certificate.read_any(path) for path in EARLIER}


def fields(stated: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield where each number and text stands, of each list the first member's only."""
    if isinstance(stated, dict):
        for name, value in stated.items():
            yield from fields(value, (*path, name))
    elif isinstance(stated, list):
        if stated:
            yield from fields(stated[0], (*path, 0))
    elif isinstance(stated, int | float | str) and not isinstance(stated, bool):
        yield path, stated


def with_value(stated: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(stated)
    place = changed
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return changed


@pytest.mark.filterwarnings("ignore:little can be learned")
def test_a_certificate_of_every_kind_is_among_them() -> None:
    assert {type(make()) for make in KINDS.values()} == {*certificate.KINDS.values()}


@pytest.mark.filterwarnings("ignore:little can be learned")
@pytest.mark.parametrize("kind", KINDS)
def test_every_value_of_every_field_is_accepted_or_refused_in_one_sentence(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    certificate.write(KINDS[kind](), path)
    stated = json.loads(path.read_text())
    refused = 0
    for place, known in fields(stated):
        for value in TEXTS if isinstance(known, str) else NUMBERS:
            path.write_text(json.dumps(with_value(stated, place, value)))
            try:
                certificate.verify(certificate.read_any(path))
            except UnlearningError:
                refused += 1
    assert refused > 30


@pytest.mark.parametrize("kind", ["exact", "residual", "labels", "predictions"])
def test_the_command_names_a_count_that_no_float_holds(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    certificate.write(KINDS[kind](), path)
    name = {"exact": "steps", "labels": "queries"}.get(kind, "n")
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: 10**400}))
    done = CliRunner().invoke(app, ["verify", str(path)])
    assert (done.exit_code, done.output) == (
        1,
        f"error: {path}: the certificate's constants are impossible: {name} has 401 digits, but must be at most "
        "1e+18\n",
    )


@pytest.mark.parametrize("name", [".", "..", "directory", "a\0b", "x" * 10_000])
def test_the_command_says_which_evidence_cannot_be_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    (tmp_path / "directory").mkdir()
    certificate.write(of_predictions(), path)
    path.write_text(json.dumps(with_value(json.loads(path.read_text()), ("evidence", "file"), name)))
    done = CliRunner().invoke(app, ["verify", str(path)])
    assert done.exit_code == 1
    assert done.output.startswith(f"error: cannot read the evidence {name!r} beside {path}: ")
    assert done.output.count("\n") == 1
