"""Declaration of an experiment, which reproduces one thing that a paper shows.

The declaration is in the module that defines the experiment's function `make`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.run import ExperimentPlan, ProblemConstants, Run
from certified_unlearning.mechanisms.settings import Settings

if TYPE_CHECKING:
    import pandas as pd


class Sweep(BaseModel):
    """The values that an experiment sweeps, in a section of `params.yaml`.

    Every key has a description. The section is below that of the experiment's paper.

    Attributes:
        counts_records: Keys that count records of the preset's data set.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    counts_records: ClassVar[tuple[str, ...]] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """Files that the experiment reads besides the preset's data set; if they change, the experiment reruns."""
        return ()

    def check(self) -> str | None:
        """Return a sentence about an invalid combination of values, beginning with the key; None for a valid one."""
        return None

    def fitted(self, defaults: Collection[str], *, n: int) -> Self:
        """Return the sweep, after reducing every default count of records that exceeds half of all records.

        A count that is reduced becomes the largest number of the form 1, 2 or 5 times a power of ten that is at most
        half of all records.

        Args:
            defaults: Keys with default values; other keys are not changed.
            n: Number of training records.
        """
        most = _round_below(n // 2)
        fitting: dict[str, Any] = {}
        for key in self.counts_records:
            value = getattr(self, key)
            if key in defaults:
                several = isinstance(value, list)
                fits = [each if 2 * each <= n else most for each in (value if several else [value])]
                fitting[key] = list(dict.fromkeys(fits)) if several else fits[0]
        return self.model_copy(update=fitting)


def _round_below(count: int) -> int:
    """Return the largest of 1, 2, 5, 10, 20, 50, ... that is at most ``count``; 1 if there is none."""
    power = int("1" + "0" * (len(str(count)) - 1))
    return max((factor * power for factor in (1, 2, 5) if factor * power <= count), default=1)


class NoSweep(Sweep):
    """An empty sweep, for an experiment that reads the plans of other experiments."""


@dataclass(frozen=True)
class Caption:
    """The texts about an experiment in our report and in Snakemake's report.

    Attributes:
        title: What the experiment shows, in one line.
        text: How to read the figure or table.
        description: Description of the figure for readers who cannot see it.
    """

    title: str
    text: str = ""
    description: str = ""


@dataclass(frozen=True)
class Inputs:
    """The inputs from which an experiment's rows are made.

    Attributes:
        preset: Name of the preset.
        settings: Settings that the preset's experiments share.
        sweep: The experiment's section of `params.yaml`.
        data: Summary of the prepared data set (`data.prepared.PreparedData.summary`); empty if no data set is needed.
        plans: Plans of the experiments that this one uses, by their names.
    """

    preset: str
    settings: Settings
    sweep: Any
    data: Mapping[str, Any] = field(default_factory=dict)
    plans: Mapping[str, ExperimentPlan] = field(default_factory=dict)

    def plan(self, constants: ProblemConstants, runs: Iterable[Run]) -> ExperimentPlan:
        """Return the plan of an experiment whose runs share these constants."""
        return ExperimentPlan(
            preset=self.preset,
            settings=self.settings,
            sweep=self.sweep.model_dump(mode="json"),
            features=str(self.data["features"]),
            constants=constants,
            runs=tuple(runs),
        )

    def fitted(self, defaults: Collection[str]) -> "Inputs":
        """Return the inputs with default values adapted to the size of the data (`Settings.fitted`, `Sweep.fitted`)."""
        n, classes = int(self.data["n"]), len(self.data["classes"]["train"])
        settings = self.settings.fitted(defaults, n=n, classes=classes)
        return replace(self, settings=settings, sweep=self.sweep.fitted(defaults, n=n))


@dataclass(frozen=True, eq=False)
class Experiment:
    """One thing that a paper shows: what it sweeps, how its rows are made, and how they are drawn.

    Attributes:
        name: Key of the experiment under its paper in `params.yaml`, and name of its directory in the results.
        source: Place in the paper, such as ``Fig. 3a``; empty if the experiment is not in the paper.
        sweep: Model of the experiment's section of `params.yaml`.
        rows: Columns of the experiment's rows, with their roles.
        make: Function that returns either a plan, which mechanisms then run, or a table of rows (for bounds, attacks
            and tables).
        mechanisms: Mechanisms that run the plan, by their names in `reproduction.declared`; empty if `make` returns a
            table.
        draw: Function that draws the rows, as ``module:function``, imported only for drawing; None if there is only a
            table.
        page: Function that turns the rows into tables for readers, as ``module:function``; None to show the rows
            unchanged. If there is a figure, the report shows the table as well.
        setting: Function that describes the data and the sizes of the rows in sentences, as ``module:function``; the
            report adds them to the caption. Empty for no description.
        uses: Experiments of the same paper whose plans are read.
        needs_data: Whether the experiment depends on the preset's data set.
        shown: Whether the rows are shown; otherwise, they are only used for verdicts.
        tracked: Whether each row of a table becomes a run in MLflow. Runs of mechanisms are stored there in any case.
        x: Swept column, for DVC's plots.
        y: Columns that DVC's plots show against ``x``, each with a title.
        sources: Place in the paper for certain data sets, if it differs from ``source``.
        caption: Title and text.
    """

    name: str
    source: str
    sweep: type[Sweep]
    rows: pa.Schema
    make: "Callable[[Inputs], ExperimentPlan | pd.DataFrame]"
    mechanisms: tuple[str, ...] = ()
    draw: str | None = None
    page: str | None = None
    setting: str = ""
    uses: tuple[str, ...] = ()
    needs_data: bool = True
    shown: bool = True
    tracked: bool = False
    x: str = ""
    y: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    caption: Caption = field(default_factory=lambda: Caption(""))

    @property
    def title(self) -> str:
        """Heading of the table: the place in the paper, and what the experiment shows."""
        return f"{self.source}: {self.caption.title}" if self.source else self.caption.title

    @property
    def reference(self) -> str:
        """Reference of the declaration, as ``module:name``."""
        return f"{self.make.__module__}:{self.name}"

    def plan(self, inputs: Inputs) -> ExperimentPlan:
        """Return the plan that mechanisms run.

        Raises:
            ParameterError: The experiment has no such plan, or a value of the inputs is wrong.
            AssumptionError: A theorem's assumption does not hold.
            InfeasibleError: A target cannot be met.
        """
        if not self.mechanisms:
            raise ParameterError(f"{self.reference} makes a table, not a plan; `unlearn pipeline make` runs it")
        return cast(ExperimentPlan, self.make(inputs))

    def table(self, inputs: Inputs) -> "pd.DataFrame":
        """Return the rows of an experiment that no mechanism runs; the errors are those of `plan`."""
        if self.mechanisms:
            raise ParameterError(f"{self.reference} makes a plan, not a table; `unlearn pipeline plan` writes it")
        return cast("pd.DataFrame", self.make(inputs))
