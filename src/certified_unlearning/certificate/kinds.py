"""Certificates of every kind: read, written and verified by what they say they are."""

from pathlib import Path
from typing import Any

from certified_unlearning.certificate import (
    ensemble,
    exact,
    model,
    prediction,
    private_labels,
    residual,
    verification,
)
from certified_unlearning.certificate.base import CertificateError
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

LARGEST = 10**18
"""Of any count. More steps than this are refused by planning, too."""


def verify(certificate: AnyCertificate) -> None:
    """Recompute what a certificate states, in numbers and in words.

    Raises:
        CertificateError: The certificate states what its constants do not give.
        AssumptionError: What its statement needs does not hold for its constants.
    """
    _require_sizes(certificate.model_dump())
    try:
        _verify(certificate)
    except (OverflowError, ZeroDivisionError) as error:
        raise CertificateError(f"the certificate's constants are impossible: {error}") from error


def _require_sizes(stated: Any, name: str = "") -> None:
    """Raise `CertificateError` if a whole number is so large that no float holds it: JSON sets no bound."""
    if isinstance(stated, dict):
        for key, value in stated.items():
            _require_sizes(value, key)
    elif isinstance(stated, list | tuple):
        for value in stated:
            _require_sizes(value, name)
    elif isinstance(stated, int) and abs(stated) > LARGEST:
        raise CertificateError(
            f"the certificate's constants are impossible: {name} has {len(str(abs(stated)))} digits, must be at most "
            f"{LARGEST:.0e}"
        )


def _verify(certificate: AnyCertificate) -> None:
    if isinstance(certificate, ResidualCertificate):
        residual.verify(certificate)
    elif isinstance(certificate, ExactCertificate):
        exact.verify(certificate)
    elif isinstance(certificate, PredictionCertificate):
        prediction.verify(certificate)
    elif isinstance(certificate, PrivateCertificate):
        certificate.check()
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
