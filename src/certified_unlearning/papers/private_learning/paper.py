"""The declaration of the reproduction of the dissertation on private learning."""

from certified_unlearning.papers.private_learning.group_privacy import GROUP_PRIVACY
from certified_unlearning.papers.private_learning.private_audits import PRIVATE_AUDITS
from certified_unlearning.papers.private_learning.private_rates import PRIVATE_GRADIENTS, PRIVATE_RISK
from certified_unlearning.reproduction.paper import Paper, ReadText

_HERE = "certified_unlearning.papers.private_learning"
PAPER = Paper(
    name="private_learning",
    title="Private learning",
    citation="Ullah, Statistical Learning via Stochastic Optimization under Data Privacy Considerations (PhD "
    "dissertation, Johns Hopkins University, 2024), chapters 2 and 3",
    texts=(
        ReadText(
            "Statistical Learning ... under Data Privacy Considerations",
            "the dissertation as submitted to Johns Hopkins University, January 2024",
        ),
    ),
    package=_HERE,
    experiments=(PRIVATE_RISK, PRIVATE_GRADIENTS, PRIVATE_AUDITS, GROUP_PRIVACY),
    measures=tuple(
        f"{_HERE}.measures.{name}" for name in ("rates", "noise", "parameters_and_bounds", "audited", "groups")
    ),
    findings=f"{_HERE}.findings:findings",
)
