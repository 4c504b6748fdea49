"""Certificates of every kind: read, written and verified by what they say they are."""

from pathlib import Path

from certified_unlearning.certificate import (
    ensemble,
    exact,
    model,
    prediction,
    private,
    private_labels,
    residual,
    verification,
)
from certified_unlearning.certificate.ensemble import EnsembleCertificate
from certified_unlearning.certificate.exact import ExactCertificate
from certified_unlearning.certificate.model import Certificate
from certified_unlearning.certificate.prediction import PredictionCertificate
from certified_unlearning.certificate.private import PrivateCertificate
from certified_unlearning.certificate.private_labels import PrivateLabelsCertificate
from certified_unlearning.certificate.residual import ResidualCertificate
from certified_unlearning.files import read_json, read_model, write_model

AnyCertificate = (
    Certificate
    | ResidualCertificate
    | ExactCertificate
    | PredictionCertificate
    | PrivateCertificate
    | EnsembleCertificate
    | PrivateLabelsCertificate
)

_NAMED: dict[
    str,
    type[ResidualCertificate]
    | type[ExactCertificate]
    | type[PrivateCertificate]
    | type[EnsembleCertificate]
    | type[PrivateLabelsCertificate],
] = {
    "residual": ResidualCertificate,
    "exact": ExactCertificate,
    "private": PrivateCertificate,
    "ensemble": EnsembleCertificate,
    "private-labels": PrivateLabelsCertificate,
}


def verify(certificate: AnyCertificate) -> None:
    """Recompute what a certificate states, in numbers and in words.

    Raises:
        CertificateError: The certificate states what its constants do not give.
        AssumptionError: What its statement needs does not hold for its constants.
    """
    if isinstance(certificate, ResidualCertificate):
        residual.verify(certificate)
    elif isinstance(certificate, ExactCertificate):
        exact.verify(certificate)
    elif isinstance(certificate, PredictionCertificate):
        prediction.verify(certificate)
    elif isinstance(certificate, PrivateCertificate):
        private.verify(certificate)
    elif isinstance(certificate, EnsembleCertificate):
        ensemble.verify(certificate)
    elif isinstance(certificate, PrivateLabelsCertificate):
        private_labels.verify(certificate)
    else:
        verification.verify(certificate)


def write(certificate: AnyCertificate, path: str | Path) -> None:
    """Write a certificate as JSON, atomically; one of predictions with its evidence beside it."""
    if isinstance(certificate, PredictionCertificate):
        prediction.write(certificate, path)
    else:
        write_model(path, certificate)


def read_any(path: str | Path) -> AnyCertificate:
    """Read a certificate of any kind; those of noisy steps name none.

    Raises:
        DataError: The file is missing or is no certificate.
    """
    content = read_json(path)
    kind = content.get("kind") if isinstance(content, dict) and isinstance(content.get("kind"), str) else None
    if kind == "prediction":
        return prediction.read(path)
    return read_model(path, _NAMED[kind], "a certificate") if kind in _NAMED else model.read(path)
