"""Assumptions and limits of certificates in sentences for people who know no term of the field.

Certificates keep their own words, which `unlearn verify` compares. A sentence without an entry here is shown as it is.
"""

from collections.abc import Iterable

_NO_REACTION = "Nobody asked for a removal because of what a model said."
_OTHERS = "The people whose records stay are not protected: the model may tell things about them."
EARLIER = "Copies of the model from before the removal, wherever they are, still know the records."
_COLUMNS = "How columns became numbers (the list of columns, ranges, categories) was not chosen by these records."
_NOISE = "Nobody knows the random numbers that were drawn."

_PLAIN = {
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
    "requests are fixed in advance and do not depend on published models": _NO_REACTION,
    "for epsilon, not for epsilon_all_releases: requests are fixed in advance and do not depend on published models": (
        _NO_REACTION
    ),
    "requests are oblivious: chosen without looking at models, states, or the time of requests": (
        "Nobody asked for a removal because of what a model said, or of how long an earlier removal took."
    ),
    "nobody concludes anything from when data were read again": (
        "Nobody draws conclusions from the dates on which all records were read again."
    ),
    "nobody concludes anything from the last bits of the published weights' noise": (
        "Nobody exploits the last digits of the random noise in the published model."
    ),
    "nobody who sees the model knows the noise": _NOISE,
    "nobody knows the randomness": _NOISE,
    "numbers are real numbers": "The computer's rounding of numbers tells nothing.",
    "arithmetic and Gaussian noise are exact": "The computer's rounding of numbers tells nothing.",
    "single operations are rounded to nearest, and exponentials are right to 4 units in the last place": (
        "The computer rounds as its makers say."
    ),
    "the state is secret, and no older copy of it is kept": (
        "The model directory is kept secret, and no older copy of it exists, in backups either."
    ),
    "parameters, boxes and checkpoints are secret, and no older copy of them is kept": (
        "The model directory is kept secret, and no older copy of it exists, in backups either."
    ),
    "boxes and checkpoints follow from the records by the constants named here": (
        "The model was made from the records as the certificate says."
    ),
    "constants, starts, slices and the moment of stopping were not chosen by the records": (
        "The settings of training were not chosen by looking at the records."
    ),
    # What is not promised.
    "nothing about requests that were made because of what a model said": (
        "Removals that somebody asked for because of what a model said are not covered."
    ),
    "nothing where requests were chosen after seeing a model, a state, or how long a request took": (
        "Removals that somebody asked for because of what a model said, or of how long one took, are not covered."
    ),
    "nothing towards the people whose records stay": _OTHERS,
    "nothing towards the records that stay: the comparator is an exact minimiser with noise, no private training": (
        _OTHERS
    ),
    "nothing towards the records that stay: learning is not private": _OTHERS,
    "nothing about what was published before a deletion: whoever kept it has a model of the removed records": EARLIER,
    "nothing about what was published before a deletion, nor about two states together: two snapshots around a request "
    "give the removed record away": (
        f"{EARLIER} Two copies of the model directory, from before and after the removal, give the records away."
    ),
    "nothing about the secret state (weights without noise, matrix and factor), which depends on removed records until "
    "data are read again": (
        "The secret files in the model directory may depend on the removed records until all records are read again."
    ),
    "nothing about parameters: until a shard is trained again they were learned with the records that have left it, "
    "and so were its boxes; both must stay secret": (
        "The model's inner numbers may still depend on the removed records, and must stay secret."
    ),
    "nothing about inputs without an answer, and no differential privacy of the answers: which inputs have none "
    "depends on the records, those that were removed included, and leaks": (
        "Which questions get no answer depends on the records, the removed ones included."
    ),
    "nothing about probabilities, numbers of votes or of shards that abstain: labels only": (
        "Only answers are covered, and not how sure the model is of them."
    ),
    "nothing about which shard is trained again, and when: that tells in which shards removed records lay, and so does "
    "the time that a request takes; it depends on nothing that the records said": (
        "Which part of the model is learned again, and when, tells in which part the removed records were."
    ),
    "nothing where slices are drawn anew after a removal, or what was published before one was kept": (
        "Answers that were given before the removal, and kept, are not covered."
    ),
}


def in_plain_words(statements: Iterable[str]) -> tuple[str, ...]:
    """Return statements of a certificate as sentences without terms, each once."""
    return tuple(dict.fromkeys(_PLAIN.get(each, f"{each[0].upper()}{each[1:]}.") for each in statements))


def has_plain_words(statement: str) -> bool:
    """Return whether there is a sentence without terms for a statement."""
    return statement in _PLAIN
