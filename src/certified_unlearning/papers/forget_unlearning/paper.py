"""The declaration of what is reproduced from the paper *Forget Unlearning*."""

from certified_unlearning.papers.forget_unlearning.experiments import DELETION, RISK
from certified_unlearning.reproduction.paper import Paper, ReadText

_HERE = "certified_unlearning.papers.forget_unlearning"
PAPER = Paper(
    name="forget_unlearning",
    title="Forget Unlearning",
    citation="Chourasia, Shah, Forget Unlearning: Towards True Data-Deletion in Machine Learning (ICML 2023)",
    texts=(
        ReadText(
            "Forget Unlearning",
            "full text with appendices, converted from the LaTeX source of a version that was not recorded",
        ),
    ),
    package=_HERE,
    experiments=(DELETION, RISK),
    measures=tuple(f"{_HERE}.measures.{name}" for name in ("adaptive", "attacks", "deletion_guarantees", "nonconvex")),
)
