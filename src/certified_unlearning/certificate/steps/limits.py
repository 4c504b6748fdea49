"""Possible values of the fields of a certificate of noisy steps.

The possible values depend on the certificate's accountant, data set and loss.
"""

import math
from collections import Counter

from certified_unlearning.accounting.accountants import ACCOUNTANTS
from certified_unlearning.accounting.core.losses import ridge_radius, scores_per_record
from certified_unlearning.accounting.core.rounding import LARGEST_SIGMA
from certified_unlearning.certificate.base import TOLERANCE
from certified_unlearning.certificate.preprocessing import possible_class_weights, possible_features
from certified_unlearning.certificate.steps.constants import StepsConstants
from certified_unlearning.data.sets import built_in

LANGEVIN = "langevin"
"""The only mechanism of noisy steps that learns from numeric targets."""


def limits_of(certificate: StepsConstants) -> dict[str, tuple[bool, str]]:
    """Return, for each field, whether the accountant and data set allow its value, and the possible values."""
    known = ACCOUNTANTS.get(certificate.accountant)
    mechanism, variants = (known.mechanism, tuple(known.variants)) if known is not None else (None, ())
    steps, sizes = certificate.unlearning_steps, certificate.records_per_request
    sizes = (sizes,) * len(steps) if isinstance(sizes, int) else sizes
    features = certificate.d // scores_per_record(certificate.classes)
    # The published theorems of Descent-to-Delete cover one record per request.
    largest_size = 1 if known is not None and known.as_published else certificate.n
    data_set = built_in(certificate.dataset)
    # The eigenvalues of X'X / n, one for each feature, add up to 1 for rows of norm 1; rows of a table may be shorter.
    least_eigenvalue = 0.0 if data_set is None else (1 - 1e-5) / features if features else math.inf
    limits = {
        "mechanism": (mechanism == certificate.mechanism, f"{mechanism!r}, the mechanism that the accountant covers"),
        "variant": (certificate.variant in variants, f"one of {variants}, the variants that the accountant covers"),
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
            f"between 1 and {largest_size} for each of the {len(steps)} requests, and at most n = {certificate.n} in "
            "total",
        ),
    }
    cycle = certificate.cycle
    if not certificate.is_cyclic:
        limits["cycle"] = (cycle is None, "left out: every step uses all records")
        limits["places"] = (certificate.places is None, "left out: there is no cycle")
    else:
        limits["cycle"] = (
            cycle is not None and certificate.n <= cycle.records < certificate.n + cycle.batch_size,
            f"a cycle with just enough batches for n = {certificate.n} records",
        )
        limits["adjacency"] = (certificate.adjacency != "remove", "replace or zero-out")
        limits["smoothness"] = (certificate.smoothness == "bound", "'bound', the rule that holds for every mini-batch")
        limits["places"] = (
            _places_are_possible(certificate),
            "batches none of which loses more records than it contains",
        )
        limits["radius"] = (certificate.radius is None, "null: no step projects")
        limits["start"] = (certificate.start == 0, "0, the origin")
        # No certificate of mini-batches was made before rounding was counted.
        counted = certificate.arithmetic is not None
        limits["rounding_error"] = (counted, "a number; noise_delta and noise_resolution must be numbers, too")
    if not certificate.has_noise_in_every_step:
        limits["epsilon_all_published"] = (certificate.epsilon_all_published is None, "null")
        limits["adjacency"] = (certificate.adjacency != "remove", "replace or zero-out")
        limits["start"] = (certificate.start == 0, "0, the origin")
    if certificate.largest_eigenvalue is not None:
        limits["largest_eigenvalue"] = (
            least_eigenvalue <= certificate.largest_eigenvalue <= 1 + 1e-5,
            f"between {least_eigenvalue:g} and 1: rows have norm {'at most 1' if data_set is None else '1'}",
        )
    if data_set is not None:
        choice = data_set.features
        limits["classes"] = (certificate.classes == data_set.classes, f"{data_set.classes}")
        limits["features"] = (
            certificate.features is None or certificate.features in choice,
            f"one of {choice}, or null" if choice else "null: the data are not images",
        )
    else:
        limits["features"] = possible_features(certificate.features)
    scores = scores_per_record(certificate.classes)
    limits |= _of_targets(certificate)
    limits["class_weights"] = possible_class_weights(certificate.class_weights, certificate.classes)
    limits["d"] = (certificate.d % scores == 0, f"a multiple of {scores}, the number of scores of a record")
    return limits


def _of_targets(certificate: StepsConstants) -> dict[str, tuple[bool, str]]:
    """Return the conditions on the loss: for classes, or for ridge regression.

    In ridge regression, gradients are bounded only in a ball.
    """
    if certificate.classes > 1:
        return {
            "loss": (certificate.loss is None, "left out: the number of classes determines the loss"),
            "target_range": (certificate.target_range is None, "left out: the model predicts classes"),
        }
    due = ridge_radius(certificate.strong_convexity)
    low, high = certificate.target_range or (math.nan, math.nan)
    return {
        "classes": (
            certificate.mechanism == LANGEVIN and built_in(certificate.dataset) is None,
            f"at least 2: only the mechanism {LANGEVIN!r} learns numeric targets, and only on a user's own data",
        ),
        "loss": (certificate.loss == "squared", "'squared': classes = 1 means ridge regression"),
        "target_range": (low < high and math.isfinite(high - low), "a range from a number to a larger one"),
        "smoothness": (certificate.smoothness == "bound", "'bound', the rule that holds for all targets and records"),
        "radius": (
            math.isclose(certificate.radius or 0.0, due, rel_tol=TOLERANCE),
            f"{due!r}: a smaller ball need not contain the minimiser, and in a larger ball gradients are longer",
        ),
        # No certificate of targets was made before rounding was counted.
        "rounding_error": (
            certificate.arithmetic is not None,
            "a number; noise_delta and noise_resolution must be numbers, too",
        ),
    }


def _places_are_possible(certificate: StepsConstants) -> bool:
    """Return whether no batch loses more records than it contains.

    The last batch may be smaller than the others.
    """
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
