"""Certificates of differentially private learning: a model that never depended much on any record.

What is hidden is whether a record was learned from, and what it said, from everybody who sees the model, whatever else
they know. A deletion needs no work: the certificate states what the model, unchanged, is worth against one that was
learned with the deleted records replaced, for several numbers of them.

`model` has the certificate and how it is recomputed, `statement` the words that go with it. What a plan has of its own,
constants and words, stands beside its formulas in `accounting.private`.
"""

from certified_unlearning.certificate.private.model import PrivateCertificate

__all__ = ["PrivateCertificate"]
