"""Entries of the table of claims: the owner of a claim, its statement, and how it is checked."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from certified_unlearning.errors import DataError
from certified_unlearning.reproduction.claims.registry import Measure, measures
from certified_unlearning.reproduction.claims.relations import Quantity, Relation
from certified_unlearning.reproduction.paper import Paper

Whose = Literal["paper", "authors' code", "ours"]
"""The owner of a claim: the paper, its authors' published results or code, or this project, which checks itself."""


class Reading(BaseModel):
    """The findings of a second reader who compared a contradicted claim with the paper.

    Attributes:
        assumes: Assumptions of the paper for the claim, and how the check satisfies them.
        setting: Constants, data and grid of the check, and who chose them.
        right_if: Condition under which the paper would be right: the smallest change of the claim, or of an assumption.
        cause: The error, in one short clause without a full stop, if several claims are wrong because of the same
            error. All of these claims must have the same `right_if`. Empty if no other contradiction has this cause.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    assumes: Annotated[str, Field(min_length=1)]
    setting: Annotated[str, Field(min_length=1)]
    right_if: Annotated[str, Field(min_length=1)]
    cause: Annotated[str, Field(max_length=100, pattern=r"^([A-Z].*[^.\s])?$")] = ""


class Claim(BaseModel):
    """One claim of a paper.

    Attributes:
        id: Name of the claim, unique among all claims.
        source: Place of the claim in the paper: figure, table, theorem or section. For authors' code, the repository
            and the file.
        statement: The claim, in one sentence.
        measure: Name of the function that measures the claim.
        arguments: Keyword arguments of the measure's function.
        expected: Relation that the measured numbers should have to the claimed numbers.
        note: Explanation of a contradiction, if one is known; it is shown only with a contradiction.
        data: Data set of the claim, if no argument names a data set.
        whose: Owner of the claim.
        misprint: Whether the claim is a slip in a proof or formula whose conclusion still holds.
        reading: Findings of a second reader about a contradicted claim.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    source: Annotated[str, Field(min_length=1)]
    statement: Annotated[str, Field(min_length=1)]
    measure: str
    arguments: dict[str, Any] = {}
    expected: Relation
    note: str = ""
    data: str = ""
    whose: Whose = "paper"
    misprint: bool = False
    reading: Reading | None = None

    @property
    def data_sets(self) -> frozenset[str]:
        """Data sets of the claim, from its arguments ``dataset`` and ``datasets`` and its attribute `data`."""
        named = [self.arguments.get("dataset"), *self.arguments.get("datasets", ()), self.data]
        return frozenset(str(name) for name in named if name)

    @property
    def cause(self) -> str:
        """The cause that the claim shares with other contradictions; empty if there is no such cause."""
        return self.reading.cause if self.reading is not None else ""


@dataclass(frozen=True)
class CheckableClaim:
    """A claim, with the function that measures it from the evidence."""

    claim: Claim
    measured: Callable[..., list[Quantity]]


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader of libyaml, if PyYAML was built with it; it is ten times as fast."""


def load_claims(path: Path | Traversable, known: Mapping[str, Measure]) -> list[CheckableClaim]:
    """Read and check a table of claims.

    Args:
        path: YAML file with a list of claims.
        known: Functions that the claims may name.

    Raises:
        DataError: The file is missing, is not a YAML list, or contains an invalid claim; or two claims have the same
            cause, but not the same `right_if`. The message names the ids of these claims.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, list) or not content:
        raise DataError(f"{path} does not hold a list of claims")
    claims: dict[str, CheckableClaim] = {}
    for number, entry in enumerate(content, start=1):
        where = f"{path}: claim {entry.get('id') if isinstance(entry, dict) and 'id' in entry else f'number {number}'}"
        checked = _checked(entry, where, known)
        if checked.claim.id in claims:
            raise DataError(f"{where} occurs twice; ids must be unique")
        claims[checked.claim.id] = checked
    _check_causes(path, [checked.claim for checked in claims.values()])
    return list(claims.values())


def claims_of(papers: Sequence[Paper]) -> dict[str, list[CheckableClaim]]:
    """Read the claims of papers, by the papers' names; no two claims have the same id.

    Raises:
        DataError: Two claims have the same id, or a table is damaged.
    """
    claims = {
        paper.name: load_claims(paper.claims, measures(paper.measures)) for paper in papers if paper.claims is not None
    }
    names = [each.claim.id for of_paper in claims.values() for each in of_paper]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise DataError(f"claim {min(twice)} occurs in two tables of claims; ids must be unique")
    return claims


def claims_on(claims: Sequence[CheckableClaim], data_sets: Collection[str]) -> list[CheckableClaim]:
    """Return the claims whose data sets are all among the given ones, including claims without a data set."""
    return [each for each in claims if each.claim.data_sets <= set(data_sets)]


def by_cause(claims: Iterable[Claim]) -> list[list[Claim]]:
    """Group claims by cause, ordered by the first claim of each group; a claim without a cause forms its own group."""
    groups: dict[str, list[Claim]] = {}
    for claim in claims:
        groups.setdefault(claim.cause or claim.id, []).append(claim)
    return list(groups.values())


def _check_causes(path: Path | Traversable, claims: Sequence[Claim]) -> None:
    """Check that claims with the same cause have the same `right_if`."""
    for first, *others in by_cause(claims):
        for other in others:
            if first.reading and other.reading and first.reading.right_if != other.reading.right_if:
                raise DataError(
                    f"{path}: claims {first.id} and {other.id} have the same cause, but not the same right_if"
                )


def _checked(entry: object, where: str, known: Mapping[str, Measure]) -> CheckableClaim:
    try:
        claim = Claim.model_validate(entry)
        if claim.measure not in known:
            raise DataError(f"{where}: measure {claim.measure!r} is none of {', '.join(sorted(known))}")
        return CheckableClaim(claim, known[claim.measure].bind(claim.arguments))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise DataError(f"{where}: {': '.join(filter(None, [key, first['msg']]))}") from error
