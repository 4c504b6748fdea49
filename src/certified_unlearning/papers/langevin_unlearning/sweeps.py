"""The sweeps of the experiments of Langevin unlearning, and their sections of `params.yaml`."""

from collections.abc import Collection
from typing import Annotated, ClassVar, Self

from pydantic import Field

from certified_unlearning.mechanisms.settings import Distinct, PositiveFloat, PositiveInt
from certified_unlearning.reproduction.experiment import Sweep


class Figure3a(Sweep):
    """Accuracy against epsilon, with one removed record."""

    epsilon: Distinct[PositiveFloat] = Field(description="a list of distinct numbers above 0")
    unlearning_steps: PositiveInt = Field(
        description="the number K of Langevin unlearning's steps, a whole number, at least 1"
    )
    descent_steps: Distinct[PositiveInt] = Field(
        description="a list of the numbers I of Descent-to-Delete's steps: distinct whole numbers, each at least 1"
    )


class Figure3b(Sweep):
    """Accumulated unlearning steps against the number of removed records, one request after another."""

    counts_records: ClassVar[tuple[str, ...]] = ("records",)

    epsilon: PositiveFloat = Field(description="a number above 0")
    sigma: PositiveFloat = Field(description="the noise scale of Langevin unlearning, a number above 0")
    records: PositiveInt = Field(description="the number of removed records, a whole number, at least 1")
    records_per_request: Distinct[PositiveInt] = Field(
        description="a list of distinct whole numbers, each a divisor of `records`"
    )

    def check(self) -> str | None:
        """Return a sentence about values that do not fit together; None if all values fit."""
        for size in self.records_per_request:
            if self.records % size:
                return f"records_per_request contains {size}, which does not divide records = {self.records}"
        return None

    def fitted(self, defaults: Collection[str], *, n: int) -> Self:
        """Return the sweep for ``n`` records, keeping only request sizes that divide the number of removed records."""
        made = super().fitted(defaults, n=n)
        if "records_per_request" not in defaults:
            return made
        sizes = [size for size in made.records_per_request if made.records % size == 0]
        return made.model_copy(update={"records_per_request": sizes or [1]})


class Figure3c(Sweep):
    """Unlearning steps, initial epsilon and accuracy against sigma."""

    counts_records: ClassVar[tuple[str, ...]] = ("records",)

    epsilon: PositiveFloat = Field(description="a number above 0")
    sigma: Distinct[PositiveFloat] = Field(description="a list of distinct numbers above 0")
    records: PositiveInt = Field(description="the number of removed records, a whole number, at least 1")


class Figure4(Sweep):
    """Unlearning steps against epsilon for groups of records removed at once."""

    counts_records: ClassVar[tuple[str, ...]] = ("records",)

    epsilon: Distinct[PositiveFloat] = Field(description="a list of distinct numbers above 0")
    sigma: PositiveFloat = Field(description="the noise scale of Langevin unlearning, a number above 0")
    records: Distinct[PositiveInt] = Field(description="a list of distinct whole numbers, each at least 1")


class Figure5a(Figure4):
    """Accuracy against the number of records removed at once."""


class Recuperation(Sweep):
    """Certified epsilon against unlearning steps: accounting only, nothing is simulated."""

    counts_records: ClassVar[tuple[str, ...]] = ("records",)

    sigma: PositiveFloat = Field(description="the noise scale of Langevin unlearning, a number above 0")
    records: PositiveInt = Field(description="the number of removed records, a whole number, at least 1")
    steps: PositiveInt = Field(description="the largest number of unlearning steps, a whole number, at least 1")


class BeyondConvexity(Sweep):
    """Epsilon under every case of Theorems 3.2 and 3.3 for one record, computed by accounting alone.

    The experiment does not depend on any data set.
    """

    n: Annotated[int, Field(ge=2)] = Field(
        description="the number of records, a whole number, at least 2; delta is 1 / n"
    )
    strong_convexity: PositiveFloat = Field(
        description="m in the strongly convex case, above 0 and at most `smoothness`"
    )
    smoothness: PositiveFloat = Field(description="L of each record's loss, a number above 0; the step size is 1 / L")
    lipschitz: PositiveFloat = Field(description="M of each record's loss without the regulariser, above 0")
    radius: Distinct[PositiveFloat] = Field(
        description="radii of the ball onto which steps project, distinct numbers above 0"
    )
    sigma: PositiveFloat = Field(description="the noise scale while T or K varies, a number above 0")
    least_sigma: PositiveFloat = Field(description="the least noise scale for infinite T, above 0")
    most_sigma: PositiveFloat = Field(description="the largest noise scale for infinite T, above `least_sigma`")
    learning_steps: PositiveInt = Field(
        description="the number T of learning steps before unlearning, a whole number, at least 1"
    )
    most_learning_steps: PositiveInt = Field(
        description="the largest number of learning steps, a whole number, at least 1"
    )
    most_unlearning_steps: PositiveInt = Field(
        description="the largest number of unlearning steps, a whole number, at least 1"
    )

    def check(self) -> str | None:
        """Return a sentence about values that do not fit together; None if all values fit."""
        if self.strong_convexity > self.smoothness:
            return f"strong_convexity is {self.strong_convexity}, but must be at most smoothness = {self.smoothness}"
        if self.least_sigma >= self.most_sigma:
            return f"least_sigma is {self.least_sigma}, but must be below most_sigma = {self.most_sigma}"
        return None
