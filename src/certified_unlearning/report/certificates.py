"""Certificates, one row each, with the files as one archive an experiment."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from certified_unlearning.files import read_json
from certified_unlearning.report.embedding import Download, archive, required
from certified_unlearning.rounding import rounded_up


@dataclass(frozen=True)
class CertificateRow:
    """What one certificate states; epsilon, delta (all that is due) and sigma are rounded up."""

    mechanism: str
    accountant: str
    guarantee: str
    epsilon: str
    delta: str
    adjacency: str
    sigma: str
    records_per_request: int
    requests: int
    steps: int
    unchecked: int


@dataclass(frozen=True)
class Certificates:
    """The certificates of one experiment of a preset."""

    preset: str
    experiment: str
    rows: tuple[CertificateRow, ...]
    archive: Download


@dataclass(frozen=True)
class Unchecked:
    """An assumption that the software does not check, why, and whose guarantees rest on it."""

    statement: str
    by: str
    accountants: tuple[str, ...]


def certificates(results: Path, presets: list[str]) -> tuple[list[Certificates], list[Unchecked]]:
    """Return all certificates of the presets, and what they assume without a check.

    Raises:
        DataError: A preset has no certificates, or a file is none.
    """
    shown = []
    assumed: dict[tuple[str, str], set[str]] = {}
    for preset in presets:
        for directory in sorted(required(results / preset / "certificates", "certify").iterdir()):
            files = sorted(directory.glob("*.json"))
            contents = [read_json(file, _KEYS) for file in files]
            rows = sorted((_row(content) for content in contents), key=_order)
            name = f"{preset}-{directory.name}-certificates.tar.gz"
            shown.append(Certificates(preset, directory.name, tuple(rows), archive(files, name)))
            for content in contents:
                for each in _unchecked(content):
                    assumed.setdefault((each["statement"], each["by"]), set()).add(content["accountant"])
    return shown, [Unchecked(*words, tuple(sorted(accountants))) for words, accountants in assumed.items()]


_KEYS = (
    "accountant", "adjacency", "assumptions", "delta", "epsilon", "extra_delta", "guarantee", "mechanism",
    "records_per_request", "sigma", "unlearning_steps",
)  # fmt: skip


def _row(content: dict[str, Any]) -> CertificateRow:
    return CertificateRow(
        mechanism=content["mechanism"],
        accountant=content["accountant"],
        guarantee=content["guarantee"],
        epsilon=rounded_up(content["epsilon"]),
        delta=rounded_up(content["delta"] + content["extra_delta"]),
        adjacency=content["adjacency"],
        sigma=rounded_up(content["sigma"]),
        records_per_request=content["records_per_request"],
        requests=len(content["unlearning_steps"]),
        steps=sum(content["unlearning_steps"]),
        unchecked=len(_unchecked(content)),
    )


def _unchecked(content: dict[str, Any]) -> list[dict[str, str]]:
    return [each for each in content["assumptions"] if each["status"] == "assumed"]


def _order(row: CertificateRow) -> tuple[object, ...]:
    langevin_first = row.mechanism != "langevin"
    return langevin_first, row.accountant, row.records_per_request, row.steps, float(row.epsilon), float(row.sigma)
