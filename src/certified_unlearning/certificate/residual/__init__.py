"""Certificates of certified refit and Newton removal: noise on weights at which the gradient is certified to be small.

`constants` defines the fields of the certificates. `limits` defines the possible values of the fields. `model` defines
the certificate: how it is made from a plan, and how it is recomputed. The certificates never contain the realised bound
on the gradient, because it depends on the records.
"""

from certified_unlearning.certificate.residual.model import ResidualCertificate, of

__all__ = ["ResidualCertificate", "of"]
