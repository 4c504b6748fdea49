"""Sentences about the rows of private learning."""

import pandas as pd

from certified_unlearning.data.sets import built_in
from certified_unlearning.papers.private_learning.covered import CLOSE, covered_deletions
from certified_unlearning.papers.private_learning.group_privacy import GROUP_PRIVACY
from certified_unlearning.papers.private_learning.private_rates import PRIVATE_RISK
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.simulation.power_laws import Fit, fitted
from certified_unlearning.text import unbroken

FEWEST_TRIALS = 20
"""The smallest number of trials for which slopes are reported."""


def findings(evidence: Evidence) -> list[str]:
    """Return sentences about the deletions that private models cover, and about the measured slopes of two rates.

    Raises:
        MissingEvidence: There are no rows.
        DataError: The rows are damaged.
    """
    groups, risk = evidence.table(GROUP_PRIVACY.name), evidence.table(PRIVATE_RISK.name)
    settings = dict.fromkeys(zip(groups["data"], groups["epsilon"], strict=True))
    told = [covered(groups[(groups["data"] == data) & (groups["epsilon"] == epsilon)]) for data, epsilon in settings]
    enough = risk["trial"].nunique() >= FEWEST_TRIALS
    return [*told, rates(risk)] if enough else told


def covered(rows: pd.DataFrame) -> str:
    """Return a sentence about how many deletions a private model covers while it is about as accurate as retraining.

    Args:
        rows: The rows of ``group_privacy`` for one data set and epsilon.
    """
    first = rows.iloc[0]
    known = built_in(str(first["data"]))
    title = known.title if known else str(first["data"])
    about = f"{title} ({first['n']:,} records) at {unbroken('ε = ' + format(first['epsilon'], 'g'))}"
    most = covered_deletions(rows, beside="retraining")
    one = rows[rows["deletions"] == rows["deletions"].min()].set_index("system")["accuracy"]
    beside = covered_deletions(rows, beside="langevin")
    approximate = f"; compared in the same way with Langevin unlearning, it covers {beside}" if beside else ""
    if not most:
        return (
            f"On {about}, a private model that covers even one deletion is less accurate than retraining "
            f"by more than {CLOSE:g}: its accuracy is {one['private']:.1%}, and that of retraining is "
            f"{one['retraining']:.1%}{approximate}."
        )
    return (
        f"On {about}, a private model covers {most} deletion{'s' * (most > 1)} without any work, with an accuracy at "
        f"most {CLOSE:g} below that of retraining{approximate}."
    )


def rates(rows: pd.DataFrame) -> str:
    """Return a sentence on how errors of output perturbation and noisy descent fall with the number of records.

    Args:
        rows: The rows of ``private_risk``.
    """
    slopes = [
        fitted(rows[(rows["part"] == part) & (rows["method"] == method)], x="n")
        for part, method in (("X1", "printed strength"), ("X2", "noisy descent"))
    ]
    return (
        f"The excess risk of private linear models falls as a power of n. The exponent is {_told(slopes[0])} for "
        f"output perturbation (theory: −2/3) and {_told(slopes[1])} for noisy descent (theory: −1)."
    )


def _told(fit: Fit) -> str:
    return f"{fit.slope:.2f} ({fit.low:.2f} to {fit.high:.2f})".replace("-", "−")
