"""What was done to records before they were learned from: the assumption in words, and weights of their classes."""

from collections.abc import Sequence

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.data.sets import built_in

DECLARED = "declared"
"""Features of a certificate where a declaration says how they are made: a table's, or somebody's own data set."""
GIVEN = "given"
"""Features of a certificate where an estimator was given a matrix as it is."""


def preprocessing(dataset: str, features: str | None) -> Assumption:
    """Return what preprocessing rests on, by the data set and the features that a certificate names."""
    statement = "preprocessing does not depend on records that may be removed"
    known = built_in(dataset)
    if known is not None and known.learned_from:
        return Assumption(statement=statement, status="assumed", by=known.learned_from)
    if features == "resnet18":
        by = "the network's weights are taken to have been trained on other records"
        return Assumption(statement=statement, status="assumed", by=by)
    if features == GIVEN:
        by = (
            "the estimator sees its input only: means, scales, vocabularies or components that were computed from the "
            "records before are outside this guarantee, unless they are fixed or public; so is the list of classes, "
            "which is taken from the records"
        )
        return Assumption(statement=statement, status="assumed", by=by)
    if features == DECLARED:
        by = (
            "each record by itself, as declared; that columns, classes, categories and ranges were not chosen by these "
            "records is the declaration's word"
        )
        return Assumption(statement=statement, status="assumed", by=by)
    return Assumption(
        statement=statement, status="checked", by="fixed features or scaling, then each record by its own norm"
    )


def possible_class_weights(stated: Sequence[float] | None, classes: int) -> tuple[bool, str]:
    """Return whether class weights leave the bounds of a record's loss as they are, and what they must be."""
    possible = stated is None or (len(stated) == classes > 1 and all(0 <= weight <= 1 for weight in stated))
    return possible, f"{classes} numbers between 0 and 1, or left out"
