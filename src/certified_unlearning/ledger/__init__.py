"""Requests to be forgotten, and what was done about them: files and commands, no server.

A model directory holds

===========================  ======================================================================
``ledger.sqlite``            `store`: an append-only, hash-chained list of events, and whose each row is
``model.json``               `model`: the learner and the table's declaration, which never change
``weights-<version>``        the current version's weights, and no others
``secret-<version>``         what else the next request starts from, where the mechanism has a secret
``certificate-<version>``    what was guaranteed, of every version
``training/``                `training.dense`: rows and labels; those of removed records are zeros
``rows-<version>``           `training.sparse`, instead: sparse rows and labels of the current version, of text
``digest-key-<version>``     what the digest of the training copy is keyed with, destroyed by the next `apply`
``identifier-key``           what the tags are keyed with that show whose row is whose
``added-...-<version>``      the rows and labels that `add` is adding, until they stand in the training copy
``lock``                     held while `apply` or `add` is at work
===========================  ======================================================================

The log may be kept in a second place, too (`log.second_place`): with it `log.replay` brings a directory that was
restored from a backup to the present. `method` is what a mechanism does here, those of `methods` do it. `state` says
what the events add up to.
`initialisation`, `requests`, `application`, `adding`, `log` and `verification` are the commands; `commands` is their
line.
`prediction` uses the model, `quality` says how good it is, to the operator and to no file. A version of the model
counts from the event that names it: until then the one before is current, and its files stay.
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
