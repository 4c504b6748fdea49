"""Certificates: each states a guarantee with its constants and assumptions, so that anyone can recompute the guarantee.

All kinds derive from `Certificate`:

- `StepsCertificate`: models that noisy steps unlearned.
- `ResidualCertificate`: weights with a certified small gradient, published with noise.
- `ExactCertificate` and `ExactClustersCertificate`: states that have the distribution of a fresh run.
- `FederatedCertificate`: states of federated averaging that have the distribution of a fresh run without the clients
  that left.
- `PredictionCertificate`: labels that no removal changes.
- `EnsembleCertificate`: answers of an ensemble. A shard is trained again when it has lost more records than its boxes
  cover.
- `PrivateCertificate`: models that never depended much on any record.
- `PrivateLabelsCertificate`: labels that are published with differential privacy.
"""

from pathlib import Path

from certified_unlearning.certificate.base import Certificate, CertificateError, verify
from certified_unlearning.certificate.ensemble import EnsembleCertificate
from certified_unlearning.certificate.exact import ExactCertificate
from certified_unlearning.certificate.exact_clusters import ExactClustersCertificate
from certified_unlearning.certificate.federated import FederatedCertificate
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
    "ExactClustersCertificate",
    "FederatedCertificate",
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
    """Write a certificate as JSON, atomically.

    If the certificate has evidence, write the evidence into the same folder.
    """
    certificate.write(path)
