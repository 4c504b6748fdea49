"""The wording of certificates of private learning: what is hidden from whom, and the assumptions.

The words follow from the plan and a few names, so they are recomputed like numbers. Each plan contains the wording that
is specific to its way of learning: `accounting.private.plan.Words`.
"""

from typing import Any

from certified_unlearning.accounting.accountant import PUBLIC_TARGET_RANGE, SEEDED_NOISE, Assumption
from certified_unlearning.accounting.private.plan import UNKNOWN_NOISE, PrivatePlan, Words
from certified_unlearning.certificate.preprocessing import preprocessing
from certified_unlearning.vocabulary import NoiseSource

HIDDEN = {
    "replace-one": "for each single place in the data set, which record was in this place; this is hidden because the "
    "distribution of the model hardly changes when one record is replaced by any other; the number of records is "
    "public",
    "add-remove": "whether any one record was present: the distribution of the model hardly changes when one record is "
    "added or left out; in both cases, sums are divided by the same public n, and the place of a record that is left "
    "out stays empty, as a row of zeros",
}
COMPARATOR = (
    "the same algorithm with the same constants, run on the records with the deleted ones replaced by any others; "
    "under add-remove, the guarantee does not cover replacements, and the comparator is a run in which the places of "
    "the deleted records are empty; compared with the comparator, the unchanged model satisfies the epsilons of "
    "`deletions`"
)
READ_ONCE = "disjoint parts: each record is read in at most one part, which depends on its position"
READ_BY_POSITION = (
    "each record was read in only one part, which depends on its position, so every part may use the whole epsilon"
)


def words(
    plan: PrivatePlan, *, embedded: bool, noise_source: NoiseSource, dataset: str, features: str
) -> dict[str, Any]:
    """Return the words of a certificate, keyed by the names of their fields.

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
            "the guarantee does not cover a comparison with a model that is retrained with another n, or by another "
            "algorithm",
            "the guarantee does not cover several models together that were learned from the same records: "
            f"{own.together}",
            "the guarantee does not cover deletions that were chosen after seeing the model; for such deletions, only "
            "statements that hold for every record at once are valid",
            "the guarantee does not hide what the population has in common: anything that can be learned without a "
            "record may be learned",
        ),
        "sampling": READ_ONCE if plan.disjoint else own.sampling.format(plan),
        "assumptions": (
            *_of_records(own, plan, embedded),
            preprocessing(dataset, features),
            *_of_order(READ_BY_POSITION if plan.disjoint else own.order),
            *own.premises,
            Assumption(
                statement="learning ended without an error, and nobody infers anything from that",
                status="assumed",
                by="an error reveals something about the records, for example that they have only one class, or that "
                "a solver did not come close enough to the minimiser",
            ),
            *_of_numbers(own),
            own.unknown
            if noise_source != "seed"
            else Assumption(statement=UNKNOWN_NOISE, status="assumed", by=SEEDED_NOISE),
        ),
    }


def _of_records(own: Words, plan: PrivatePlan, embedded: bool) -> tuple[Assumption, ...]:
    """Return the assumptions about the records and about values that are computed from them."""
    bounded = "every row that was too long was scaled down, and every target was clipped, each by itself"
    if embedded:
        bounded += "; rows were scaled down once more after a random projection"
    if own.clipped:
        bounded += f"; and {own.clipped}"
    return (
        Assumption(statement="every record is within its bounds", status="checked", by=bounded),
        Assumption(
            statement=f"{own.constants}, the largest norm and the number of records do not depend on the records",
            status="assumed",
            by="they were given, or follow from given values and the number of records; values that are computed from "
            "the records would reveal something about them",
        ),
        *((PUBLIC_TARGET_RANGE,) if plan.problem.loss.name != "logistic" else ()),
    )


def _of_order(by: str | None) -> tuple[Assumption, ...]:
    statement = "the order of the records does not depend on their contents"
    return () if by is None else (Assumption(statement=statement, status="assumed", by=by),)


def _of_numbers(own: Words) -> tuple[Assumption, ...]:
    """Return the assumptions about computation in float64."""
    uncounted = Assumption(
        statement="every step starts from a sum with exactly Gaussian noise",
        status="assumed",
        by="it starts from the stored sum, which differs from the exact one by at most noise_resolution; this can "
        "increase the effect of one record on the next release, and epsilon does not include the increase",
    )
    return (
        own.rounding,
        *((uncounted,) if own.stored else ()),
        Assumption(
            statement=f"nobody infers anything from the last bits of the {own.noise}",
            status="assumed",
            by="the noise is within noise_resolution of exact Gaussian noise; its random bits come from the operating "
            "system or from a cipher; attacks that use differences smaller than noise_resolution (Mironov 2012) or "
            "the duration of learning are not excluded",
        ),
    )
