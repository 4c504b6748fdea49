"""Declaration of a paper: its experiments, its claims, and its own data sets."""

from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from certified_unlearning.data.dataset import DataSet
from certified_unlearning.reproduction.experiment import Experiment


@dataclass(frozen=True)
class ReadText:
    """A text with which the claims about a published work were compared.

    Attributes:
        work: Usual name of the work.
        text: Description of the text, for the page of verdicts, without a full stop.
        itself: Whether this is the work's own text. Otherwise the work was never read, and `text` says through which
            other texts its statements are cited.
    """

    work: str
    text: str
    itself: bool = True


@dataclass(frozen=True, eq=False)
class Paper:
    """A paper, with the parts of it that are reproduced.

    Attributes:
        name: Key of the paper in `params.yaml`, and name of its directory in the results.
        title: Short title of the paper.
        experiments: Experiments, in the order in which the report shows them.
        package: Package that contains ``claims.yaml``; empty if the paper has no claims.
        citation: Authors of the paper, and where it appeared.
        texts: Texts with which the paper's claims were compared, one for each published work.
        measures: Modules of functions that claims may name; each is imported when claims are judged.
        data_sets: Data sets that come with the paper.
        headline: Tables at the top of the report, as ``module:function``.
        findings: Function that states what the runs show, as ``module:function``. It maps the evidence of one preset
            (`reproduction.claims.evidence.Evidence`) to sentences, the most important first.
        newcomers: A function like ``findings``, for readers who do not know the paper: one or two sentences for the top
            of the report.
        key_numbers: Function, as ``module:function``, that returns the few numbers by which presets and commits are
            compared. It maps the rows of a preset's runs (`rows.RUN_ROWS`) to numbers by name. The names are the same
            for every preset, and differ from those of other papers. If the preset runs an experiment, all numbers of
            that experiment are present.
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
        """Return the experiment with that name; None if there is no such experiment."""
        return next((each for each in self.experiments if each.name == name), None)

    @property
    def claims(self) -> Traversable | None:
        """Table of the paper's claims; None if the paper has no claims."""
        path = files(self.package) / "claims.yaml" if self.package else None
        return path if path is not None and path.is_file() else None
