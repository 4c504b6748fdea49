"""What the rows of private learning say, in sentences."""

from certified_unlearning.papers.private_learning.experiments import PRIVATE_RISK
from certified_unlearning.papers.private_learning.fits import Fit, fitted
from certified_unlearning.papers.private_learning.names import PARTS
from certified_unlearning.reproduction.claims.evidence import Evidence


def findings(evidence: Evidence) -> list[str]:
    """Return what was measured of the rates.

    Raises:
        MissingEvidence: There are no rows.
        DataError: They are damaged.
    """
    rows = evidence.table(PRIVATE_RISK.name)
    told = []
    for part, method in (("X1", "printed strength"), ("X2", "noisy descent")):
        own = rows[(rows["part"] == part) & (rows["method"] == method)]
        told.append(f"{PARTS[part].title} falls as n to the {_with_interval(fitted(own, x='n'))}")
    return [f"{'; '.join(told)} (theory: −2/3 and −1)."]


def _with_interval(fit: Fit) -> str:
    low, high = sorted((fit.low, fit.high))
    return f"{fit.slope:.2f} ({low:.2f} to {high:.2f})".replace("-", "−")
