"""The assumption about preprocessing, in words, and checks of text columns, features and class weights."""

from collections.abc import Sequence

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.data.sets import built_in
from certified_unlearning.data.tables.declaration import CLASSES_FROM_RECORDS, DECLARED, Text

GIVEN = "given"
"""The field ``features`` of a certificate for a user's own matrix, which this package did not preprocess."""
_OF_OWN_DATA = (DECLARED, CLASSES_FROM_RECORDS, GIVEN)


_ASSUMED_OF = {
    "resnet18": "the network's weights are taken to have been trained on other records",
    GIVEN: "the estimator sees its input only: means, scales, vocabularies or components that were computed from the "
    "records before are outside this guarantee, unless they are fixed or public; so is the list of classes, which is "
    "taken from the records",
    DECLARED: "each record by itself, as declared; that columns, classes, categories and ranges were not chosen by "
    "these records is the declaration's word",
    CLASSES_FROM_RECORDS: "each record by itself, as declared; that columns, categories and ranges were not chosen by "
    "these records is the declaration's word; the list of classes, and with it the number of weights, was taken from "
    "the records: it stays as it is after a removal, and it may show that a removed record existed",
}
"""The words of the unchecked assumption, by the field ``features`` of the certificate."""


def preprocessing(dataset: str, features: str | None, hashed: Sequence[Text] = ()) -> Assumption:
    """Return the assumption about preprocessing for a certificate's data set, features and text columns."""
    known = built_in(dataset)
    learned_from = "" if known is None else known.learned_from
    but = ", but for the list of classes," if features == CLASSES_FROM_RECORDS and not learned_from else ""
    statement = f"preprocessing{but} does not depend on records that may be removed"
    assumed = learned_from or _ASSUMED_OF.get(features or "")
    if assumed and hashed:
        assumed = f"{assumed}; {_in_words(hashed)}"
    if assumed:
        return Assumption(statement=statement, status="assumed", by=assumed)
    return Assumption(
        statement=statement, status="checked", by="fixed features or scaling, then each record by its own norm"
    )


def _in_words(hashed: Sequence[Text]) -> str:
    """Return how text columns became numbers, in words."""
    widths = " and ".join(f"{how.width:,}" for how in hashed)
    return (
        f"words were hashed into {widths} columns by scikit-learn's HashingVectorizer, which keeps no vocabulary, and "
        "so many columns were not chosen by these records"
    )


def possible_text(hashed: Sequence[Text], features: str | None, columns: int) -> tuple[bool, str]:
    """Return whether rows with this number of columns can have these text columns, and the possible ones in words."""
    possible = not hashed or (features != GIVEN and sum(how.width for how in hashed) <= columns)
    return possible, f"columns of text of a declared table, at most {columns:,} wide together"


def possible_features(features: str | None) -> tuple[bool, str]:
    """Return whether a certificate for a user's own data may name these features, and the possible names in words."""
    return features in _OF_OWN_DATA, f"one of {', '.join(map(repr, _OF_OWN_DATA))}"


def possible_class_weights(stated: Sequence[float] | None, classes: int) -> tuple[bool, str]:
    """Return whether class weights leave the bounds of a record's loss unchanged, and the possible values."""
    possible = stated is None or (len(stated) == classes > 1 and all(0 <= weight <= 1 for weight in stated))
    return possible, f"{classes} numbers between 0 and 1, or left out"
