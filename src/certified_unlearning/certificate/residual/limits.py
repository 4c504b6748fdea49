"""Possible values of the fields of a residual certificate."""

from certified_unlearning.accounting.core.losses import scores_per_record
from certified_unlearning.accounting.core.rounding import LARGEST_SIGMA
from certified_unlearning.accounting.residual import public
from certified_unlearning.certificate.base import CertificateError
from certified_unlearning.certificate.preprocessing import possible_class_weights, possible_features, possible_text
from certified_unlearning.certificate.residual.constants import ResidualConstants, losses_of
from certified_unlearning.text import counted


def limits_of(certificate: ResidualConstants) -> dict[str, tuple[bool, str]]:
    """Return, for each field, whether its value fits the other fields, and a description of the possible values."""
    scores = scores_per_record(certificate.classes)
    mechanism = "newton-removal" if certificate.is_by_newton else "certified-refit"
    losses = losses_of(certificate.classes)
    squared = losses == ("squared",)
    requests = certificate.requests
    reads = certificate.scheduled_reads + certificate.unscheduled_reads
    extra_delta = certificate.extra_delta_all_releases
    private = certificate.n - certificate.public_records
    most_curvature = public.most_curvature(
        certificate.public_records,
        n=certificate.n,
        features=max(1, certificate.d // scores),
        classes=certificate.classes,
    )
    return {
        "mechanism": (certificate.mechanism == mechanism, f"{mechanism!r}"),
        "loss": (certificate.loss in losses, " or ".join(map(repr, losses))),
        "delta": (0 < certificate.delta < 1, "strictly between 0 and 1"),
        "extra_delta_all_releases": (
            extra_delta is None or 0 <= extra_delta <= certificate.delta,
            f"at most delta = {certificate.delta!r}",
        ),
        "sigma": (certificate.sigma <= LARGEST_SIGMA, f"at most {LARGEST_SIGMA:g}, or weights may overflow"),
        "class_weights": possible_class_weights(certificate.class_weights, certificate.classes),
        "d": (certificate.d % scores == 0, f"a multiple of {scores}, the number of scores of a record"),
        "strict": (not (squared and certificate.strict), "false for ridge regression"),
        "downdate": (certificate.downdate or not squared, "true for ridge regression"),
        "added": (
            certificate.additions <= certificate.added < certificate.n
            and (certificate.added > 0) == (certificate.additions > 0),
            f"{certificate.additions} to {certificate.n - 1}, and 0 only if additions = 0",
        ),
        "additions": (
            requests >= 0,
            f"at most {certificate.releases - 1 - certificate.lost_releases}, because each addition was a release",
        ),
        "public_records": (
            certificate.public_records < certificate.n,
            f"at most {certificate.n - 1}, because n includes public rows",
        ),
        "public_curvature": (
            certificate.public_curvature <= most_curvature,
            f"at most {most_curvature:.3g}, the largest curvature that this number of public rows can have",
        ),
        "removed": (requests <= certificate.removed < private, f"{requests} to {private - 1}"),
        "scheduled_reads": (reads <= requests, f"at most {requests} together with unscheduled_reads"),
        "passes": (
            certificate.passes is None or (certificate.may_pass and certificate.passes_fit(requests - reads)),
            f"{'at most ' if certificate.is_by_newton else ''}{requests - reads}, which is the number of "
            "requests without a reading; the field is left out unless the plan can have passes: the model must predict "
            "classes, and the plan must not be strict",
        ),
        "features": possible_features(certificate.features),
        "hashed": possible_text(certificate.hashed, certificate.features, certificate.d // scores),
    }


def require_readings(certificate: ResidualConstants) -> None:
    """Check that some stream of requests has the stated number of readings under the certificate's plan.

    The bounds below are necessary. To see this, cut the stream after every reading. A piece that ends with a scheduled
    reading has more than ``records_between_reads`` records in all, but at most ``records_between_reads`` records
    without its last request. Every other piece, including the rest after the last reading, has at most
    ``records_between_reads`` records. Each request has at least one record. So the sums over all pieces give the three
    bounds.

    The three bounds are also sufficient for a stream of requests with the stated number of readings. The last request
    before a scheduled reading may have any number of records. Without a scheduled reading, each piece may have from one
    to ``records_between_reads`` records.

    A release that adds records always reads the data. So a piece that ends with such a release has at most
    ``records_between_reads`` records before the release, and the release itself may remove any number.

    Raises:
        CertificateError: No stream of requests has this number of readings.
    """
    most, removed, additions = certificate.records_between_reads, certificate.removed, certificate.additions
    requests = certificate.requests
    allowed = certificate.most_records
    if most > allowed:
        newton = certificate.is_by_newton
        why = "readings depend only on counts of records" if newton else "every request reads the data"
        raise CertificateError(
            f"the certificate states records_between_reads = {most}, but its constants allow {allowed}, because {why}"
        )
    scheduled, reads = certificate.scheduled_reads, certificate.scheduled_reads + certificate.unscheduled_reads
    stated = (
        f"the certificate states records_between_reads = {most}, scheduled_reads = {scheduled} and "
        f"unscheduled_reads = {certificate.unscheduled_reads}, with which"
    )
    least_removed = scheduled * (most + 1) + certificate.unscheduled_reads
    if removed < least_removed:
        raise CertificateError(
            f"{stated} at least {counted(least_removed, 'record')} must have been removed, but removed = {removed}"
        )
    most_requests = scheduled + most * (reads + additions + 1)
    if requests > most_requests:
        raise CertificateError(
            f"{stated} at most {counted(most_requests, 'request')} can have been answered, but releases = "
            f"{certificate.releases} says {requests}"
        )
    pieces = reads + (requests > reads)
    if not scheduled and not additions and removed > most * pieces:
        raise CertificateError(
            f"{stated} at most {counted(most * pieces, 'record')} can have been removed in "
            f"{counted(requests, 'request')}, but removed = {removed}"
        )
