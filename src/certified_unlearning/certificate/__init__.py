"""What is guaranteed, from which constants, under which assumptions; anyone can recompute it."""

from certified_unlearning.certificate.model import Certificate, of, read, write
from certified_unlearning.certificate.verification import CertificateError, verify

__all__ = ["Certificate", "CertificateError", "of", "read", "verify", "write"]
