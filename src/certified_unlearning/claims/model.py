"""The table of claims as it is written down: who claims what, and how it is checked."""

from collections.abc import Callable
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from certified_unlearning.claims.registry import MEASURES
from certified_unlearning.claims.relations import Quantity, Relation
from certified_unlearning.errors import DataError

LANGEVIN_UNLEARNING = files("certified_unlearning.claims") / "langevin_unlearning.yaml"
"""The claims of Langevin unlearning (Chien, Wang, Chen, Li, NeurIPS 2024)."""
FORGET_UNLEARNING = files("certified_unlearning.claims") / "forget_unlearning.yaml"
"""The claims of Forget Unlearning (Chourasia, Shah, ICML 2023)."""


class Claim(BaseModel):
    """One claim of a paper.

    Attributes:
        id: Its name, unique among all claims.
        source: Where the paper makes it: figure, table, theorem or section.
        statement: What is claimed, in a sentence.
        measure: The name of the function that measures it.
        arguments: The keyword arguments of that function.
        expected: How the measured numbers have to relate to the claimed ones.
        note: What explains a contradiction, if that is known; shown with one only.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    source: Annotated[str, Field(min_length=1)]
    statement: Annotated[str, Field(min_length=1)]
    measure: str
    arguments: dict[str, Any] = {}
    expected: Relation
    note: str = ""

    @property
    def measured(self) -> "Callable[..., list[Quantity]]":
        """The function that measures it, with its arguments filled in; it takes the evidence."""
        return MEASURES[self.measure].bind(self.arguments)


def load_claims(path: Path | Traversable = LANGEVIN_UNLEARNING) -> list[Claim]:
    """Read and check a table of claims.

    Args:
        path: A YAML file with a list of claims.

    Raises:
        DataError: The file is missing, is no YAML list, or a claim is wrong: the message names its id.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, list) or not content:
        raise DataError(f"{path} does not hold a list of claims")
    claims: dict[str, Claim] = {}
    for number, entry in enumerate(content, start=1):
        where = f"{path}: claim {entry.get('id') if isinstance(entry, dict) and 'id' in entry else f'number {number}'}"
        claim = _checked(entry, where)
        if claim.id in claims:
            raise DataError(f"{where} occurs twice; ids must be unique")
        claims[claim.id] = claim
    return list(claims.values())


def all_claims() -> list[Claim]:
    """Read the claims of all papers; no two have the same id.

    Raises:
        DataError: Two have, or a table is damaged.
    """
    claims = [claim for paper in (LANGEVIN_UNLEARNING, FORGET_UNLEARNING) for claim in load_claims(paper)]
    names = [claim.id for claim in claims]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise DataError(f"claim {min(twice)} occurs in two tables of claims; ids must be unique")
    return claims


def _checked(entry: object, where: str) -> Claim:
    try:
        claim = Claim.model_validate(entry)
        measure = MEASURES.get(claim.measure)
        if measure is None:
            raise DataError(f"{where}: measure {claim.measure!r} is none of {', '.join(sorted(MEASURES))}")
        measure.bind(claim.arguments)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise DataError(f"{where}: {': '.join(filter(None, [key, first['msg']]))}") from error
    return claim
