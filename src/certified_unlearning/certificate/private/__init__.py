"""Certificates of differentially private learning: a model that never depended much on any record.

The presence and the values of a record are hidden from everybody who sees the model, whatever else they know. A
deletion needs no work: the certificate states the epsilon of the unchanged model against one learned with the deleted
records replaced, for several numbers of them.

`model` has the certificate and its recomputation, `statement` its wording. The constants and wording of each plan are
next to its formulas in `accounting.private`.
"""

from certified_unlearning.certificate.private.model import PrivateCertificate

__all__ = ["PrivateCertificate"]
