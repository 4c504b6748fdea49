"""The data sets and constants of the paper's experiments, as stated in the paper or as used in its experiments."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from certified_unlearning.accounting import Problem
from certified_unlearning.accounting.core.losses import loss_constants
from certified_unlearning.errors import ParameterError
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence, of_features, results_on

Dataset = Literal["mnist-3-vs-8", "cifar10-cat-vs-ship", "cifar10", "adult"]
Smoothness = Literal["bound", "spectral"]
REGULARISATION = 1e-6
"""The paper's ``lambda / n``."""


@dataclass(frozen=True)
class PaperDataset:
    """A data set in the form that the paper uses.

    Attributes:
        n: The number of training records.
        dimension: The number of features.
        classes: The number of classes.
        features: The title that the summary of the data must give to the features; None if any features are accepted.
        fitted_eigenvalue: ``lambda_max(X'X / n)`` of the paper's features as Table 2 implies it; it is fitted, not
            measured.
    """

    n: int
    dimension: int
    classes: int = 2
    features: str | None = None
    fitted_eigenvalue: float | None = None


PAPER: dict[Dataset, PaperDataset] = {
    "mnist-3-vs-8": PaperDataset(11_982, 784),
    "cifar10-cat-vs-ship": PaperDataset(10_000, 512, features="ResNet-18 (ImageNet)", fitted_eigenvalue=0.692438),
    "cifar10": PaperDataset(50_000, 512, classes=10),
    "adult": PaperDataset(29_304, 6),
}


def paper_problem(evidence: Sequence[Evidence], dataset: Dataset, smoothness: Smoothness) -> Problem:
    """Return the constants of an experiment of the paper, with Langevin unlearning's step size ``1 / L``.

    If there are results on the paper's features, the spectral smoothness uses the eigenvalue that these results
    contain. Otherwise, the spectral smoothness uses the eigenvalue that Table 2 implies.

    Raises:
        MissingEvidence: There are no such results, and Table 2 implies no eigenvalue.
        ParameterError: ``spectral`` is given for more than two classes.
    """
    paper = PAPER[dataset]
    if paper.classes > 2 and smoothness != "bound":
        raise ParameterError(
            f"the paper's softmax regression on {dataset} needs `smoothness: bound`, got `{smoothness}`"
        )
    loss = loss_constants(
        classes=paper.classes,
        n=paper.n,
        regularisation=REGULARISATION,
        smoothness=smoothness,
        largest_eigenvalue=_largest_eigenvalue(evidence, dataset) if smoothness == "spectral" else None,
    )
    return Problem(paper.n, loss.strong_convexity, loss.smoothness, loss.lipschitz, 1 / loss.smoothness)


def _largest_eigenvalue(evidence: Sequence[Evidence], dataset: Dataset) -> float:
    paper = PAPER[dataset]
    try:
        data = of_features(results_on(evidence, dataset), paper.features).data
    except MissingEvidence:
        if paper.fitted_eigenvalue is None:
            raise
        return paper.fitted_eigenvalue
    return float(data["largest_eigenvalue"])
