"""Papers as others would declare them, good ones and bad ones."""

import pandas as pd
import pyarrow as pa
from pydantic import Field

from certified_unlearning.data.dataset import DataSet
from certified_unlearning.data.digits import DIGITS
from certified_unlearning.papers.langevin_unlearning.tables import table1
from certified_unlearning.reproduction.experiment import Experiment, Inputs, NoSweep, Sweep
from certified_unlearning.reproduction.paper import Paper
from certified_unlearning.reproduction.rows import column

ROWS = pa.schema([column("experiment", "text", "point"), column("value", "number", "measure")])


class Squares(Sweep):
    """Sweep of `squares`."""

    base: float = Field(description="a number")


def make(inputs: Inputs) -> pd.DataFrame:
    """The square of the base."""
    return pd.DataFrame({"experiment": ["squares"], "value": [inputs.sweep.base**2]})


SQUARES = Experiment(name="squares", source="", sweep=Squares, rows=ROWS, make=make, needs_data=False)
NAMED_LIKE_ANOTHER = Experiment(name="fig3a", source="", sweep=NoSweep, rows=ROWS, make=make)
CIRCLES = DataSet(name="circles", title="Circles", make=DIGITS.make)


def paper(name: str, *experiments: Experiment, data_sets: tuple[DataSet, ...] = ()) -> Paper:
    return Paper(name=name, title=name, package="tests.papers", experiments=experiments, data_sets=data_sets)


PAPER = paper("paper_of_others", SQUARES, data_sets=(CIRCLES,))
NAMESAKE = paper("langevin_unlearning")
SAME_EXPERIMENT = paper("same_experiment", NAMED_LIKE_ANOTHER)
SAME_DATA_SET = paper("same_data_set", data_sets=(DIGITS,))
MADE_ELSEWHERE = paper("elsewhere", Experiment(name="elsewhere", source="", sweep=NoSweep, rows=ROWS, make=table1))
