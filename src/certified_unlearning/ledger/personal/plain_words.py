"""Assumptions and limits of certificates in sentences for people who know no term of the field.

Certificates keep their own words, which `unlearn verify` compares. A sentence without an entry here is shown as it is.
"""

from collections.abc import Iterable

_REACTIONS = "Where a removal was asked for because of something that a model said, the result does not hold."
_REACTIONS_OR_TIME = (
    "Where a removal was asked for because of something that a model said, or of how long a removal took, the result "
    "does not hold."
)
NEW_REACTIONS = (
    "New records were added to the model. Where these came about because of something that an earlier model said, the "
    "result does not hold."
)
_OTHERS = "The page is about removed records only. It says nothing about how well the remaining records are protected."
EARLIER = (
    "Copies of earlier versions of the model that learned from the records, wherever they are, still contain "
    "information from them."
)
_COLUMNS = "The list of columns, value ranges and categories was fixed without looking at the removed records."
_NOISE = "Nobody knows the random numbers that were drawn."
_ROUNDING = "The calculation treats numbers as exact. It does not cover what a computer's rounding may tell."
_SECRET = "The model's folder is kept secret, and no older copy of it exists, in backups either."

SECRET_STATE = (
    "nothing about the secret state (weights without noise, matrix and factor), which depends on removed records until "
    "data are read again"
)
SECRET_STATE_BY_PASSES = (
    "nothing about the secret state (weights without noise, matrix and factor), which depends on removed records until "
    "the model is learned anew: passes only correct the weights"
)
SECRET_STATE_OF_MORE_CLASSES = (
    "nothing about the secret state (weights without noise, their gradient, the factor of a matrix, and steps of "
    "earlier requests), which depends on removed records until the model is learned anew: passes only correct the "
    "weights"
)
SECRET_STATES = (SECRET_STATE, SECRET_STATE_BY_PASSES, SECRET_STATE_OF_MORE_CLASSES)
"""What a reading makes anew."""

LEFT_OUT = {
    "requests are fixed in advance and do not depend on published models": _REACTIONS,
    "for epsilon, not for epsilon_all_releases: requests are fixed in advance and do not depend on published models": (
        _REACTIONS
    ),
    "for epsilon, not for epsilon_all_releases: requests and added records are fixed in advance and do not depend on "
    "published models": _REACTIONS,
    "requests are oblivious: chosen without looking at models, states, or the time of requests": _REACTIONS_OR_TIME,
    "nobody concludes anything from when data were read again": (
        "The dates on which the model was learned anew may tell something. The calculation leaves that out."
    ),
    "nobody concludes anything from the last bits of the published weights' noise": (
        "The last digits of the random noise in the model may tell something. The calculation leaves that out."
    ),
    "numbers are real numbers": _ROUNDING,
    "arithmetic and Gaussian noise are exact": _ROUNDING,
}
"""Assumptions that a reader takes for gaps rather than for conditions."""

PLAIN_WORDS = {
    **LEFT_OUT,
    # What guarantees rest on.
    "preprocessing does not depend on records that may be removed": _COLUMNS,
    "preprocessing, but for the list of classes, does not depend on records that may be removed": (
        f"{_COLUMNS} The list of classes was taken from the records, and stays as it was."
    ),
    "class weights are constants that do not depend on the records": (
        "How much each class counts was not chosen by looking at the records."
    ),
    "the range of targets does not depend on the records": (
        "The range of the predicted number was not chosen by looking at the records."
    ),
    "nobody who sees the model knows the noise": _NOISE,
    "nobody knows the randomness": _NOISE,
    "single operations are rounded to nearest, and exponentials are right to 4 units in the last place": (
        "The computer's processor rounds numbers as its makers say."
    ),
    "the state is secret, and no older copy of it is kept": _SECRET,
    "parameters, boxes and checkpoints are secret, and no older copy of them is kept": _SECRET,
    "boxes and checkpoints follow from the records by the constants named here": (
        "The model was made from the records as the certificate says."
    ),
    "constants, starts, slices and the moment of stopping were not chosen by the records": (
        "The settings of training were not chosen by looking at the records."
    ),
    # What is not promised.
    "nothing about requests that were made because of what a model said": _REACTIONS,
    "nothing where requests were chosen after seeing a model, a state, or how long a request took": _REACTIONS_OR_TIME,
    "nothing towards the people whose records stay": _OTHERS,
    "nothing towards the records that stay: the comparator is an exact minimiser with noise, no private training": (
        _OTHERS
    ),
    "nothing towards the records that stay: learning is not private": _OTHERS,
    "nothing about what was published before a deletion: whoever kept it has a model of the removed records": EARLIER,
    "nothing about what was published before a deletion, nor about two states together: two snapshots around a request "
    "give the removed record away": (
        "Two copies of the model's folder, from before and after the removal, show the records."
    ),
    **dict.fromkeys(
        SECRET_STATES,
        "Secret files in the model's folder may contain information from removed records until it is learned anew.",
    ),
    "nothing about parameters: until a shard is trained again they were learned with the records that have left it, "
    "and so were its boxes; both must stay secret": (
        "The model's inner numbers may still depend on the removed records, and must stay secret."
    ),
    "nothing about inputs without an answer, and no differential privacy of the answers: which inputs have none "
    "depends on the records, those that were removed included, and leaks": (
        "The page covers the answers that are given. Which questions stay without an answer may tell something about "
        "removed records."
    ),
    "nothing about probabilities, numbers of votes or of shards that abstain: labels only": (
        "Answers are covered. How sure the model is of them is not."
    ),
    "nothing about which shard is trained again, and when: that tells in which shards removed records lay, and so does "
    "the time that a request takes; it depends on nothing that the records said": (
        "Which part of the model is learned again, and when, tells in which part the removed records were."
    ),
    "nothing where slices are drawn anew after a removal, or what was published before one was kept": (
        "Answers that were given before the removal, and kept, are not covered."
    ),
}
_COMPARISONS = {
    "learning anew by the same noisy steps": (
        "a model that was trained in the same way, with random noise, without the removed records from the beginning"
    ),
    "an exact refit with the same noise": (
        "the mathematically exact model of all records that are left, to which the same kind of random noise is added"
    ),
    "the same steps from nothing on the records that are left": (
        "a model that was trained in the same way without the removed records from the beginning"
    ),
    "the answers of the ensemble trained from the same starts, on the same slices of the records that are left": (
        "the answers of a model that was trained in the same way without the removed records from the beginning"
    ),
}


def in_plain_words(statements: Iterable[str]) -> tuple[str, ...]:
    """Return statements of a certificate as sentences without terms, each once."""
    return tuple(dict.fromkeys(PLAIN_WORDS.get(each, f"{each[0].upper()}{each[1:]}.") for each in statements))


def comparison_in_plain_words(compared_with: str) -> str:
    """Return what a version is compared with, for people who know no term of the field."""
    return _COMPARISONS.get(compared_with, compared_with)
