"""Certificates of noisy steps: models that are learned, and unlearned, by gradient steps with noise.

`constants` has their fields and the problem that these describe, `limits` what they may be, `model` the certificate
itself: how a run gets one, and how it is recomputed.
"""

from certified_unlearning.certificate.steps.model import StepsCertificate, of

__all__ = ["StepsCertificate", "of"]
