"""Recompute what a certificate states, in numbers and in words."""

import math
from collections import Counter

from certified_unlearning import accounting
from certified_unlearning.accounting import assumptions
from certified_unlearning.accounting.accountants import ACCOUNTANTS
from certified_unlearning.accounting.core.losses import LossConstants, loss_constants, ridge_radius, scores_per_record
from certified_unlearning.accounting.core.rounding import LARGEST_SIGMA
from certified_unlearning.accounting.cyclic.accountants import ACCOUNTANTS as CYCLIC_ACCOUNTANTS
from certified_unlearning.accounting.guaranteed import Guaranteed
from certified_unlearning.accounting.guarantees import (
    as_computed,
    epsilon_all_published,
    guarantee_of,
)
from certified_unlearning.accounting.langevin.accountants import LangevinAccountant
from certified_unlearning.certificate.base import TOLERANCE, CertificateError
from certified_unlearning.certificate.model import Certificate
from certified_unlearning.certificate.preprocessing import possible_class_weights, possible_features, preprocessing
from certified_unlearning.data.sets import built_in
from certified_unlearning.errors import UnlearningError

LANGEVIN = "langevin"
"""The only mechanism of noisy steps that learns targets."""
NEGLIGIBLE = 0.01
"""Relative increase that rounding may cause in a certificate that was made before rounding was counted."""


def verify(certificate: Certificate) -> None:
    """Recompute what a certificate states, in numbers and in words.

    What only the data can tell is taken as stated: the number of records, the largest eigenvalue (between the bounds
    that rows of norm 1 allow), the data set's digest, where in the mini-batches removed records lay; so are run key and
    code version.

    Raises:
        CertificateError: The recomputed epsilon, mu or extra delta differs (the message has both numbers), the
            guarantee, the comparator or the assumptions are not those of the mechanism, or the accountant says
            nothing of what is stated.
        AssumptionError: A theorem's assumption does not hold for the certificate's constants.
    """
    try:
        _verify_scope(certificate)
        _verify_words(certificate)
        _verify_numbers(certificate)
    except (OverflowError, ZeroDivisionError) as error:
        raise CertificateError(
            f"the certificate of run {certificate.run_key[:12]} states constants of impossible sizes: {error}"
        ) from error


def _verify_numbers(certificate: Certificate) -> None:
    if ACCOUNTANTS[certificate.accountant].as_published:
        _require_learning_steps(certificate)
    problem = _problem(certificate)
    guaranteed = _guaranteed(certificate, problem)
    due: dict[str, float | None] = guaranteed._asdict()
    if certificate.epsilon_all_published is not None or _models_are_published(certificate):
        due["epsilon_all_published"] = epsilon_all_published(problem, certificate.schedule, delta=certificate.delta)
    for name, computed in due.items():
        stated = getattr(certificate, name)
        if stated is None or computed is None:
            differs = stated is not computed
        else:
            differs = not math.isclose(stated, computed, rel_tol=TOLERANCE)
        if differs:
            raise CertificateError(
                f"the certificate of run {certificate.run_key[:12]} states {name} = {stated!r}, "
                f"but its constants give {computed!r}"
            )
    if certificate.arithmetic is None and certificate.unlearning_steps:
        _require_rounding_to_be_negligible(certificate)


def _require_rounding_to_be_negligible(certificate: Certificate) -> None:
    """Refuse a certificate of before rounding was counted where it is more than `NEGLIGIBLE` of epsilon."""
    problem = _as_computed(certificate, _exact_problem(certificate))
    try:
        guaranteed = _guaranteed(certificate, problem)
        rounded, extra_delta = guaranteed.epsilon, guaranteed.extra_delta
        all_published = epsilon_all_published(problem, certificate.schedule, delta=certificate.delta)
    except UnlearningError:
        rounded = extra_delta = all_published = math.inf
    stated = certificate.epsilon_all_published
    negligible = (
        rounded <= certificate.epsilon * (1 + NEGLIGIBLE)
        and extra_delta <= certificate.extra_delta + NEGLIGIBLE * certificate.delta
        and (stated is None or (all_published is not None and all_published <= stated * (1 + NEGLIGIBLE)))
    )
    if not negligible:
        raise CertificateError(
            f"the certificate of run {certificate.run_key[:12]} states epsilon = {certificate.epsilon!r}, but assumes "
            f"exact arithmetic: with the rounding of {certificate.dtype} its constants give {rounded:.6g}; learn again"
        )


def _models_are_published(certificate: Certificate) -> bool:
    """Return whether the certificate is an estimator's or a ledger's, which speak of all their models too."""
    return _every_step_is_noisy(certificate) and (
        certificate.features == "given" or certificate.noise_source == "system entropy"
    )


def _guaranteed(certificate: Certificate, problem: accounting.Problem) -> Guaranteed:
    return guarantee_of(
        problem,
        certificate.schedule,
        accountant=certificate.accountant,
        variant=certificate.variant,
        delta=certificate.delta,
        dimension=certificate.d,
        start=certificate.start,
    )


def _every_step_is_noisy(certificate: Certificate) -> bool:
    return isinstance(ACCOUNTANTS.get(certificate.accountant), LangevinAccountant) or _is_cyclic(certificate)


def _places_are_possible(certificate: Certificate) -> bool:
    """Return whether no batch loses more records than it holds; the last one may hold fewer than the others."""
    cycle = certificate.cycle
    if cycle is None or certificate.places is None:
        return True
    lost: Counter[int] = Counter()
    for places in certificate.places:
        lost.update(dict(places))
    in_the_last = certificate.n - (cycle.batches - 1) * cycle.batch_size
    return all(
        count <= (cycle.batch_size if batch < cycle.batches - 1 else in_the_last) for batch, count in lost.items()
    )


def _is_cyclic(certificate: Certificate) -> bool:
    return certificate.accountant in CYCLIC_ACCOUNTANTS


def _verify_scope(certificate: Certificate) -> None:
    """Check that the accountant speaks of this mechanism and these requests, and that the data set can be this one."""
    known = ACCOUNTANTS.get(certificate.accountant)
    mechanism, variants = (known.mechanism, tuple(known.variants)) if known is not None else (None, ())
    steps, sizes = certificate.unlearning_steps, certificate.records_per_request
    sizes = (sizes,) * len(steps) if isinstance(sizes, int) else sizes
    features = certificate.d // scores_per_record(certificate.classes)
    # The published theorems of Descent-to-Delete are stated for one record a request.
    largest_size = 1 if known is not None and known.as_published else certificate.n
    data_set = built_in(certificate.dataset)
    # The eigenvalues of X'X / n, as many as features, sum up to 1 for rows of norm 1; those of a table may be shorter.
    least_eigenvalue = 0.0 if data_set is None else (1 - 1e-5) / features if features else math.inf
    scope = {
        "mechanism": (mechanism == certificate.mechanism, f"{mechanism!r}, of which the accountant speaks"),
        "variant": (certificate.variant in variants, f"one of {variants}, of which the accountant speaks"),
        "delta": (0 < certificate.delta < 1, "strictly between 0 and 1"),
        "extra_delta": (0 <= certificate.extra_delta <= certificate.delta, f"at most delta = {certificate.delta!r}"),
        "sigma": (certificate.sigma <= LARGEST_SIGMA, f"at most {LARGEST_SIGMA:g}, or weights may overflow"),
        "learning_steps": (certificate.learning_steps >= 1, "at least 1"),
        "unlearning_steps": (min(steps, default=0) >= 0, "at least 0 each"),
        "records_per_request": (
            len(sizes) == len(steps)
            and min(sizes, default=1) >= 1
            and max(sizes, default=1) <= largest_size
            and sum(sizes) <= certificate.n,
            f"between 1 and {largest_size}, and at most n = {certificate.n} in {len(steps)} requests",
        ),
    }
    cycle = certificate.cycle
    if not _is_cyclic(certificate):
        scope["cycle"] = (cycle is None, "left out: every step uses all records")
        scope["places"] = (certificate.places is None, "left out: there is no cycle")
    else:
        scope["cycle"] = (
            cycle is not None and certificate.n <= cycle.records < certificate.n + cycle.batch_size,
            f"of as many batches as n = {certificate.n} records fill",
        )
        scope["adjacency"] = (certificate.adjacency != "remove", "replace or zero-out")
        scope["smoothness"] = (certificate.smoothness == "bound", "bound, which holds for every mini-batch")
        scope["places"] = (_places_are_possible(certificate), "batches with as many records as they hold")
        scope["radius"] = (certificate.radius is None, "null: no step projects")
        scope["start"] = (certificate.start == 0, "0, the origin")
        # No certificate of mini-batches was made before rounding was counted.
        counted = certificate.arithmetic is not None
        scope["rounding_error"] = (counted, "a number, and so must be noise_delta and noise_resolution")
    if not _every_step_is_noisy(certificate):
        scope["epsilon_all_published"] = (certificate.epsilon_all_published is None, "null")
        scope["adjacency"] = (certificate.adjacency != "remove", "replace or zero-out")
        scope["start"] = (certificate.start == 0, "0, the origin")
    if certificate.largest_eigenvalue is not None:
        scope["largest_eigenvalue"] = (
            least_eigenvalue <= certificate.largest_eigenvalue <= 1 + 1e-5,
            f"between {least_eigenvalue:g} and 1: rows have norm {'at most 1' if data_set is None else '1'}",
        )
    if data_set is not None:
        choice = data_set.features
        scope["classes"] = (certificate.classes == data_set.classes, f"{data_set.classes}")
        scope["features"] = (
            certificate.features is None or certificate.features in choice,
            f"one of {choice}, or null" if choice else "null: the data are no images",
        )
    else:
        scope["features"] = possible_features(certificate.features)
    scores = scores_per_record(certificate.classes)
    scope |= _scope_of_targets(certificate)
    scope["class_weights"] = possible_class_weights(certificate.class_weights, certificate.classes)
    scope["d"] = (certificate.d % scores == 0, f"a multiple of the {scores} scores of a record")
    for name, (holds, right) in scope.items():
        if not holds:
            raise CertificateError(
                f"the certificate of run {certificate.run_key[:12]} states {name} = {getattr(certificate, name)!r}, "
                f"but by {certificate.accountant} on {certificate.dataset} it must be {right}"
            )


def _scope_of_targets(certificate: Certificate) -> dict[str, tuple[bool, str]]:
    """Return what must hold of the loss: of ridge regression, whose gradients only a ball bounds, and of classes."""
    if certificate.classes > 1:
        return {
            "loss": (certificate.loss is None, "left out: the number of classes tells it"),
            "target_range": (certificate.target_range is None, "left out: there are classes"),
        }
    due = ridge_radius(certificate.strong_convexity)
    low, high = certificate.target_range or (math.nan, math.nan)
    return {
        "classes": (
            certificate.mechanism == LANGEVIN and built_in(certificate.dataset) is None,
            f"at least 2: only mechanism {LANGEVIN!r}, on one's own data, learns targets",
        ),
        "loss": (certificate.loss == "squared", "'squared': one class stands for ridge regression"),
        "target_range": (low < high and math.isfinite(high - low), "a range from a number to a larger one"),
        "smoothness": (certificate.smoothness == "bound", "bound, which holds for all targets and records"),
        "radius": (
            math.isclose(certificate.radius or 0.0, due, rel_tol=TOLERANCE),
            f"{due!r}: a smaller ball need not hold the minimiser, and in a larger one gradients are longer",
        ),
        # No certificate of targets was made before rounding was counted.
        "rounding_error": (
            certificate.arithmetic is not None,
            "a number, and so must be noise_delta and noise_resolution",
        ),
    }


def _verify_words(certificate: Certificate) -> None:
    """Check the words: they follow from the mechanism, the accountant, the smoothness rule and the data set."""
    smoothness = certificate.smoothness
    needed = _least_constants(certificate)
    if certificate.lipschitz < needed.lipschitz * (1 - TOLERANCE):
        raise CertificateError(
            f"the certificate of run {certificate.run_key[:12]} states lipschitz = {certificate.lipschitz!r}, but the "
            f"gradients of records of norm 1 are bounded by {needed.lipschitz!r} only"
        )
    if certificate.smoothness_constant < needed.smoothness * (1 - TOLERANCE):
        raise CertificateError(
            f"the certificate of run {certificate.run_key[:12]} states smoothness_constant = "
            f"{certificate.smoothness_constant!r}, but the rule {smoothness!r} needs at least {needed.smoothness!r}"
        )
    stated = (certificate.guarantee, certificate.comparator, certificate.assumptions)
    due = (
        assumptions.guarantee(certificate.accountant, smoothness),
        assumptions.comparator(certificate.accountant, certificate.variant),
        assumptions.assumptions(
            certificate.accountant,
            smoothness,
            certificate.dtype,
            preprocessing(certificate.dataset, certificate.features),
            certificate.classes,
            certificate.noise_source,
            certificate.adjacency,
            certificate.arithmetic,
            certificate.class_weights,
        ),
    )
    for name, said, right in zip(("guarantee", "comparator", "assumptions"), stated, due, strict=True):
        if said != right:
            raise CertificateError(
                f"the certificate of run {certificate.run_key[:12]} states other {name} than its accountant and "
                f"smoothness give: {said!r} instead of {right!r}"
            )


def _least_constants(certificate: Certificate) -> LossConstants:
    """Return the least constants that the loss and the rule for L allow for the removals of this certificate."""
    return loss_constants(
        classes=certificate.classes,
        n=certificate.n,
        regularisation=certificate.strong_convexity / certificate.n,
        smoothness=certificate.smoothness,
        largest_eigenvalue=certificate.largest_eigenvalue,
        records=sum(certificate.schedule.records),
        bounds="tight",
    )


def _problem(certificate: Certificate) -> accounting.Problem:
    problem = _exact_problem(certificate)
    return problem if certificate.arithmetic is None else _as_computed(certificate, problem)


def _as_computed(certificate: Certificate, problem: accounting.Problem) -> accounting.Problem:
    return as_computed(
        problem,
        dimension=certificate.d,
        classes=certificate.classes,
        dtype=certificate.dtype,
        variant=certificate.variant,
        start=certificate.start,
        projects=certificate.radius is not None,
    )


def _exact_problem(certificate: Certificate) -> accounting.Problem:
    return accounting.Problem(
        n=certificate.n if certificate.cycle is None else certificate.cycle.batch_size,
        strong_convexity=certificate.strong_convexity,
        smoothness=certificate.smoothness_constant,
        lipschitz=certificate.lipschitz,
        step_size=certificate.step_size,
        adjacency=certificate.adjacency,
    )


def _require_learning_steps(certificate: Certificate) -> None:
    if certificate.radius is None:
        raise CertificateError("Descent-to-Delete's theorems need a ball, but the certificate states no radius")
    if not certificate.unlearning_steps:
        return
    needed = accounting.least_learning_steps(
        _exact_problem(certificate), radius=certificate.radius, steps=min(certificate.unlearning_steps)
    )
    if certificate.learning_steps < needed:
        raise CertificateError(
            f"the certificate of run {certificate.run_key[:12]} states {certificate.learning_steps} learning "
            f"steps, but the theorem needs {needed}"
        )
