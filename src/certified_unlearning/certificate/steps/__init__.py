"""Certificates of noisy steps: models that are learned, and unlearned, by gradient steps with noise.

`constants` has their fields and the problem that these describe, `limits` the possible values, `model` the certificate
itself: how it is made from a run, and how it is recomputed.
"""

from certified_unlearning.certificate.steps.model import StepsCertificate, of

__all__ = ["StepsCertificate", "of"]
