"""The declaration of the results of Langevin unlearning that are reproduced."""

from certified_unlearning.papers.langevin_unlearning.accountants import ACCOUNTANTS
from certified_unlearning.papers.langevin_unlearning.bounds.beyond_convexity import BEYOND_CONVEXITY
from certified_unlearning.papers.langevin_unlearning.bounds.recuperation import RECUPERATION
from certified_unlearning.papers.langevin_unlearning.fig3a import FIG3A
from certified_unlearning.papers.langevin_unlearning.fig3b import FIG3B
from certified_unlearning.papers.langevin_unlearning.fig3c import FIG3C
from certified_unlearning.papers.langevin_unlearning.fig4 import FIG4
from certified_unlearning.papers.langevin_unlearning.fig5a import FIG5A
from certified_unlearning.papers.langevin_unlearning.smoothness import SMOOTHNESS
from certified_unlearning.papers.langevin_unlearning.tables import TABLE1, TABLE2, TABLE3
from certified_unlearning.reproduction.paper import Paper, ReadText

_HERE = "certified_unlearning.papers.langevin_unlearning"
PAPER = Paper(
    name="langevin_unlearning",
    title="Langevin unlearning",
    citation="Chien, Wang, Chen, Li, Langevin unlearning (NeurIPS 2024)",
    texts=(
        ReadText(
            "Langevin Unlearning",
            "full text with appendices, converted from the LaTeX source of a version that was not recorded",
        ),
        ReadText(
            "Descent-to-Delete",
            "Theorems 9 and 28 are used in the form of Theorems N.1 and N.2 of Langevin Unlearning, which restate them",
            itself=False,
        ),
    ),
    package=_HERE,
    experiments=(
        FIG3A,
        FIG3B,
        SMOOTHNESS,
        FIG3C,
        FIG4,
        FIG5A,
        RECUPERATION,
        BEYOND_CONVEXITY,
        TABLE1,
        TABLE2,
        TABLE3,
        ACCOUNTANTS,
    ),
    measures=tuple(
        f"{_HERE}.measures.{name}"
        for name in ("authors", "beyond_convexity", "guarantees", "noise_and_steps", "records", "streams")
    ),
    headline=f"{_HERE}.headline:tables",
    findings=f"{_HERE}.findings:findings",
    newcomers=f"{_HERE}.findings:newcomers",
    key_numbers=f"{_HERE}.findings:key_numbers",
)
