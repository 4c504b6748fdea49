"""Certificates of differentially private learning: a model that never depended much on any record.

What is hidden is whether a record was learned from, and what it said, from everybody who sees the model, whatever else
they know. A deletion needs no work: the certificate states what the model, unchanged, is worth against one that was
learned with the deleted records replaced, for several numbers of them.

`constants` turns a plan into what a certificate holds of it and back, `runs` has the numbers of each mechanism,
`statement` the words that go with it, `model` the certificate itself and how it is recomputed.
"""

from certified_unlearning.certificate.private.constants import Plan, learners_of
from certified_unlearning.certificate.private.model import PrivateCertificate, constants_of, plan_of, verify

__all__ = ["Plan", "PrivateCertificate", "constants_of", "learners_of", "plan_of", "verify"]
