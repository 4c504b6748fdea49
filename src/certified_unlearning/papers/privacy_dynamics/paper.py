"""The declaration of the reproduction of Differential Privacy Dynamics."""

from certified_unlearning.papers.privacy_dynamics.bounds import DYNAMICS1, DYNAMICS2
from certified_unlearning.papers.privacy_dynamics.experiments import MEASURED
from certified_unlearning.reproduction.paper import Paper, ReadText

_HERE = "certified_unlearning.papers.privacy_dynamics"
PAPER = Paper(
    name="privacy_dynamics",
    title="Differential Privacy Dynamics",
    citation="Chourasia, Ye, Shokri, Differential Privacy Dynamics of Langevin Diffusion and Noisy Gradient Descent "
    "(NeurIPS 2021)",
    texts=(
        ReadText(
            "Differential Privacy Dynamics",
            "full text with appendices, converted from the LaTeX source of a version that was not recorded",
        ),
    ),
    package=_HERE,
    experiments=(DYNAMICS1, DYNAMICS2, MEASURED),
    measures=tuple(f"{_HERE}.measures.{name}" for name in ("bounds", "lemmas", "printed", "runs", "utility")),
)
