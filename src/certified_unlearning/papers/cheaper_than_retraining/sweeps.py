"""The sweep of `cost`, its section of `params.yaml`, and the constants of systems in every experiment."""

from typing import Annotated

from pydantic import Field

from certified_unlearning.mechanisms.settings import Distinct, PositiveFloat, PositiveInt
from certified_unlearning.reproduction.experiment import Sweep
from certified_unlearning.reproduction.simulation.sweeps import TwoClassSweep

LEAST_RECORDS = 200
"""The smallest number of synthetic records; fewer records might all have the same class."""
_Size = Annotated[int, Field(ge=LEAST_RECORDS)]


class Asked(Sweep):
    """The constants with which every system is run."""

    epsilon: PositiveFloat = Field(description="the target epsilon of every system with a target, a number above 0")
    delta: Annotated[float, Field(gt=0, lt=1)] = Field(description="the delta of the target, strictly between 0 and 1")
    strength: PositiveFloat = Field(
        description="C n, which is scikit-learn's C times the number of records: a number above 0"
    )
    tolerance: PositiveFloat = Field(description="the tolerance of the nearly exact warm-started refit, above 0")
    shards: Annotated[int, Field(ge=2)] = Field(description="the number of shards of SISA: a whole number, at least 2")
    seed: Annotated[int, Field(ge=0, lt=2**32)] = Field(description="a whole number from 0 to 2^32 - 1")


class Cost(Asked, TwoClassSweep):
    """The sweep of `cost`: data sets and their sizes, requests, and the constants of every system."""

    isotropic: Distinct[_Size] = Field(
        description=f"a list of distinct whole numbers of at least {LEAST_RECORDS}: each is the number n of rows of a "
        "synthetic table in which all directions are alike; the figure shows requests on these tables"
    )
    correlated: Distinct[_Size] = Field(
        description=f"a list of distinct whole numbers of at least {LEAST_RECORDS}: each is the number n of rows of a "
        "synthetic table whose columns have decaying variances"
    )
    features: Annotated[int, Field(ge=2)] = Field(
        description="the number of columns of a synthetic row: a whole number, at least 2"
    )
    records: Distinct[PositiveInt] = Field(
        description="a list of distinct whole numbers, each at least 1: the numbers of records per request"
    )
    rounds: PositiveInt = Field(description="number of timed requests of each size, at least 1")
    threads: PositiveInt = Field(description="the number of CPU threads of every system: a whole number, at least 1")
    largest_full_batch: PositiveInt = Field(
        description="the largest n at which full-batch systems are run, a whole number, at least 1; these systems read "
        "all records in every step"
    )
