"""The table of claims as it is written down: the owner of each claim, what it states, and how it is checked."""

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
"""The owner of a claim: the paper, results or code that its authors published, or this project, which checks itself."""


class Reading(BaseModel):
    """What a second reader found about a contradicted claim when comparing it with the paper.

    Attributes:
        assumes: What the paper assumes for the claim, and how the check satisfies it.
        setting: The constants, data and grid of the check, and who chose them.
        right_if: What would make the paper right: the smallest change of the claim, or of an assumption.
        cause: What is wrong, in one short clause without a full stop, if the same thing contradicts several claims;
            their `right_if` is then the same, too. Empty for a contradiction that shares its cause with no other.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    assumes: Annotated[str, Field(min_length=1)]
    setting: Annotated[str, Field(min_length=1)]
    right_if: Annotated[str, Field(min_length=1)]
    cause: Annotated[str, Field(max_length=100, pattern=r"^([A-Z].*[^.\s])?$")] = ""


class Claim(BaseModel):
    """One claim of a paper.

    Attributes:
        id: Its name, unique among all claims.
        source: Where the paper makes it: figure, table, theorem or section. For authors' code, the repository and file.
        statement: What is claimed, in a sentence.
        measure: The name of the function that measures it.
        arguments: The keyword arguments of that function.
        expected: The required relation of the measured numbers to the claimed ones.
        note: The explanation of a contradiction, if it is known; shown only with a contradiction.
        data: The data set of the claim, if no argument names one.
        whose: Who claims it.
        misprint: Whether it is a slip within a proof or a formula whose conclusion still holds.
        reading: What a second reader found about a contradicted claim.
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
        """The data sets of the claim, from its arguments ``dataset`` and ``datasets`` and its `data`."""
        named = [self.arguments.get("dataset"), *self.arguments.get("datasets", ()), self.data]
        return frozenset(str(name) for name in named if name)


@dataclass(frozen=True)
class CheckableClaim:
    """A claim and the function that measures it, which takes the evidence."""

    claim: Claim
    measured: Callable[..., list[Quantity]]


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader of libyaml, which is ten times as fast, if PyYAML was built with it."""


def load_claims(path: Path | Traversable, known: Mapping[str, Measure]) -> list[CheckableClaim]:
    """Read and check a table of claims.

    Args:
        path: A YAML file with a list of claims.
        known: The functions that they may name.

    Raises:
        DataError: The file is missing, is not a YAML list, or a claim is wrong, or two claims with the same cause say
            different things about what would make it right: the message names their ids.
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
    """Read the claims of papers, by the papers' names; no two have the same id.

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
    """Return the claims that are about no data set but these: theorems, and what runs on any data set can decide."""
    return [each for each in claims if each.claim.data_sets <= set(data_sets)]


def by_cause(claims: Iterable[Claim]) -> list[list[Claim]]:
    """Group claims that have the same cause, in the order of their first claims; one without a cause stands alone."""
    groups: dict[str, list[Claim]] = {}
    for claim in claims:
        cause = claim.reading.cause if claim.reading is not None else ""
        groups.setdefault(cause or claim.id, []).append(claim)
    return list(groups.values())


def _check_causes(path: Path | Traversable, claims: Sequence[Claim]) -> None:
    """Check that claims with the same cause agree on what would make it right."""
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
