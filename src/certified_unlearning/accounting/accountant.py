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
        variants: The covered variants of the mechanism, each with its comparator, a description of the model from which
            the unlearned model is indistinguishable.
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
    "it can be repeated from a seed: the noise can be subtracted by anybody who knows the seed, or who tries all seeds "
    "if they are numbers of 32 bits, and the noises of two models made with one seed cancel each other"
)
"""Why noise that a seed can repeat is not secret."""
PUBLIC_CLASS_WEIGHTS = Assumption(
    statement="class weights are constants that do not depend on the records",
    status="assumed",
    by="they were given as numbers: counted from the labels, they would tell of removed records",
)
"""The assumption on class weights. Weights of at most 1 leave all bounds on a record's loss unchanged."""
PUBLIC_TARGET_RANGE = Assumption(
    statement="the range of targets does not depend on the records",
    status="assumed",
    by="it was given as numbers, to which targets were clipped: read off the targets, it would tell of removed records",
)
"""The assumption on the targets of ridge regression."""
PROJECTION = Assumption(
    statement="projection on a ball",
    status="checked",
    by="not needed: the radius enters none of the strongly convex bounds, and a projection loosens none",
)
