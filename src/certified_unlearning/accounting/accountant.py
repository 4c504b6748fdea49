"""Declaration of an accountant: an analysis with its name, its words and its assumptions, beside its formulas."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True)
class Assumption:
    """Something the guarantee needs.

    Attributes:
        statement: What must hold.
        status: Whether the software checked it or takes it for granted.
        by: What checked it, or why it is taken for granted.
    """

    statement: str
    status: Literal["checked", "assumed"]
    by: str


@dataclass(frozen=True)
class Accountant:
    """An analysis of a mechanism.

    Attributes:
        name: Of the accountant, as records and certificates have it.
        form: Its name in labels, beside the mechanism's.
        mechanism: Whose runs it speaks of.
        variants: Which forms of the mechanism, each with what the unlearned model is indistinguishable from.
        assumptions: What it needs beside what all accountants need.
        source: Whether the analysis is a paper's or derived here.
        as_published: Whether its theorem is applied outside its statement, unchanged, as a paper does.
        bound: Whose bound it is, for legends of figures, such as ``paper’s bound``; empty for its form alone.
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
    """Whether it speaks of runs whose every step is noisy; others add noise when they publish."""


SEEDED_NOISE = (
    "it can be repeated from a seed: whoever knows it can subtract the noise, as can whoever tries all seeds, where "
    "they are numbers of 32 bits, and two models made with one seed cancel each other's"
)
"""By what noise that a seed repeats is hidden: by nothing."""
PUBLIC_CLASS_WEIGHTS = Assumption(
    statement="class weights are constants that do not depend on the records",
    status="assumed",
    by="they were given as numbers: counted from the labels, they would tell of removed records",
)
"""What class weights rest on. At most 1 each, they leave all bounds of a record's loss as they are."""
PUBLIC_TARGET_RANGE = Assumption(
    statement="the range of targets does not depend on the records",
    status="assumed",
    by="it was given as numbers, to which targets were clipped: read off the targets, it would tell of removed records",
)
"""What ridge regression rests on."""
PROJECTION = Assumption(
    statement="projection on a ball",
    status="checked",
    by="not needed: the radius enters none of the strongly convex bounds, and a projection loosens none",
)
