"""Deletion requests and their answers: files and commands, no server.

A model directory holds

===========================  ======================================================================
``ledger.sqlite``            `store`: an append-only, hash-chained list of events, and the owner of each row
``model.json``               `model`: the learner and the table's declaration, which never change
``weights-<version>``        the current version's weights, and no others
``secret-<version>``         what the next request starts from besides, if the mechanism has a secret
``certificate-<version>``    what was guaranteed, of every version
``training/``                `training.dense`: rows and labels; those of removed records are zeros
``rows-<version>``           `training.sparse`, instead: sparse rows and labels of the current version, of text
``digest-key-<version>``     the key of the training copy's digest, destroyed by the next `apply`
``identifier-key``           the key of the tags that show which row belongs to whom
``added-...-<version>``      the rows and labels that `add` is adding, until they stand in the training copy
``lock``                     held while `apply` or `add` is at work
===========================  ======================================================================

The log may be kept in a second place, too (`log.second_place`): with it `log.replay` brings a directory that was
restored from a backup to the present. `method` declares what a mechanism does here, and `methods` does it. `state` says
what the events add up to.

`initialisation`, `requests`, `application`, `adding`, `log` and `verification` carry out the commands. `prediction`
uses the model. `quality` tells the operator how good it is, and writes that to no file. A version of the model counts
once an event names it. Until then the version before is current, and its files stay.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from certified_unlearning.ledger.prediction import LoadedModel, load_model

__all__ = ["LoadedModel", "load_model"]


def __getattr__(name: str) -> Any:
    """Import what needs torch only when it is asked for: `request` and `status` do without."""
    if name in __all__:
        from certified_unlearning.ledger import prediction

        return getattr(prediction, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
