"""The kinds of certificates, by their name in files."""

from collections.abc import Mapping
from pathlib import Path

from certified_unlearning.certificate.base import Certificate
from certified_unlearning.certificate.ensemble import EnsembleCertificate
from certified_unlearning.certificate.exact import ExactCertificate
from certified_unlearning.certificate.exact_clusters import ExactClustersCertificate
from certified_unlearning.certificate.federated import FederatedCertificate
from certified_unlearning.certificate.ledger import LedgerCertificate
from certified_unlearning.certificate.prediction import PredictionCertificate
from certified_unlearning.certificate.private import PrivateCertificate
from certified_unlearning.certificate.private_labels import PrivateLabelsCertificate
from certified_unlearning.certificate.residual import ResidualCertificate
from certified_unlearning.certificate.steps import StepsCertificate
from certified_unlearning.files import read_json

OF_LEDGERS: Mapping[str, type[LedgerCertificate]] = {
    "steps": StepsCertificate,
    "residual": ResidualCertificate,
    "exact": ExactCertificate,
    "ensemble": EnsembleCertificate,
    "federated": FederatedCertificate,
}
"""The kinds that versions of a ledger can have."""
KINDS: Mapping[str, type[Certificate]] = {
    **OF_LEDGERS,
    "exact-clusters": ExactClustersCertificate,
    "prediction": PredictionCertificate,
    "private": PrivateCertificate,
    "private-labels": PrivateLabelsCertificate,
}
"""All kinds."""


def read_any(path: str | Path) -> Certificate:
    """Read a certificate of any kind.

    A file without a kind is a certificate of noisy steps.

    Raises:
        DataError: The file is missing or is not a certificate.
    """
    content = read_json(path)
    kind = content.get("kind") if isinstance(content, dict) else None
    return KINDS.get(str(kind), StepsCertificate).read(path)
