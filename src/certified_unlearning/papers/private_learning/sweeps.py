"""The sweeps of the experiments on private learning, and their sections of `params.yaml`."""

from typing import Annotated, Literal

from pydantic import Field

from certified_unlearning.mechanisms.settings import Distinct, PositiveFloat, PositiveInt
from certified_unlearning.reproduction.experiment import Sweep
from certified_unlearning.reproduction.simulation.sweeps import TwoClassSweep

_Seed = Annotated[int, Field(ge=0, lt=2**32)]
_Delta = Annotated[float, Field(gt=0, lt=1)]
_Trials = Annotated[int, Field(ge=2)]
_Several = Annotated[list[PositiveInt], Field(min_length=2, json_schema_extra={"uniqueItems": True})]


class PrivateGradients(Sweep):
    """Gradients at private models by numbers of records and columns, also for non-convex losses."""

    epsilon: PositiveFloat = Field(description="the epsilon of replace-one privacy, above 0")
    delta: _Delta = Field(description="the delta of privacy, strictly between 0 and 1")
    distinct: PositiveInt = Field(description="records of X7 and X10 that differ; all others are their copies")
    spider_n: _Several = Field(description="records of X7, SpiderBoost: at least two multiples of distinct")
    spider_features: PositiveInt = Field(description="columns of X7, a whole number, at least 1")
    tree_n: _Several = Field(description="records of X8, the tree-based Spider: at least two distinct whole numbers")
    tree_features: PositiveInt = Field(description="columns of X8, a whole number, at least 1")
    recursive_n: _Several = Field(
        description="records of X9, recursive regularisation: at least two distinct whole numbers"
    )
    linear_time_n: _Several = Field(
        description="records of X14, recursive regularisation in linear time: at least two distinct whole numbers"
    )
    reduction_n: _Several = Field(
        description="records of X16; the smallest number is also that of X15: at least two distinct whole numbers"
    )
    reduction_columns: _Several = Field(
        description="columns of X15's embeddings, the smallest also of X16's: at least two distinct whole numbers"
    )
    reduction_features: _Several = Field(
        description="columns of X15 without an embedding, at least two distinct whole numbers from 10 on"
    )
    embedding_n: PositiveInt = Field(description="records of X10, a multiple of distinct")
    columns: _Several = Field(description="columns of X10's embeddings, at least two distinct whole numbers")
    full_features: _Several = Field(
        description="columns of X10 without an embedding, at least two distinct whole numbers from 10 on"
    )
    trials: _Trials = Field(description="independent runs of each setting, at least 2")
    seed: _Seed = Field(description="a whole number from 0 to 2^32 - 1")

    def check(self) -> str | None:
        """Return a sentence about values that do not fit together; None if all values fit."""
        for name, counts in (("spider_n", self.spider_n), ("embedding_n", [self.embedding_n])):
            odd = [each for each in counts if each % self.distinct]
            if odd:
                return f"{name} contains {odd[0]}, which is not a multiple of distinct = {self.distinct}"
        wide = {"full_features": (self.full_features, "X10"), "reduction_features": (self.reduction_features, "X15")}
        for name, (features, part) in wide.items():
            if min(features) < 10:
                return f"{name} contains {min(features)}, but 10 columns of {part} are not zero"
        return None


class PrivateRisk(Sweep):
    """Excess risk of private linear models against records, columns and unknown norms, compared with lower bounds."""

    epsilon: PositiveFloat = Field(description="the epsilon of replace-one privacy, above 0")
    delta: _Delta = Field(description="the delta of privacy, strictly between 0 and 1")
    output_perturbation_n: _Several = Field(
        description="records of X1, output perturbation: at least two distinct whole numbers"
    )
    descent_n: _Several = Field(description="records of X2, noisy descent: at least two distinct whole numbers")
    features: _Several = Field(
        description="columns of X3, all but the first 50 of them zero: at least two distinct whole numbers from 50 on"
    )
    features_n: PositiveInt = Field(description="records of X3, a whole number, at least 1")
    embedding_columns: PositiveInt = Field(description="largest number of columns of X3's embedding, at least 1")
    absolute_n: _Several = Field(description="records of X4, absolute loss: at least two distinct whole numbers")
    absolute_epsilon: Distinct[PositiveFloat] = Field(description="epsilon of X4, distinct numbers above 0")
    scales: Distinct[PositiveFloat] = Field(description="lengths of the rows of X5, distinct numbers from 0 to 1")
    search_n: Annotated[int, Field(ge=2)] = Field(description="records of X5, the search, at least 2")
    candidates: PositiveInt = Field(description="number of radii of X5, which are powers of 2 from 2 on, at least 1")
    boosting_n: Annotated[int, Field(ge=10)] = Field(description="records of X6, boosting, at least 10")
    boosting_trials: _Trials = Field(description="independent noises of X6, at least 2")
    lower_bound_n: _Several = Field(description="records of X11, lower bounds: at least two distinct whole numbers")
    fingerprint_n: PositiveInt = Field(description="records of X13, the lower bound of Lipschitz losses")
    fingerprint_epsilon: Annotated[list[Annotated[float, Field(gt=0, le=1.2)]], Field(min_length=2)] = Field(
        description="epsilon of X13: at least two numbers above 0 and up to 1.2"
    )
    trials: _Trials = Field(description="independent data sets of each setting, at least 2")
    seed: _Seed = Field(description="a whole number from 0 to 2^32 - 1")

    def check(self) -> str | None:
        """Return a sentence about values that do not fit together; None if all values fit."""
        if min(self.features) < 50:
            return f"features contains {min(self.features)}, but 50 columns of X3 are not zero"
        return None


class GroupPrivacy(TwoClassSweep):
    """Deletions that a private model covers without any work, compared with systems that unlearn them."""

    epsilon: Distinct[PositiveFloat] = Field(description="targets after all deletions, distinct numbers above 0")
    delta: _Delta = Field(description="the delta of the targets, strictly between 0 and 1")
    deletions: Distinct[PositiveInt] = Field(
        description="records deleted by one request, distinct whole numbers; those above n / 2 are left out"
    )
    radius: Distinct[PositiveFloat] = Field(description="radii of private models, distinct numbers above 0")
    steps: Distinct[Annotated[int, Field(ge=2)]] = Field(
        description="steps of private noisy descent, distinct whole numbers, each at least 2"
    )
    sgd_steps: Distinct[PositiveInt] = Field(description="steps of SGD, exact or retrained, distinct whole numbers")
    batch_size: Distinct[PositiveInt] = Field(description="batch sizes of SGD, distinct whole numbers")
    step_size: Distinct[PositiveFloat] = Field(description="step sizes of SGD, distinct numbers above 0")
    sigma: Distinct[PositiveFloat] = Field(description="noise of exact noisy SGD, distinct numbers above 0")
    strength: PositiveFloat = Field(description="C n of Langevin unlearning and Descent-to-Delete, above 0")
    trials: _Trials = Field(description="independent runs of each setting, at least 2")
    seed: _Seed = Field(description="a whole number from 0 to 2^32 - 1")


class PrivateAudits(Sweep):
    """Audits of every private mechanism, and of mechanisms with planted faults."""

    epsilon: PositiveFloat = Field(
        description="the epsilon of mechanisms without sampling, above 0; a large epsilon needs few runs"
    )
    sampled_epsilon: PositiveFloat = Field(description="the epsilon of mechanisms on Poisson batches, above 0")
    sampling: Literal["audited", "left out"] = Field(description="audited, which needs the extra private, or left out")
    runs: PositiveInt = Field(description="runs of a mechanism on each of two data sets, at least 1")
    seed: _Seed = Field(description="a whole number from 0 to 2^32 - 1")
