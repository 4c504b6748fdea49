"""Certified machine unlearning: learn a model, remove records from it, and state what is guaranteed.

>>> from certified_unlearning import LangevinLogisticRegression
>>> LangevinLogisticRegression(epsilon=1).epsilon
1

Most programs need only these names: the estimators, `unlearn` for a whole scikit-learn pipeline, `load_model` for the
current model of a ledger, and the module `certificate`, which reads, writes and verifies certificates. Each name is
imported on first use, together with PyTorch and scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from certified_unlearning import certificate
    from certified_unlearning.estimators import (
        CertifiedLogisticRegression,
        CertifiedMLPClassifier,
        CertifiedRidge,
        ExactKMeans,
        ExactLogisticRegression,
        LangevinLogisticRegression,
        LangevinRidge,
        PrivateLinearRegression,
        PrivateLogisticRegression,
        PublishedStateDescentToDelete,
        SecretStateDescentToDelete,
    )
    from certified_unlearning.estimators.pipelines import unlearn
    from certified_unlearning.ledger import load_model

    __version__: str

__all__ = [
    "CertifiedLogisticRegression",
    "CertifiedMLPClassifier",
    "CertifiedRidge",
    "ExactKMeans",
    "ExactLogisticRegression",
    "LangevinLogisticRegression",
    "LangevinRidge",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PublishedStateDescentToDelete",
    "SecretStateDescentToDelete",
    "__version__",
    "certificate",
    "load_model",
    "unlearn",
]

_MODULES = {
    "CertifiedLogisticRegression": "estimators",
    "CertifiedMLPClassifier": "estimators",
    "CertifiedRidge": "estimators",
    "ExactKMeans": "estimators",
    "ExactLogisticRegression": "estimators",
    "LangevinLogisticRegression": "estimators",
    "LangevinRidge": "estimators",
    "PrivateLinearRegression": "estimators",
    "PrivateLogisticRegression": "estimators",
    "PublishedStateDescentToDelete": "estimators",
    "SecretStateDescentToDelete": "estimators",
    "load_model": "ledger",
    "unlearn": "estimators.pipelines",
}
"""The module of each name, as text, because jobs import this package and must not depend on these modules."""


def __getattr__(name: str) -> Any:
    """Import a name of this package on first use, with the modules that it needs."""
    if name == "certificate":
        return import_module(f"{__name__}.certificate")
    if name == "__version__":
        return import_module("importlib.metadata").version("certified-unlearning")
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return all names, including those that are not imported yet."""
    return sorted({*globals(), *__all__})
