"""The certificates of a report, each of which is verified and shown in one row.

The files of an experiment's certificates are in one archive.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from certified_unlearning import certificate
from certified_unlearning.accounting.accountants import ACCOUNTANTS
from certified_unlearning.certificate import StepsCertificate
from certified_unlearning.errors import DataError, UnlearningError
from certified_unlearning.reproduction.layout import Layout
from certified_unlearning.reproduction.report.embedding import Download, archive, required
from certified_unlearning.reproduction.report.exhibits import Shown
from certified_unlearning.text import rounded_up


@dataclass(frozen=True)
class CertificateRow:
    """The statements of one certificate; epsilon, the total delta and sigma are rounded up."""

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
    """An assumption that the software does not check, the reason, and the runs whose guarantees depend on it."""

    statement: str
    by: str
    accountants: tuple[str, ...]


def certificates(
    results: Path, shown: Mapping[str, Shown], runs: Mapping[str, pd.DataFrame]
) -> tuple[list[Certificates], list[Unchecked]]:
    """Return all certificates of the presets, and their unchecked assumptions.

    Every certificate is recomputed from its constants (`certificate.verify`).

    Args:
        results: The directory of all results.
        shown: Experiments of each preset, with their papers.
        runs: Rows of each preset's runs.

    Raises:
        DataError: An experiment's certificates are missing, or do not belong to the runs in the records; or a
            certificate is damaged or cannot be verified. The message names the file or directory.
    """
    rows = []
    assumed: dict[tuple[str, str], set[str]] = {}
    for preset, experiments in shown.items():
        layout = Layout(results, preset)
        for paper, experiment in experiments:
            if not experiment.mechanisms:
                continue
            directory = required(layout.certificates(paper.name, experiment.name), "certify")
            files = sorted(directory.glob("*.json"))
            verified = [_verified(file) for file in files]
            own = runs[preset][runs[preset]["experiment"] == experiment.name]
            # Runs without an accountant, and retraining with an accountant's noise, are only there for comparison.
            mechanisms = {known.mechanism for known in ACCOUNTANTS.values()}
            keys = set(own.loc[own["mechanism"].isin(mechanisms), "run_key"])
            if sorted(each.run_key for each in verified) != sorted(keys):
                raise DataError(
                    f"the {len(files)} certificates in {directory} are not those of the {len(keys)} runs in "
                    f"{layout.records}; the workflow's rules certify and collect make both"
                )
            name = f"{preset}-{experiment.name}-certificates.tar.gz"
            certified = tuple(sorted(map(_row, verified), key=_order))
            rows.append(Certificates(preset, experiment.name, certified, archive(files, name)))
            for each in verified:
                for assumption in each.unchecked:
                    assumed.setdefault((assumption.statement, assumption.by), set()).add(each.accountant)
    return rows, [Unchecked(*words, tuple(sorted(accountants))) for words, accountants in assumed.items()]


def _verified(path: Path) -> StepsCertificate:
    read = certificate.read(path)
    try:
        certificate.verify(read)
    except UnlearningError as error:
        raise DataError(f"{path} does not verify: {error}; the workflow's rule certify makes this file") from error
    return read


def _row(of: StepsCertificate) -> CertificateRow:
    return CertificateRow(
        mechanism=of.mechanism,
        accountant=of.accountant,
        guarantee=of.guarantee,
        epsilon=rounded_up(of.epsilon),
        delta=rounded_up(of.delta + of.extra_delta),
        adjacency=of.adjacency,
        sigma=rounded_up(of.sigma),
        records_per_request=max(of.schedule.records),
        requests=len(of.unlearning_steps),
        steps=sum(of.unlearning_steps),
        unchecked=len(of.unchecked),
    )


def _order(row: CertificateRow) -> tuple[object, ...]:
    return (
        _MECHANISMS.index(row.mechanism),
        row.accountant,
        row.records_per_request,
        row.steps,
        float(row.epsilon),
        float(row.sigma),
    )


_MECHANISMS = list(dict.fromkeys(each.mechanism for each in ACCOUNTANTS.values()))
