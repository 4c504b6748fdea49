"""The only list of the reproduced papers, and the entry points by which other packages add theirs."""

from collections.abc import Sequence
from importlib.metadata import entry_points

from certified_unlearning.data.dataset import DataSet
from certified_unlearning.data.sets import DATA_SETS
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.cheaper_than_retraining.paper import PAPER as CHEAPER_THAN_RETRAINING
from certified_unlearning.papers.forget_unlearning.paper import PAPER as FORGET_UNLEARNING
from certified_unlearning.papers.gradient_certificates.paper import PAPER as GRADIENT_CERTIFICATES
from certified_unlearning.papers.langevin_unlearning.paper import PAPER as LANGEVIN_UNLEARNING
from certified_unlearning.papers.noisy_sgd.paper import PAPER as NOISY_SGD
from certified_unlearning.papers.privacy_dynamics.paper import PAPER as PRIVACY_DYNAMICS
from certified_unlearning.papers.private_learning.paper import PAPER as PRIVATE_LEARNING
from certified_unlearning.papers.tv_stability.paper import PAPER as TV_STABILITY
from certified_unlearning.reproduction import declared
from certified_unlearning.reproduction.paper import Paper

PAPERS = (
    LANGEVIN_UNLEARNING,
    PRIVACY_DYNAMICS,
    NOISY_SGD,
    FORGET_UNLEARNING,
    TV_STABILITY,
    PRIVATE_LEARNING,
    GRADIENT_CERTIFICATES,
    CHEAPER_THAN_RETRAINING,
)
ENTRY_POINTS = "certified_unlearning.papers"
"""The group of entry points by which installed packages add papers."""


def papers(modules: Sequence[str] = ()) -> tuple[Paper, ...]:
    """Return the papers of this package, those of installed packages, and those of the given modules.

    Args:
        modules: References such as ``my_package.my_paper:PAPER``, as `papers_of_others` in `params.yaml` lists them.

    Raises:
        ParameterError: A reference names no paper, or two papers, experiments or data sets have the same name.
    """
    brought = tuple(point.value for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name))
    known = (*PAPERS, *(_paper(reference) for reference in dict.fromkeys((*brought, *modules))))
    _require_distinct("paper", [paper.name for paper in known])
    _require_distinct("experiment", [each.name for paper in known for each in paper.experiments])
    _require_distinct("data set", [each.name for each in data_sets(known)])
    return known


def data_sets(known: Sequence[Paper]) -> tuple[DataSet, ...]:
    """Return the data sets of this package and those that the papers add."""
    return (*DATA_SETS, *(each for paper in known for each in paper.data_sets))


def _paper(reference: str) -> Paper:
    found = declared.function(reference)
    if not isinstance(found, Paper):
        raise ParameterError(f"{reference} must be a Paper, but is of type {type(found).__name__}")
    for experiment in found.experiments:
        declared.experiment(experiment.reference)  # A job will look for the file there.
    return found


def _require_distinct(what: str, names: Sequence[str]) -> None:
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ParameterError(f"two {what}s are called {min(twice)}; rename one")
