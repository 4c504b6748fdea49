"""What the experiments of Differential Privacy Dynamics sweep: their sections of `params.yaml`."""

from typing import Annotated

from pydantic import Field

from certified_unlearning.mechanisms.settings import Distinct, PositiveFloat, PositiveInt
from certified_unlearning.reproduction.experiment import Sweep


class Figure2(Sweep):
    """Bounds of Rényi divergence against steps, on quadratic losses of curvature 1."""

    alpha: Distinct[Annotated[float, Field(gt=1)]] = Field(description="a list of distinct Rényi orders above 1")
    gradient_sensitivity: PositiveFloat = Field(description="of the sum of gradients, a number above 0")
    n: PositiveInt = Field(description="a whole number of records, at least 1")
    step_size: PositiveFloat = Field(description="a number above 0 and below 1 / smoothness (Fig. 2: 1)")
    sigma: PositiveFloat = Field(description="the noise scale, a number above 0")
    steps: PositiveInt = Field(description="the most steps, a whole number, at least 1")


class Figure1(Figure2):
    """Rényi divergence against steps of noisy gradient descent, for several curvatures."""

    strong_convexity: Distinct[PositiveFloat] = Field(
        description="a list of distinct numbers above 0; the first is drawn for every alpha, all for the least alpha"
    )
    smoothness: PositiveFloat = Field(description="a number above 0")
