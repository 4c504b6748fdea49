"""What is guaranteed, from which constants, under which assumptions; anyone can recompute it."""

from certified_unlearning.certificate.guarantee import Guaranteed, epsilon_all_published, langevin_guarantee
from certified_unlearning.certificate.model import Certificate, certify, read, write
from certified_unlearning.certificate.verification import CertificateError, verify

__all__ = [
    "Certificate",
    "CertificateError",
    "Guaranteed",
    "certify",
    "epsilon_all_published",
    "langevin_guarantee",
    "read",
    "verify",
    "write",
]
