"""The rows of all audits."""

import time
from collections.abc import Iterator
from typing import Any

import pandas as pd
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from certified_unlearning.accounting.auditing.shown import SHOWN
from certified_unlearning.audit import AuditResult, TwoLawResult
from certified_unlearning.errors import UnlearningError
from certified_unlearning.papers.cheaper_than_retraining.audits import one_run, two_laws
from certified_unlearning.papers.cheaper_than_retraining.audits.names import (
    BY_LAWS,
    CERTIFIED,
    EXACT,
    ONE_RUN,
    TWO_LAWS,
    UNCERTIFIED,
)
from certified_unlearning.papers.cheaper_than_retraining.audits.sweep import Audits
from certified_unlearning.papers.cheaper_than_retraining.systems import NotRunError
from certified_unlearning.version import code_version

_NOTHING = dict.fromkeys(
    (
        *("removed", "copies", "trials", "epsilon", "mu", "right", "right_before"),
        *("epsilon_measured", "epsilon_before", "mu_measured", "mu_before", "mu_estimated", "mu_computed"),
    )
)


def audit_table(sweep: Audits) -> pd.DataFrame:
    """Return one row for each audit: first the audits in one run, then the audits that compare two distributions.

    Returns:
        Rows that follow `experiment.AUDIT_ROWS`; for an audit that was not run, ``skipped`` is the reason.
    """
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        with threadpool_limits(1):
            rows = [*_in_one_run(sweep), *_of_two_laws(sweep)]
    finally:
        torch.set_num_threads(threads)
    return pd.DataFrame(rows).assign(
        experiment="audit",
        delta=sweep.delta,
        strength=sweep.strength,
        alpha=sweep.alpha,
        level=SHOWN,
        seed=sweep.seed,
        code_version=code_version(),
    )


def _in_one_run(sweep: Audits) -> Iterator[dict[str, Any]]:
    """Yield audits of uncertified systems at every size, and of other systems at the first size at which they run."""
    for name in UNCERTIFIED:
        for n in sweep.uncertified:
            yield {**_point(ONE_RUN, name, n, 0.0), "d": sweep.features, **_one_run(name, n, sweep)}
    for name in (*EXACT, *CERTIFIED):
        target, reason = sweep.epsilon if name in CERTIFIED else 0.0, ""
        for n in sweep.certified:
            try:
                found = _one_run(name, n, sweep)
            except (NotRunError, UnlearningError) as error:
                reason = str(error)
                continue
            yield {**_point(ONE_RUN, name, n, target), "d": sweep.features, **found}
            break
        else:
            skipped = {**_NOTHING, **_verdict(None), "d": sweep.features, "seconds": None, "skipped": reason}
            yield {**_point(ONE_RUN, name, sweep.certified[0], target), **skipped}


def _one_run(name: str, n: int, sweep: Audits) -> dict[str, Any]:
    start = time.perf_counter()
    found = one_run.audited(name, n, sweep)
    (run,) = found.runs
    return {
        **_NOTHING,
        **_verdict(found),
        "removed": sum(found.guessing.members),
        "copies": found.copies,
        "epsilon": None if name in UNCERTIFIED else found.claim.epsilon,
        "mu": found.claim.mu,
        "right": run.right,
        "right_before": run.right_before,
        "seconds": time.perf_counter() - start,
    }


def _of_two_laws(sweep: Audits) -> Iterator[dict[str, Any]]:
    for name in BY_LAWS:
        for target in sweep.targets:
            start = time.perf_counter()
            measured = two_laws.measured(name, target, sweep)
            found = measured.found
            yield {
                **_NOTHING,
                **_point(TWO_LAWS, name, sweep.records, target),
                **_verdict(found),
                "d": two_laws.FEATURES,
                "removed": 1,
                "copies": 1,
                "trials": sweep.trials,
                "epsilon": found.claim.epsilon,
                "mu": found.claim.mu,
                "mu_estimated": measured.estimated,
                "mu_computed": measured.computed,
                "seconds": time.perf_counter() - start,
            }


def _point(kind: str, system: str, n: int, target: float) -> dict[str, Any]:
    group = UNCERTIFIED if kind == ONE_RUN else {}
    guarantee = "none" if system in group else "exact" if system in EXACT else "upper bound"
    return {"kind": kind, "system": system, "n": n, "target": target, "guarantee": guarantee, "skipped": ""}


def _verdict(found: AuditResult | TwoLawResult | None) -> dict[str, Any]:
    """Return the bounds at the level `SHOWN`, and two flags that state the verdict at the audit's own level."""
    if found is None:
        return {"violated": False, "has_power": False}
    after, before = found.bound(SHOWN), found.control(SHOWN)
    return {
        "epsilon_measured": after.epsilon,
        "epsilon_before": before.epsilon,
        "mu_measured": after.mu,
        "mu_before": before.mu,
        "violated": found.verdict == "violated",
        "has_power": found.verdict != "no power",
    }
