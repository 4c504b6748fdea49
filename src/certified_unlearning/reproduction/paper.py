"""Declaration of a paper: its experiments, its claims, and what it brings along."""

from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from certified_unlearning.data.dataset import DataSet
from certified_unlearning.reproduction.experiment import Experiment


@dataclass(frozen=True)
class ReadText:
    """What the claims about a published work were compared with.

    Attributes:
        work: What people call the work.
        text: The text, in words for the page of verdicts, without a full stop.
        itself: Whether this is the work's own text. Otherwise the work was never read, and `text` says through which
            other texts its statements are cited.
    """

    work: str
    text: str
    itself: bool = True


@dataclass(frozen=True, eq=False)
class Paper:
    """A paper, and the parts of it that are reproduced.

    Attributes:
        name: Its key in `params.yaml`, its directory in the results.
        title: What people call it.
        experiments: The experiments, in the order in which the report shows them.
        package: The package in which ``claims.yaml`` lies; empty if it has no claims.
        citation: Who wrote it, where it appeared.
        texts: The texts that its claims were compared with, one for each published work.
        measures: Modules of functions that claims may name; each is imported when claims are judged.
        data_sets: Data sets that it brings along.
        headline: Tables at the head of the report, as ``module:function``.
        findings: What its runs say, as ``module:function``: from the evidence of one preset
            (`reproduction.claims.evidence.Evidence`) to sentences, the most important first.
        newcomers: What its runs say to somebody who knows no paper, likewise: one sentence or two for the top of the
            report.
        key_numbers: The few numbers by which presets and commits are compared, as ``module:function``: from the rows
            of runs of a preset (`rows.RUN_ROWS`) to numbers by names that are the same for every preset and no
            other paper's; none is missing of an experiment that the preset runs.
    """

    name: str
    title: str
    experiments: tuple[Experiment, ...]
    package: str = ""
    citation: str = ""
    texts: tuple[ReadText, ...] = ()
    measures: tuple[str, ...] = ()
    data_sets: tuple[DataSet, ...] = ()
    headline: str | None = None
    findings: str | None = None
    newcomers: str | None = None
    key_numbers: str | None = None

    def experiment(self, name: str) -> Experiment | None:
        """Return the experiment of that name; None if there is none."""
        return next((each for each in self.experiments if each.name == name), None)

    @property
    def claims(self) -> Traversable | None:
        """The table of its claims; None if it has none."""
        path = files(self.package) / "claims.yaml" if self.package else None
        return path if path is not None and path.is_file() else None
