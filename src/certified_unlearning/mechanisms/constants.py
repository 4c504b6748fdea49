"""The constants of a preset's problem.

The constants follow from the preset's settings and data.
"""

from collections.abc import Mapping
from typing import Any

from certified_unlearning import accounting
from certified_unlearning.accounting.core.checks import require_count
from certified_unlearning.accounting.core.losses import loss_constants, scores_per_record
from certified_unlearning.data.sets import built_in
from certified_unlearning.data.tables.declaration import CLASSES_FROM_RECORDS, DECLARED
from certified_unlearning.mechanisms.run import ProblemConstants
from certified_unlearning.mechanisms.settings import Settings


def constants_and_problem(
    settings: Settings, data: Mapping[str, Any], *, records: int
) -> tuple[ProblemConstants, accounting.Problem]:
    """Return a preset's constants and, for the accountants of Langevin unlearning, its problem.

    Args:
        settings: Settings that the preset's experiments share.
        data: Summary of the prepared data set (`data.prepared.PreparedData.summary`).
        records: Largest number of removed records; ``spectral-with-margin`` smoothness must stay valid for them.
    """
    n = int(data["n"])
    classes = len(data["classes"]["train"])
    require_count(least=2, classes=classes)
    loss = loss_constants(
        classes=classes,
        n=n,
        regularisation=settings.regularisation,
        smoothness=settings.smoothness,
        largest_eigenvalue=data["largest_eigenvalue"],
        records=records,
    )
    constants = ProblemConstants(
        n=n,
        d=int(data["d"]) * scores_per_record(classes),
        classes=classes,
        largest_eigenvalue=float(data["largest_eigenvalue"]),
        strong_convexity=loss.strong_convexity,
        smoothness_constant=loss.smoothness,
        lipschitz=loss.lipschitz,
        delta=1 / n if settings.delta == "1/n" else settings.delta,
        adjacency=settings.adjacency,
        smoothness=settings.smoothness,
        dataset=settings.dataset,
        features=settings.features if built_in(settings.dataset) is not None else _features_of_own(data),
        data_sha256=data["sha256"],
    )
    return constants, constants.problem(1 / loss.smoothness if settings.step_size == "1/L" else settings.step_size)


def _features_of_own(data: Mapping[str, Any]) -> str:
    """Return the name that certificates give to the features of a user's own data set."""
    return CLASSES_FROM_RECORDS if data.get("classes_from") == "records" else DECLARED
