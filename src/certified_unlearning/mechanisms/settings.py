"""Settings that all runs of a preset share: data, trials, constants of the problem, device and precision."""

from collections.abc import Collection
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from certified_unlearning.accounting.core.losses import scores_per_record
from certified_unlearning.accounting.core.scale import QUICK_CONDITION
from certified_unlearning.accounting.langevin.accountants import ACCOUNTANTS, accountant_called
from certified_unlearning.vocabulary import DType, PipelineAdjacency, Smoothness

PositiveFloat = Annotated[float, Field(gt=0)]
PositiveInt = Annotated[int, Field(ge=1)]
Value = TypeVar("Value")
Distinct = Annotated[list[Value], Field(min_length=1, json_schema_extra={"uniqueItems": True})]
"""A list of distinct values, not empty."""
MOST_TRIAL_RECORDS = 50_000
"""Largest product of trials, records and scores per record in fitted settings.

At this limit, a first run takes minutes.
"""
LEAST_TRIALS = 2
"""Smallest number of trials in fitted settings. A single trial has no spread."""
AccountantName = Annotated[
    str, AfterValidator(lambda name: accountant_called(name).name), Field(json_schema_extra={"enum": [*ACCOUNTANTS]})
]


class Settings(BaseModel):
    """The keys of a preset that its experiments share."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dataset: str = Field(description="the name of a known data set, or of a data set in `own_data`")
    features: str | None = Field(
        description="hog or resnet18 for images, or null; null stands for hog if the data set has both, and otherwise "
        "for its only features"
    )
    trials: PositiveInt = Field(description="a whole number of independent trials, at least 1")
    seed: Annotated[int, Field(ge=0, lt=2**32)] = Field(description="a whole number from 0 to 2^32 - 1")
    regularisation: PositiveFloat = Field(
        description="lambda / n, where (lambda / 2) ||w||^2 is the regulariser: a number above 0 (the paper: 1.0e-6)"
    )
    delta: Literal["1/n"] | Annotated[float, Field(gt=0, lt=1)] = Field(
        description='"1/n" or a number strictly between 0 and 1'
    )
    adjacency: PipelineAdjacency = Field(description="replace (the papers) or zero-out")
    smoothness: Smoothness = Field(
        description="bound (1/4 + lambda, always valid; 1 + lambda for more than two classes), spectral (from the "
        "data: no guarantee) or spectral-with-margin (from the data, valid for the records that a plan removes)"
    )
    step_size: Literal["1/L"] | PositiveFloat = Field(description='"1/L" or a number above 0 and at most 1/L')
    radius: PositiveFloat | None = Field(
        description="null (no projection) or the radius of the ball onto which every step projects, a number above 0"
    )
    start: float = Field(description="the mean of every coordinate of the starting point (the paper: 1000)")
    learning_steps: Literal["learned"] | PositiveInt = Field(
        description='"learned" (the least T after which stopping adds little to delta) or a whole number, at least 1'
    )
    minimum_steps: Annotated[int, Field(ge=0)] = Field(
        description="the smallest K that a plan may have, a whole number: 1 as in the paper, or 0 (no step is taken if "
        "learning alone meets the target)"
    )
    dtype: DType = Field(description="float32 (float64 is used if rounding would dominate epsilon) or float64")
    device: Literal["auto", "cpu", "cuda"] = Field(description="auto, cpu or cuda")
    row_shards: bool = Field(
        default=False,
        exclude_if=lambda shards: not shards,
        description="true or false; if true, gradients are summed over fixed blocks of rows, so that any number of "
        "processes can share a run and get the same bits, but not the same bits as with false",
    )
    accountants: Distinct[AccountantName] = Field(
        description=f"a list of distinct accountants of Langevin unlearning, chosen from {', '.join(ACCOUNTANTS)}"
    )

    def fitted(self, defaults: Collection[str], *, n: int, classes: int) -> "Settings":
        """Return the settings, with the default values adapted to the size of the data.

        The regulariser becomes that of a model with ``C n`` equal to `QUICK_CONDITION`. With many records, the number
        of trials decreases.

        Args:
            defaults: The keys that have default values; the values of other keys do not change.
            n: Number of training records.
            classes: Number of classes.
        """
        affordable = max(LEAST_TRIALS, MOST_TRIAL_RECORDS // (n * scores_per_record(classes)))
        fitting = {"regularisation": 1 / (QUICK_CONDITION * n), "trials": min(self.trials, affordable)}
        return self.model_copy(update={key: value for key, value in fitting.items() if key in defaults})
