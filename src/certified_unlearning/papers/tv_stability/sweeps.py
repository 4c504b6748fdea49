"""The sweeps of the experiments on exact unlearning, and their sections of `params.yaml`."""

from typing import Annotated

from pydantic import Field

from certified_unlearning.data.sets import DATA_SETS
from certified_unlearning.mechanisms.settings import Distinct, PositiveFloat, PositiveInt
from certified_unlearning.reproduction.experiment import Sweep
from certified_unlearning.reproduction.simulation.sweeps import TwoClassSweep

_Noise = Annotated[float, Field(ge=0)]


_DataSet = Annotated[str, Field(json_schema_extra={"enum": [each.name for each in DATA_SETS]})]
_Seed = Annotated[int, Field(ge=0, lt=2**32)]


class Deletions(TwoClassSweep):
    """Accuracy against the number of gradients of a deletion, for every system on a grid of its constants."""

    steps: Distinct[PositiveInt] = Field(
        description="numbers T of descent steps: distinct whole numbers, each at least 1"
    )
    batch_size: Distinct[PositiveInt] = Field(description="batch sizes m: distinct whole numbers, each at least 1")
    step_size: Distinct[PositiveFloat] = Field(description="step sizes for rows of norm 1: distinct numbers above 0")
    sigma: Distinct[PositiveFloat] = Field(
        description="standard deviations of the noise in a mean gradient: distinct numbers above 0"
    )
    quantum: Distinct[PositiveFloat] = Field(description="spacings of the grid of gradients: distinct numbers above 0")
    node_sigma: Distinct[PositiveFloat] = Field(
        description="standard deviations of the noise in a sum of gradients in one pass: distinct numbers above 0"
    )
    sum_step_size: Distinct[PositiveFloat] = Field(
        description="step sizes of dual averaging along sums of gradients: distinct numbers above 0"
    )
    radius: Distinct[PositiveFloat] = Field(
        description="radii of the ball of Frank-Wolfe's models: distinct numbers above 0"
    )
    projected_features: Distinct[PositiveInt] = Field(
        description="numbers of features of projected rows in dual averaging: distinct whole numbers, each at least 1"
    )
    full_steps: Distinct[PositiveInt] = Field(
        description="numbers of descent steps on full batches: distinct whole numbers, each at least 1"
    )
    full_sigma: Distinct[PositiveFloat] = Field(
        description="standard deviations of the noise in a sum of all gradients: distinct numbers above 0"
    )
    shards: Distinct[PositiveInt] = Field(
        description="numbers of shards of SISA: distinct whole numbers, each at least 1"
    )
    slices: Distinct[PositiveInt] = Field(
        description="numbers of slices per shard: distinct whole numbers, each at least 1"
    )
    epsilon: Distinct[PositiveFloat] = Field(
        description="epsilons of Langevin unlearning (which is not exact): distinct numbers above 0"
    )
    strength: PositiveFloat = Field(description="C times n for Langevin unlearning, above 0")
    trials: Annotated[int, Field(ge=2)] = Field(
        description="the number of independent runs of each setting, at least 2"
    )
    seed: _Seed = Field(description="a whole number from 0 to 2^32 - 1")


class Edits(Sweep):
    """The number and the size of the recomputations in a stream of deletions and insertions, for each sigma."""

    data: _DataSet = Field(description="the name of a built-in data set")
    row_scale: PositiveFloat = Field(
        description="a number above 0: the norm of rows for which `step_size` and `sigma` are stated, divided by the "
        "norm of the data set's rows"
    )
    deletions: PositiveInt = Field(description="the number of deleted records, a whole number, at least 1")
    insertions: PositiveInt = Field(
        description="the number of inserted records, which learning does not see, at least 1"
    )
    steps: PositiveInt = Field(description="the number T of steps, a whole number, at least 1")
    batch_size: PositiveInt = Field(description="the batch size m, a whole number, at least 1")
    step_size: PositiveFloat = Field(description="a number above 0")
    sigma: Distinct[_Noise] = Field(
        description="standard deviations of the noise in a mean gradient: distinct numbers of at least 0"
    )
    trials: Annotated[int, Field(ge=2)] = Field(description="the number of independent runs of each sigma, at least 2")
    seed: _Seed = Field(description="a whole number from 0 to 2^32 - 1")


_Shares = Annotated[list[PositiveFloat], Field(min_length=2, json_schema_extra={"uniqueItems": True})]
_Several = Annotated[list[PositiveInt], Field(min_length=2, json_schema_extra={"uniqueItems": True})]


class ExactRates(Sweep):
    """Excess risk of exact learners against the number of records, the stability rho, and the number of columns.

    Each learner has the parameters of its theorem.
    """

    n: _Several = Field(description="numbers of records for chapter 4's learners: at least two distinct whole numbers")
    rho: _Shares = Field(
        description="shares rho of edits that may cause a recomputation, for chapter 4: at least two distinct numbers"
    )
    columns: _Several = Field(
        description="numbers of columns (only the first 10 are nonzero): at least two distinct whole numbers, each at "
        "least 10"
    )
    population_n: _Several = Field(description="numbers of records for Theorem 48: at least two distinct whole numbers")
    population_rho: PositiveFloat = Field(description="the stability rho for Theorem 48, above 0")
    pass_n: _Several = Field(
        description="numbers of records for chapter 5's learners: at least two distinct whole numbers"
    )
    pass_rho: _Shares = Field(
        description="shares rho of edits that may cause a recomputation, for chapter 5: at least two distinct numbers"
    )
    pass_columns: _Several = Field(
        description="numbers of columns in chapter 5 (only 10 are nonzero): at least two distinct whole numbers, each "
        "at least 10"
    )
    projected_n: _Several = Field(
        description="numbers of records for Theorems 28 and 29: at least two distinct whole numbers"
    )
    projected_columns: PositiveInt = Field(
        description="the number of columns of rows before they are projected, a whole number"
    )
    trials: Annotated[int, Field(ge=2)] = Field(
        description="the number of independent runs of each setting, at least 2"
    )
    seed: _Seed = Field(description="a whole number from 0 to 2^32 - 1")

    def check(self) -> str | None:
        """Return a sentence about values that do not fit together; None if all values fit."""
        for name, columns in (("columns", self.columns), ("pass_columns", self.pass_columns)):
            if min(columns) < 10:
                return f"{name} contains {min(columns)}, but values must be at least 10, because 10 columns are nonzero"
        if min(self.n) * max(self.rho) < 1 or max(self.n) * min(self.rho) < 1:
            least = min(min(self.n) * max(self.rho), max(self.n) * min(self.rho))
            return (
                f"n * rho must be at least 1 in every setting, so that at least one record may be used, got {least:g}"
            )
        return None
