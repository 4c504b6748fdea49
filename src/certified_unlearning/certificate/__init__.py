"""Certificates: a guarantee with its constants and assumptions, which anyone can recompute.

`Certificate` is what all kinds have in common. `StepsCertificate` speaks of noisy steps, `ResidualCertificate` of noise
on weights whose gradient is certified to be small, `ExactCertificate` of states that have the law of a fresh run,
`PredictionCertificate` of labels that no removal changes, `EnsembleCertificate` of the answers of an ensemble whose
shards are trained again when a budget is spent, `PrivateCertificate` of models that never depended much on any record,
`PrivateLabelsCertificate` of labels that are published with differential privacy.
"""

from pathlib import Path

from certified_unlearning.certificate.base import Certificate, CertificateError, verify
from certified_unlearning.certificate.ensemble import EnsembleCertificate
from certified_unlearning.certificate.exact import ExactCertificate
from certified_unlearning.certificate.kinds import KINDS, read_any
from certified_unlearning.certificate.prediction import PredictionCertificate
from certified_unlearning.certificate.private import PrivateCertificate
from certified_unlearning.certificate.private_labels import PrivateLabelsCertificate
from certified_unlearning.certificate.residual import ResidualCertificate
from certified_unlearning.certificate.steps import StepsCertificate, of

__all__ = [
    "KINDS",
    "Certificate",
    "CertificateError",
    "EnsembleCertificate",
    "ExactCertificate",
    "PredictionCertificate",
    "PrivateCertificate",
    "PrivateLabelsCertificate",
    "ResidualCertificate",
    "StepsCertificate",
    "of",
    "read",
    "read_any",
    "verify",
    "write",
]

read = StepsCertificate.read


def write(certificate: Certificate, path: str | Path) -> None:
    """Write a certificate as JSON, atomically, and its evidence beside it if it has any."""
    certificate.write(path)
