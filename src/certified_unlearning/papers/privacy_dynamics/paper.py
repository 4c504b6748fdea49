"""Differential Privacy Dynamics: what is reproduced of it."""

from certified_unlearning.papers.privacy_dynamics.bounds import DYNAMICS1, DYNAMICS2
from certified_unlearning.reproduction.paper import Paper

PAPER = Paper(
    name="privacy_dynamics",
    title="Differential Privacy Dynamics",
    citation="Chourasia, Ye, Shokri, Differential Privacy Dynamics of Langevin Diffusion and Noisy Gradient Descent "
    "(NeurIPS 2021)",
    package="certified_unlearning.papers.privacy_dynamics",
    experiments=(DYNAMICS1, DYNAMICS2),
)
