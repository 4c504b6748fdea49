"""The wording of certificates of private learning: what is hidden from whom, and the assumptions.

The words follow from the plan and a few names, so they are recomputed like numbers. Each plan contains the wording that
is specific to its way to learn: `accounting.private.plan.Words`.
"""

from typing import Any

from certified_unlearning.accounting.accountant import PUBLIC_TARGET_RANGE, SEEDED_NOISE, Assumption
from certified_unlearning.accounting.private.plan import UNKNOWN_NOISE, PrivatePlan, Words
from certified_unlearning.certificate.preprocessing import preprocessing
from certified_unlearning.vocabulary import NoiseSource

HIDDEN = {
    "replace-one": "which record stood in any one place: the law of the model hardly changes when one record is "
    "replaced by any other; how many there are is public",
    "add-remove": "whether any one record was there: the law of the model hardly changes when one record is added or "
    "left out, where sums are divided by the same public n, and the place of a record that is left out stays empty, as "
    "a row of zeros",
}
COMPARATOR = (
    "the same algorithm with the same constants, run on the records with the deleted ones replaced by any others; "
    "under add-remove not that, but with their places left empty: towards that, doing nothing satisfies the epsilons "
    "of `deletions`"
)
READ_ONCE = "disjoint parts: each record is read in at most one of them, by its position"
READ_BY_POSITION = "they were read by position, each in one part alone, so that every part may spend all of epsilon"


def words(
    plan: PrivatePlan, *, embedded: bool, noise_source: NoiseSource, dataset: str, features: str
) -> dict[str, Any]:
    """Return the words of a certificate, by field.

    Args:
        plan: The plan that learned the model.
        embedded: Whether rows were projected at random.
        noise_source: Source of the noise.
        dataset: Name of the data set.
        features: How the features were made.
    """
    own = plan.words
    seen = f", {own.seen}," if own.seen else ","
    return {
        "hidden": HIDDEN[plan.problem.relation],
        "observers": f"everybody who sees the model{seen} and may know all other records and the algorithm with its "
        "constants",
        "comparator": COMPARATOR,
        "not_promised": (
            "nothing about a model retrained with another n, or by another algorithm",
            f"nothing about several models learned from the same records together: {own.together}",
            "nothing about deletions that were chosen after seeing the model, beyond what holds for every record at "
            "once",
            "nothing about what the population has in common: what can be learned without a record may be learned",
        ),
        "sampling": READ_ONCE if plan.disjoint else own.sampling.format(plan),
        "assumptions": (
            *_of_records(own, plan, embedded),
            preprocessing(dataset, features),
            *_of_order(READ_BY_POSITION if plan.disjoint else own.order),
            *own.premises,
            Assumption(
                statement="learning ended, and nobody concludes anything from that",
                status="assumed",
                by="an error, such as that of records of one class only, or of a solver that did not get near enough, "
                "tells of the records",
            ),
            *_of_numbers(own),
            own.unknown
            if noise_source != "seed"
            else Assumption(statement=UNKNOWN_NOISE, status="assumed", by=SEEDED_NOISE),
        ),
    }


def _of_records(own: Words, plan: PrivatePlan, embedded: bool) -> tuple[Assumption, ...]:
    """Return the assumptions about the records and about values that are computed from them."""
    bounded = "a row that is too long was scaled down, a target clipped, each by itself"
    if embedded:
        bounded += "; rows after a random projection once more"
    if own.clipped:
        bounded += f"; and {own.clipped}"
    return (
        Assumption(statement="every record keeps to its bounds", status="checked", by=bounded),
        Assumption(
            statement=f"{own.constants}, norm and number of records do not depend on the records",
            status="assumed",
            by="they were given, or follow from what was given and from the number of records: read off the records, "
            "they would tell of them",
        ),
        *((PUBLIC_TARGET_RANGE,) if plan.problem.loss.name != "logistic" else ()),
    )


def _of_order(by: str | None) -> tuple[Assumption, ...]:
    statement = "the order of records does not depend on what they are"
    return () if by is None else (Assumption(statement=statement, status="assumed", by=by),)


def _of_numbers(own: Words) -> tuple[Assumption, ...]:
    """Return the assumptions about computation in float64."""
    uncounted = Assumption(
        statement="every step goes on from a sum with exactly Gaussian noise",
        status="assumed",
        by="it goes on from what was stored, which is within noise_resolution of that; what this adds to how far one "
        "record moves the next release is not counted",
    )
    return (
        own.rounding,
        *((uncounted,) if own.stored else ()),
        Assumption(
            statement=f"nobody concludes anything from the last bits of the {own.noise}",
            status="assumed",
            by="it is within noise_resolution of exact Gaussian noise, made of the operating system's or a cipher's "
            "bits; attacks on smaller differences (Mironov 2012) are not excluded, nor those on how long learning took",
        ),
    )
