"""The sweeps of the experiments of Differential Privacy Dynamics, and their sections of `params.yaml`."""

from typing import Annotated

from pydantic import Field

from certified_unlearning.mechanisms.settings import Distinct, PositiveFloat, PositiveInt
from certified_unlearning.reproduction.experiment import Sweep


class Figure2(Sweep):
    """Bounds on the Rényi divergence against steps, on quadratic losses of curvature 1."""

    alpha: Distinct[Annotated[float, Field(gt=1)]] = Field(description="a list of distinct Rényi orders above 1")
    gradient_sensitivity: PositiveFloat = Field(description="the sensitivity of the sum of gradients, a number above 0")
    n: PositiveInt = Field(description="a whole number of records, at least 1")
    step_size: PositiveFloat = Field(description="a number above 0 and below 1 / smoothness (in Fig. 2, below 1)")
    sigma: PositiveFloat = Field(description="the noise scale, a number above 0")
    steps: PositiveInt = Field(description="the largest number of steps, a whole number of at least 1")


class Figure1(Figure2):
    """The Rényi divergence against steps of noisy gradient descent, for several curvatures."""

    strong_convexity: Distinct[PositiveFloat] = Field(
        description="a list of distinct numbers above 0; the figure shows the first for every alpha, and all of them "
        "for the smallest alpha"
    )
    smoothness: PositiveFloat = Field(description="a number above 0")


class Measured(Sweep):
    """Runs of noisy gradient descent on two neighbouring data sets with quadratic losses, compared with the bounds."""

    n: PositiveInt = Field(description="a whole number of records, at least 1")
    strong_convexity: PositiveFloat = Field(
        description="the smallest curvature, a number above 0; the data sets differ in its direction"
    )
    smoothness: PositiveFloat = Field(description="the largest curvature, a number that is at least strong_convexity")
    lipschitz: PositiveFloat = Field(
        description="half of the distance by which a replaced record moves the sum of gradients, a number above 0"
    )
    step_size: PositiveFloat = Field(description="a number above 0 and below 1 / smoothness")
    sigma: PositiveFloat = Field(description="the noise scale, a number above 0")
    alpha: Distinct[Annotated[float, Field(gt=1)]] = Field(description="a list of distinct Rényi orders above 1")
    steps: Distinct[PositiveInt] = Field(
        description="numbers of steps after which runs are sampled, a list of distinct whole numbers, each at least 1",
    )
    trials: Annotated[int, Field(ge=2)] = Field(
        description="the number of runs on each of the two data sets, a whole number of at least 2"
    )
    seed: Annotated[int, Field(ge=0, lt=2**32)] = Field(description="a whole number from 0 to 2^32 - 1")
    false_alarms: Annotated[float, Field(gt=0, lt=1)] = Field(
        description="the largest probability that any interval misses the exact value, a number between 0 and 1",
    )
