"""Certificates of differentially private learning: models that never depended much on any record.

The presence and the values of a record are hidden from everybody who sees the model, whatever else they know. So a
deletion needs no work. For several numbers of deleted records, the certificate states an epsilon. This epsilon compares
the unchanged model with a model that was learned after the deleted records were replaced.

`model` contains the certificate and its recomputation, `statement` its wording. The constants and the wording of each
plan are next to its formulas in `accounting.private`.
"""

from certified_unlearning.certificate.private.model import PrivateCertificate

__all__ = ["PrivateCertificate"]
