"""The sweep of the experiment `service`, and its section of `params.yaml`."""

from typing import Annotated, Literal

from pydantic import Field

from certified_unlearning.mechanisms.settings import Distinct, PositiveFloat, PositiveInt
from certified_unlearning.papers.gradient_certificates.sweeps import (
    DATA_IN_WORDS,
    Data,
    Seed,
    Trials,
    files_of,
    unknown_data,
)
from certified_unlearning.reproduction.experiment import Sweep

Stream = Literal["random", "one shard", "in turn"]


class Service(Sweep):
    """Streams of requests to an ensemble of shards with budgets, compared with plain SISA and retraining."""

    data: Data = Field(description=DATA_IN_WORDS)
    pooled: PositiveInt = Field(
        description="the side of the squares of pixels over which images are averaged, at least 1 (1 for no averaging)"
    )
    hidden: Annotated[int, Field(ge=0)] = Field(
        description="the number of units in the hidden layer, a whole number (0 for no hidden layer)"
    )
    shards: PositiveInt = Field(description="a whole number of shards, at least 1")
    slices: PositiveInt = Field(description="the number of slices of a shard, each with a checkpoint, at least 1")
    epochs: PositiveInt = Field(description="the number of updates of a stage, a whole number of at least 1")
    step_size: PositiveFloat = Field(description="alpha, a number above 0")
    gamma: PositiveFloat = Field(description="the level to which entries of gradients are clamped, above 0")
    budgets: Distinct[PositiveInt] = Field(
        description="numbers of records that may leave a shard before it is trained again: distinct whole numbers of "
        "at least 1; boxes are also trained for all smaller powers of 2"
    )
    streams: Distinct[Stream] = Field(
        description="a list of one or more of the names `random` (uniformly drawn records), `one shard` (all records "
        "from the first shard), `in turn` (one record from each shard in turn)"
    )
    requests: PositiveInt = Field(description="the number of requests of a stream, each for one record, at least 1")
    queries: PositiveInt = Field(
        description="the number of test records that are queried after every request, a whole number of at least 1"
    )
    comparisons: PositiveInt = Field(
        description="the number of requests, at least 1, at which answers are compared with those of the retrained "
        "ensemble; these requests are spread evenly over a stream"
    )
    trials: Trials = Field(
        description="the number of independent runs, with their own starts, slices, streams and clouds, at least 2"
    )
    seed: Seed = Field(description="a whole number from 0 to 2^31 - 1")

    @property
    def files(self) -> tuple[str, ...]:
        """The features files that the sweep reads."""
        return files_of((self.data,))

    def check(self) -> str | None:
        """Return a sentence about values that do not fit together; None if all values fit."""
        if wrong := unknown_data("data is", self.data):
            return wrong
        if self.budgets != sorted(self.budgets):
            return f"budgets is {self.budgets}, but these numbers must be in increasing order"
        if self.comparisons > self.requests:
            return f"`comparisons` must be at most the number of requests, {self.requests}, got {self.comparisons}"
        return None
