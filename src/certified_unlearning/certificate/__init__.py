"""What is guaranteed, from which constants, under which assumptions; anyone can recompute it."""

from certified_unlearning.certificate.model import Certificate, Variant, certify, read, write
from certified_unlearning.certificate.verification import CertificateError, verify
from certified_unlearning.guarantees import (
    Guaranteed,
    added_to_delta,
    arithmetic_of,
    as_computed,
    descent_guarantee,
    epsilon_all_published,
    guarantee_of,
    langevin_guarantee,
)

__all__ = [
    "Certificate",
    "CertificateError",
    "Guaranteed",
    "Variant",
    "added_to_delta",
    "arithmetic_of",
    "as_computed",
    "certify",
    "descent_guarantee",
    "epsilon_all_published",
    "guarantee_of",
    "langevin_guarantee",
    "read",
    "verify",
    "write",
]
