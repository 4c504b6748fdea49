"""What was done to records before they were learned from: the assumption in words, and weights of their classes."""

from collections.abc import Sequence

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.data.sets import built_in
from certified_unlearning.data.tables.declaration import CLASSES_FROM_RECORDS, DECLARED

GIVEN = "given"
"""Features of a certificate where an estimator was given a matrix as it is."""
_OF_OWN_DATA = (DECLARED, CLASSES_FROM_RECORDS, GIVEN)


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
    if features == CLASSES_FROM_RECORDS:
        by = (
            "each record by itself, as declared; that columns, categories and ranges were not chosen by these records "
            "is the declaration's word; the list of classes, and with it the number of weights, was taken from the "
            "records: it stays as it is after a removal, and it may show that a removed record existed"
        )
        return Assumption(
            statement="preprocessing, but for the list of classes, does not depend on records that may be removed",
            status="assumed",
            by=by,
        )
    return Assumption(
        statement=statement, status="checked", by="fixed features or scaling, then each record by its own norm"
    )


def possible_features(features: str | None) -> tuple[bool, str]:
    """Return whether a certificate of somebody's own data may name these features, and which it may."""
    return features in _OF_OWN_DATA, f"one of {', '.join(map(repr, _OF_OWN_DATA))}"


def possible_class_weights(stated: Sequence[float] | None, classes: int) -> tuple[bool, str]:
    """Return whether class weights leave the bounds of a record's loss as they are, and what they must be."""
    possible = stated is None or (len(stated) == classes > 1 and all(0 <= weight <= 1 for weight in stated))
    return possible, f"{classes} numbers between 0 and 1, or left out"
