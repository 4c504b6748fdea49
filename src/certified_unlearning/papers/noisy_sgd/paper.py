"""The declaration of the reproduction of Noisy SGD."""

from certified_unlearning.papers.noisy_sgd.batch_sizes import BATCH_SIZES
from certified_unlearning.papers.noisy_sgd.minibatches import MINIBATCHES
from certified_unlearning.reproduction.paper import Paper, ReadText

_HERE = "certified_unlearning.papers.noisy_sgd"
PAPER = Paper(
    name="noisy_sgd",
    title="Noisy SGD",
    citation="Chien, Wang, Chen, Li, Certified Machine Unlearning via Noisy Stochastic Gradient Descent (NeurIPS 2024)",
    texts=(
        ReadText(
            "Noisy SGD",
            "the abstracts of the conference and of arXiv's first version, the captions of Figures 1 and 3, a public "
            "summary that states Theorem 3.1, and the authors' repository",
            itself=False,
        ),
    ),
    package=_HERE,
    experiments=(MINIBATCHES, BATCH_SIZES),
    measures=tuple(f"{_HERE}.measures.{name}" for name in ("comparisons", "distance_bounds")),
)
"""Chien, Wang, Chen, Li, Certified Machine Unlearning via Noisy Stochastic Gradient Descent (2024)."""
