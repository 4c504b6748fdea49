"""The declaration of what is reproduced from the paper on certificates for gradient-based training."""

from certified_unlearning.papers.gradient_certificates.batches import BATCHES
from certified_unlearning.papers.gradient_certificates.fine_tuning import FINE_TUNING
from certified_unlearning.papers.gradient_certificates.head import HEAD
from certified_unlearning.papers.gradient_certificates.regions import REGIONS
from certified_unlearning.papers.gradient_certificates.service import SERVICE
from certified_unlearning.papers.gradient_certificates.shares import SHARES
from certified_unlearning.reproduction.paper import Paper, ReadText

_HERE = "certified_unlearning.papers.gradient_certificates"
PAPER = Paper(
    name="gradient_certificates",
    title="Gradient certificates",
    citation="Wicker, Sosnin, Janik, Müller, Weller, Tsay, Certificates of Differential Privacy and Unlearning for "
    "Gradient-Based Training (2024)",
    texts=(
        ReadText(
            "Certificates for Gradient-Based Training",
            "full text with appendices, converted from the LaTeX source of a version that was not recorded",
        ),
    ),
    package=_HERE,
    experiments=(REGIONS, BATCHES, FINE_TUNING, HEAD, SHARES, SERVICE),
    measures=tuple(
        f"{_HERE}.measures.{name}"
        for name in ("boxes", "attacks", "printed_numbers", "intervals", "runs", "brought", "service")
    ),
    findings=f"{_HERE}.findings:findings",
)
"""Wicker et al. (2024)."""
