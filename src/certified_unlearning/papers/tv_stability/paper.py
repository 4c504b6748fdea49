"""The declaration of the reproduction of the dissertation on exact unlearning by total-variation stability."""

from certified_unlearning.papers.tv_stability.experiments import DELETIONS, EDITS, EXACT_RATES
from certified_unlearning.reproduction.paper import Paper, ReadText

_HERE = "certified_unlearning.papers.tv_stability"
PAPER = Paper(
    name="tv_stability",
    title="Total-variation stability",
    citation="Ullah, Statistical Learning via Stochastic Optimization under Data Privacy Considerations (PhD "
    "dissertation, Johns Hopkins University, 2024), chapters 4 and 5",
    texts=(
        ReadText(
            "Statistical Learning ... under Data Privacy Considerations",
            "the dissertation as submitted to Johns Hopkins University, January 2024",
        ),
    ),
    package=_HERE,
    experiments=(DELETIONS, EDITS, EXACT_RATES),
    measures=tuple(
        f"{_HERE}.measures.{name}"
        for name in (
            "baselines",
            "batches",
            "couplings",
            "descents",
            "noise_scales",
            "prefix_sums",
            "queries",
            "rates",
            "runs",
            "simulated",
            "streams",
        )
    ),
    findings=f"{_HERE}.findings:findings",
)
"""Ullah, PhD dissertation, Johns Hopkins University (2024), chapters 4 and 5."""
