"""Assumptions and limits of certificates, as sentences for people who do not know the terms of the field.

These sentences are not used in certificates, whose wording is checked by `unlearn verify`. A statement without an entry
here is shown as it is.
"""

from collections.abc import Iterable

from certified_unlearning.certificate.lost import NO_BACKUP_SEEN, NOTHING_OF_LOST_RELEASES, OBLIVIOUS_RESTORE
from certified_unlearning.text import capitalised

_EVEN_ONE = "If even one person asked because of a prediction, such as a refusal, this condition is not met."
_NO_REACTIONS = f"No removal was requested because of something that the model had said. {_EVEN_ONE}"
_NO_REACTIONS_OR_RECORDS = (
    f"No removal was requested and no new record was created because of something that the model had said. {_EVEN_ONE}"
)
_NO_RESTORES = (
    "No removal was requested and no backup of the model's folder was restored because of something that the model had "
    "said."
)
_NO_RECORDS = "No new record was created because of something that the model had said."
_NO_REACTIONS_OR_TIME = (
    "No removal was requested and no new record was created because of something that the model had said. Neither was "
    f"done because of the content of the model's files, or because of the duration of a removal. {_EVEN_ONE}"
)
_OTHERS = "The result is about removed records only. It does not say how well the other people's records are protected."
EARLIER = "Every copy of a version that was made with the removed records may still show information from them."
_COLUMNS = (
    "The details of a person that the model uses, and their possible values, were chosen without looking at the "
    "removed records. For example, no list of towns was taken from the data."
)
_NOISE = "Nobody who sees the model knows the random numbers that it was made with."
_ROUNDING = (
    "The calculation treats all numbers as exact. It does not cover what somebody may learn from how a computer rounds "
    "them."
)
_SECRET = (
    "Later versions are made from secret files in the model's folder. These files are kept secret, and no older copy "
    "of them is kept anywhere, not even in a backup or a snapshot. A copy that was destroyed before anybody read it "
    "does no harm."
)
_SECRET_MODEL = (
    "The model's numbers and the other files from which later versions are made are kept secret: others see only the "
    "model's answers. No older copy of these files is kept anywhere, not even in a backup or a snapshot."
)

SECRET_STATE = (
    "the guarantee does not cover the secret state (weights without noise, matrix and factor), which depends on "
    "removed records until the data are read again"
)
SECRET_STATE_BY_PASSES = (
    "the guarantee does not cover the secret state (weights without noise, matrix and factor), which depends on "
    "removed records until the model is learned anew: passes only correct the weights"
)
SECRET_STATE_OF_MORE_CLASSES = (
    "the guarantee does not cover the secret state (weights without noise, their gradient, the factor of a matrix, and "
    "steps of earlier requests), which depends on removed records until the model is learned anew: passes only correct "
    "the weights"
)
SECRET_STATES = (SECRET_STATE, SECRET_STATE_BY_PASSES, SECRET_STATE_OF_MORE_CLASSES)
"""Statements about a secret state that is replaced when the data are read again."""

REACTIONS = {
    "requests are fixed in advance and do not depend on published models": _NO_REACTIONS,
    "for epsilon, not for epsilon_all_releases: requests are fixed in advance and do not depend on published models": (
        _NO_REACTIONS
    ),
    "for epsilon, not for epsilon_all_releases: requests and added records are fixed in advance and do not depend on "
    "published models": _NO_REACTIONS_OR_RECORDS,
    "for epsilon, not for epsilon_all_releases: requests and restores from backups are fixed in advance and do not "
    "depend on published models": f"{_NO_RESTORES} {_EVEN_ONE}",
    "for epsilon, not for epsilon_all_releases: requests, added records and restores from backups are fixed in advance "
    "and do not depend on published models": f"{_NO_RESTORES} {_NO_RECORDS} {_EVEN_ONE}",
    "requests are oblivious: they were chosen without looking at models, states, or the duration of requests": (
        _NO_REACTIONS_OR_TIME
    ),
}
"""Assumptions that requests do not react to anything. `Certificate.with_reactions` states what holds if requests do.

These assumptions come first among the conditions."""

LEFT_OUT = {
    "nobody infers anything from the times at which data were read again": (
        "How long a removal takes, and when the model has to be calculated anew, may depend on people's records. The "
        "result does not cover what somebody may learn from this."
    ),
    "nobody infers anything from the last bits of the published weights' noise": (
        "The calculation treats the noise as perfectly random. The noise that a computer makes has a very small error. "
        "The result does not cover what an expert may learn from this error."
    ),
    "numbers are exact real numbers": _ROUNDING,
    "arithmetic and Gaussian noise are exact": _ROUNDING,
}
"""Assumptions that are shown to a reader as gaps, not as conditions."""

PLAIN_WORDS = {
    **REACTIONS,
    **LEFT_OUT,
    # Assumptions on which guarantees rest.
    "preprocessing does not depend on records that may be removed": _COLUMNS,
    "preprocessing, except for the list of classes, does not depend on records that may be removed": (
        f"{_COLUMNS} Only the list of the model's possible answers was taken from the records. This list does not "
        "change, and may show that a removed record existed."
    ),
    "class weights are constants that do not depend on the records": (
        "The importance that the model gives to each kind of record, for example more importance to rare ones, was "
        "chosen without looking at the records."
    ),
    "the range of targets does not depend on the records": (
        "The smallest and the largest number that the model may have to predict were fixed without looking at the "
        "records."
    ),
    "nobody who sees the model knows the noise": _NOISE,
    "nobody knows the random numbers": _NOISE,
    "single operations are rounded to nearest, and exponentials are correct to 4 units in the last place": (
        "The computer's processor rounds numbers as its manufacturer specifies."
    ),
    "the state is secret, and no older copy of it is kept": _SECRET,
    "parameters, boxes and checkpoints are secret, and no older copy of them is kept": _SECRET_MODEL,
    "boxes and checkpoints follow from the records and the constants named here": (
        "The model was made from the records as its certificate says."
    ),
    "constants, starts, slices and the time of stopping were chosen without looking at the records": (
        "The settings of training were chosen without looking at the records."
    ),
    OBLIVIOUS_RESTORE.statement: (
        "The model's folder was restored from a backup. This was not done because of something that the model had "
        "said, or because of how long a removal had taken."
    ),
    NO_BACKUP_SEEN.statement: (
        "The backup that the model's folder was restored from is kept secret or was destroyed. It holds an older copy "
        "of the secret files."
    ),
    # Statements on what is not promised.
    NOTHING_OF_LOST_RELEASES: (
        "Versions that were made between the backup and the loss of the model's folder are not covered, and neither "
        "are their copies."
    ),
    "the guarantee does not cover requests that were made because of what a model said": _NO_REACTIONS,
    "the guarantee does not hold if requests were chosen after seeing a model, a state, or the duration of a request": (
        _NO_REACTIONS_OR_TIME
    ),
    "the guarantee does not protect the people whose records remain": _OTHERS,
    "the guarantee does not protect the remaining records: the comparator is an exact minimiser with noise, and is not "
    "trained privately": _OTHERS,
    "the guarantee does not protect the remaining records: learning is not private": _OTHERS,
    "the guarantee does not cover what was published before a deletion: a kept copy is a model of the removed "
    "records": EARLIER,
    "the guarantee covers neither anything published before a deletion, nor two states together: two snapshots, from "
    "before and after a request, reveal the removed record": (
        "Two copies of the model's folder, one from before and one from after the removal, show the removed records."
    ),
    **dict.fromkeys(
        SECRET_STATES,
        "Not done yet: secret files in the model's folder, from which later versions are calculated, may still contain "
        "information from the removed records until the model is next calculated anew. The operator's answer should "
        "say when.",
    ),
    "the guarantee does not cover parameters: until a shard is trained again, its parameters and boxes depend on the "
    "records that were removed from it, so both must stay secret": (
        "The result is about the model's answers. The numbers inside the model may still depend on the removed "
        "records, and must stay secret."
    ),
    "the guarantee does not cover inputs without an answer, and the answers are not differentially private: whether an "
    "input has an answer depends on the records, including removed records, and reveals something about them": (
        "The model does not answer some questions. The list of these questions may show something about the removed "
        "records."
    ),
    "the guarantee does not cover probabilities, numbers of votes or numbers of shards that abstain, but only labels": (
        "The result covers only the answers, not how sure the model is of them."
    ),
    "the guarantee does not hide which shard is trained again, and when: this does not depend on the contents of "
    "records, but it shows which shards contained removed records, and so does the duration of a request": (
        "The model has several parts. Somebody who sees which part is trained again, and when, learns in which part "
        "the removed records were, but nothing about their content."
    ),
    "the guarantee does not hold if slices are drawn anew after a removal, or if somebody kept what was published "
    "before a removal": "Answers that the model gave before the removal, and that somebody kept, are not covered.",
}
"""The sentences that a reader sees in place of a certificate's statements. Several statements may share a sentence."""


def in_plain_words(statements: Iterable[str]) -> tuple[str, ...]:
    """Return a certificate's statements as sentences without technical terms; each sentence occurs once."""
    return tuple(dict.fromkeys(PLAIN_WORDS.get(each, f"{capitalised(each)}.") for each in statements))
