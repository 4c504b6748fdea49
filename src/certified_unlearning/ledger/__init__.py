"""The ledger: removal requests and their answers, kept in files by commands, without a server.

A model directory holds

===========================  ======================================================================
``ledger.sqlite``            `store`: an append-only, hash-chained list of events, and the owner of each row
``model.json``               `model`: the learner and the table's declaration, which never change
``weights-<version>``        weights of the current version; those of earlier versions are deleted
``secret-<version>``         further data from which the next request is answered, if the mechanism keeps a secret
``certificate-<version>``    the certificate of each version
``training/``                `training.dense`: rows and labels; those of removed records are zeros
``rows-<version>``           `training.sparse`, for text: sparse rows and labels, in place of ``training/``
``digest-key-<version>``     the key of the training copy's digest; the next `apply` destroys it
``identifier-key``           the key of the tags that show which row belongs to which person
``added-...-<version>``      the rows and labels that `add` is adding, until they are in the training copy
``lock``                     a lock that `apply` and `add` hold while they run
===========================  ======================================================================

The log may also be kept in a second place (`log.second_place`). With this second log, `log.replay` updates a directory
that was restored from a backup. `method` defines what a mechanism must provide to a ledger, and `methods` has the
implementations. `state` computes the ledger's state from its events.

`initialisation`, `requests`, `application`, `adding`, `log` and `verification` carry out the commands. `prediction`
uses the model. `quality` measures how good the model is, for the operator only, and does not write the result to a
file. A version of the model becomes the current one when an event names it. Until then, the previous version is
current, and its files stay.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from certified_unlearning.ledger.prediction import LoadedModel, load_model

__all__ = ["LoadedModel", "load_model"]


def __getattr__(name: str) -> Any:
    """Import a name that needs PyTorch when the name is first used, because `request` and `status` need no PyTorch."""
    if name in __all__:
        from certified_unlearning.ledger import prediction

        return getattr(prediction, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
