"""What certificates of private learning say in words: what is hidden from whom, and what that rests on.

Words follow from the mechanism and a few names, so they are recomputed as numbers are.
"""

import functools
from typing import Any, NamedTuple

from certified_unlearning.accounting.accountant import PUBLIC_TARGET_RANGE, SEEDED_NOISE, Assumption
from certified_unlearning.accounting.private.losses import LossName
from certified_unlearning.certificate.preprocessing import preprocessing
from certified_unlearning.certificate.private.constants import ESTIMATED, Mechanism, Selection
from certified_unlearning.vocabulary import NoiseSource, Relation

HIDDEN = {
    "replace-one": "which record stood in any one place: the law of the model hardly changes when one record is "
    "replaced by any other; how many there are is public",
    "add-remove": "whether any one record was there: the law of the model hardly changes when one record is added or "
    "left out, where sums are divided by the same public n, and the place of a record that is left out stays empty, as "
    "a row of zeros",
}
_KNOWING = "may know all other records and the algorithm with its constants"
_ITERATES = "or all iterates that it was drawn from"
_SECRET = "but not which records were in which batch"
_SEEN: dict[Mechanism, str] = {
    "spider-boost": f", {_ITERATES},",
    "tree-spider": ", or the points and noisy gradients of all nodes of its trees,",
    "recursive-regularisation": ", or the iterates of all stages,",
    "phased-descent": ", or what every phase published, but not the iterates of a phase,",
    "sampled-descent": f", or the weights after every step, {_SECRET},",
    "sampled-spider": f", {_ITERATES}, {_SECRET},",
}
"""What is covered besides the model; where nothing is said, the model alone is spoken of."""
COMPARATOR = (
    "the same algorithm with the same constants, run on the records with the deleted ones replaced by any others; "
    "under add-remove not that, but with their places left empty: towards that, doing nothing satisfies the epsilons "
    "of `deletions`"
)
_ANOTHER = "nothing about a model retrained with another n, or by another algorithm"
_LATER = "nothing about deletions that were chosen after seeing the model, beyond what holds for every record at once"
_COMMON = "nothing about what the population has in common: what can be learned without a record may be learned"
_TOGETHER = "nothing about several models learned from the same records together: "
NOT_PROMISED = (
    _ANOTHER,
    f"{_TOGETHER}their mu add up in squares, and pure epsilons of selections add up",
    _LATER,
    _COMMON,
)
SAMPLED_NOT_PROMISED = (_ANOTHER, f"{_TOGETHER}their losses of privacy add up", _LATER, _COMMON)

SAMPLED: tuple[Mechanism, ...] = ("sampled-descent", "sampled-spider")
DISJOINT: tuple[Mechanism, ...] = ("tree-spider", "recursive-regularisation", "phased-descent")
_SPIDERS: tuple[Mechanism, ...] = ("spider-boost", "sampled-spider")
_STATIONARY: tuple[Mechanism, ...] = (*_SPIDERS, "tree-spider")


class Told(NamedTuple):
    """What words follow from.

    Attributes:
        mechanism: How it was learned.
        selection: How one of several models was selected.
        relation: When two data sets are neighbours.
        loss: Of a score and a target.
        share: Of records that are expected in a Poisson batch; None without.
        embedded: Whether rows were projected at random.
        noise_source: Where the noise came from.
        dataset: Name of the data set.
        features: How features were made.
    """

    mechanism: Mechanism
    selection: Selection
    relation: Relation
    loss: LossName
    share: float | None
    embedded: bool
    noise_source: NoiseSource
    dataset: str
    features: str


def words(told: Told) -> dict[str, Any]:
    """Return what a certificate says, by its field."""
    return {
        "hidden": HIDDEN[told.relation],
        "observers": f"everybody who sees the model{_SEEN.get(told.mechanism, ',')} and {_KNOWING}",
        "comparator": COMPARATOR,
        "not_promised": SAMPLED_NOT_PROMISED if told.mechanism in SAMPLED else NOT_PROMISED,
        "sampling": _sampling(told.mechanism, told.share),
        "assumptions": _assumptions(told),
    }


def _sampling(mechanism: Mechanism, share: float | None) -> str:
    if mechanism in DISJOINT:
        return "disjoint parts: each record is read in at most one of them, by its position"
    if mechanism not in SAMPLED:
        return "full batch"
    batches = f"Poisson batches, which are secret: each record is in each with probability {share!r}, by itself"
    return batches if mechanism == "sampled-descent" else f"full batch for gradients; for their differences, {batches}"


@functools.cache
def _assumptions(told: Told) -> tuple[Assumption, ...]:
    """Return what privacy rests on."""
    return (
        *_of_records(told),
        *_of_the_run(told),
        Assumption(
            statement="learning ended, and nobody concludes anything from that",
            status="assumed",
            by="an error, such as that of records of one class only, or of a solver that did not get near enough, "
            "tells of the records",
        ),
        *_of_numbers(told),
        _of_the_key(told),
    )


def _of_records(told: Told) -> tuple[Assumption, ...]:
    """Return what concerns the records, and what was made of them."""
    bounded = "a row that is too long was scaled down, a target clipped, each by itself"
    if told.embedded:
        bounded += "; rows after a random projection once more"
    if told.mechanism == "sampled-descent":
        bounded += "; and every gradient of a record was clipped, on which alone epsilon rests"
    public = (
        "radius, strength, steps, norm and number of records do not depend on the records"
        if told.mechanism in ESTIMATED
        else "constants, sizes of batches and of blocks, norm and number of records do not depend on the records"
    )
    order = {
        True: "they were read by position, each in one part alone, so that every part may spend all of epsilon",
        False: "they were split by position, so that learning and selecting read different ones",
    }[told.mechanism in DISJOINT]
    return (
        Assumption(statement="every record keeps to its bounds", status="checked", by=bounded),
        Assumption(
            statement=public,
            status="assumed",
            by="they were given, or follow from what was given and from the number of records: read off the records, "
            "they would tell of them",
        ),
        *((PUBLIC_TARGET_RANGE,) if told.loss != "logistic" else ()),
        preprocessing(told.dataset, told.features),
        *(
            (Assumption(statement="the order of records does not depend on what they are", status="assumed", by=order),)
            if told.selection != "none" or told.mechanism in DISJOINT
            else ()
        ),
    )


def _of_the_run(told: Told) -> tuple[Assumption, ...]:
    """Return what concerns the gradients, the batches and the choice of a model, by the mechanism."""
    found: list[Assumption] = []
    if told.mechanism in _STATIONARY:
        found.append(
            Assumption(
                statement="no gradient, and no difference of two, is longer than was planned for",
                status="checked",
                by="the loss has a bounded slope and is smooth, and rows keep to their norm: then gradients of a "
                "record are bounded whatever the weights are, and their differences by the weights' distance",
            )
        )
    if told.mechanism == "phased-descent":
        found.append(
            Assumption(
                statement="no step takes two paths farther apart",
                status="checked",
                by="the loss is convex, and no step is longer than 2 / H: other plans are refused, for noise on the "
                "end of a phase would not be enough",
            )
        )
    if told.mechanism in _SPIDERS:
        found.append(_choice("it is any iterate but the start, with the same probability, drawn beforehand"))
    if told.mechanism == "tree-spider":
        found.append(_choice("it is the first leaf whose noisy gradient is short, or any leaf with the same chance"))
    if told.mechanism in SAMPLED:
        found += [
            Assumption(
                statement="every record enters every batch by itself and by chance",
                status="checked",
                by="each is drawn anew for each batch with the stated probability, to 53 random bits",
            ),
            Assumption(
                statement="nobody learns which records were in which batch",
                status="assumed",
                by="batches follow from the key of the noise; neither they, nor their sizes, nor how long a step took, "
                "may be published",
            ),
            Assumption(
                statement="dp-accounting's epsilon is none too small",
                status="assumed",
                by="it rounds the loss of privacy up, bin by bin; what its own float64 rounds is taken off delta as "
                "far as was measured, and has no proven bound",
            ),
        ]
    return tuple(found)


def _choice(by: str) -> Assumption:
    return Assumption(
        statement="which model is returned tells nothing more of the records",
        status="checked",
        by=f"{by}: that follows from chance and from what is covered anyway",
    )


def _of_numbers(told: Told) -> tuple[Assumption, ...]:
    """Return what concerns float64."""
    sums = "products of matrices are taken to be made by sums of products, as all usual libraries do"
    if told.mechanism == "sampled-descent":
        rounded = Assumption(
            statement="what float64 rounds in sums of gradients tells nothing",
            status="assumed",
            by="it is not part of how far one record moves a sum",
        )
    else:
        paid = (
            "a share of what one record moves is set aside for what float64 rounds in gradients, and a run in which it "
            "could be more ends with an error"
            if told.mechanism in _STATIONARY
            else "bounds of sums and products in float64 are part of the sensitivity"
        )
        rounded = Assumption(statement="rounding is paid for", status="checked", by=f"{paid}; {sums}")
    uncounted = Assumption(
        statement="every step goes on from a sum with exactly Gaussian noise",
        status="assumed",
        by="it goes on from what was stored, which is within noise_resolution of that; what this adds to how far one "
        "record moves the next release is not counted",
    )
    whose = "weights' " if told.mechanism in ESTIMATED else ""
    return (
        rounded,
        *((uncounted,) if told.mechanism in (*_SPIDERS, "sampled-descent") else ()),
        Assumption(
            statement=f"nobody concludes anything from the last bits of the {whose}noise",
            status="assumed",
            by="it is within noise_resolution of exact Gaussian noise, made of the operating system's or a cipher's "
            "bits; attacks on smaller differences (Mironov 2012) are not excluded, nor those on how long learning took",
        ),
    )


def _of_the_key(told: Told) -> Assumption:
    """Return what concerns whoever could subtract the noise."""
    statement = "nobody who sees the model knows the noise"
    if told.noise_source == "seed":
        return Assumption(statement=statement, status="assumed", by=SEEDED_NOISE)
    if told.mechanism in ESTIMATED:
        by = "it comes from the operating system's entropy and is not kept"
        return Assumption(statement=statement, status="checked", by=by)
    return Assumption(
        statement=statement,
        status="assumed",
        by="its key was given by whoever learned, who says that it came from the operating system's entropy and was "
        "not kept",
    )
