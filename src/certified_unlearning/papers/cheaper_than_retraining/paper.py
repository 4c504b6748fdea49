"""Our own analysis, "Cheaper than retraining". It is declared like a paper, so that its claims are checked, too."""

from certified_unlearning.papers.cheaper_than_retraining.audits.experiment import AUDIT
from certified_unlearning.papers.cheaper_than_retraining.experiments import COST
from certified_unlearning.papers.cheaper_than_retraining.wide.experiment import WIDE
from certified_unlearning.reproduction.paper import Paper

_HERE = "certified_unlearning.papers.cheaper_than_retraining"
PAPER = Paper(
    name="cheaper_than_retraining",
    title="Cheaper than retraining",
    citation="Our own analysis: the cost of a request, compared with fitting again. No published paper",
    package=_HERE,
    experiments=(COST, WIDE, AUDIT),
    measures=tuple(f"{_HERE}.measures.{name}" for name in ("residuals_and_batches", "requests", "wide", "audited")),
    findings=f"{_HERE}.findings:findings",
    newcomers=f"{_HERE}.findings:newcomers",
)
