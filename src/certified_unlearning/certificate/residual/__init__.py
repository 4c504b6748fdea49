"""Certificates of certified refit and Newton removal: noise on weights whose gradient is certified to be small.

`constants` has their fields, `limits` the possible values, `model` the certificate itself: how it is made from a plan,
and how it is recomputed. The certificates never contain the realised bound on the gradient, because it depends on the
records.
"""

from certified_unlearning.certificate.residual.model import ResidualCertificate, of

__all__ = ["ResidualCertificate", "of"]
