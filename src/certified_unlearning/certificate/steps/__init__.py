"""Certificates of noisy steps: models that are learned, and unlearned, by gradient steps with noise.

`constants` defines the fields and the problem that they describe, and `limits` defines the possible values of the
fields. `model` defines the certificate: how it is made from a run, and how it is recomputed.
"""

from certified_unlearning.certificate.steps.model import StepsCertificate, of

__all__ = ["StepsCertificate", "of"]
