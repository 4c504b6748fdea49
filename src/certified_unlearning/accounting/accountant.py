"""What an accountant declares: the name, the wording and the assumptions of an analysis."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True)
class Assumption:
    """A condition that the guarantee needs.

    Attributes:
        statement: The condition.
        status: Whether the software checked the condition or assumes it.
        by: The check of the condition, or the reason for assuming it.
    """

    statement: str
    status: Literal["checked", "assumed"]
    by: str


@dataclass(frozen=True)
class Accountant:
    """An analysis of a mechanism.

    Attributes:
        name: Name of the accountant in records and certificates.
        form: Name of the accountant in labels, where it follows the name of the mechanism.
        mechanism: The mechanism whose runs the accountant covers.
        variants: The covered variants of the mechanism, each with its comparator. The comparator describes the model
            from which the unlearned model is indistinguishable.
        assumptions: The assumptions of this accountant, in addition to the assumptions of all accountants.
        source: Whether the analysis is from a paper or derived here.
        as_published: Whether a theorem is applied, as in the paper, to a case that the theorem's statement does not
            cover.
        bound: Description of the bound for figure legends, such as ``paper’s bound``; empty to show only ``form``.
    """

    name: str
    form: str
    mechanism: str
    variants: Mapping[str, str]
    assumptions: tuple[Assumption, ...] = ()
    source: Literal["paper", "derived"] = "derived"
    as_published: bool = False
    bound: str = ""

    noise_in_every_step: ClassVar[bool] = False
    """Whether the covered runs add noise in every step. Other runs add noise only on publication."""


SEEDED_NOISE = (
    "the noise was drawn from a seed: anybody who knows the seed can subtract the noise, and so can anybody who tries "
    "all seeds if they are 32-bit numbers; the noise cancels in the difference of two models that were made with the "
    "same seed"
)
"""The reason why noise is not secret if a seed can repeat it."""
ROUNDING_INCLUDED = "the guarantee includes rounding errors"
SUMS_OF_PRODUCTS = "matrix products are assumed to be computed as sums of products, as all usual libraries compute them"
"""A condition under which the bounds on rounding hold."""
PUBLIC_CLASS_WEIGHTS = Assumption(
    statement="class weights are constants that do not depend on the records",
    status="assumed",
    by="they were given as numbers; weights that are computed from the labels would reveal something about removed "
    "records",
)
"""The assumption on class weights. Weights of at most 1 leave all bounds on a record's loss unchanged."""
PUBLIC_TARGET_RANGE = Assumption(
    statement="the range of targets does not depend on the records",
    status="assumed",
    by="the range was given as numbers, and targets were clipped to it; a range that is computed from the targets "
    "would reveal something about removed records",
)
"""The assumption on the targets of ridge regression."""
PROJECTION = Assumption(
    statement="a projection onto a ball does not loosen the bounds",
    status="checked",
    by="a projection does not increase distances, and the bounds for strongly convex losses do not contain the radius",
)
