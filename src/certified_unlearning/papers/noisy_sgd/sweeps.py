"""The sweeps of the experiments of Noisy SGD, and their sections of `params.yaml`."""

from typing import ClassVar

from pydantic import Field

from certified_unlearning.mechanisms.settings import Distinct, PositiveFloat, PositiveInt
from certified_unlearning.reproduction.experiment import Sweep


class Minibatches(Sweep):
    """Epsilon of noisy SGD against unlearning steps, by batch size: bounds, and exact values for quadratic losses."""

    n: PositiveInt = Field(description="a whole number of records, at least 1; delta is 1 / n")
    batch_size: Distinct[PositiveInt] = Field(
        description="a list of distinct whole numbers that divide n; n itself is the full batch"
    )
    strong_convexity: PositiveFloat = Field(description="a number above 0 and at most smoothness")
    smoothness: PositiveFloat = Field(
        description="L, the smoothness of the mean loss of every batch: a number above 0; the step size is 1 / L"
    )
    lipschitz: PositiveFloat = Field(
        description="M, the largest norm of the gradient of a record's loss without the regulariser: a number above 0"
    )
    sigma: PositiveFloat = Field(description="the noise scale, a number above 0")
    learning_epochs: PositiveInt = Field(
        description="the number of passes over the data in learning: a whole number, at least 1"
    )
    unlearning_epochs: PositiveInt = Field(
        description="the largest number of passes over the data in unlearning: a whole number, at least 1"
    )

    def check(self) -> str | None:
        """Return a sentence about values that do not fit together; None if all values fit."""
        odd = [size for size in self.batch_size if self.n % size]
        if odd:
            return f"batch_size contains {odd[0]}, which does not divide n = {self.n}"
        if self.strong_convexity > self.smoothness:
            return f"strong_convexity is {self.strong_convexity}, but must be at most smoothness = {self.smoothness}"
        return None


class BatchSizes(Sweep):
    """Steps and accuracy after one removal, for several batch sizes and values of epsilon."""

    counts_records: ClassVar[tuple[str, ...]] = ("batch_size", "records")

    batch_size: Distinct[PositiveInt] = Field(
        description="a list of distinct whole numbers of records, each at least 1 and at most n"
    )
    epsilon: Distinct[PositiveFloat] = Field(description="a list of distinct numbers above 0")
    sigma: PositiveFloat = Field(description="the noise scale, a number above 0")
    records: PositiveInt = Field(description="the number of records removed at once: a whole number, at least 1")
    epochs: PositiveInt = Field(
        description="the number of passes over the data in learning: a whole number, at least 1"
    )
