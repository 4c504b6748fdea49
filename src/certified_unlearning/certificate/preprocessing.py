"""The assumption about preprocessing, and checks of text columns, features and class weights."""

from collections.abc import Sequence

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.data.sets import built_in
from certified_unlearning.data.tables.declaration import CLASSES_FROM_RECORDS, DECLARED, Text

GIVEN = "given"
"""Value of the certificate's field ``features`` for a user's own matrix, which this package did not preprocess."""
_OF_OWN_DATA = (DECLARED, CLASSES_FROM_RECORDS, GIVEN)


_ASSUMED_OF = {
    "resnet18": "the network's weights are assumed to have been trained on other records",
    GIVEN: "the estimator sees only its input: the guarantee does not cover means, scales, vocabularies or components "
    "that were computed from the records beforehand, unless they are fixed or public; nor does it cover the list of "
    "classes, which is taken from the records",
    DECLARED: "each record was preprocessed by itself, as declared; according to the declaration, columns, classes, "
    "categories and ranges were chosen independently of these records",
    CLASSES_FROM_RECORDS: "each record was preprocessed by itself, as declared; according to the declaration, columns, "
    "categories and ranges were chosen independently of these records; the list of classes, and therefore the number "
    "of weights, was taken from the records, does not change after a removal, and may show that a removed record "
    "existed",
}
"""The words of the unchecked assumption, keyed by the certificate's field ``features``."""


def preprocessing(dataset: str, features: str | None, hashed: Sequence[Text] = ()) -> Assumption:
    """Return the assumption about preprocessing for a certificate's data set, features and text columns."""
    known = built_in(dataset)
    learned_from = "" if known is None else known.learned_from
    but = ", except for the list of classes," if features == CLASSES_FROM_RECORDS and not learned_from else ""
    statement = f"preprocessing{but} does not depend on records that may be removed"
    assumed = learned_from or _ASSUMED_OF.get(features or "")
    if assumed and hashed:
        assumed = f"{assumed}; {_in_words(hashed)}"
    if assumed:
        return Assumption(statement=statement, status="assumed", by=assumed)
    return Assumption(
        statement=statement,
        status="checked",
        by="features or scaling are fixed, and each record is then scaled by its own norm",
    )


def _in_words(hashed: Sequence[Text]) -> str:
    """Return a description of how text columns were converted to numbers."""
    widths = " and ".join(f"{how.width:,}" for how in hashed)
    return (
        f"words were hashed into {widths} columns by scikit-learn's HashingVectorizer, which keeps no vocabulary; the "
        "number of columns was chosen independently of these records"
    )


def possible_text(hashed: Sequence[Text], features: str | None, columns: int) -> tuple[bool, str]:
    """Return whether rows of this width can have these text columns, and a description of the possible text columns."""
    possible = not hashed or (features != GIVEN and sum(how.width for how in hashed) <= columns)
    return possible, f"text columns of a declared table, with a total width of at most {columns:,}"


def possible_features(features: str | None) -> tuple[bool, str]:
    """Return whether a certificate for a user's own data may name these features, and a list of the possible names."""
    return features in _OF_OWN_DATA, f"one of {', '.join(map(repr, _OF_OWN_DATA))}"


def possible_class_weights(stated: Sequence[float] | None, classes: int) -> tuple[bool, str]:
    """Return whether class weights leave a record's bounds unchanged, and a description of the possible weights."""
    possible = stated is None or (len(stated) == classes > 1 and all(0 <= weight <= 1 for weight in stated))
    return possible, f"{classes} numbers between 0 and 1, or left out"
