"""Sweeps of the experiments on private learning: their sections of `params.yaml`."""

from typing import Annotated

from pydantic import Field

from certified_unlearning.mechanisms.settings import Distinct, PositiveFloat, PositiveInt
from certified_unlearning.reproduction.experiment import Sweep

_Seed = Annotated[int, Field(ge=0, lt=2**32)]
_Delta = Annotated[float, Field(gt=0, lt=1)]
_Trials = Annotated[int, Field(ge=2)]
_Several = Annotated[list[PositiveInt], Field(min_length=2, json_schema_extra={"uniqueItems": True})]


class PrivateRisk(Sweep):
    """Excess risk of private linear models: against records, columns, unknown norms, and beside lower bounds."""

    epsilon: PositiveFloat = Field(description="of replace-one privacy, above 0")
    delta: _Delta = Field(description="of privacy, strictly between 0 and 1")
    output_perturbation_n: _Several = Field(
        description="records of X1, output perturbation: at least two distinct whole numbers"
    )
    descent_n: _Several = Field(description="records of X2, noisy descent: at least two distinct whole numbers")
    features: _Several = Field(
        description="columns of X3, all but the first 50 of them zero: at least two distinct whole numbers from 50 on"
    )
    features_n: PositiveInt = Field(description="records of X3, a whole number, at least 1")
    embedding_columns: PositiveInt = Field(description="columns of X3's embedding, at most, a whole number, at least 1")
    absolute_n: _Several = Field(description="records of X4, absolute loss: at least two distinct whole numbers")
    absolute_epsilon: Distinct[PositiveFloat] = Field(description="epsilon of X4, distinct numbers above 0")
    scales: Distinct[PositiveFloat] = Field(description="lengths of the rows of X5, distinct numbers from 0 to 1")
    search_n: Annotated[int, Field(ge=2)] = Field(description="records of X5, the search, at least 2")
    candidates: PositiveInt = Field(description="radii of X5, powers of 2 from 2 on: how many, at least 1")
    boosting_n: Annotated[int, Field(ge=10)] = Field(description="records of X6, boosting, at least 10")
    boosting_trials: _Trials = Field(description="independent noises of X6, at least 2")
    lower_bound_n: _Several = Field(description="records of X11, lower bounds: at least two distinct whole numbers")
    trials: _Trials = Field(description="independent data sets of each setting, at least 2")
    seed: _Seed = Field(description="a whole number from 0 to 2^32 - 1")

    def check(self) -> str | None:
        """Return what is wrong with the values together."""
        if min(self.features) < 50:
            return f"features contains {min(self.features)}, but 50 columns of X3 are not zero"
        return None
