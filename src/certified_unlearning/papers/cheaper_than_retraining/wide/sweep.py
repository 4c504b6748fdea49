"""The sweep of the experiment ``wide``: its section of `params.yaml`."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from certified_unlearning.mechanisms.settings import PositiveFloat, PositiveInt
from certified_unlearning.papers.cheaper_than_retraining.sweeps import LEAST_RECORDS
from certified_unlearning.reproduction.experiment import Sweep

Kind = Literal["embeddings", "words"]


class WideTable(BaseModel):
    """One table of wide rows, and the refit with which it is compared."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rows: Kind = Field(
        description="embeddings (float32, variance 1/k in the k-th direction, norm 1) or words (sparse like TF-IDF, "
        "norm 1)"
    )
    n: Annotated[int, Field(ge=LEAST_RECORDS)] = Field(
        description=f"the number of records: a whole number, at least {LEAST_RECORDS}"
    )
    features: Annotated[int, Field(ge=2)] = Field(
        description="the number of columns of a row: a whole number, at least 2"
    )
    classes: Annotated[int, Field(ge=2)] = Field(description="the number of classes: a whole number, at least 2")
    strength: PositiveFloat = Field(
        description="C n, which is scikit-learn's C times the number of records: a number above 0; for C = 1, this "
        "number is the number of records"
    )
    tolerance: PositiveFloat = Field(
        description="the tolerance, above 0, of the warm-started refit that must change the weights; choose the "
        "largest of 1e-4, 1e-6 and 1e-8 with which this refit ends at most three certified distances from the "
        "minimiser; choose 1e-6 if all three numbers are too large"
    )

    one_vs_rest: bool = Field(
        default=False,
        exclude_if=lambda asked: not asked,
        description="true or false: whether one-vs-rest models are also measured",
    )

    @property
    def name(self) -> str:
        """The name of the table in figures and messages."""
        return f"{self.n:,} x {self.features:,}, {self.classes} classes, C n = {self.strength:g}"


class Wide(Sweep):
    """The sweep of the experiment ``wide``: tables, requests, and the constants of the models."""

    tables: list[WideTable] = Field(description="a list of distinct tables of wide rows", min_length=1)
    records: PositiveInt = Field(description="the number of records of a request: a whole number, at least 1")
    requests: PositiveInt = Field(description="the number of requests to each model: a whole number, at least 1")
    refits_every: PositiveInt = Field(
        description="after how many requests scikit-learn refits, a whole number from 1 to the number of requests"
    )
    epsilon: PositiveFloat = Field(description="the target epsilon, a number above 0")
    delta: Annotated[float, Field(gt=0, lt=1)] = Field(description="the delta of the target, strictly between 0 and 1")
    threads: PositiveInt = Field(description="the number of CPU threads of all models: a whole number, at least 1")
    seed: Annotated[int, Field(ge=0, lt=2**32)] = Field(description="a whole number from 0 to 2^32 - 1")

    def check(self) -> str | None:
        """Return a sentence about values that do not fit together; None if all values fit."""
        points = [(each.rows, each.name) for each in self.tables]
        if len(set(points)) < len(points):
            return "tables contains the same table twice"
        if self.refits_every > self.requests:
            return f"refits_every must be at most requests, {self.requests}, got {self.refits_every}"
        for each in self.tables:
            if each.one_vs_rest and each.classes < 3:
                return f"one_vs_rest needs at least three classes, but tables contains a table of {each.classes}"
            if 2 * self.records * self.requests > each.n:
                return (
                    f"tables contains a table of {each.n:,} records, but {self.requests:,} requests of "
                    f"{self.records:,} would remove more than half of them"
                )
        return None
