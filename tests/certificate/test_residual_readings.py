"""Counts of readings in residual certificates: those of true streams are accepted, and no others."""

import re
from typing import Any

import numpy as np
import pytest

from certified_unlearning import certificate
from certified_unlearning.certificate import CertificateError, ResidualCertificate, residual
from certified_unlearning.certificate.residual.limits import require_readings
from certified_unlearning.errors import ParameterError
from certified_unlearning.estimators import CertifiedLogisticRegression, CertifiedRidge
from certified_unlearning.mechanisms import newton_removal
from certified_unlearning.mechanisms.refit_plan import Counts, RefitPlan

MOST_REMOVED, MOST_REQUESTS = 10, 5


def plan_of(between: int | None, **options: Any) -> RefitPlan:
    given = {"n": 3000, "features": 5, "classes": 2, "strong_convexity": 0.05, "epsilon": 1, "delta": 1e-6}
    return RefitPlan.make(**given | {"sigma": 1e-3, "records_between_reads": between} | options)


def stated(between: int, removed: int, requests: int, scheduled: int, unscheduled: int) -> ResidualCertificate:
    counts = Counts(removed=removed, requests=requests, scheduled=scheduled, unscheduled=unscheduled)
    return residual.of(plan_of(between), counts, noise_source="system entropy")


def reachable(between: int) -> set[tuple[int, int, int, int]]:
    """Removed records, requests and readings of both kinds of all streams up to a size, request by request."""
    states = {Counts()}
    for _ in range(MOST_REQUESTS):
        states |= {
            counts.after(records, reading)
            for counts in states
            for records in range(1, MOST_REMOVED - counts.removed + 1)
            for reading in (
                ("scheduled",)
                if counts.since_read + records > between
                else ("none", "unscheduled")  # As `remove` does.
            )
        }
    return {(each.removed, each.requests, each.scheduled, each.unscheduled) for each in states}


def is_accepted(said: ResidualCertificate) -> bool:
    try:
        said.require(said.limits())
        require_readings(said)
    except CertificateError:
        return False
    return True


@pytest.mark.parametrize("between", [0, 1, 2, 3, 4])
def test_counts_are_accepted_where_a_stream_has_them_and_nowhere_else(between: int):
    before = stated(between, 0, 0, 0, 0)
    accepted = {
        (removed, requests, scheduled, unscheduled)
        for removed in range(MOST_REMOVED + 1)
        for requests in range(MOST_REQUESTS + 1)
        for scheduled in range(MOST_REQUESTS + 2)
        for unscheduled in range(MOST_REQUESTS + 2)
        if is_accepted(
            before.model_copy(
                update={
                    "removed": removed,
                    "releases": requests + 1,
                    "scheduled_reads": scheduled,
                    "unscheduled_reads": unscheduled,
                }
            )
        )
    }
    assert accepted == reachable(between)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((5, 150, 3, 0, 0), "unscheduled_reads = 0, with which at most 5 records .* in 3 requests, but removed = 150"),
        ((5, 150, 30, 0, 0), "at most 5 requests can have been answered, but releases = 31 says 30"),
        ((5, 12, 2, 0, 2), "unscheduled_reads = 2, with which at most 10 records can have been removed in 2 requests"),
        ((5, 16, 3, 0, 2), "at most 15 records can have been removed in 3 requests, but removed = 16"),
        ((5, 5, 5, 1, 0), "records_between_reads = 5, scheduled_reads = 1 .* at least 6 records .*, but removed = 5"),
        (
            (5, 12, 5, 2, 1),
            "scheduled_reads = 2 and unscheduled_reads = 1, .* at least 13 records must have been removed",
        ),
        ((5, 100, 12, 1, 0), "at most 11 requests can have been answered, but releases = 13 says 12"),
        (
            (0, 3, 3, 2, 0),
            "records_between_reads = 0, .* at most 2 requests can have been answered, but releases = 4 says 3",
        ),
        ((0, 3, 3, 2, 1), "at most 2 requests can have been answered"),
    ],
)
def test_counts_that_the_plan_rules_out_are_refused_by_name(counts: tuple[int, int, int, int, int], message: str):
    with pytest.raises(CertificateError, match=message):
        certificate.verify(stated(*counts))


def records(n: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    rows = draw.standard_normal((n, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    scores = rows[:, :1] + 0.3 * draw.standard_normal((n, 1))
    return rows, np.clip(scores[:, 0], -1, 1) if classes == 1 else np.searchsorted(
        [0.0, 0.4][: classes - 1], scores[:, 0]
    )


def made(draw: np.random.Generator, kind: str) -> CertifiedLogisticRegression | CertifiedRidge:
    """An estimator with a random plan: noise for which four records are too many, or none are."""
    options: dict[str, Any] = {"sigma": float(draw.choice([1e-6, 1e-3, 0.1]))}
    if not kind.startswith("strict"):
        options["records_between_reads"] = draw.choice([None, 0, 1, 4, 9])
        if options["records_between_reads"] is not None:
            options["records_between_reads"] = int(options["records_between_reads"])
    if kind == "ridge":
        return CertifiedRidge(delta=1e-6, alpha=3.0, target_range=(-1, 1), **options)
    if kind.endswith("one-vs-rest"):
        options["strategy"] = "one-vs-rest"
    return CertifiedLogisticRegression(delta=1e-6, C=0.1, strict_timing=kind.startswith("strict"), **options)


@pytest.mark.parametrize(
    ("kind", "classes"),
    [("two", 2), ("strict", 2), ("three", 3), ("one-vs-rest", 3), ("strict, one-vs-rest", 3), ("ridge", 1)],
)
def test_certificates_of_random_streams_are_accepted(kind: str, classes: int, monkeypatch: pytest.MonkeyPatch):
    """Batches of random sizes; some removals are interrupted, after which data are read when the plan does not say."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    read = {"scheduled": 0, "unscheduled": 0}
    for seed in range(12):
        draw = np.random.default_rng(seed)
        rows, labels = records(300, classes, seed)
        model, left = made(draw, kind).fit(rows, labels), draw.permutation(300)[:200]
        while len(left):
            some, left = np.split(left, [int(draw.choice([1, 1, 2, 5, 30]))])
            if kind != "three" and draw.random() < 0.2:
                with monkeypatch.context() as patched:
                    patched.setattr(newton_removal, "solved", interrupted)
                    with pytest.raises(KeyboardInterrupt):
                        model.unlearn(some)
            model.unlearn(some)
            certificate.verify(model.certificate_)
        read["scheduled"] += model.certificate_.scheduled_reads
        read["unscheduled"] += model.certificate_.unscheduled_reads
    assert read["scheduled"] > 0
    assert (read["unscheduled"] > 0) == (kind != "three")


def test_a_number_of_records_between_readings_says_nothing_where_every_request_reads():
    """Neither a new plan nor a stored one that was given such a number states it."""
    plan = plan_of(5, classes=3)
    assert plan.records_between_reads == 0
    stored = plan.model_dump(mode="json") | {"records_between_reads": 5}
    assert RefitPlan.model_validate(stored) == plan
    rows, labels = records(300, 3, 0)
    model = CertifiedLogisticRegression(C=0.1, delta=1e-6, records_between_reads=5, strict_timing=True)
    certificate.verify(model.fit(rows, labels).unlearn([1]).certificate_)
    with pytest.raises(CertificateError, match=re.escape("but its constants allow 0, because every request reads")):
        certificate.verify(model.certificate_.model_copy(update={"records_between_reads": 5}))
    with pytest.raises(ParameterError, match="must be at most"):
        plan_of(2000, strict=True)
