"""What an experiment is: one thing that a paper shows; declared once, in the module of its `make`."""

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
    """What an experiment sweeps: its section of `params.yaml`, below its paper's. Keys have descriptions.

    Attributes:
        counts_records: Its keys that count records of the preset's data set.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    counts_records: ClassVar[tuple[str, ...]] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """The files that its experiment reads beside the preset's data set: a change of one makes its rows again."""
        return ()

    def check(self) -> str | None:
        """Return what is wrong with the values together, in a sentence that begins with the key; None if nothing is."""
        return None

    def fitted(self, defaults: Collection[str], *, n: int) -> Self:
        """Return the sweep with default counts of records reduced to at most half of all records.

        Larger counts become the largest number of the form 1, 2 or 5 times a power of ten that is at most half.

        Args:
            defaults: The keys with default values; others stay unchanged.
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
    """Return the largest of 1, 2, 5, 10, 20, 50, ... that is at most a count; 1 if there is none."""
    power = int("1" + "0" * (len(str(count)) - 1))
    return max((factor * power for factor in (1, 2, 5) if factor * power <= count), default=1)


class NoSweep(Sweep):
    """Nothing to sweep: the experiment reads the plans of others."""


@dataclass(frozen=True)
class Caption:
    """The words of an experiment, for the report and the workflow's own.

    Attributes:
        title: What it shows, in a line.
        text: How to read it.
        description: What the figure looks like, for readers who cannot see it.
    """

    title: str
    text: str = ""
    description: str = ""


@dataclass(frozen=True)
class Inputs:
    """The inputs from which an experiment's rows are made.

    Attributes:
        preset: The preset's name.
        settings: What its experiments share.
        sweep: The experiment's section.
        data: Summary of the prepared data set (`data.prepared.PreparedData.summary`); empty if no data set is needed.
        plans: Those of the experiments that this one uses, by their names.
    """

    preset: str
    settings: Settings
    sweep: Any
    data: Mapping[str, Any] = field(default_factory=dict)
    plans: Mapping[str, ExperimentPlan] = field(default_factory=dict)

    def plan(self, constants: ProblemConstants, runs: Iterable[Run]) -> ExperimentPlan:
        """Return the plan of an experiment with these runs, which share the constants."""
        return ExperimentPlan(
            preset=self.preset,
            settings=self.settings,
            sweep=self.sweep.model_dump(mode="json"),
            features=str(self.data["features"]),
            constants=constants,
            runs=tuple(runs),
        )

    def fitted(self, defaults: Collection[str]) -> "Inputs":
        """Return the inputs with default values fitted to the data's size (`Settings.fitted`, `Sweep.fitted`)."""
        n, classes = int(self.data["n"]), len(self.data["classes"]["train"])
        settings = self.settings.fitted(defaults, n=n, classes=classes)
        return replace(self, settings=settings, sweep=self.sweep.fitted(defaults, n=n))


@dataclass(frozen=True, eq=False)
class Experiment:
    """One thing that a paper shows: what it sweeps, how its rows are made, how they are drawn.

    Attributes:
        name: Its key below the paper in `params.yaml`, its directory in the results.
        source: Where the paper has it, such as ``Fig. 3a``; empty if the paper does not have it.
        sweep: Its section of `params.yaml`.
        rows: The columns of its rows, with roles.
        make: Makes a plan for mechanisms to run, or just a table of rows (bounds, attacks, tables).
        mechanisms: Those that run its plan, as `reproduction.declared` names them; empty if `make` gives a table.
        draw: Draws its rows, as ``module:function``, imported when drawn; None if there is only a table.
        page: Turns its rows into tables for people, as ``module:function``; None for the rows as they are. With a
            figure, the report shows the table as well.
        setting: Describes the data and sizes of its rows in sentences, as ``module:function``; the report adds them to
            the caption. Empty for no description.
        uses: Experiments of the same paper whose plans it reads.
        needs_data: Whether it depends on the preset's data set.
        shown: Whether its rows are shown, rather than only used for verdicts.
        tracked: Whether each row of a table is a run in MLflow; runs of mechanisms always are.
        x: The swept column, of plots that DVC draws.
        y: Columns that such plots show against it, each with a title.
        sources: Its place in the paper for certain data sets, if that differs from ``source``.
        caption: Its title and text.
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
        """The heading of its table: its place in the paper, and what it shows."""
        return f"{self.source}: {self.caption.title}" if self.source else self.caption.title

    @property
    def reference(self) -> str:
        """Where it is declared, as ``module:name``."""
        return f"{self.make.__module__}:{self.name}"

    def plan(self, inputs: Inputs) -> ExperimentPlan:
        """Return the plan that mechanisms run.

        Raises:
            ParameterError: There is no such plan, or a value of the inputs is wrong.
            AssumptionError: A theorem's assumption does not hold.
            InfeasibleError: A target cannot be met.
        """
        if not self.mechanisms:
            raise ParameterError(f"{self.reference} makes a table, not a plan; `unlearn pipeline make` runs it")
        return cast(ExperimentPlan, self.make(inputs))

    def table(self, inputs: Inputs) -> "pd.DataFrame":
        """Return the rows of an experiment that no mechanism runs; errors as for `plan`."""
        if self.mechanisms:
            raise ParameterError(f"{self.reference} makes a plan, not a table; `unlearn pipeline plan` writes it")
        return cast("pd.DataFrame", self.make(inputs))
